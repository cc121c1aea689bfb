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
left ones leave at once, right ones go.

Ordered emission holds results until nothing earlier can leave. Cost: sorting of each batch, one merging pass over left
rows that are ripe and each run of the history; O(log n) copies per right row.

Not here: rows of the right input that nobody took (`how="full"`), first guesses and corrections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra import FOREVER, NEVER, AsOf, Emit, LatePolicy, Progress
from streamjoin.algebra.interval import Mask, Times, saturating_add
from streamjoin.errors import UnsupportedError
from streamjoin.kernels import after, before, sort_order
from streamjoin.operators.contract import Footprint, Operator, Output, Results, Rows, null_rows, side_by_side
from streamjoin.operators.ordering import HeldResults, HeldRows
from streamjoin.operators.temporal_join import check_snapshot, late_row, whole_snapshot
from streamjoin.state import Batch, History, Snapshot, SweepArea
from streamjoin.state.batch import Indices
from streamjoin.state.history import same_code, tie_order

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class AsofJoin:
    """What to join and how. `build()` makes the running operator."""

    choice: AsOf
    schemas: tuple[pa.Schema, pa.Schema]
    how: Literal["left", "inner"] = "left"
    emit: Emit = "eager"
    late: tuple[LatePolicy, LatePolicy] = ("drop", "drop")

    def __post_init__(self) -> None:
        if self.late[LEFT] == "join":
            raise UnsupportedError(
                'late="join" of the left input of an as-of join: what a late row would take may be forgotten already',
                hint='use late="output" or late="drop" for the left input, for example late=["output", "join"]',
            )

    # What plans ask of every join: no row of this one is followed over several buckets.
    outer: Literal["row"] = field(default="row", init=False)
    hold: Literal["outputs"] = field(default="outputs", init=False)
    tracked: tuple[bool, bool] = field(default=(False, False), init=False)
    replicated: tuple[bool, bool] = field(default=(False, False), init=False)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        schemas = [[(field.name, str(field.type)) for field in schema] for schema in self.schemas]
        return repr((self.choice, self.how, self.emit, self.late, schemas))

    def build(self) -> RunningAsofJoin:
        """The running operator, empty."""
        return RunningAsofJoin(self)


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

    def update(self, which: Mask, run: int, row: Indices, time: Times) -> None:
        """These rows have found someone nearer."""
        self.run[which], self.row[which], self.time[which] = run, row[which], time[which]

    def update_from(self, which: Mask, other: Found) -> None:
        """These rows take what they have found over there."""
        self.run[which], self.row[which], self.time[which] = other.run[which], other.row[which], other.time[which]


@dataclass
class RunningAsofJoin(Operator):
    """One as-of join at work."""

    config: AsofJoin
    inputs: int = 2
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        choice = self.config.choice
        self.history = SweepArea(History(tie_break=choice.tie_break, shadowed=choice.looks_back, exact=choice.exact))
        self.waiting = HeldRows()
        self.held = HeldResults()
        self.times = Progress(2)
        self.figures = dict.fromkeys(("rows_in", "results", "late", "unmatchable"), 0)

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        late = (batch.ts < self.times.of(number)) & (batch.ts > NEVER)  # a row without time is never late
        if late.any():
            policy = self.config.late[number]
            at_home = late if batch.home is None else late & batch.home
            self.figures["late"] += int(at_home.sum())
            if policy == "fail":
                raise late_row(number, batch.take(late), self.times.of(number))
            if policy == "output":
                yield Rows("late", number, batch.take(at_home))
            if policy != "join":
                batch = batch.take(~late)
        if batch.matchable is not None:
            batch, hopeless = batch.split(batch.matchable)
            self.figures["unmatchable"] += len(hopeless)
            batch = batch.without_matchable()
            if number == LEFT and self.config.how == "left" and len(hopeless):
                alone = self._results(hopeless, null_rows(self.config.schemas[RIGHT], len(hopeless)))
                yield from self._leave(alone)
        if len(batch) and number == LEFT:
            self.waiting.add(batch)
        elif len(batch):
            self.history.insert(self.history.matching.sorted_run(batch))

    # -- progress moves ------------------------------------------------------------------------------------------------

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        yield from self._settle()

    def on_end(self) -> Iterator[Output]:
        self.times.finish()
        yield from self._settle()

    def _settle(self) -> Iterator[Output]:
        progress, choice = self.times.of(RIGHT), self.config.choice
        # Whatever the direction: nobody is sure before all right rows before its own time have come.
        bound = progress + 1 if not choice.looks_ahead and not choice.exact and progress < FOREVER else progress
        ripe = self.waiting.release(lambda rows: rows.ts < bound)
        if ripe is not None:
            yield from self._leave_where_sure(ripe)
        list(self.history.purge(min(self.times.of(LEFT), self.waiting.first)))
        for results in self.held.release(min(self.times.of(LEFT), self.waiting.first)):
            self.figures["results"] += len(results)
            yield results

    def _leave_where_sure(self, ripe: Batch) -> Iterator[Output]:
        left = ripe.take(sort_order([ripe.group, ripe.ts]))
        found = self._nearest(left)
        sure = self._sure(left.ts, found)
        if not sure.all():
            self.waiting.add(left.take(~sure))
        if self.config.how == "inner":
            sure &= found.there
        for results in self._taken(left, found, sure):
            yield from self._leave(results)

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

    def _nearest(self, left: Batch) -> Found:
        """The nearest right row of what is there, within the tolerance."""
        choice = self.config.choice
        found = Found.nobody(len(left))
        if choice.looks_back:
            found = self._look(left, before)
        if choice.looks_ahead:
            ahead = self._look(left, after)
            nearer = ahead.there & ~found.there
            both = ahead.there & found.there
            nearer |= both & (_distance(left.ts, ahead.time) < _distance(left.ts, found.time))
            found.update_from(nearer, ahead)
        if choice.tolerance is not None:
            far = found.there & (_distance(left.ts, found.time) > np.uint64(choice.tolerance))
            found.run[far], found.row[far] = -1, -1
        return found

    def _look(self, left: Batch, kernel: Any) -> Found:
        """The nearest in one direction, over all runs."""
        found = Found.nobody(len(left))
        for number, kept in enumerate(self.history.kept):
            right = kept.run.rows
            row = kernel((left.group, left.ts), (right.group, right.ts), strict=not self.config.choice.exact)
            there = row >= 0
            if not there.any():
                continue
            if left.proof is not None:
                _check_keys(left, right, there, row)
            time = right.ts[np.maximum(row, 0)]
            known = there & found.there
            nearer = (there & ~found.there) | (known & (time > found.time if kernel is before else time < found.time))
            tied = np.flatnonzero(known & (time == found.time))
            if len(tied):
                nearer[tied[self._wins(found, number, row, tied)]] = True
            found.update(nearer, number, row, time)
        return found

    def _wins(self, found: Found, number: int, row: Indices, tied: Indices) -> Mask:
        """Where two runs have a right row of the same time for a left row: whether run `number` has the one to take."""
        challengers = self.history.kept[number].run.rows.payload.take(pa.array(row[tied]))
        wins = np.zeros(len(tied), np.bool_)
        for other in np.unique(found.run[tied]):
            mine = np.flatnonzero(found.run[tied] == other)
            champions = self.history.kept[other].run.rows.payload.take(pa.array(found.row[tied[mine]]))
            both = pa.concat_tables([champions, challengers.take(pa.array(mine))])
            which = np.tile(np.arange(len(mine)), 2)
            last = tie_order(both, which, self.config.choice.tie_break)[1::2]
            wins[mine[which[last]]] = last >= len(mine)
        return wins

    # -- results leave -------------------------------------------------------------------------------------------------

    def _taken(self, left: Batch, found: Found, which: Mask) -> Iterator[Results]:
        """The results of these left rows, run by run."""
        for number, kept in enumerate(self.history.kept):
            mine = np.flatnonzero(which & (found.run == number))
            if len(mine):
                yield self._results(left.take(mine), kept.run.rows.payload.take(pa.array(found.row[mine])))
        alone = np.flatnonzero(which & ~found.there)
        if len(alone):
            yield self._results(left.take(alone), null_rows(self.config.schemas[RIGHT], len(alone)))

    def _results(self, left: Batch, right: pa.Table) -> Results:
        ts = np.where(left.ts > NEVER, left.ts, self.progress)  # a row without time leaves now
        return Results(side_by_side([left.payload, right]), ts, ts)

    def _leave(self, results: Results) -> Iterator[Output]:
        if self.config.emit == "ordered":
            self.held.add(results)
        else:
            self.figures["results"] += len(results)
            yield results

    # -- what is known and kept ----------------------------------------------------------------------------------------

    @property
    def progress(self) -> int:
        return min(self.times.of(LEFT), self.waiting.first, self.held.first)

    @property
    def footprint(self) -> Footprint:
        area = Footprint(self.history.rows, self.history.nbytes, len(self.history.kept), self.history.removed)
        return area + self.waiting.footprint + self.held.footprint

    def snapshot(self) -> Snapshot:
        parts = [self.history.snapshot("area1"), self.waiting.snapshot("waiting0"), self.held.snapshot("held")]
        return whole_snapshot(self.config.fingerprint, self.times, self.figures, parts)

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        self.times = Progress(2, list(snapshot.manifest["progress"]))
        self.figures = dict(snapshot.manifest["figures"])
        parts: tuple[SweepArea | HeldRows | HeldResults, ...] = (self.history, self.waiting, self.held)
        for part, manifest in zip(parts, snapshot.manifest["parts"], strict=True):
            part.restore(Snapshot(manifest, snapshot.blobs))


def _distance(one: Times, two: Times) -> Any:
    """How far apart two times are; unsigned, because the distance of two int64 may not be one."""
    return np.maximum(one, two).view(np.uint64) - np.minimum(one, two).view(np.uint64)


def _check_keys(left: Batch, right: Batch, there: Mask, row: Indices) -> None:
    """Equal group codes that are hashes: the keys themselves must be equal."""
    assert left.proof is not None and right.proof is not None
    mine, others = left.proof.filter(pa.array(there)), right.proof.take(pa.array(row[there]))
    for one, two in zip(mine.columns, others.columns, strict=True):
        if not pc.all(pc.equal(one, two)).as_py():
            raise same_code()
