"""What a joined frame will do, in words. Its plan is found by an id in the metadata of the result's columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField

from streamjoin.algebra import FOREVER, AsOf, Near, Validity, Window
from streamjoin.algebra.predicate import Band, Overlaps, Within
from streamjoin.errors import CallError
from streamjoin.operators import AsofJoin, BestMatchJoin, NearestJoin, TemporalJoin
from streamjoin.plan.picture import explain_relation, to_mermaid
from streamjoin.plan.planner import JoinPlan
from streamjoin.plan.relation import Query, Relation

_KEY: Final = "streamjoin.plan"
_COLUMN: Final = "streamjoin.column"
_CALL: Final = "_streamjoin_call"
PLANS_KEPT: Final = 1000  # a long session makes many frames, and only the last few are ever explained
_plans: dict[int, JoinPlan | QueryPlan] = {}
_ids = itertools.count(1)
_UNITS: Final = (("d", 86_400_000_000), ("h", 3_600_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1))


@dataclass(frozen=True)
class QueryPlan:
    """A query over several operators: the tree as it was written, and as it runs."""

    query: Query
    written: Relation


class Explanation(str):
    """A plan in words; in a notebook, where there is a picture of it, the picture."""

    picture: str | None = None

    def _repr_markdown_(self) -> str:
        return f"```text\n{self}\n```" if self.picture is None else f"```mermaid\n{self.picture}\n```"


def remember(frame: DataFrame, plan: JoinPlan | QueryPlan, call: str | None = None) -> DataFrame:
    """The frame, with its plan's id in the metadata of its columns, where it survives filter, select and withColumn.

    The name of a streaming call is with this very frame only: whatever is made from it is no longer its result.
    """
    number = next(_ids)
    _plans[number] = plan
    _plans.pop(number - PLANS_KEPT, None)
    marked: Any = frame.select(*(_marked(column, number) for column in frame.schema.fields))
    marked.__dict__[_CALL] = call
    return marked  # type: ignore[no-any-return]


def made_by(frame: DataFrame) -> str | None:
    """The name of the streaming call that returned this very frame."""
    name: str | None = frame.__dict__.get(_CALL)
    return name


def _marked(column: StructField, number: int) -> Column:
    quoted = F.col("`" + column.name.replace("`", "``") + "`")
    return quoted.alias(column.name, metadata={**(column.metadata or {}), _KEY: number, _COLUMN: column.name})


def name_in_plan(column: StructField) -> str:
    """What the call that made a column has named it, whatever it is named by now."""
    return str((column.metadata or {}).get(_COLUMN, column.name))


def plan_of(frame: DataFrame) -> JoinPlan | QueryPlan:
    """The plan of the last streamjoin call that made this frame."""
    for column in frame.schema.fields:
        plan = plan_by_mark(column)
        if plan is not None:
            return plan
    raise CallError(
        "this frame does not come from a streamjoin call",
        hint="explain the frame that sj.join returned, or one made from it",
    )


def uses_timers(frame: DataFrame) -> bool:
    """Whether a frame comes from a join with timers; a query over it never ends by itself."""
    plans = (plan_by_mark(column) for column in frame.schema.fields)
    return any(isinstance(plan, JoinPlan) and (plan.timers or plan.fed_by_timers) for plan in plans)


def plan_by_mark(column: StructField) -> JoinPlan | QueryPlan | None:
    """The plan whose id a column carries; None when it carries none."""
    return _plans.get((column.metadata or {}).get(_KEY, 0))


def explanation(plan: JoinPlan | QueryPlan) -> Explanation:
    """A plan in words, and a query also as a picture."""
    if isinstance(plan, JoinPlan):
        return Explanation(describe(plan))
    written, runs = (explain_relation(each) for each in (plan.written, plan.query.relation))
    leaves = [] if plan.query.to_stream is None else [f"leaves as      {plan.query.to_stream}"]
    told = Explanation("\n".join(["as written", _indented(written), "as it runs", _indented(runs), *leaves]))
    told.picture = to_mermaid(plan.query.relation)
    return told


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def describe(plan: JoinPlan) -> str:
    """The plan of a join in words."""
    if isinstance(plan.join, AsofJoin):
        lines = _asof_lines(plan, plan.join)
    elif isinstance(plan.join, BestMatchJoin):
        lines = _best_match_lines(plan, plan.join)
    elif isinstance(plan.join, NearestJoin):
        lines = _nearest_lines(plan, plan.join)
    else:
        lines = _temporal_lines(plan, plan.join)
    if plan.residual is not None:
        lines.append(f"left to Spark  {plan.residual.text}")
    lines.append(f"buckets        {plan.partitioning.describe()}")
    if any(plan.followed):
        who = " and ".join(f"input {n}" for n in (0, 1) if plan.followed[n])
        lines.append(f"verdict        a second stage decides which rows of {who} met nobody")
    for number, part in enumerate(plan.node.inputs):
        lines.append(f"input {number}        {_kept(plan, number, part.window)}{_arriving(plan, number)}")
    if plan.arrivals.idle_after is not None:
        looked = "timers look for it" if plan.timers else "looked at when any input delivers"
        lines.append(f"idle           after {in_units(plan.arrivals.idle_after, pa.timestamp('us'))}, {looked}")
    return "\n".join(lines)


def _best_match_lines(plan: JoinPlan, join: BestMatchJoin) -> list[str]:
    node = plan.node
    keys = f"equal {', '.join(node.inputs[0].keys)} and " if node.inputs[0].keys else ""
    within = ", ".join(
        f"{each.left} {each.epsilon:g}"
        if isinstance(each, Near)
        else f"{each.left} {in_units(each.above, node.inputs[0].schema.field(str(each.left)).type)}"
        for each in join.dimensions
    )
    return [
        f"operator       best-match join, how={join.how}",
        f"emission       {_emission(plan)}",
        f"order          runs sorted by ({'key, ' if node.inputs[0].keys else ''}{join.dimensions[0].left})",
        f"matches by     {keys}distances of at most {within}",
        f"takes          {join.choice.describe()}",
    ]


def _asof_lines(plan: JoinPlan, join: AsofJoin) -> list[str]:
    node, choice = plan.node, join.choice
    ties = ", ".join((*choice.tie_break, "content"))
    keys = f"equal {', '.join(node.inputs[0].keys)}" if node.inputs[0].keys else "time alone"
    taken = choice.describe(lambda ticks: in_units(ticks, node.time_type))
    return [
        f"operator       as-of join, how={node.how}",
        f"emission       {_emission(plan)}",
        f"order          runs sorted by ({'key, ' if node.inputs[0].keys else ''}ts)",
        f"matches by     {keys}",
        f"takes          {taken}; ties: the greatest by {ties}",
    ]


def _nearest_lines(plan: JoinPlan, join: NearestJoin) -> list[str]:
    node, within = plan.node, join.within
    keys = f"equal {', '.join(node.inputs[0].keys)} and " if node.inputs[0].keys else ""
    ties = ", ".join((*join.choice.tie_break, "content"))
    return [
        f"operator       nearest join, how={node.how}",
        f"emission       {_emission(plan)}",
        f"order          {_order(plan, join)}",
        f"matches by     {keys}a {within.metric} distance of at most {within.radius:g}",
        f"takes          {join.choice.describe(lambda ticks: in_units(ticks, node.time_type))}; "
        f"ties: the greatest by {ties}",
    ]


def _emission(plan: JoinPlan) -> str:
    if plan.node.output == "changelog":
        return "a first answer at once, and corrections"
    return "ordered" if plan.node.emit == "ordered" else "when final"


def _temporal_lines(plan: JoinPlan, join: TemporalJoin) -> list[str]:
    node = plan.node
    keys = f"equal {', '.join(node.inputs[0].keys)}" if node.inputs[0].keys else ""
    first = _predicate(plan, join)
    lines = [
        f"operator       temporal join, how={join.how}"
        + (f", outer by {join.outer}" if join.how != "inner" else "")
        + ("" if join.validity else ", without validity"),
        f"emission       {join.emit}" + (f", holding {join.hold}" if join.emit == "ordered" else ""),
        f"order          {_order(plan, join)}",
        f"matches by     {' and '.join(part for part in (keys, first) if part) or 'validity alone'}",
    ]
    tests = [type(test).__name__ for test in join.matching.tests]
    if tests:
        lines.append(f"then tested    {', '.join(tests)}")
    return lines


def _predicate(plan: JoinPlan, join: TemporalJoin) -> str:
    first = join.matching.first
    if isinstance(first, Band):
        left, right = "[" if first.low_closed else "(", "]" if first.high_closed else ")"
        kind = plan.node.inputs[0].schema.field(first.left).type
        low, high = (in_units(bound, kind) for bound in (-first.below, first.above))
        return f"{first.right} - {first.left} in {left}{low}, {high}{right}"
    if isinstance(first, Overlaps):
        return f"[{', '.join(map(str, first.left))}) overlaps [{', '.join(map(str, first.right))})"
    if isinstance(first, Within):
        return f"{first.metric} distance over ({', '.join(map(str, first.left))}) at most {first.radius:g}"
    return ""


def _order(plan: JoinPlan, join: TemporalJoin | NearestJoin) -> str:
    first = join.matching.first
    by = (
        "ts"
        if first is None
        else "value"
        if isinstance(first, Band)
        else "lo"
        if isinstance(first, Overlaps)
        else "grid row, x"
    )
    return f"runs sorted by ({'key, ' if plan.node.inputs[0].keys else ''}{by})"


def _kept(plan: JoinPlan, number: int, window: Window | None) -> str:
    kind = plan.node.time_type
    if window is not None:
        return f"{_window(window, kind)}: a row is kept until the other input's progress reaches its end"
    choice, forget_after = plan.node.choice, plan.bindings[number].forget_after
    if isinstance(plan.join, BestMatchJoin | NearestJoin) and forget_after is not None:
        if number == plan.join.chooser:
            return "a row waits until the other input's progress is beyond its reach"
        return "a row is kept while one that waits or can come may reach it"
    if isinstance(choice, AsOf) and number == 0:
        return "a row waits until the other input's progress proves its answer"
    if isinstance(choice, AsOf) and choice.looks_back:
        limit = "" if forget_after == FOREVER else f", or is {in_units(forget_after, kind)} beyond its time"
        return (
            "a row is kept until the smallest left time that waits or can come has passed the next row of its key"
            + limit
        )
    if forget_after is not None:
        return f"a row is kept until the other input's progress is {in_units(forget_after, kind)} beyond its time"
    return "no time: every row is kept"


def _arriving(plan: JoinPlan, number: int) -> str:
    """What a stream adds: how late its rows may be, or that it is there from the start."""
    if plan.arrivals.has_ended(number):
        return "; static, in the state from the start"
    lateness = plan.arrivals.lateness[number]
    return "" if lateness is None else f"; rows may be {in_units(lateness.delay, plan.node.time_type)} late"


def _window(window: Window, kind: pa.DataType | None) -> str:
    if isinstance(window, Validity):
        return f"Validity({window.start}, {window.end})"
    sizes = {name: getattr(window, name, None) for name in ("size", "slide")}
    shown = [in_units(ticks, kind) for ticks in sizes.values() if ticks is not None]
    return f"{type(window).__name__}({', slide='.join(shown)})"


def in_units(ticks: Any, kind: pa.DataType | None) -> str:
    """A number of ticks as a reader counts: a duration, a decimal, or the number itself.

    >>> in_units(90_000_000, pa.timestamp("us")), in_units(150, pa.decimal128(5, 2)), in_units(3, pa.int64())
    ('90 s', '1.5', '3')
    """
    if kind is not None and pa.types.is_timestamp(kind):
        unit, size = next((unit, size) for unit, size in _UNITS if ticks % size == 0)
        return f"{ticks // size} {unit}"
    if kind is not None and pa.types.is_date(kind):
        return f"{ticks} d"
    if kind is not None and pa.types.is_decimal(kind):
        return f"{Decimal(ticks).scaleb(-kind.scale).normalize():f}"
    return str(ticks)
