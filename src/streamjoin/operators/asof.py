"""The as-of join: each left row with the nearest right row of its key, in one direction.

    left  --> [waiting]            rows wait until nothing nearer can come
                  |  looks up
    right --> [history, by key]    what can still be the answer for a row that waits or comes

Law: a left row leaves once, when the right input's progress P proves its answer. With a left time `t`

    backward   every right row up to `t` has come: P > t                        (without equal times: P >= t)
    forward    a right row at `m` is there, and P > m; or P is beyond the tolerance
    nearest    P > t, and nothing nearer than the nearest at distance d can come: P >= t + d if that one lies before,
               P > t + d if it lies after (another one of its time could win the tie); or P is beyond the tolerance

and then takes the nearest of what is there. A right row goes when no left row that waits or can come would take it: the
smallest of their times is the bound of the history (see `state/history`). Rows with a NULL in key or time take nobody:
left ones leave when right progress has passed them, right ones go.

Ordered emission holds results until nothing earlier can leave. Cost: sorting of each batch, one merging pass over left
rows that are ripe and each run of the history; O(log n) copies per right row.

Not here: rows of the right input that nobody took (`how="full"`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, AsOf, Emit
from streamjoin.algebra.interval import Mask, Times, saturating_add
from streamjoin.algebra.policy import ADDED
from streamjoin.errors import UnsupportedError
from streamjoin.kernels import sort_order
from streamjoin.operators.choosing import Answer, ChoosingJoin, RunningChoosingJoin, choosing_terms
from streamjoin.operators.contract import ALONE, Context, JoinTerms, Output
from streamjoin.operators.joining import described
from streamjoin.operators.lateness import LateRows
from streamjoin.operators.urgency import NewPriority
from streamjoin.state import Batch, History, SweepArea, View
from streamjoin.state.batch import Indices
from streamjoin.state.history import Lookup, tie_order

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class AsofJoin(ChoosingJoin):
    """What to join and how. `build()` makes the running operator."""

    choice: AsOf
    schemas: tuple[pa.Schema, pa.Schema]
    how: Literal["left", "inner"] = "left"
    emit: Emit = "eager"
    late: tuple[LateRows, LateRows] = ("drop", "drop")
    changelog: bool = False
    new_priority: NewPriority | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        if self.late[LEFT] == "join":
            raise UnsupportedError(
                'late="join" of the left input of an as-of join: what a late row would take may be forgotten already',
                hint='use late="output" or late="drop" for the left input, for example late=["output", "join"]',
            )

    @property
    def chooser(self) -> int:
        """The input whose rows take others."""
        return LEFT

    @property
    def terms(self) -> JoinTerms:
        """Left rows choose by time."""
        return choosing_terms(self, self.choice, self.choice.reach)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr((self.choice, self.how, self.emit, self.late, self.changelog, described(self.schemas)))

    def build(self, context: Context = ALONE) -> RunningAsofJoin:
        """The running operator, empty."""
        return RunningAsofJoin(self, context)


@dataclass
class Found:
    """Of each left row of a run: the right row that it takes, by run and position (-1 for none), and its time."""

    run: Indices
    row: Indices
    time: Times

    @staticmethod
    def nobody(rows: int) -> Found:
        """Nobody has found anything."""
        return Found(np.full(rows, -1), np.full(rows, -1), np.zeros(rows, np.int64))

    @property
    def there(self) -> Mask:
        """Which rows have found someone."""
        return self.run >= 0

    def update(self, which: Indices, run: int, row: Indices, time: Times) -> None:
        """These left rows have found someone nearer: these rows of a run."""
        self.run[which], self.row[which], self.time[which] = run, row, time

    def update_from(self, which: Mask, other: Found) -> None:
        """These rows take what they have found over there."""
        self.run[which], self.row[which], self.time[which] = other.run[which], other.row[which], other.time[which]


@dataclass
class RunningAsofJoin(RunningChoosingJoin):
    """One as-of join at work."""

    config: AsofJoin

    def _new_area(self) -> SweepArea:
        choice = self.config.choice
        history = History(tie_break=choice.tie_break, shadowed=choice.looks_back, exact=choice.exact)
        return SweepArea(history, spilling=self.context.spilling(1))

    # -- rows become final ---------------------------------------------------------------------------------------------

    def _choose_final(self) -> Iterator[Output]:
        progress, choice = self.times.of(RIGHT), self.config.choice
        # Whatever the direction: nobody is sure before all right rows before its own time have come.
        bound = progress + 1 if not choice.looks_ahead and not choice.exact and progress < FOREVER else progress
        ripe = self.waiting.release(lambda rows: rows.ts < bound)
        if ripe is not None:
            yield from self._leave_where_sure(ripe)

    def _leave_where_sure(self, ripe: Batch) -> Iterator[Output]:
        left, seen = self._arranged(ripe), self.area.view()
        found = self._nearest(left, seen)
        sure = self._sure(left.ts, found)
        if sure.all():
            yield from self._decide(left, self._taken(found), seen)
            return
        self.waiting.add(left.take(~sure))
        yield from self._decide(left.take(sure), self._taken(found).of(sure), seen)

    def _sure(self, t: Times, found: Found) -> Mask:
        """Which left rows can find nothing nearer than what they have found."""
        progress, choice = self.times.of(RIGHT), self.config.choice
        if not choice.looks_ahead or progress == FOREVER:
            return np.ones(len(t), np.bool_)
        # Times are far from the ends of the axis, or saturate there; then only the end of the input makes sure.
        beyond = np.zeros(len(t), np.bool_)
        if choice.tolerance is not None:
            beyond = saturating_add(t, choice.tolerance) < progress
        if not choice.looks_back:
            return beyond | (found.there & (found.time < progress))
        # Where the nearest lies before, a nearer one lies between the left row and as far after it.
        is_before = found.time <= t
        undisturbed = _distance(t, found.time) <= _distance(t, np.full(len(t), progress))
        sure = np.where(is_before, undisturbed & (t < progress), found.time < progress)
        return beyond | (found.there & sure)

    # -- looking up ----------------------------------------------------------------------------------------------------

    def _arranged(self, rows: Batch) -> Batch:
        return rows.take(sort_order([rows.group, rows.ts]))

    def _answer(self, rows: Batch, seen: View) -> Answer:
        return self._taken(self._nearest(rows, seen))

    def _taken(self, found: Found) -> Answer:
        stay = np.flatnonzero(found.there) if self.config.how == "inner" else np.arange(len(found.run))
        return Answer(stay, found.run[stay], found.row[stay])

    def _nearest(self, left: Batch, seen: View) -> Found:
        """The nearest right row of those to be seen, within the tolerance."""
        choice = self.config.choice
        found = Found.nobody(len(left))
        if choice.looks_back:
            found = self._look(left, seen, ahead=False)
        if choice.looks_ahead:
            ahead = self._look(left, seen, ahead=True)
            nearer = ahead.there & ~found.there
            both = ahead.there & found.there
            nearer |= both & (_distance(left.ts, ahead.time) < _distance(left.ts, found.time))
            found.update_from(nearer, ahead)
        if choice.tolerance is not None:
            far = found.there & (_distance(left.ts, found.time) > np.uint64(choice.tolerance))
            found.run[far], found.row[far] = -1, -1
        return found

    def _look(self, left: Batch, seen: View, *, ahead: bool) -> Found:
        """The nearest in one direction, over all runs."""
        found = Found.nobody(len(left))
        lookup = Lookup(ahead=ahead, exact=self.config.choice.exact)
        for meeting in seen.probe(lookup.run_of(left), by=lookup):
            rows, time = meeting.mine, meeting.kept.run.rows.ts[meeting.theirs]
            known, best = found.there[rows], found.time[rows]
            nearer = ~known | (time < best if ahead else time > best)
            tied = np.flatnonzero(known & (time == best))
            if len(tied):
                nearer[tied] = self._wins(found, rows[tied], seen, meeting.number, meeting.theirs[tied])
            found.update(rows[nearer], meeting.number, meeting.theirs[nearer], time[nearer])
        return found

    def _wins(self, found: Found, rows: Indices, seen: View, number: int, positions: Indices) -> Mask:
        """Where two runs have a right row of the same time for a left row: whether run `number` has the one to take."""
        champions = seen.payload(found.run[rows], found.row[rows])
        challengers = seen.payload(np.full(len(rows), number), positions)
        which = np.tile(np.arange(len(rows)), 2)
        last = tie_order(pa.concat_tables([champions, challengers]), which, self.config.choice.tie_break)[1::2]
        return np.asarray(last >= len(rows), np.bool_)


def _distance(one: Times, two: Times) -> Any:
    """How far apart two times are; unsigned, because the distance of two int64 may not be one."""
    return np.maximum(one, two).view(np.uint64) - np.minimum(one, two).view(np.uint64)
