"""One variant of the experiment: a scheduler, a kind of buffer and a load give latencies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from benchmarks.errors import UnequalResultsError
from benchmarks.priority_room.buffers import KINDS, empty
from benchmarks.priority_room.clock import OVERHEAD, Overhead, Way, Work, run
from benchmarks.priority_room.elements import DELIVERED, RATE, Elements, draw_elements
from benchmarks.priority_room.plan import Buffers, Plan, document_plan, place_buffers
from benchmarks.priority_room.schedulers import SCHEDULERS, TRAIN, order_of

LOADS: Final = (0.7, 0.9, 1.0, 1.2)


@dataclass(frozen=True)
class Variant:
    """What is chosen. `train` 1 is no train."""

    load: float
    scheduler: str
    kind: str
    train: int = 1
    known_at_source: bool = False

    @property
    def name(self) -> str:
        """As the document writes it.

        >>> Variant(1.2, "round robin", "direct", train=100).name
        'round robin+'
        """
        return self.scheduler + ("+" if self.train > 1 else "")


@dataclass(frozen=True)
class Latency:
    """Mean and 99th percentile in seconds."""

    mean: float
    p99: float


@dataclass(frozen=True)
class Measured:
    """What one variant gave."""

    variant: Variant
    results: int
    seconds: float  # virtual, until the last element was done
    everyone: Latency
    plain: Latency
    prioritised: Latency
    by_rank: tuple[Latency, ...]  # of the prioritised, from the lowest
    most_at_sources: int  # elements that waited above sources together, summed over the largest of each

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "scheduler": self.variant.name,
            "buffers": self.variant.kind,
            "load": self.variant.load,
            "known_at_source": self.variant.known_at_source,
            "results": self.results,
            "seconds": self.seconds,
            "mean": {"all": self.everyone.mean, "plain": self.plain.mean, "prioritised": self.prioritised.mean},
            "p99": {"all": self.everyone.p99, "plain": self.plain.p99, "prioritised": self.prioritised.p99},
            "mean_by_rank": [each.mean for each in self.by_rank],
        }


@dataclass(frozen=True)
class Room:
    """A plan and its elements: everything that the variants share."""

    plan: Plan
    elements: Elements
    rate: float = RATE
    overhead: Overhead = OVERHEAD

    @cached_property
    def buffers(self) -> Buffers:
        return place_buffers(self.plan)

    def run(self, variant: Variant) -> Measured:
        """Run a variant, see that it delivered what it had to, and measure."""
        left_at, seconds, most = self.leave(variant)
        check_delivered(variant, left_at >= 0, self.elements.ends_at == DELIVERED)
        there = left_at >= 0
        latency, rank = (left_at - self.elements.arrival)[there], self.elements.rank[there]
        return Measured(
            variant, int(there.sum()), seconds, _latency(latency), _latency(latency[rank == 0]),
            _latency(latency[rank > 0]), tuple(_latency(latency[rank == n]) for n in range(1, self.elements.ranks)),
            int(most[self.buffers.of_source].sum()),
        )  # fmt: skip

    def leave(self, variant: Variant) -> tuple[Any, float, Any]:
        """When each element left (-1: it did not), when all was done, and the largest size of each buffer."""
        plan, elements, buffers = self.plan, self.elements, self.buffers
        scale = variant.load / (self.rate * len(plan.sources) * plan.work)
        operators = range(len(plan.operators))
        work = Work(
            elements.arrival, buffers.of_source[elements.source], elements.rank, elements.ends_at,
            np.array([each.cost * scale for each in plan.operators]),
            np.array([each.above for each in plan.operators]),
            np.array([plan.height(number) for number in operators]),
            np.array([each.kind == "priority" for each in plan.operators]),
            buffers.above_operator, buffers.feeds,
        )  # fmt: skip
        scheduler = SCHEDULERS.index(variant.scheduler)
        order = order_of(scheduler, plan, buffers)
        way = Way(scheduler, KINDS.index(variant.kind), variant.train, order, variant.known_at_source)
        waiting = empty(len(buffers), elements.ranks, len(elements))
        left_at, shown = np.full(len(elements), -1.0), np.zeros(len(elements), np.int64)
        seconds = run(work, way, self.overhead, waiting, shown, np.zeros(1, np.int64), left_at)
        return left_at, seconds, waiting.most


def document_room(per_source: int, rate: float = RATE, **drawn: Any) -> Room:
    """The plan of the document; `drawn` goes to `draw_elements`."""
    plan = document_plan()
    return Room(plan, draw_elements(plan, per_source, rate, **drawn), rate)


def check_delivered(variant: Variant, delivered: Any, expected: Any) -> None:
    """Refuse a variant that lost an element or delivered one that had been dropped: no ratio without equal results."""
    if not np.array_equal(delivered, expected):
        lost, more = int((expected & ~delivered).sum()), int((delivered & ~expected).sum())
        raise UnequalResultsError(
            f"{variant.name} with {variant.kind} buffers at load {variant.load:g} lost {lost:,} of {expected.sum():,} "
            f"results and delivered {more:,} that are none, so its latencies cannot be compared"
        )


def everything(load: float) -> list[Variant]:
    """Every scheduler, alone and as a train, with every kind of buffer."""
    return [Variant(load, scheduler, kind, train) for scheduler in SCHEDULERS for train in (1, TRAIN) for kind in KINDS]


def _latency(seconds: Any) -> Latency:
    if len(seconds) == 0:
        return Latency(float("nan"), float("nan"))
    return Latency(float(seconds.mean()), float(np.percentile(seconds, 99)))
