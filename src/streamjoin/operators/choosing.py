"""What as-of and best-match joins share: rows of one input, the chooser's, wait, and take among the rows of the other.

    chooser --> [waiting]     rows wait until nothing better can come for them; then they choose, once
                    |
    other   --> [area]        what a row that waits or can come may still take

A join of this kind says which rows have become final and what they take (`_choose_final`). Everything else is here:
late rows, rows that can match nobody, what goes from the area, order, and snapshots.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from streamjoin.algebra import FOREVER, NEVER, Progress
from streamjoin.operators.contract import Footprint, Operator, Output, Results
from streamjoin.operators.lateness import without_late
from streamjoin.operators.ordering import HeldResults, HeldRows
from streamjoin.operators.temporal_join import check_snapshot, padded, whole_snapshot
from streamjoin.state import Batch, Snapshot, SweepArea


@dataclass(frozen=True)
class ChoosingJoin:
    """What plans ask of every join, where no row is followed over several buckets."""

    outer: Literal["row"] = field(default="row", init=False)
    hold: Literal["outputs"] = field(default="outputs", init=False)
    tracked: tuple[bool, bool] = field(default=(False, False), init=False)
    replicated: tuple[bool, bool] = field(default=(False, False), init=False)


@dataclass
class RunningChoosingJoin(Operator):
    """A join at work whose rows choose."""

    config: Any
    inputs: int = 2
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chooser, self.other = self.config.chooser, 1 - self.config.chooser
        self.area = self._new_area()
        self.waiting = HeldRows()
        self.held = HeldResults()
        self.times = Progress(2)
        self.figures = dict.fromkeys(("rows_in", "results", "late", "unmatchable"), 0)

    @abstractmethod
    def _new_area(self) -> SweepArea:
        """An empty area for what can be taken."""

    @abstractmethod
    def _choose_final(self) -> Iterator[Output]:
        """Rows that have become final stop waiting, and leave with what they take."""

    def _stays(self, number: int) -> bool:
        """Whether a row without a partner leaves, padded."""
        how: str = self.config.how
        return how == "full" or (number == self.chooser and how != "inner")

    # -- rows arrive ---------------------------------------------------------------------------------------------------

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        late = (batch.ts < self.times.of(number)) & (batch.ts > NEVER)  # a row without time is never late
        batch = yield from without_late(
            number, batch, late, self.config.late[number], self.times.of(number), self.figures
        )
        if batch.matchable is not None:
            batch, hopeless = batch.split(batch.matchable)
            self.figures["unmatchable"] += len(hopeless)
            batch = batch.without_matchable()
            if len(hopeless) and self._stays(number):
                yield from self._leave(self._alone(number, hopeless))
        if len(batch) and number == self.chooser:
            self.waiting.add(batch)
        elif len(batch):
            self.area.insert(self.area.matching.sorted_run(batch))

    # -- progress moves ------------------------------------------------------------------------------------------------

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        yield from self._settle()

    def on_end(self) -> Iterator[Output]:
        self.times.finish()
        yield from self._settle()

    def _settle(self) -> Iterator[Output]:
        yield from self._choose_final()
        for decided in self.area.purge(self._first_choice_to_come()):
            lonely = decided.rows.take(~decided.matched)
            if len(lonely):
                yield from self._leave(self._alone(self.other, lonely))
        for results in self.held.release(self._first_to_come()):
            self.figures["results"] += len(results)
            yield results

    # -- results leave -------------------------------------------------------------------------------------------------

    def _alone(self, number: int, rows: Batch) -> Results:
        ts = np.where(rows.ts > NEVER, rows.ts, self.progress)  # a row without time leaves now
        return padded(self.config.schemas, number, rows.payload, ts, ts)

    def _leave(self, results: Results) -> Iterator[Output]:
        if self.config.emit == "ordered":
            self.held.add(results)
        else:
            self.figures["results"] += len(results)
            yield results

    # -- what is known and kept ----------------------------------------------------------------------------------------

    def _first_choice_to_come(self) -> int:
        """The smallest time of a row that waits or can come, and chooses."""
        return min(self.times.of(self.chooser), self.waiting.first)

    def _first_to_come(self) -> int:
        """No result with a smaller `ts` is made any more."""
        bound = self._first_choice_to_come()
        if self.config.how == "full":
            undecided = self.area.first_undecided(unmatched_only=True)
            bound = min(bound, self.times.of(self.other), FOREVER if undecided is None else undecided)
        return bound

    @property
    def progress(self) -> int:
        return min(self._first_to_come(), self.held.first)

    @property
    def footprint(self) -> Footprint:
        area = Footprint(self.area.rows, self.area.nbytes, len(self.area.kept), self.area.removed)
        return area + self.waiting.footprint + self.held.footprint

    def snapshot(self) -> Snapshot:
        parts = [
            self.area.snapshot(f"area{self.other}"),
            self.waiting.snapshot(f"waiting{self.chooser}"),
            self.held.snapshot("held"),
        ]
        return whole_snapshot(self.config.fingerprint, self.times, self.figures, parts)

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        self.times = Progress(2, list(snapshot.manifest["progress"]))
        self.figures = dict(snapshot.manifest["figures"])
        parts: tuple[SweepArea | HeldRows | HeldResults, ...] = (self.area, self.waiting, self.held)
        for part, manifest in zip(parts, snapshot.manifest["parts"], strict=True):
            part.restore(Snapshot(manifest, snapshot.blobs))
