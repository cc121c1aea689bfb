"""The rules of every comparison.

1. Contenders run in turn, one repetition each, again and again: what disturbs the machine disturbs all of them.
2. A first round warms up (compilation, caches) and is not counted. Who takes minutes has a number of repetitions of its
   own, says so, and sits that round out: it was warmed up on something smaller.
3. Every repetition's result is compared with ours before its time counts. A difference ends the benchmark.
4. The ratio is the best peer's median over ours. A peer that only aggregates did less work: shown, never the best.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.digest import Digest
from benchmarks.errors import BenchmarkError, UnequalResultsError
from benchmarks.worker import Measurement

ONE_CORE: Final = 1.2  # memory managers may have a helper


@dataclass
class Contender:
    """A system that takes part, and what was measured of it.

    `equal_work`: it delivers pairs, as we do. `at_most`: so often it runs, where the usual number would take too long.
    """

    label: str
    run: Callable[[], Measurement]
    equal_work: bool = True
    at_most: int | None = None
    measured: list[Measurement] = field(default_factory=list)
    digest: Digest | None = None

    def repeat(self, counted: bool) -> None:
        """Run once. Every repetition must deliver the same."""
        measurement = self.run()
        if self.digest is not None and measurement.digest != self.digest:
            raise UnequalResultsError(f"{self.label} delivered {self.digest}, and the next time {measurement.digest}")
        self.digest = measurement.digest
        if counted:
            self.measured.append(measurement)

    def takes_part(self, counted: bool) -> bool:
        """Whether it runs in this round."""
        return self.at_most is None or (counted and len(self.measured) < self.at_most)

    @property
    def seconds(self) -> list[float]:
        return [measurement.seconds for measurement in self.measured]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def user(self) -> float:
        return statistics.median(measurement.user for measurement in self.measured)

    @property
    def system(self) -> float:
        return statistics.median(measurement.system for measurement in self.measured)

    @property
    def cores(self) -> float:
        """How many cores were busy with it."""
        return sum(measurement.user + measurement.system for measurement in self.measured) / sum(self.seconds)

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "equal_work": self.equal_work,
            "median": self.median,
            "seconds": self.seconds,
            "user": [measurement.user for measurement in self.measured],
            "system": [measurement.system for measurement in self.measured],
            "count": self.digest and self.digest.count,
            "checksum": self.digest and self.digest.pairs,
        }


def race(contenders: Sequence[Contender], repetitions: int, *, warm_up: int = 1) -> None:
    """Run all contenders in turn. The first is ours: whoever delivers something else ends the race."""
    for repetition in range(warm_up + repetitions):
        counted = repetition >= warm_up
        for contender in contenders:
            if contender.takes_part(counted):
                contender.repeat(counted)
                check_equal(contenders[0], contender)


def check_equal(ours: Contender, other: Contender) -> None:
    """Refuse to go on unless both delivered the same."""
    if ours.digest is None or other.digest is None:
        raise UnequalResultsError(f"{ours.label} and {other.label} have not both delivered a result")
    if other.equal_work and (ours.digest.pairs is None or other.digest.pairs is None):
        raise UnequalResultsError(f"{ours.label} and {other.label} have not both delivered pairs")
    if not ours.digest.agrees_with(other.digest):
        raise UnequalResultsError(
            f"{other.label} delivered other results than {ours.label}, so their times cannot be compared:\n"
            f"  {ours.label}: {ours.digest}\n  {other.label}: {other.digest}"
        )


def check_one_core(contenders: Sequence[Contender]) -> None:
    """Refuse a race in which somebody had more than the one thread that everyone gets."""
    for contender in contenders:
        if contender.cores > ONE_CORE:
            raise BenchmarkError(f"{contender.label} was to use one thread, but kept {contender.cores:.2f} cores busy")


def ratio(ours: Contender, other: Contender) -> float:
    """How many times as fast we are, by medians; only where the results are equal."""
    check_equal(ours, other)
    return other.median / ours.median


@dataclass(frozen=True)
class Verdict:
    """One line of the outcome: what was asked for, and what was measured."""

    question: str
    measured: float
    target: float
    text: str
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.target if self.at_most else self.measured >= self.target

    def to_json(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "measured": float(self.measured),
            "target": float(self.target),
            "at_most": self.at_most,
            "met": bool(self.met),
            "text": self.text,
        }


def judge(question: str, ours: Contender, peers: Sequence[Contender], target: float) -> Verdict:
    """The verdict against the best of the peers that did equal work."""
    best = min((peer for peer in peers if peer.equal_work), key=lambda peer: peer.median)
    measured = ratio(ours, best)
    text = f"{measured:.2f} times as fast as {best.label} ({ours.median:.3f} s against {best.median:.3f} s)"
    return Verdict(question, measured, target, text)
