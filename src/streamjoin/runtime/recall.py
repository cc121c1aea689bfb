"""A recall target as a lateness: two sources whose slack is decided together, by what all of their rows have told.

    ToRecall     as it was asked for, before it is known what is joined
    RecallSide   one source of a join: counts its rows where they are packed, and hears the counts of all tasks

The report of each task has rows per (class of keys, cell of time) beside the largest time stamp, in a bounded number of
entries. Every bucket hears the same and adds it up in the same order, so that all decide alike: any number of them
gives the result of one.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

from streamjoin.algebra import NEVER
from streamjoin.algebra.interval import Mask
from streamjoin.kernels import extents
from streamjoin.operators.recall.controller import Aim
from streamjoin.operators.recall.counts import MOST_BITS, Counts, Rows, fitted, together
from streamjoin.operators.recall.model import RecallModel, RunningRecall
from streamjoin.runtime.lateness import LargestSeen, Lateness, Report, RunningLateness
from streamjoin.runtime.recall_figures import delays, late_rows
from streamjoin.state import Batch, Snapshot

# Of a report: some hundred kilobytes at most, to every bucket.
MOST_REPORTED: Final = 1 << 12
# Rows of a task that are counted at once.
AT_ONCE: Final = 1 << 20
# Cells of both windows together.
CELLS: Final = 40


@dataclass(frozen=True)
class ToRecall(Lateness):
    """A recall target with all sizes in ticks. It runs as a `RecallSide`, when windows and keys are known."""

    target: float
    period: int
    interval: int
    granularity: int | None = None
    max_delay: int | None = None
    initial: int = 0

    def side(self, number: int, windows: tuple[int, int], *, keyed: bool) -> RecallSide:
        """The same for one of the two inputs of a join; `windows`: how long rows of each are valid."""
        step = self.granularity or finest(windows)
        aim = Aim(self.target, self.period, self.interval, step, self.max_delay, self.initial)
        return RecallSide(RecallModel(aim, windows), number, MOST_BITS if keyed else 0)

    def measure(self) -> LargestSeen:
        raise NotImplementedError("a recall target is bound to a join first")

    def build(self) -> RunningLateness:
        raise NotImplementedError("a recall target is bound to a join first")


def finest(windows: tuple[int, int]) -> int:
    """The width of cells in which rows of windows that are so long are counted.

    >>> finest((2_000_000, 2_000_000)), finest((3, 3))
    (100000, 1)
    """
    return max(1, sum(windows) // CELLS)


@dataclass(frozen=True)
class RecallSide(Lateness):
    """One of the two sources of a join to a recall target. `bits` of the keys' hash make classes."""

    model: RecallModel
    number: int
    bits: int

    def measure(self) -> LargestSeen:
        return CellsSeen(self.model.aim.step, self.bits)

    def build(self) -> RunningLateness:
        return self.build_beside({})

    def build_beside(self, shared: dict[Any, Any]) -> RunningLateness:
        both = shared.setdefault(self.model, Both(self.model.build()))
        return RunningSide(both, self.number)


class CellsSeen(LargestSeen):
    """Rows per class and cell, of those that can match anything. They are counted many at a time."""

    def __init__(self, step: int, bits: int) -> None:
        super().__init__()
        self.step, self.bits = step, bits
        self.waiting: list[Rows] = []
        self.parts: list[Counts] = []

    def see(self, rows: Batch, keep: Mask | None = None) -> None:
        if not len(rows):
            return
        # All that is asked of single rows is asked here, just after they were read: later that would be memory's pace.
        group, ts, ends = rows.group, rows.ts, extents(rows.ts)
        self.largest = max(self.largest, int(ends[1].max()))
        if rows.matchable is not None:
            keep = rows.matchable if keep is None else keep & rows.matchable
        if keep is None:
            self.waiting.append(Rows.of(group, ts, self.bits, ends))
        else:
            self.waiting.append(Rows.of(group[keep], ts[keep], self.bits))
        if sum(map(len, self.waiting)) >= AT_ONCE:
            self._count()

    def _count(self) -> None:
        rows, self.waiting = Rows.joined(self.waiting), []
        if len(rows):
            counts = rows.count(width=self.step, bits=self.bits, most=MOST_REPORTED)
            self.parts.append(fitted(counts, MOST_REPORTED, CELLS * self.step // 4))

    def report(self) -> Report:
        if self.waiting:
            self._count()
        if not self.parts:
            return super().report()
        counts = fitted(together(self.parts), MOST_REPORTED, CELLS * self.step // 4)
        return super().report() | {"counts": base64.b64encode(counts.to_bytes()).decode()}


class Both:
    """The two sources of a join, in one bucket. It decides when both have settled, and anything was heard at all."""

    def __init__(self, recall: RunningRecall) -> None:
        self.recall = recall
        self.counts: list[list[Counts]] = [[], []]
        self.largest, self.told = [NEVER, NEVER], [NEVER, NEVER]
        self.heard, self.settled = False, 0
        # Of the last micro-batch, by source: its rows, the largest time stamp before, the progress that was in force.
        self.last: list[tuple[Counts, int, int] | None] = [None, None]

    def settle(self, number: int, told: int) -> None:
        """All of a micro-batch's reports have been heard of a source."""
        self.told[number], self.settled = told, self.settled + 1
        if self.settled < len(self.told):
            return
        if self.heard:
            news = [together(parts) if parts else None for parts in self.counts]
            before = list(self.recall.largest)
            known = zip(news, before, self.told, strict=True)
            self.last = [None if rows is None else (rows, largest, progress) for rows, largest, progress in known]
            self.recall.hear(news, self.largest, self.told)
        self.counts, self.heard, self.settled = [[], []], False, 0

    def figures(self) -> dict[str, int]:
        """What it aims at, what it expects to reach, if that is known, and of each input its slack, how long its rows
        are kept, and how late those of the last micro-batch were; shares in millionths.
        """
        told, expected = {"target_ppm": round(self.recall.config.aim.target * 1e6)}, self.recall.expected
        if expected is not None:
            told["recall_ppm"] = round(expected * 1e6)
        slack, windows = self.recall.slack, self.recall.config.windows
        for number, last in enumerate(self.last):
            # A row is kept until the progress of the other input reaches its end.
            figures = {"slack": slack[number], "kept_for": max(0, windows[number] + slack[1 - number])}
            if last is not None:
                rows, largest, progress = last
                figures |= delays(rows, largest) | late_rows(rows, progress)
            told |= {f"{name}_{number}": value for name, value in figures.items()}
        return told

    def snapshot(self) -> Snapshot:
        """To be stored."""
        return self.recall.snapshot()

    def restore(self, stored: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.recall.restore(stored)


class RunningSide(RunningLateness):
    """What a bucket knows of one of the two sources."""

    def __init__(self, both: Both, number: int) -> None:
        super().__init__()
        self.both, self.number = both, number

    def heard(self, report: Report) -> None:
        both = self.both
        both.heard = True
        if report["largest"] is not None:
            self.largest = both.largest[self.number] = max(self.largest, report["largest"])
        if "counts" in report:
            both.counts[self.number].append(Counts.from_bytes(base64.b64decode(report["counts"])))

    def settle(self, told: int) -> None:
        self.both.settle(self.number, told)

    @property
    def progress(self) -> int:
        """What was promised before, under another policy too, is not taken back."""
        self.promised = max(self.promised, self.both.recall.promised[self.number])
        return self.promised

    def to_json(self) -> Any:
        return [self.largest, self.progress]

    def restore(self, stored: Any) -> None:
        super().restore(stored)
        self.both.largest[self.number] = self.largest
