"""How long results waited, from what Spark says of micro-batches and when files arrived.

A micro-batch tells of its urgent results, and of the others, from which step the first and the last came and how many
there were. Steps leave in order, so this says exactly which; that no result is missing in between is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.errors import BenchmarkError, UnequalResultsError
from benchmarks.priority_lanes.arrivals import Step


@dataclass(frozen=True)
class Came:
    """Of some results of a micro-batch: the first and the last step, and how many there were."""

    first: int
    last: int
    count: int


@dataclass(frozen=True)
class LaneBatch:
    """A micro-batch that had input, in seconds since 1970 and seconds."""

    began: float
    seconds: float
    rows: int
    results: int
    checksum: int
    urgent: Came | None
    normal: Came | None

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> LaneBatch:
        """As a contender has described it."""
        came = {kind: Came(**told[kind]) if told[kind]["count"] else None for kind in ("urgent", "normal")}
        return cls(**{**told, **came})

    @property
    def ended(self) -> float:
        return self.began + self.seconds


@dataclass(frozen=True)
class LaneRun:
    """A run: its micro-batches, when each step arrived, and the first step that counts."""

    label: str
    batches: Sequence[LaneBatch]
    arrived: npt.NDArray[np.float64]
    steps: Sequence[Step]
    warm: int
    lag: float

    def latencies(self, kind: str) -> npt.NDArray[np.float64]:
        """Of the results of each step that counts; each has equally many."""
        left = np.full(len(self.steps), np.nan)
        following = 0
        for batch in self.batches:
            came: Came | None = getattr(batch, kind)
            if came is None:
                continue
            some = self.steps[came.first : came.last + 1]
            if came.first != following or came.count != sum(getattr(step, kind) for step in some):
                raise BenchmarkError(
                    f"{self.label}: a micro-batch delivered {came.count:,} {kind} results of steps {came.first} to "
                    f"{came.last}, but {following} was to follow, or some of them are missing"
                )
            left[came.first : came.last + 1] = batch.ended
            following = came.last + 1
        if following != len(self.steps):
            raise BenchmarkError(f"{self.label}: {kind} results of step {following} and later never came")
        return (left - self.arrived)[self.warm :]

    @property
    def counted(self) -> list[LaneBatch]:
        """The micro-batches since the overload began: those before had ended by then."""
        return [batch for batch in self.batches if batch.ended > self.arrived[self.warm]]

    @property
    def seconds(self) -> list[float]:
        return [batch.seconds for batch in self.counted]

    @property
    def drain(self) -> float:
        """From the last arrival to the last result."""
        return max(batch.ended for batch in self.batches if batch.results) - float(self.arrived[-1])

    @property
    def digest(self) -> tuple[int, int]:
        """How many results, and their checksum, in whatever micro-batches they came."""
        return sum(each.results for each in self.batches), sum(each.checksum for each in self.batches) % (1 << 64)


def percentile(values: npt.ArrayLike, at: float) -> float:
    """The smallest value that at least `at` percent do not exceed: one that was measured.

    >>> percentile([1, 2, 3, 4], 50), percentile([1, 2, 3, 4], 99)
    (2.0, 4.0)
    """
    return float(np.percentile(np.asarray(values, np.float64), at, method="inverted_cdf"))


def check_same(runs: Sequence[LaneRun]) -> None:
    """Refuse to compare runs unless all delivered the same results."""
    if len({run.digest for run in runs}) > 1:
        raise UnequalResultsError(
            "the runs delivered different results, so their latencies cannot be compared:\n"
            + "\n".join(f"  {run.label}: {run.digest[0]:,} results, checksum {run.digest[1]:016x}" for run in runs)
        )
