"""What joins have in common that keep an area of each input: rows arrive, are looked at, and go in or wait.

    late rows        go on or are dropped
    inputs held      under ordered emission, if the join says so: rows wait until their turn has come (see `ordering`)
    ghosts           rows that are never valid meet nobody
    unmatchable      neither do rows with a NULL key, or an empty value interval

How rows meet, and what becomes of those who meet nobody, is the join's own (`_join`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamjoin.algebra import Emit
from streamjoin.algebra.policy import Hold
from streamjoin.errors import CallError
from streamjoin.operators.contract import Output, Results
from streamjoin.operators.joining import Part, RunningJoin, numbered
from streamjoin.operators.lateness import LateRows, without_late
from streamjoin.operators.ordering import HeldRows
from streamjoin.operators.saving import Fingerprinted
from streamjoin.state import Batch, PendingEnds, SweepArea


class AreaJoinConfig(Fingerprinted, Protocol):
    """What is asked of a configuration here."""

    @property
    def emit(self) -> Emit: ...
    @property
    def hold(self) -> Hold: ...
    @property
    def late(self) -> Sequence[LateRows]: ...
    @property
    def validity(self) -> bool: ...
    @property
    def unknown_ends(self) -> bool: ...


def check_emission(config: AreaJoinConfig) -> None:
    """Refuse what cannot be combined with ordered emission."""
    if config.emit != "ordered":
        return
    if "join" in config.late:
        raise CallError(
            'late="join" cannot be combined with emit="ordered"',
            hint='a late row\'s results would leave out of order: use emit="eager", or late="output"',
        )
    if config.hold == "inputs" and config.unknown_ends:
        raise CallError(
            'hold="inputs" cannot be combined with ends that become known later',
            hint='an end may be told while its row still waits: use hold="outputs"',
        )


@dataclass
class RunningAreaJoin(RunningJoin):
    """A join over areas at work. `_keep_areas` says which."""

    config: AreaJoinConfig

    def _keep_areas(self, areas: Sequence[SweepArea], pending: PendingEnds) -> None:
        self.areas = list(areas)
        self.waiting = [HeldRows() for _ in self.areas]
        self.pending = pending
        self.figures["never_valid"] = 0

    @property
    def holds_inputs(self) -> bool:
        """Whether rows wait for their turn before they meet anybody."""
        return self.config.emit == "ordered" and self.config.hold == "inputs"

    @abstractmethod
    def _join(self, number: int, batch: Batch) -> Iterator[Output]:
        """Rows of an input meet those of the others, and are kept."""

    def _leave(self, outputs: Iterator[Output]) -> Iterator[Output]:
        """Results leave at once, or wait for their turn."""
        for output in outputs:
            if isinstance(output, Results):
                output = self.held.kept_back(output, ordered=self.config.emit == "ordered")
                if not len(output):
                    continue
                self.figures["results"] += len(output)
            yield output

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        late = batch.ts < self.times.of(number)
        batch = without_late(batch, late, self.config.late[number], self.figures)
        if self.holds_inputs:
            self.waiting[number].add(batch)
        else:
            yield from self._leave(self._join(number, batch))

    def make_room(self) -> None:
        for area in self.areas:
            area.make_room()

    def _whose_turn_has_come(self) -> Iterator[Output]:
        """Rows that waited for progress meet those of the others."""
        if not self.holds_inputs:
            return
        bound = self.times.least()
        for number, waiting in enumerate(self.waiting):
            released = waiting.release(lambda rows: rows.ts < bound)
            if released is not None:
                yield from self._leave(self._join(number, released))

    def _ends_of_results(self) -> Iterator[Output]:
        """Ends of results become known, of those that wait and of those that have left."""
        for ends in self.pending.known(self.times.times):
            for held in (self.held, *self.early):
                ends = held.settle(ends)
            if len(ends):
                yield ends

    def _passed(self, number: int) -> int:
        """Rows of this input that end here or earlier can meet nobody any more."""
        if self.holds_inputs:
            return self.times.least()  # rows of the others that wait here have not been met yet
        return self.times.of_others(number)

    @property
    def joined(self) -> int:
        """Rows that end here or earlier have met all whom they can meet."""
        return self.times.least()

    def kept_rows(self, number: int) -> int:
        return self.areas[number].rows

    def _own_parts(self) -> dict[str, Part]:
        return {**numbered("area", self.areas), **numbered("waiting", self.waiting), "pending": self.pending}
