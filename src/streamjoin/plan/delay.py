"""How late the results of a streaming call can be, by a time column of theirs: how far a result's time can lie behind
the largest one that left in earlier micro-batches.

Of each relation two things are known: how late its elements can start (D), and how long they can be valid (L).

    Stream        D is the slack of its source, L the longest validity that its window gives
    Selection, Projection   as their child
    Join          pairs begin within the validity of a row of each input, and no earlier than the newer one:
                  D = the largest of (L + D) of the inputs, L = the least of theirs. A row without partner leaves when
                  progress passes its end: D = both L, and the larger D; L = the larger
    Aggregation, EXCEPT, INTERSECT   pieces start in order: D = 0; L as that of the (left) child
    DISTINCT      D = 0; a payload may be there for ever
    UNION         of several streams: one may be any time behind the others

What leaves waits for its end. Joins of streams with ends know it at once; pieces know it L later: then D + L.

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

from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Query


def output_delay(query: Query, plan: PhysicalPlan, column: str | None = None) -> int:
    """In ticks. `column` is a time column of the result: by default the start of its validity, or the time of input 0."""
    raise NotImplementedError
