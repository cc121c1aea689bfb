"""Lateness: how a source's progress follows from its rows. A policy is an object, in two places.

    measure()          where rows are packed: looks at them, and makes a report for every bucket
    build()            in each bucket: hears the reports, says the progress, and is saved with the stage

A policy decides alone, when it has heard all reports of a micro-batch; or with those of other sources (see `recall`).

Every bucket hears the same reports, so all of them decide alike, without a coordinator. A policy never looks at a
clock: a micro-batch that is run again decides the same. Progress never goes back, not even when a restart allows more
slack than before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.algebra.interval import Mask
from streamjoin.state import Batch

Report = dict[str, Any]


class LargestSeen:
    """Looks at the rows of one task. The largest time stamp is all that a fixed slack asks for."""

    def __init__(self) -> None:
        self.largest = NEVER

    def see(self, rows: Batch, keep: Mask | None = None) -> None:
        """Rows of the source, valid ones; and which of them go on, None for all: others only say how far it is."""
        if len(rows):
            self.largest = max(self.largest, int(rows.ts.max()))

    def report(self) -> Report:
        """What every bucket is told."""
        return {"largest": None if self.largest == NEVER else self.largest}


class RunningLateness:
    """What a bucket knows of a source: its largest time stamp, and what was promised by that, less the slack."""

    def __init__(self, slack: int = 0) -> None:
        self.slack, self.largest, self.promised = slack, NEVER, NEVER

    def heard(self, report: Report) -> None:
        """A task of the source has reported."""
        if report["largest"] is not None:
            self.largest = max(self.largest, report["largest"])
            self._promise()

    def _promise(self) -> None:
        self.promised = max(self.promised, NEVER, self.largest - self.slack)

    def settle(self, told: int) -> None:
        """All reports of a micro-batch have been heard; `told` is the progress that was acted upon so far."""

    @property
    def progress(self) -> int:
        """No on-time row with a smaller time stamp comes any more."""
        return self.promised

    def to_json(self) -> Any:
        """To be stored."""
        return [self.largest, self.promised]

    def restore(self, stored: Any) -> None:
        """The inverse of `to_json`."""
        self.largest, self.promised = stored[:2]  # what another policy has stored begins so as well


class Lateness(ABC):
    """A policy before it runs: a frozen value."""

    def measure(self) -> LargestSeen:
        """For one task."""
        return LargestSeen()

    @abstractmethod
    def build(self) -> RunningLateness:
        """For one bucket; nothing has been heard yet."""

    def build_beside(self, shared: dict[Any, Any]) -> RunningLateness:
        """The same beside other sources of its stage: what policies decide together is in `shared`."""
        return self.build()

    @property
    def delay(self) -> int | None:
        """How far behind the largest time stamp a row can be and still be in time; None when that is not known."""
        return None


@dataclass(frozen=True)
class Slack(Lateness):
    """Rows may come up to so many ticks behind the largest time stamp of their source.

    >>> running = Slack(2).build()
    >>> running.heard({"largest": 9})
    >>> running.progress
    7
    """

    ticks: int

    def build(self) -> RunningLateness:
        return RunningLateness(self.ticks)

    @property
    def delay(self) -> int:
        return self.ticks


@dataclass(frozen=True)
class LargestDelay(Lateness):
    """The slack is the largest delay seen: how far a row was behind what its source had shown before its micro-batch.

    >>> running = LargestDelay().build()
    >>> for report in ({"largest": 9, "smallest": 4}, {"largest": 12, "smallest": 7}, {"largest": 20, "smallest": 13}):
    ...     running.heard(report)
    ...     running.settle(running.progress)
    >>> running.progress
    18
    """

    def measure(self) -> LargestSeen:
        return Extent()

    def build(self) -> RunningLateness:
        return RunningLargestDelay()


class Extent(LargestSeen):
    """The smallest time stamp as well: it says the largest delay."""

    def __init__(self) -> None:
        super().__init__()
        self.smallest = FOREVER

    def see(self, rows: Batch, keep: Mask | None = None) -> None:
        super().see(rows)
        timed = rows.ts[rows.ts > NEVER]
        if len(timed):
            self.smallest = min(self.smallest, int(timed.min()))

    def report(self) -> Report:
        return super().report() | {"smallest": None if self.smallest == FOREVER else self.smallest}


class RunningLargestDelay(RunningLateness):
    """What is known of a source, and the largest delay. Those of a micro-batch are known when all of it is there."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.earliest = NEVER, FOREVER

    def heard(self, report: Report) -> None:
        if report["largest"] is not None:
            self.now = max(self.now, report["largest"])
        if report.get("smallest") is not None:
            self.earliest = min(self.earliest, report["smallest"])

    def settle(self, told: int) -> None:
        if self.largest > NEVER and self.earliest < FOREVER:
            self.slack = max(self.slack, self.largest - self.earliest)
        self.largest, self.earliest = max(self.largest, self.now), FOREVER
        self._promise()

    def to_json(self) -> Any:
        return [*super().to_json(), self.slack]

    def restore(self, stored: Any) -> None:
        super().restore(stored)
        self.slack, self.now = (*stored, 0)[2], self.largest


@dataclass(frozen=True)
class Complete(Lateness):
    """A source that is there from the start: it has ended before anything else begins."""

    def build(self) -> RunningLateness:
        return RunningKnown(FOREVER)


@dataclass(frozen=True)
class Timeless(Lateness):
    """A source without time: rows can come for ever, it makes no progress, and is never late."""

    def build(self) -> RunningLateness:
        return RunningKnown(NEVER)


class RunningKnown(RunningLateness):
    """Progress is known from the start: nothing is to be learned but the last time stamp, where anybody asks."""

    def __init__(self, progress: int) -> None:
        super().__init__()
        self.known = progress

    @property
    def progress(self) -> int:
        return self.known

    def to_json(self) -> Any:
        return self.largest

    def restore(self, stored: Any) -> None:
        self.largest = stored
