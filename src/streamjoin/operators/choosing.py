"""What joins share whose rows choose: rows of one input, the chooser's, wait, and take among the rows of the other.

    chooser --> [waiting]     rows wait until nothing better can come for them; then they choose, once
                    |
    other   --> [area]        what a row that waits or can come may still take

A join of this kind says what rows take of what is there (`_answer`), and which rows have become final. Everything else
is here: late rows, rows that can match nobody, what goes from the area, order, and snapshots.

As a changelog a row also chooses at once, when it comes, and again whenever a better one comes: what it no longer takes
is retracted, what it takes now is inserted, and when it is final nothing happens. What was said before is not stored:
it is what the row takes of the runs that were there before this micro-batch, since nothing goes from the area that a
row that waits could take.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, Emit
from streamjoin.algebra.interval import Mask
from streamjoin.operators.contract import (
    CLAIMANT,
    Choice,
    Configuration,
    JoinTerms,
    Output,
    Results,
    Rows,
    null_rows,
    side_by_side,
)
from streamjoin.operators.joining import Part, RunningJoin, padded, witness
from streamjoin.operators.lateness import LateRows, without_late
from streamjoin.operators.ordering import HeldRows
from streamjoin.operators.saving import Fingerprinted
from streamjoin.operators.temporal_join import RESULT_BYTES
from streamjoin.operators.urgency import at_least_0, taken
from streamjoin.state import Batch, Kept, PairTest, Snapshot, SweepArea, View
from streamjoin.state.batch import Indices


class Choosing(Fingerprinted, Protocol):
    """What is asked of the configuration of such a join."""

    @property
    def chooser(self) -> int: ...  # the input whose rows take others
    @property
    def how(self) -> str: ...
    @property
    def emit(self) -> Emit: ...
    @property
    def late(self) -> tuple[LateRows, LateRows]: ...
    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]: ...
    @property
    def changelog(self) -> bool: ...
    @property
    def replicated(self) -> tuple[bool, bool]: ...


class ChoosingJoin(Configuration):
    """What plans ask of every join."""

    outer: Literal["row"] = "row"
    hold: Literal["outputs"] = "outputs"

    @property
    def tracked(self) -> tuple[bool, bool]:
        """Which inputs' rows must know whether they were taken."""
        return (False, False)

    @property
    def replicated(self) -> tuple[bool, bool]:
        """Of which inputs' rows no bucket alone knows that."""
        return (False, False)

    @property
    def areas(self) -> int:
        """What can be taken lies in one."""
        return 1


def choosing_terms(
    join: Choosing, choice: Choice, reach: tuple[int | None, int | None], tests: tuple[PairTest, ...] = ()
) -> JoinTerms:
    """What such a join says of itself."""
    return JoinTerms(join.how, "row", join.emit, "outputs", choice, join.chooser, reach, tests=tests)


@dataclass(frozen=True)
class Answer:
    """What rows take: each pair is a row and another one by run and position, in order of the rows. A row that takes
    nobody, and stays, is there with run -1.
    """

    row: Indices
    run: Indices
    position: Indices

    def take(self, which: Indices | Mask) -> Answer:
        """Some of the pairs."""
        return Answer(self.row[which], self.run[which], self.position[which])

    def of(self, rows: Mask) -> Answer:
        """What those of the rows take that the mask has, as if there were no others."""
        kept = self.take(rows[self.row])
        return Answer((np.cumsum(rows) - 1)[kept.row], kept.run, kept.position)

    def without(self, other: Answer) -> Answer:
        """The pairs that another answer of the same rows does not have."""
        both = [np.concatenate(columns) for columns in zip(self.columns, other.columns, strict=True)]
        _, pair = np.unique(np.column_stack(both), axis=0, return_inverse=True)
        pair = pair.ravel()
        return self.take(~np.isin(pair[: len(self.row)], pair[len(self.row) :]))

    @property
    def columns(self) -> tuple[Indices, Indices, Indices]:
        """The pairs as columns."""
        return self.row, self.run, self.position


@dataclass
class RunningChoosingJoin(RunningJoin):
    """A join at work whose rows choose."""

    config: Choosing

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.context.owner is None, "whoever chooses must see all candidates in one bucket"
        self.chooser, self.other = self.config.chooser, 1 - self.config.chooser
        self.area = self._new_area()
        self.waiting = HeldRows()
        self.newcomers: list[Batch] = []  # rows that choose, and have not yet said what they take; changelogs only
        self.announced = 0  # so many runs of the area have been looked at by the rows that wait; changelogs only

    @abstractmethod
    def _new_area(self) -> SweepArea:
        """An empty area for what can be taken."""

    @abstractmethod
    def _arranged(self, rows: Batch) -> Batch:
        """The rows in the order in which they look for others."""

    @abstractmethod
    def _answer(self, rows: Batch, seen: View) -> Answer:
        """What arranged rows take of what they see."""

    @abstractmethod
    def _choose_final(self) -> Iterator[Output]:
        """Rows that have become final stop waiting, and leave with what they take (`_decide`)."""

    def _stays(self, number: int) -> bool:
        """Whether a row without a partner leaves, padded."""
        return self.config.how == "full" or (number == self.chooser and self.config.how != "inner")

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        late = (batch.ts < self.times.of(number)) & (batch.ts > NEVER)  # a row without time is never late
        batch = without_late(batch, late, self.config.late[number], self.figures)
        if batch.matchable is not None:
            batch, hopeless = batch.split(batch.matchable)
            self.figures["unmatchable"] += len(hopeless)
            batch = batch.without_matchable()
            if self._stays(number):
                # They meet nobody, wherever: no need to ask other buckets.
                at_home = hopeless if hopeless.home is None else hopeless.take(hopeless.home)
                timed, timeless = at_home.split(at_home.ts > NEVER)  # a row without time is never too early
                alone = self._alone(number, timed)
                if self.config.emit == "eager" and not self.config.changelog:
                    alone = self._not_early(number, alone)
                yield from self._leave(alone)
                yield from self._leave(self._alone(number, timeless))
        if len(batch) and number == self.chooser:
            if self.config.changelog:
                self.newcomers.append(batch)
            else:
                self.waiting.add(batch)
        elif len(batch):
            self.area.insert(self.area.matching.sorted_run(batch))

    def make_room(self) -> None:
        assert not self.announced, "rows that wait have looked at some runs, which must stay apart from the others"
        self.area.make_room()

    def on_batches_end(self) -> Iterator[Output]:
        if self.config.changelog:
            yield from self._announce()

    def _announce(self) -> Iterator[Output]:
        """What rows take now that they did not take before, and what they took before and do no longer."""
        seen, fresh = self.area.view(), self.area.view(since=self.announced)
        if len(fresh) and self.waiting.parts:
            rows = self._arranged(self.waiting.all())
            reached = self._answer(rows, fresh)
            touched = np.unique(reached.row[reached.run >= 0])
            if len(touched):
                rows = rows.take(touched)
                before = self._answer(rows, self.area.view(until=self.announced))
                now = self._answer(rows, seen)
                yield from self._results(rows, before.without(now), seen, retracted=True)
                yield from self._results(rows, now.without(before), seen)
        self.announced = len(seen)
        for batch in self.newcomers:
            rows = self._arranged(batch)
            yield from self._results(rows, self._answer(rows, seen), seen)
            self.waiting.add(batch)
        self.newcomers = []

    # -- progress moves ------------------------------------------------------------------------------------------------

    def _settle(self) -> Iterator[Output]:
        yield from self.on_batches_end()
        yield from self._choose_final()
        for decided in self.area.purge(self._first_choice_to_come()):
            lonely = decided.rows.take(~decided.matched)
            if self.config.replicated[self.other]:
                assert lonely.home is not None
                lonely = lonely.take(lonely.home)
                if len(lonely):
                    yield Rows(CLAIMANT, self.other, lonely)
            elif len(lonely):
                yield from self._leave(self._alone(self.other, lonely))
        self.announced = self.area.runs
        yield from self._release()

    # -- results leave -------------------------------------------------------------------------------------------------

    def _decide(self, rows: Batch, answer: Answer, seen: View) -> Iterator[Output]:
        """Rows that are final leave with what they take. A changelog has said so already."""
        if not self.config.changelog:
            yield from self._results(rows, answer, seen)

    def _results(self, rows: Batch, answer: Answer, seen: View, *, retracted: bool = False) -> Iterator[Output]:
        """Pairs as results, run by run; then the rows that take nobody."""
        width = rows.payload.nbytes / max(1, len(rows))
        for kept, whole in seen.parted(answer.run):
            yield from self._mark(kept, answer.position[whole])
            theirs = kept.run.rows.payload.nbytes / max(1, len(kept.run))
            for mine in self._portions(whole, width + theirs):
                yield from self._pairs(rows, answer.take(mine), kept, retracted=retracted)
        padding = null_rows(self.config.schemas[self.other], 64).nbytes / 64
        for alone in self._portions(answer.row[answer.run < 0], width + padding):
            yield from self._leave(replace(self._alone(self.chooser, rows.take(alone)), retracted=retracted))

    def _portions(self, which: Indices, width: float) -> Iterator[Indices]:
        """As many at a time as make a result that may leave at once, if each has so many bytes."""
        most = max(1, int(self.context.result_bytes(RESULT_BYTES) / max(1.0, width)))
        for start in range(0, len(which), most):
            yield which[start : start + most]

    def _pairs(self, rows: Batch, answer: Answer, kept: Kept, *, retracted: bool) -> Iterator[Output]:
        """Pairs with rows of one run."""
        chosen = rows.take(answer.row)
        members = [chosen.payload, kept.run.rows.payload.take(pa.array(answer.position))]
        payload = side_by_side(members if self.chooser == 0 else members[::-1])
        own = chosen.priority, taken(kept.run.rows, answer.position)
        priority = self._priority(own if self.chooser == 0 else own[::-1], len(chosen))
        yield from self._leave(Results(payload, chosen.ts, chosen.ts, retracted, priority=priority))

    def _mark(self, kept: Kept, taken: Indices) -> Iterator[Output]:
        """Rows are taken; other buckets must know of those that are not at home here."""
        newly = taken[:0] if kept.meetings is None else kept.meetings.meet(taken)
        if len(newly) and self.config.replicated[self.other]:
            met = kept.run.rows.take(newly)
            assert met.home is not None
            abroad = met.take(~met.home)
            if len(abroad):
                yield Rows("witness", self.other, witness(abroad))

    def _alone(self, number: int, rows: Batch) -> Results:
        ts = np.where(rows.ts > NEVER, rows.ts, self.progress)  # a row without time leaves now
        priority = self._priority_alone(number, rows.priority, len(rows))
        return padded(self.config.schemas, number, rows.payload, ts, ts, priority)

    def _leave(self, results: Results) -> Iterator[Output]:
        ordered = self.config.emit == "ordered"
        if ordered or not self.config.changelog:
            results = self.held.kept_back(results, ordered=ordered)
        elif results.priority is not None:  # a changelog speaks at once
            results = replace(results, priority=at_least_0(results.priority))
        if len(results):
            self.figures["results"] += len(results)
            yield results

    # -- what is known and kept ----------------------------------------------------------------------------------------

    def _first_choice_to_come(self) -> int:
        """The smallest time of a row that waits or can come, and chooses."""
        return min(self.times.of(self.chooser), self.waiting.first)

    def _first_to_come(self) -> int:
        bound = self._first_choice_to_come()
        if self.config.how == "full":
            undecided = self.area.first_undecided(unmatched_only=True)
            bound = min(bound, self.times.of(self.other), FOREVER if undecided is None else undecided)
        return bound

    def _first_held(self) -> int:
        # A row that can match nobody asks nothing of the other input. Where nobody waits here, only the chooser's
        # progress would hold it, and it would be far ahead of the rows that wait for the other input elsewhere.
        return min(self._first_to_come(), self.times.of(self.other))

    @property
    def joined(self) -> int:
        """Rows that end here or earlier have been taken by all who can take them."""
        return self._first_choice_to_come()

    def _own_parts(self) -> dict[str, Part]:
        return {f"area{self.other}": self.area, f"waiting{self.chooser}": self.waiting}

    def snapshot(self) -> Snapshot:
        assert not self.newcomers, "a snapshot in the middle of a micro-batch"
        return super().snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        self.announced = self.area.runs
