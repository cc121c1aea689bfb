"""Frames whose rows may be urgent: made by hand, by lanes, or by a join; and what a call must say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegralType, LongType, StructField

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.condition import quoted
from streamjoin.plan.lowering.priorities import why_never_urgent
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Query
from streamjoin.runtime.outlet import ToUser
from streamjoin.spark.calls.inputs import Input, check_frame
from streamjoin.spark.calls.options import PRIORITY_NAME
from streamjoin.spark.marks import PRIORITY, has_urgent_rows, of_several, priority_column
from streamjoin.spark.typing import reason

_FITTING = 'for example {"severity = \'ALARM\'": 10, "value > limit": 8}'


def prioritised(frame: DataFrame, rules: Any, name: Any) -> DataFrame:
    """A frame with a column that says how urgent its rows are: that of the most urgent condition that is true."""
    check_frame(frame, "frame")
    check_free(frame, name)
    if not isinstance(rules, Mapping) or not rules:
        raise CallError(f"rules are a dict from a condition to a priority, got {rules!r}", hint=_FITTING)
    for condition, priority in rules.items():
        if not isinstance(condition, str):
            raise CallError(f"a condition is SQL text, got {condition!r}", hint=_FITTING)
        if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority < 1 << 31:
            raise CallError(
                f"a priority is a whole number from 0 on, got {priority!r} for {condition!r}",
                hint="0 is not urgent, and the largest goes first",
            )
    value: Column | None = None
    for condition, priority in sorted(rules.items(), key=lambda rule: -rule[1]):
        met = F.expr(condition)
        value = F.when(met, priority) if value is None else value.when(met, priority)
    assert value is not None
    return stamped(frame, value.otherwise(0), name)


def stamped(frame: DataFrame, priority: Column, name: str, type_name: str = "int") -> DataFrame:
    """A frame with a column for its priority, marked as such."""
    # Selected, as the last or in the place of one of that name: through Spark Connect `withColumn` forgets the mark.
    stamp = priority.cast(type_name).alias(name, metadata={PRIORITY: True})
    fields = frame.schema.fields
    columns = [stamp if each.name.lower() == name.lower() else _unmarked(each) for each in fields]
    if _own(frame, name) is None:
        columns = [*columns, stamp] if priority_column(frame.schema) is not None else [F.col("*"), stamp]
    try:
        found = frame.select(*columns)
        _ = found.schema
    except AnalysisException as error:
        raise CallError(f"Spark cannot evaluate the rules: {reason(error)}", hint=_FITTING) from error
    return found


def _unmarked(field: StructField) -> Column:
    """A column that no longer says how urgent rows are: the latest that was asked for does."""
    known = field.metadata or {}
    column = F.col(quoted(field.name))
    if PRIORITY not in known:
        return column
    return column.alias(field.name, metadata={name: each for name, each in known.items() if name != PRIORITY})


def check_free(frame: DataFrame, name: Any) -> None:
    """Refuse a name for a column that there is already."""
    if not isinstance(name, str) or not name:
        raise CallError(f"as_ is the name of a column, got {name!r}", hint=f'as_="{PRIORITY_NAME}"')
    if name.lower() in (column.lower() for column in frame.columns):
        raise CallError(
            f"the frame has a column {name!r} already", hint='name the priority with as_="urgency", or drop the column'
        )


def laned(frames: Mapping[str, Any], name: Any) -> DataFrame:
    """The rows of all lanes in one frame. The first lane is the most urgent, the last is not; a row's own priority
    stays where it is larger, whatever its column is called.
    """
    if len(frames) < 2:
        raise CallError(
            f"lanes are two frames or more, the most urgent first, got {len(frames)}",
            hint="sj.lanes(urgent=alarms, normal=readings)",
        )
    if not isinstance(name, str) or not name:
        raise CallError(f"as_ is the name of a column, got {name!r}", hint=f'as_="{PRIORITY_NAME}"')
    for lane, frame in frames.items():
        check_frame(frame, f"lane {lane!r}")
    # Own priorities that are large stay as they are.
    own = [each for frame in frames.values() for each in _priorities(frame, name)]
    type_name = "bigint" if any(isinstance(each.dataType, LongType) for each in own) else "int"
    lanes = []
    for least, (lane, frame) in zip(range(len(frames) - 1, -1, -1), frames.items(), strict=True):
        lanes.append(stamped(frame, _at_least(frame, lane, name, least), name, type_name))
    first, *others = lanes
    for lane, other in zip(list(frames)[1:], others, strict=True):
        if sorted(map(str.lower, other.columns)) != sorted(map(str.lower, first.columns)):
            raise CallError(
                f"lane {lane!r} has the columns {', '.join(frames[lane].columns)}, and lane {next(iter(frames))!r} "
                f"{', '.join(next(iter(frames.values())).columns)}",
                hint="lanes are parts of one stream: select the same columns of each",
            )
        first = first.unionByName(other)
    return stamped(_agreed(first, lanes), F.col(quoted(name)), name, type_name)


def _agreed(union: DataFrame, lanes: Sequence[DataFrame]) -> DataFrame:
    """A union of lanes that says of its columns what holds for all: Spark's says what was said of the first one."""
    named = [{each.name.lower(): each for each in lane.schema.fields} for lane in lanes]
    columns, changed = [], False
    for name in lanes[0].columns:
        said = of_several([lane[name.lower()] for lane in named])
        differs = said != (named[0][name.lower()].metadata or {})
        column, changed = F.col(quoted(name)), changed or differs
        columns.append(column.alias(name, metadata=said) if differs else column)
    return union.select(*columns) if changed else union


def _own(frame: DataFrame, name: str) -> StructField | None:
    return next((each for each in frame.schema.fields if each.name.lower() == name.lower()), None)


def _priorities(frame: DataFrame, name: str) -> list[StructField]:
    """The columns that say how urgent rows of a lane are: that of the lanes' name, and the one that is marked."""
    marked = priority_column(frame.schema)
    found = [_own(frame, name), None if marked is None else _own(frame, marked)]
    return list({each.name: each for each in found if each is not None}.values())


def _at_least(frame: DataFrame, lane: str, name: str, least: int) -> Column:
    own = _priorities(frame, name)
    for each in own:
        if not isinstance(each.dataType, IntegralType):
            raise CallError(
                f"a priority is an integer, and {each.name!r} of lane {lane!r} is {each.dataType.simpleString()}",
                hint='cast it, or name the lanes\' priority with as_="urgency"',
            )
    known = [F.coalesce(F.col(quoted(each.name)), F.lit(0)) for each in own]
    return F.greatest(*known, F.lit(least)) if known else F.lit(least)


def check_priority_is_said(part: Input, source: str, *, said: bool, joins: bool) -> None:
    """Refuse a stream with urgent rows in a call that does not know of them: all rows would say how far it is.

    A join has an argument for it, and CQL has words. Other functions have neither: their sources are numbers too.
    """
    if said or not part.streaming or not has_urgent_rows(part.schema):
        return
    column = priority_column(part.schema) or PRIORITY_NAME
    if joins:
        hint = f'give priority="{column}", its column, or sj.deprioritise(frame) before'
    elif source.isdigit():
        hint = f"sj.deprioritise(frame) before, or write it in CQL, with PRIORITY BY {column}, its column"
    else:
        hint = f"give PRIORITY BY {column}, its column, behind {part.label}, or sj.deprioritise(frame) before"
    raise CallError(
        f"{part.label} has urgent rows, and nothing says which: they come early, so the others would be taken for late",
        hint=hint,
    )


def check_urgent(plan: PhysicalPlan, query: Query, *, raised: bool) -> None:
    """Refuse a handler that would never be called, or where results leave no operator as they are."""
    why = why_never_urgent(query, raised=raised)
    if why is not None:
        raise CallError(
            f"urgent= is called with urgent results, and here none is: {why}",
            hint="leave it out; sj.prioritise(frame, {condition: priority}) makes results urgent by their content",
        )
    ways = {stage.outlet.way.channel: stage.outlet.way for stage in plan.stages}
    if not all(isinstance(ways.get(channel), ToUser) for channel in plan.sink.channels):
        raise UnsupportedError(
            "urgent= where Spark computes with results (theta, WHERE, a SELECT list): a worker has them before that",
            hint="join by predicates, and compute on the resulting frame; or read urgent rows from it",
        )
