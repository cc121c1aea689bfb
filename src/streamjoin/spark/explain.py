"""What a joined frame will do, in words. Its plan is found by an id in the metadata of the result's first column."""

from __future__ import annotations

import itertools
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.algebra.predicate import Band, Overlaps, Within
from streamjoin.errors import CallError
from streamjoin.plan.planner import JoinPlan

_KEY: Final = "streamjoin.plan"
_plans: dict[int, JoinPlan] = {}
_ids = itertools.count(1)


def remember(frame: DataFrame, plan: JoinPlan) -> DataFrame:
    """The frame, with its plan's id in the metadata of its first column, where it survives filter and withColumn."""
    number = next(_ids)
    _plans[number] = plan
    first = frame.columns[0]
    quoted = F.col("`" + first.replace("`", "``") + "`")
    marked = quoted.alias(first, metadata={_KEY: number})
    return frame.select(marked, *(F.col("`" + name.replace("`", "``") + "`") for name in frame.columns[1:]))


def plan_of(frame: DataFrame) -> JoinPlan:
    """The plan of the last streamjoin call that made this frame."""
    for column in frame.schema.fields:
        number = (column.metadata or {}).get(_KEY)
        if number in _plans:
            return _plans[number]
    raise CallError(
        "this frame does not come from a streamjoin call",
        hint="explain the frame that sj.join returned, or one made from it",
    )


def describe(plan: JoinPlan) -> str:
    """A plan in words."""
    node, join = plan.node, plan.join
    keys = f"equal {', '.join(node.inputs[0].keys)}" if node.inputs[0].keys else ""
    first = _predicate(join.matching.first)
    lines = [
        f"operator       temporal join, how={join.how}"
        + (f", outer by {join.outer}" if join.how != "inner" else "")
        + ("" if join.validity else ", without validity"),
        f"emission       {join.emit}" + (f", holding {join.hold}" if join.emit == "ordered" else ""),
        f"order          {_order(plan)}",
        f"matches by     {' and '.join(part for part in (keys, first) if part) or 'validity alone'}",
    ]
    tests = [type(test).__name__ for test in join.matching.tests]
    if tests:
        lines.append(f"then tested    {', '.join(tests)}")
    if plan.residual is not None:
        lines.append(f"left to Spark  {plan.residual.text}")
    lines.append(f"buckets        {plan.partitioning.describe()}")
    if any(plan.followed):
        who = " and ".join(f"input {n}" for n in (0, 1) if plan.followed[n])
        lines.append(f"verdict        a second stage decides which rows of {who} met nobody")
    for number, part in enumerate(node.inputs):
        lines.append(f"input {number}        {_kept(plan, number, part.window)}")
    return "\n".join(lines)


def _predicate(first: object) -> str:
    if isinstance(first, Band):
        left, right = "[" if first.low_closed else "(", "]" if first.high_closed else ")"
        return f"{first.right} - {first.left} in {left}{-first.below}, {first.above}{right}"
    if isinstance(first, Overlaps):
        return f"[{', '.join(map(str, first.left))}) overlaps [{', '.join(map(str, first.right))})"
    if isinstance(first, Within):
        return f"{first.metric} distance over ({', '.join(map(str, first.left))}) at most {first.radius:g}"
    return ""


def _order(plan: JoinPlan) -> str:
    first = plan.join.matching.first
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


def _kept(plan: JoinPlan, number: int, window: object) -> str:
    if window is not None:
        return f"{window}: a row is kept until the other input's progress reaches its end"
    if plan.node.interval is not None:
        return f"a row is kept {plan.bindings[number].forget_after} ticks beyond its time"
    return "no time: every row is kept"
