"""How late a streaming join's results can be, by a time column of theirs.

Say input i has shown times up to M before a micro-batch, and has the slack g. Whatever is new on it then has
`ts >= M - g`.

Over validity, w the longest validity of its rows:
    results so far begin before M + w, because they lie within the validity of a row of input i;
    a new pair has a new row, and begins no earlier than it does. So pairs are at most w + g late, for the worse input.
    A row without partner leaves when progress passes its end, its own length later: both lengths, and the larger slack.
Event joins, over `lower <= right - left <= upper`:
    times so far of the other side's column are at most M less the nearer bound, new ones at least M - g less the
    farther one: upper - lower + g late, or the slack of the column's own input, if that is more. Rows without partner
    are no later.
As-of and nearest joins, with the reach `(back, ahead)` of what a left row can take:
    a left row leaves no later than right progress is `ahead` beyond it, and whoever has left was behind that progress:
    by left times results are as late as the left slack, or as `ahead`, if that is more; by right times both reaches
    later. (Rows that can take nobody leave behind right progress as well, without waiting for what is ahead.)
Best-match joins: the same, with epsilon as both reaches; right rows that nobody took leave a tick later.
"""

from __future__ import annotations

from typing import Literal

from streamjoin.algebra import AsOf, Grace, NearestOf
from streamjoin.errors import CallError
from streamjoin.operators import BestMatchJoin
from streamjoin.plan.planner import JoinPlan


def output_delay(plan: JoinPlan, column: str | None = None) -> int:
    """In ticks: how far a result's time can lie behind the largest one that left in earlier micro-batches.

    `column` is a time column of the result: by default the start of its validity, or the time of input 0.
    """
    if plan.node.axis is None:
        raise CallError("this join has no time, so its results cannot be late", hint="give time= and window=")
    if "join" in plan.node.late:
        raise CallError(
            'late="join" lets rows of any age through, so results can be late without bound',
            hint='use late="drop"; or late="output", and take the rows marked _late out before withWatermark',
        )
    slacks = [_slack(plan, number) for number in (0, 1)]
    source = _source(plan, column)
    if isinstance(plan.join, BestMatchJoin):
        if plan.join.choice.reach is not None:
            raise CallError(
                "these streams are not ordered by a time, so their results cannot be late by one",
                hint="order them by a timestamp with ordered_by=",
            )
        assert source != "validity"
        chooser, reach = plan.join.chooser, plan.join.reach
        return max(slacks[chooser] or 0, reach) + (0 if source == chooser else 2 * reach + 1)
    if isinstance(plan.node.choice, AsOf | NearestOf):
        assert source != "validity"
        return _delay_of_choice(plan.node.choice.reach, slacks[0] or 0, source)
    bounds = plan.node.interval
    if bounds is not None:
        assert source != "validity"
        return max(slacks[source] or 0, (slacks[1 - source] or 0) + bounds.upper - bounds.lower)
    lengths = [_length(plan, number) for number in (0, 1) if plan.join.how != "inner" or slacks[number] is not None]
    if plan.join.how == "inner":
        moving = [slack for slack in slacks if slack is not None]
        delay = max(length + slack for length, slack in zip(lengths, moving, strict=True))
    else:
        delay = sum(lengths) + max(slack or 0 for slack in slacks)
    return delay + (0 if source == "validity" else _length(plan, source))


def _delay_of_choice(reach: tuple[int | None, int | None], slack: int, source: int) -> int:
    back, ahead = reach
    if ahead is None:
        raise CallError(
            "without tolerance a left row that looks ahead may wait for ever for its answer, so results can be late "
            "without bound",
            hint="give tolerance=",
        )
    delay = max(slack, ahead)
    if source == 0:
        return delay
    if back is None:
        raise CallError(
            "without tolerance the right row's time may lie any distance before the left row's",
            hint="use the left input's time column, or give tolerance=",
        )
    return delay + back + ahead


def _slack(plan: JoinPlan, number: int) -> int | None:
    """The slack of an input; None for a static one, which was there from the start."""
    lateness = plan.arrivals.lateness[number]
    if lateness is None:
        return None
    assert isinstance(lateness, Grace) and isinstance(lateness.delay, int)
    return lateness.delay


def _length(plan: JoinPlan, number: int) -> int:
    window = plan.node.inputs[number].window
    longest = None if window is None else window.longest
    if longest is None:
        raise CallError(
            f"rows of input {number} may be valid for any length of time, so results can be late without bound",
            hint="use a window with a size, such as sj.Range or sj.Fixed",
        )
    return longest


def _source(plan: JoinPlan, column: str | None) -> Literal["validity"] | int:
    """What a time column of the result comes from."""
    naming = plan.naming
    if naming.validity is not None and (column is None or column in naming.validity):
        return "validity"
    if column is None:
        return 0
    for output in naming.columns:
        for number, part in enumerate(plan.node.inputs):
            if output.name == column and f"{number}.{part.time}" in output.sources:
                return number
    times = [*(naming.validity or ()), *_time_columns(plan)]
    raise CallError(f"{column!r} is no time column of this join's result", hint=f"there is {', '.join(times)}")


def _time_columns(plan: JoinPlan) -> list[str]:
    times = {f"{number}.{part.time}" for number, part in enumerate(plan.node.inputs)}
    return [output.name for output in plan.naming.columns if times & set(output.sources)]
