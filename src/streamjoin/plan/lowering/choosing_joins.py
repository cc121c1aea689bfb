"""Joins in which a row takes some of those that match: as-of, nearest, best match."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from streamjoin.algebra import FOREVER, AsOf, Band, Equals, Near, Predicate, TimeAxis, Within
from streamjoin.errors import CallError
from streamjoin.kernels import MOST_GRID_AXES
from streamjoin.operators import AsofJoin, BestMatchJoin, NearestJoin
from streamjoin.plan import relation as tree
from streamjoin.plan.column_types import time_axis
from streamjoin.plan.lowering.comparing import check_ordered
from streamjoin.plan.lowering.joining import (
    JoinParts,
    Setting,
    bindings_of,
    choose_partitioning,
    key_tests,
    payload_of,
    schemas_of,
    value_tests,
)
from streamjoin.plan.lowering.matching_joins import lower_interval, lower_join
from streamjoin.plan.lowering.predicates import Sides, bind_predicates
from streamjoin.runtime.placing import Partitioning
from streamjoin.state import GridAxis, Matching


def lower_asof(join: tree.AsOfJoin, sides: Sides, needed: frozenset[str], setting: Setting) -> JoinParts:
    """Each left row with the nearest right row of its key in time."""
    keys, _ = bind_predicates(sides, _equals(join.keys))
    assert setting.axis is not None
    choice = AsOf(join.direction, in_ticks(setting.axis, join.tolerance, "tolerance"), join.exact, join.tie_break)
    check_ordered(sides.parts[1].fields, join.tie_break, "tie_break")
    needed = needed | set(join.right.columns)  # ties are broken by content
    payload = payload_of(sides, 0, needed), payload_of(sides, 1, needed)
    reach = _reach(join, choice) if not keys else ()
    partitioning = choose_partitioning(
        keys, reach[0] if reach else None, join.how, setting.buckets, None, timed=False
    ) if keys or reach or setting.buckets == 1 else Partitioning(1)  # fmt: skip
    config = AsofJoin(
        choice, schemas_of(payload), join.how, setting.emit, setting.late, setting.changelog,  # type: ignore[arg-type]
        setting.new_priority,
    )  # fmt: skip
    # A right row is kept until the bound of the history is beyond what its time can reach forward.
    back, same = choice.reach[0], int(join.exact)
    forget = (0, FOREVER if back is None else back + (same if back == 0 else 1))
    bindings = bindings_of(payload, keys, reach, forget_after=forget, timeless=True)
    times = ((join.times[0], 0), *(((join.times[1], back),) if back is not None else ()))
    return JoinParts(config, partitioning, bindings, payload, tuple(keys), join.how, times=times)


def _reach(join: tree.AsOfJoin, choice: AsOf) -> tuple[Predicate, ...]:
    """Which right rows a left row may take, as a band over the times; none where any distance is near enough.

    Only partitioning asks: with keys it is by them, and the band is not needed.
    """
    below, above = choice.reach
    return () if below is None or above is None else (Band(*join.times, below, above, "both"),)


def lower_nearest(join: tree.NearestJoin, sides: Sides, needed: frozenset[str], setting: Setting) -> JoinParts:
    """Each left row with the nearest of the right rows around it."""
    keys, predicates = bind_predicates(sides, [*_equals(join.keys), join.within])
    within = predicates[0]
    assert isinstance(within, Within)
    check_ordered(sides.parts[1].fields, join.choice.tie_break, "tie_break")
    tolerance, forget = join.choice.tolerance, None
    if tolerance is not None:
        assert join.times is not None
        predicates = (*predicates, Band(*join.times, tolerance, tolerance))
        forget = tolerance + 1
    needed = needed | set(join.right.columns)  # ties are broken by content
    payload = payload_of(sides, 0, needed), payload_of(sides, 1, needed)
    tests = (*value_tests(predicates), *key_tests(sides, keys))
    matching = Matching(within, tests, timed=False)
    config = NearestJoin(
        join.choice, matching, within, schemas_of(payload), join.how, setting.emit,  # type: ignore[arg-type]
        setting.late, setting.changelog, setting.new_priority,
    )  # fmt: skip
    partitioning = choose_partitioning(keys, within, join.how, setting.buckets, join.cell, timed=False)
    bindings = bindings_of(payload, keys, predicates, forget_after=forget, timeless=True)
    times = () if join.times is None else ((join.times[0], 0), (join.times[1], tolerance or 0))
    return JoinParts(config, partitioning, bindings, payload, tuple(keys), join.how, times=times)


def lower_best_match(join: tree.BestMatchJoin, sides: Sides, needed: frozenset[str], setting: Setting) -> JoinParts:
    """Each row with the best of its candidates."""
    keys, _ = bind_predicates(sides, _equals(join.keys))
    functions = dict(join.compare)
    asked: list[Predicate] = [
        Near(left, right, largest, functions[number]) if number in functions else Band(left, right, largest, largest)
        for number, (left, right, largest) in enumerate(join.dimensions)
    ]
    _, dimensions = bind_predicates(sides, asked)
    first = dimensions[0]
    assert isinstance(first, Band)
    payload = payload_of(sides, 0, needed), payload_of(sides, 1, needed)
    tests = (*value_tests(dimensions), *key_tests(sides, keys))
    matching = Matching(first, tests, timed=False, grid=grid_of(dimensions))
    partitioning = choose_partitioning(keys, first, join.how, setting.buckets, join.cell, timed=False)
    # Doubles that are not counted in steps are decided at the end, whatever the reach.
    in_values = first.above if isinstance(first.above, int) else 0
    config = BestMatchJoin(
        choice=join.choice,
        matching=matching,
        dimensions=dimensions,  # type: ignore[arg-type]
        reach=in_values if join.choice.reach is None else join.choice.reach,
        schemas=schemas_of(payload),
        how=join.how,  # type: ignore[arg-type]
        emit=setting.emit,
        late=setting.late,
        changelog=setting.changelog,
        replicated=(False, join.how == "full" and partitioning.replicates[1]),
        new_priority=setting.new_priority,
    )
    in_steps = join.choice.reach is not None
    reach = join.choice.reach if in_steps else first.above
    forget = reach + 1 if isinstance(reach, int) else FOREVER
    bindings = bindings_of(
        payload, keys, dimensions, forget_after=forget, timeless=in_steps, ordered=not in_steps
    )  # fmt: skip
    times: tuple[tuple[str, int], ...] = ()
    names = join.dimensions[0][:2]
    timed = all(time_axis(sides.type(*each).arrow) is not None for each in enumerate(names))
    if not in_steps and isinstance(reach, int) and timed:
        times = tuple((name, reach) for name in names)  # a pair is as new as the row that chose
    return JoinParts(
        config, partitioning, bindings, payload, tuple(keys), join.how, times=times
    )  # fmt: skip


def grid_of(dimensions: Sequence[Predicate]) -> tuple[GridAxis, ...]:
    """The dimensions beyond the ordered one that a grid can bound: each makes candidates fewer, two are enough."""
    axes = [
        GridAxis(column, float(dimension.above))
        for column, dimension in enumerate(dimensions)
        if column > 0 and isinstance(dimension, Band) and math.isfinite(dimension.above)
    ]
    return tuple(axes[:MOST_GRID_AXES])


def in_ticks(axis: TimeAxis, value: Any, what: str) -> int | None:
    """A distance in time; None for any."""
    if value is None:
        return None
    ticks = axis.ticks(value, what)
    if ticks < 0:
        raise CallError(f"{what} must not be negative, got {value!r}", hint="it is a distance in time")
    return ticks


def _equals(keys: Sequence[tuple[str, str]]) -> list[Predicate]:
    return [Equals(one, two) for one, two in keys]


# One lowering for each join, all of one form.
LOWERINGS: Final[dict[type, Callable[[Any, Sides, frozenset[str], Setting], JoinParts]]] = {
    tree.Join: lower_join,
    tree.IntervalJoin: lower_interval,
    tree.AsOfJoin: lower_asof,
    tree.NearestJoin: lower_nearest,
    tree.BestMatchJoin: lower_best_match,
}
