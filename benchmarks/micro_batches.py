"""What was measured of a streaming query, micro-batch by micro-batch, and the rules of comparing two of them.

1. Times are Spark's own, `durationMs.triggerExecution`: from the decision to run a micro-batch to its commit.
2. Only warm micro-batches count: by default the later half of a run. The first ones compile, and fill the state.
3. Every micro-batch brings a digest of its results, cold ones too. Two runs over the same files must agree in all that
   both have run, one by one, before there is a ratio of their times.

Throughput is the input rows of both sides, over the median of the seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.errors import BenchmarkError, UnequalResultsError


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch: what went in, how long it took and where, and what came out in two order-free numbers."""

    rows: int
    seconds: float
    parts: dict[str, float] = field(compare=False)
    results: int
    checksum: int


@dataclass(frozen=True)
class StreamRun:
    """The micro-batches of one query that had input; from number `cold` on they count."""

    label: str
    batches: tuple[MicroBatch, ...]
    cold: int

    def __post_init__(self) -> None:
        if not 0 < self.cold < len(self.batches):
            raise BenchmarkError(
                f"{self.label} ran {len(self.batches)} micro-batches, and {self.cold} of them are warm-up",
                hint="a run needs at least one micro-batch to warm up, and one that counts",
            )

    @classmethod
    def of(cls, label: str, answered: Sequence[dict[str, Any]], cold: int | None = None) -> StreamRun:
        """A run as a contender has described it."""
        batches = tuple(MicroBatch(**batch) for batch in answered)
        return cls(label, batches, len(batches) // 2 if cold is None else cold)

    @property
    def warm(self) -> tuple[MicroBatch, ...]:
        return self.batches[self.cold :]

    @property
    def seconds(self) -> list[float]:
        return [batch.seconds for batch in self.warm]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def rows(self) -> int:
        """The rows of a micro-batch: equally many in all."""
        return self.batches[0].rows

    @property
    def throughput(self) -> float:
        """Input rows per second in the median micro-batch."""
        return self.rows / self.median

    @property
    def mean_throughput(self) -> float:
        """Input rows per second over all warm micro-batches: what is done only now and then counts here."""
        return sum(batch.rows for batch in self.warm) / sum(self.seconds)

    @property
    def results(self) -> float:
        """Results of a warm micro-batch."""
        return statistics.mean(batch.results for batch in self.warm)

    @property
    def checksum(self) -> int:
        """Of all results of the run."""
        return combined(self.batches)

    def part(self, name: str) -> float:
        """Seconds that a warm micro-batch spent in one of Spark's own parts, as a median."""
        return statistics.median(batch.parts.get(name, 0.0) for batch in self.warm)

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "rows": self.rows,
            "throughput": self.throughput,
            "mean_throughput": self.mean_throughput,
            "median": self.median,
            "cold": self.cold,
            "seconds": [batch.seconds for batch in self.batches],
            "parts": [batch.parts for batch in self.batches],
            "results": [batch.results for batch in self.batches],
            "checksums": [f"{batch.checksum:016x}" for batch in self.batches],
        }


def combined(batches: Sequence[MicroBatch]) -> int:
    """One checksum for many micro-batches, whatever their order."""
    return sum(batch.checksum for batch in batches) % (1 << 64)


def check_rows(run: StreamRun, rows: int, batches: int) -> None:
    """Refuse a run whose micro-batches were cut in another way than was asked for."""
    got = [batch.rows for batch in run.batches]
    if got != [rows] * batches:
        raise BenchmarkError(f"{run.label} was to run {batches} micro-batches of {rows:,} rows, but ran {got}")


def check_equal(ours: StreamRun, other: StreamRun) -> None:
    """Refuse to go on unless both delivered the same in every micro-batch that both have run."""
    for number, (mine, theirs) in enumerate(zip(ours.batches, other.batches, strict=False)):
        if (mine.rows, mine.results, mine.checksum) != (theirs.rows, theirs.results, theirs.checksum):
            raise UnequalResultsError(
                f"{other.label} delivered other results than {ours.label} in micro-batch {number}, "
                "so their times cannot be compared:\n"
                + "\n".join(
                    f"  {run.label}: {batch.results:,} results of {batch.rows:,} rows, checksum {batch.checksum:016x}"
                    for run, batch in ((ours, mine), (other, theirs))
                )
            )


def check_as_many(one: StreamRun, other: StreamRun, tolerance: float = 0.1) -> None:
    """Refuse to compare two different joins that do not deliver about as many results from as many rows."""
    if one.rows != other.rows or abs(one.results - other.results) > tolerance * one.results:
        raise UnequalResultsError(
            f"{one.label} delivers {one.results:,.0f} results from {one.rows:,} rows, "
            f"but {other.label} {other.results:,.0f} from {other.rows:,}: their throughput cannot be compared"
        )


def speed_up(ours: StreamRun, other: StreamRun) -> float:
    """How many times our throughput is the other's; only where the results are equal."""
    check_equal(ours, other)
    return ours.throughput / other.throughput
