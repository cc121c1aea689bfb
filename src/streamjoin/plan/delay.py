"""How late the results of a streaming call can be, by a time column of theirs: how far a result's time can lie behind
the largest one that left in earlier micro-batches.

Say input i has the progress P: whatever is new on it begins no earlier. A stream with the slack g that has shown times
up to M has P = M - g. What an operator says of its own results is the least over its inputs.

Of each relation four things are known, if there is a bound at all; known ends only, because nothing leaves without one:

    ahead    how far beyond the progress a result can begin
    until    how far beyond the progress a result can end
    length   how long a result can be valid
    open     whether it is said before its end is known; then it leaves when progress has reached that

What leaves begins no earlier than the progress, or, if it had to wait for its end, no more than its length before it.
So results are `ahead` late, and where they are open `ahead + length`.

    Stream        ahead = g; length = its longest validity; until = both together. Of a row window ends are known when
                  progress has reached them: ahead = until = 0, and open; nobody knows the length
    Join          a pair lies within a row of each input: ahead = until = the larger `until` of those that move, length
                  = the smaller one
    outer Join    a row without partner leaves when the other input has passed its end. Until then its start holds back
                  the progress of the join, by its length: ahead = `until` of one input and length of the other, the
                  larger sum. Where a second stage decides, or an end is unknown, it waits for its own input as well:
                  ahead = the larger `until` and that length, if this is more. A table is past everything from the
                  start: where only rows beside it can be without partner, ahead = their `until`
    Aggregation   pieces begin and end when progress has come there: ahead = until = 0, and open; length as the child
    DISTINCT, EXCEPT, INTERSECT   the same, but a payload may be there for ever: equal rows follow one another. Not when
                  a time column is part of the payload: then all of them begin with it
    UNION         one part may be any time behind the others; only an aggregation or a set operator above waits for it

Where an operator shares a stage with an outer join below it, buckets differ in progress by the length of rows that may
have no partner, and the operator is so far ahead. ISTREAM, DSTREAM and RSTREAM go by progress, whatever is below. So do
changelogs of relations; only a window tells at once what comes.

By a time column of a stream, whatever operators make of its rows begins up to their length later than it says.

Event joins, over `lower <= right - left <= upper`:
    times so far of the other side's column are at most M less the nearer bound, new ones at least M - g less the
    farther one: upper - lower + g late, or the slack of the column's own input, if that is more. Rows without partner
    are no later.
As-of and nearest joins, with the reach `(back, ahead)` of what a left row can take:
    a left row leaves no later than right progress is `ahead` beyond it, and whoever has left was behind that progress:
    by left times results are as late as the left slack, or as `ahead`, if that is more; by right times both reaches
    later. (Rows that can take nobody leave behind right progress as well, without waiting for what is ahead.)
Best-match joins: the same, with epsilon as both reaches; right rows that nobody took leave a tick later.
A changelog of such a join has no bound: it corrects a row when the other input comes, which may be any time behind.
A join of events over another one takes its results as a stream that is as late as they can be.
"""

from __future__ import annotations

from streamjoin.errors import CallError
from streamjoin.operators import Tpmj
from streamjoin.plan.delay_of_events import EventDelay
from streamjoin.plan.delay_of_lifetimes import LifetimesDelay
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import EVENT_JOINS, Query, operator_of
from streamjoin.plan.wording import in_units
from streamjoin.runtime.lateness import LargestDelay
from streamjoin.runtime.recall import RecallSide


def output_delay(query: Query, plan: PhysicalPlan, column: str | None = None) -> int:
    """How late results can be, in ticks. `column` is a time column of the result: by default the start of its validity,
    the time of an ISTREAM, or the time of input 0.
    """
    law = _law(query, plan)
    if not law.timed:
        raise CallError("this join has no time, so its results cannot be late", hint="give time= and window=")
    if any(isinstance(node.config, Tpmj) for stage in plan.stages for node in stage.nodes):
        raise CallError(
            'results of algorithm="tpmj" leave when sorted runs are merged, and nobody knows when that will be',
            hint="leave algorithm out: sweep areas give results when progress has passed them",
        )
    for source in plan.sources:
        if isinstance(source.lateness, LargestDelay | RecallSide):
            raise CallError(
                f"{source.reading.label} has a slack that adapts, so nobody knows how late results can be",
                hint='give lateness=sj.Grace("10 seconds")',
            )
    if any(channel.late == "join" for stage in plan.stages for each in stage.inputs for channel in each.channels):
        raise CallError(
            'late="join" lets rows of any age through, so results can be late without bound',
            hint='use late="drop"; or late="output", and take the rows marked _late out before withWatermark',
        )
    own, shape = law.time_columns, plan.sink.shape
    when = [*(shape.validity or ()), *([] if shape.time is None else [shape.time])]
    if isinstance(law, LifetimesDelay) and shape.validity is not None and column == shape.validity[1]:
        return law.delay_by_end()
    if column is None or column in when:
        return law.delay()
    for output in shape.columns:
        sources = [source for source in output.sources if source in own]
        if output.name == column and sources:
            return max(law.delay(source) for source in sources)
    there = [*when, *(output.name for output in shape.columns if own & set(output.sources))]
    whose = "join" if len(plan.sources) == 2 else "query"
    raise CallError(f"{column!r} is no time column of this {whose}'s result", hint=f"there is {', '.join(there)}")


def describe_delay(query: Query, plan: PhysicalPlan) -> str:
    """How late results can be, in words; or why there is no bound."""
    law, shape = _law(query, plan), plan.sink.shape
    if not law.timed:
        return "none: results have no time"
    try:
        ticks = output_delay(query, plan)
    except CallError as refused:
        return f"no bound: {refused.message.removesuffix(', so results can be late without bound')}"
    by = shape.time if shape.validity is None else shape.validity[0]
    if by is None:
        by = "the time of the left input" if isinstance(law, EventDelay) else plan.sources[0].reading.called[0]
    return f"results may be {in_units(ticks, plan.time_type)} late, by {by}"


def _law(query: Query, plan: PhysicalPlan) -> EventDelay | LifetimesDelay:
    events = isinstance(operator_of(query.relation), EVENT_JOINS)
    return EventDelay(plan, query.relation) if events else LifetimesDelay(plan, query.relation)
