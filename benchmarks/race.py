"""The rules of every comparison.

1. Contenders run in turn, one repetition each, again and again: what disturbs the machine disturbs all of them.
2. A first round warms up (compilation, caches) and is not counted.
3. Every repetition's result is compared with ours before its time counts. A difference ends the benchmark.
4. The ratio is the best peer's median over ours. A peer that only aggregates did less work: shown, never the best.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.digest import Digest
from benchmarks.errors import UnequalResultsError

Run = Callable[[], tuple[float, float, Digest]]


@dataclass
class Contender:
    """A system that takes part, and what was measured of it. `equal_work`: it delivers pairs, as we do."""

    label: str
    run: Run
    equal_work: bool = True
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    digest: Digest | None = None

    def repeat(self, counted: bool) -> None:
        """Run once. Every repetition must deliver the same."""
        seconds, cpu, digest = self.run()
        if self.digest is not None and digest != self.digest:
            raise UnequalResultsError(f"{self.label} delivered {self.digest}, and the next time {digest}")
        self.digest = digest
        if counted:
            self.seconds.append(seconds)
            self.cpu.append(cpu)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "equal_work": self.equal_work,
            "median": self.median,
            "seconds": self.seconds,
            "cpu": self.cpu,
            "count": self.digest and self.digest.count,
            "checksum": self.digest and self.digest.pairs,
        }


def race(contenders: Sequence[Contender], repetitions: int, *, warm_up: int = 1) -> None:
    """Run all contenders in turn. The first is ours: whoever delivers something else ends the race."""
    for repetition in range(warm_up + repetitions):
        for contender in contenders:
            contender.repeat(counted=repetition >= warm_up)
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
        return {"question": self.question, "measured": self.measured, "target": self.target, "met": self.met}


def judge(question: str, ours: Contender, peers: Sequence[Contender], target: float) -> Verdict:
    """The verdict against the best of the peers that did equal work."""
    best = min((peer for peer in peers if peer.equal_work), key=lambda peer: peer.median)
    measured = ratio(ours, best)
    text = f"{measured:.2f} times as fast as {best.label} ({ours.median:.3f} s against {best.median:.3f} s)"
    return Verdict(question, measured, target, text)
