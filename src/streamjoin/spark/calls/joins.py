"""Joins of two frames, from calls to trees: what was called, checked, with columns by name and sizes in ticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from streamjoin.algebra import (
    Band,
    Equals,
    Outer,
    Overlaps,
    Predicate,
    Similar,
    Validity,
    join_type,
    overlaps,
)
from streamjoin.algebra.policy import one_of
from streamjoin.algebra.predicate import Closed
from streamjoin.errors import CallError
from streamjoin.plan.lowering.joining import order_of
from streamjoin.plan.relation import IntervalJoin, Join
from streamjoin.spark.calls.options import Joining
from streamjoin.spark.calls.pairs import Pair, as_predicate


def run_join(frames: Any, time: Any, window: Any, where: Any, outer: str, joining: Joining) -> DataFrame:
    """Pairs that match while both are valid, or by value alone."""
    pair = Pair(frames, joining)
    predicates, theta = pair.condition(where)
    windows, times = pair.times(time, window)
    timed = times[0] is not None
    if not timed and not pair.keys and not predicates and theta is None:
        raise CallError(
            "nothing to join by: neither keys, nor a predicate, nor time",
            hint='give by="key", where=..., or time= with window=; a cross product is sj.theta("true")',
        )
    meaning = one_of(outer, Outer, "outer")
    if meaning == "snapshot" and not timed:
        raise CallError('outer="snapshot" needs validity', hint="give a window=, or use outer='row'")
    if not timed:
        check_timeless(pair)
    own = [None if isinstance(window, Validity) else time for window, time in zip(windows, times, strict=True)]
    left, right = (pair.stream(number, own[number], windows[number]) for number in (0, 1))
    cell = cell_size(pair, predicates, times[0])
    how = join_type(joining.how)
    relation = Join(
        left, right, (*pair.keys, *predicates), theta, how, meaning, timed, joining.checked_hold(), cell,  # type: ignore[arg-type]
        joining.strategy(),
    )  # fmt: skip
    return pair.run(relation, windowed=timed)


def run_overlap(
    left: Any, right: Any, sides: tuple[Any, Any], time: Any, window: Any, where: Any, outer: str, joining: Joining
) -> DataFrame:
    """Pairs whose intervals share a point: of time, if nothing else says when rows are valid, otherwise of values."""
    if time is None and window is None:
        inputs = Pair([left, right], joining).inputs
        if all(part.is_time(part.resolve(side[0])) for part, side in zip(inputs, sides, strict=True)):
            return run_join([left, right], None, [Validity(*side) for side in sides], where, outer, joining)
    condition: Predicate = overlaps(tuple(sides[0]), tuple(sides[1]))
    condition = condition if where is None else condition & as_predicate(where)
    return run_join([left, right], time, window, condition, outer, joining)


def run_interval(
    left: Any, right: Any, on: tuple[Any, Any], bounds: tuple[Any, Any], closed: str, where: Any, joining: Joining
) -> DataFrame:
    """Pairs of events whose times are so far apart."""
    pair = Pair([left, right], joining)
    predicates, theta = pair.condition(where)
    times = pair.event_times(on)
    axis = pair.inputs[0].time_axis(times[0])
    lower, upper = axis.ticks(bounds[0], "lower"), axis.ticks(bounds[1], "upper")
    if lower > upper:
        raise CallError(
            f"lower must not be above upper, got {bounds[0]!r} and {bounds[1]!r}",
            hint="both are bounds of right - left; earlier right rows have negative bounds",
        )
    relation = IntervalJoin(
        pair.stream(0),
        pair.stream(1),
        (pair.in_tree(0, times[0]), pair.in_tree(1, times[1])),
        lower,
        upper,
        one_of(closed, Closed, "closed"),  # type: ignore[arg-type]
        (*pair.keys, *predicates),
        theta,
        join_type(joining.how),
        joining.checked_hold(),
        cell_size(pair, [], times[0]),
    )
    return pair.run(relation)


def check_timeless(pair: Pair) -> None:
    """Refuse what a stream could only do with time: it would be accepted, and never happen."""
    options = pair.joining
    if options.lateness is not None:
        raise CallError("lateness needs a time", hint="give time= and window=")
    if not pair.streaming:
        return
    if sum(part.streaming for part in pair.inputs) > 1:
        raise CallError(
            "a streaming join needs time, or its state would grow for ever",
            hint='give time="ts" and window=sj.Range("10 minutes"), or use sj.join_interval',
        )
    asked = {
        'emit="ordered"': (options.emit == "ordered", "nothing would say when a result's turn has come"),
        "idle_after": (options.idle_after is not None, "an input without progress holds nothing back"),
        "late": (set(options.late_of(list(pair.by_name)).values()) != {"drop"}, "no row can be late"),
    }
    for option, (given, why) in asked.items():
        if given:
            raise CallError(f"{option} needs time: without it {why}", hint="give time= and window=, or leave it out")


def cell_size(pair: Pair, predicates: Sequence[Predicate], time: str | None = None) -> float | None:
    """The size of the cells in which rows meet that have no keys, in the unit of what the grid lies over: time, or the
    values of the first predicate.
    """
    cell = pair.joining.cell
    if cell is None:
        return None
    values = [each for each in predicates if not isinstance(each, Equals | Similar)]
    first = min(values, key=order_of, default=None)
    scale, axis = 0, None
    if first is None and time is not None:
        axis = pair.inputs[0].time_axis(time)
    elif isinstance(first, Band | Overlaps):
        column = str(first.columns(0)[0]).removeprefix("0.")
        kind = pair.inputs[0].types[column]
        if pa.types.is_timestamp(kind.arrow) or pa.types.is_date(kind.arrow):
            axis = pair.inputs[0].time_axis(column)
        scale = kind.arrow.scale if pa.types.is_decimal(kind.arrow) else 0
    size: Any = cell if axis is None else axis.ticks(cell, "cell")
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < float("inf"):
        raise CallError(f"cell must be a positive number, got {cell!r}", hint="leave it out to have it chosen")
    if pair.joining.by is not None or pair.joining.left_by is not None:
        raise CallError("cell says where rows without keys meet, and here they meet by key", hint="leave out cell=")
    return float(size) * 10.0**scale
