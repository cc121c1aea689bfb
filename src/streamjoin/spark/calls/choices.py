"""Joins in which a row takes some of those that match, from calls to trees: as-of, nearest, best match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.algebra import (
    Band,
    BestOf,
    Direction,
    Dominance,
    Grace,
    MaxDelay,
    NearestOf,
    Steps,
    TimeAxis,
    Within,
    join_type,
)
from streamjoin.algebra.policy import one_of
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.relation import AsOfJoin, BestMatchJoin, NearestJoin
from streamjoin.plan.wording import in_units
from streamjoin.spark.calls.joins import cell_size, check_timeless
from streamjoin.spark.calls.options import Joining, listed, per_input
from streamjoin.spark.calls.pairs import Pair


def run_asof(
    left: Any,
    right: Any,
    on: tuple[Any, Any],
    direction: str,
    distances: Mapping[str, Any],
    exact: Any,
    tie_break: Any,
    joining: Joining,
) -> DataFrame:
    """Each left row with the nearest right row of its key in time. `distances`: tolerance and forget_after."""
    pair = Pair([left, right], joining)
    times = pair.event_times(on)
    axis, kind = pair.inputs[0].time_axis(times[0]), pair.inputs[0].types[times[0]]
    if not isinstance(exact, bool):
        raise CallError(f"allow_exact_matches must be True or False, got {exact!r}")
    ticks = [_distance(axis, value, what) for what, value in distances.items() if value is not None]
    ties = tuple(pair.column(1, each) for each in listed(tie_break))
    relation = AsOfJoin(
        pair.stream(0),
        pair.stream(1),
        (pair.in_tree(0, times[0]), pair.in_tree(1, times[1])),
        pair.equal,
        one_of(direction, Direction, "direction"),  # type: ignore[arg-type]
        exact,
        None if not ticks else min(ticks) if axis is TimeAxis.INTEGER else in_units(min(ticks), kind.arrow),
        join_type(joining.how),
        ties,
    )
    return pair.run(relation)


def run_nearest(
    left: Any, right: Any, within: Within, k: Any, time: Any, tolerance: Any, tie_break: Any, joining: Joining
) -> DataFrame:
    """Each left row with the nearest of the right rows around it."""
    pair = Pair([left, right], joining)
    (near,), _ = pair.condition(within)
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise CallError(f"k must be a whole number from 1 on, got {k!r}", hint="k=3 takes the three nearest")
    given = per_input(time, 2, "time")
    if (given[0] is None) != (tolerance is None):
        raise CallError(
            f"time and tolerance go together, got time={'' if given[0] is None else 'a column'!r} and "
            f"tolerance={tolerance!r}",
            hint='time="ts", tolerance="10 seconds": only right rows count whose time is at most so far away',
        )
    times, reach = None, None
    if given[0] is not None:
        own = pair.event_times(given)
        reach = _distance(pair.inputs[0].time_axis(own[0]), tolerance, "tolerance")
        times = (pair.in_tree(0, own[0]), pair.in_tree(1, own[1]))
    elif pair.inputs[1].streaming:
        raise CallError(
            "a nearest join with a stream on the right needs time, or a row would wait for ever for a nearer one",
            hint='give time="ts" and tolerance="10 seconds"; beside a static right frame neither is needed',
        )
    else:
        check_timeless(pair)
    ties = tuple(pair.column(1, each) for each in listed(tie_break))
    relation = NearestJoin(
        pair.stream(0),
        pair.stream(1),
        near,  # type: ignore[arg-type]
        NearestOf(k, reach, ties),
        times,
        pair.equal,
        join_type(joining.how),
        cell_size(pair, [near]),
    )
    return pair.run(relation)


def run_best_match(
    left: Any, right: Any, on: Any, ordered_by: Any, dominance: Any, compare: Any, joining: Joining
) -> DataFrame:
    """Each row with the best of its candidates. Without a time axis progress is counted in small steps of values."""
    pair = Pair([left, right], joining)
    dimensions = _dimensions(on, ordered_by, compare)
    one, two, epsilon = dimensions[0]
    ordered = [pair.inputs[0].resolve(one), pair.inputs[1].resolve(two)]
    times, reach = None, None
    if all(part.is_time(name) for part, name in zip(pair.inputs, ordered, strict=True)):
        pair.check_axes((ordered[0], ordered[1]))
    else:
        steps, counted = _steps(one, epsilon, joining.lateness)
        if pair.streaming:
            if joining.emit == "ordered":
                raise UnsupportedError(
                    f'emit="ordered" over streams that are ordered by {one!r}, which has no ticks to order by',
                    hint='make it an integer in a fine unit, expr("cast(ra * 1e6 as long)"), and its epsilon too',
                )
            values = [part.column(name) for part, name in zip(pair.inputs, ordered, strict=True)]
            columns = [part.hide(_numbered(value, steps)) for part, value in zip(pair.inputs, values, strict=True)]
            times = (pair.in_tree(0, columns[0]), pair.in_tree(1, columns[1]))
            reach = steps.count(float(epsilon))
        pair.joining = replace(joining, lateness=counted if pair.streaming else None)
    named = tuple((pair.column(0, a), pair.column(1, b), largest) for a, b, largest in dimensions)
    rule: Any = dominance if callable(dominance) else one_of(dominance, Dominance, "dominance")
    relation = BestMatchJoin(
        pair.stream(0),
        pair.stream(1),
        named,
        pair.equal,
        join_type(joining.how),
        BestOf(rule, reach),
        tuple(_functions(dimensions, compare)),
        times,
        cell_size(pair, [Band(*named[0], epsilon)]),
    )
    return pair.run(relation)


def _dimensions(on: Any, ordered_by: Any, compare: Any) -> list[tuple[Any, Any, Any]]:
    """Left column, right column, epsilon; the ordered dimension first."""
    if not isinstance(on, Mapping) or not on:
        raise CallError(
            f"on of a best-match join gives an epsilon per dimension, got {on!r}",
            hint='for example on={"ra": 0.01, "dec": 0.01}, or {("ra", "raj"): 0.01} for columns of two names',
        )
    ordered = next(iter(on)) if ordered_by is None else ordered_by
    if ordered not in on:
        raise CallError(f"ordered_by must be one of the dimensions, got {ordered!r}", hint=f"on has {list(on)}")
    unknown = [name for name in compare or {} if name not in on]
    if unknown:
        raise CallError(f"compare has {unknown[0]!r}, which is no dimension", hint=f"on has {list(on)}")
    if ordered in (compare or {}):
        raise CallError(
            f"the ordered dimension {ordered!r} is compared by its difference: nothing else keeps to the order",
            hint="order by another dimension with ordered_by=, or leave it out of compare=",
        )
    names = [ordered, *(name for name in on if name != ordered)]
    return [(*(name if isinstance(name, tuple) else (name, name)), on[name]) for name in names]


def _functions(dimensions: list[tuple[Any, Any, Any]], compare: Any) -> Iterator[tuple[int, Any]]:
    for number, (left, right, epsilon) in enumerate(dimensions):
        function = (compare or {}).get(left if left == right else (left, right))
        if function is None:
            continue
        if not callable(function):
            raise CallError(f"compare takes functions of two arrays, got {function!r}")
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
            raise CallError(f"an epsilon beside a function must be a number, got {epsilon!r}")
        yield number, function


def _steps(one: Any, epsilon: Any, lateness: Any) -> tuple[Steps, list[Grace | MaxDelay | None]]:
    """An ordered dimension of doubles counted in steps, and the lateness in them."""
    given = per_input(lateness, 2, "lateness")
    for slack in given:
        number = isinstance(slack, Grace) and isinstance(slack.delay, int | float)
        if not (slack is None or isinstance(slack, MaxDelay) or (number and slack.delay >= 0)):
            raise CallError(
                f"lateness along {one!r} is a distance of its values, got {slack!r}", hint="lateness=sj.Grace(0.5)"
            )
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | Decimal) or not epsilon >= 0:
        raise CallError(f"the epsilon of {one!r} must be a number from 0 on, got {epsilon!r}")
    slacks: list[Any] = [slack for slack in given if isinstance(slack, Grace)]
    steps = Steps.of(float(epsilon), [float(slack.delay) for slack in slacks])
    return steps, [Grace(steps.count(float(slack.delay))) if slack in slacks else slack for slack in given]


def _numbered(column: Column, steps: Steps) -> Column:
    """The number of the step that a value is in; NULL where it is none that could be near another."""
    value = column.cast("double")
    number = F.floor(F.greatest(F.least(value / steps.width, F.lit(steps.most)), F.lit(-steps.most)))
    return F.when(~F.isnan(value) & (F.abs(value) < float("inf")), number.cast("long"))


def _distance(axis: TimeAxis, value: Any, what: str) -> int:
    ticks = axis.ticks(value, what)
    if ticks < 0:
        raise CallError(f"{what} must not be negative, got {value!r}", hint="it is a distance in time")
    return ticks
