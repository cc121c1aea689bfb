"""The gain that section 3.1.3 of the document promises in a join, beside the same join run on a virtual clock.

    t_win = x t_join + w0^2 / (2 (w0 + w1)) + sigma (sum_{n=1}^{w0 f0} (w1 + n / f0) w0 / (w0 + w1) + w0) f1 t_plan

Elements of the left stream come every 1 / f0 seconds, of the right one every 1 / f1; they are valid for w0 and w1. A
pair that overlaps joins with probability sigma. One thread: `t_join` for an element of the left, `t_plan` for each
result. All partners are there already (the document's best case): the right stream is ahead, and only the left one
moves progress. Results leave sorted by start, once progress is beyond it; the prioritised element's leave at once.
Without priorities that element first waits for the `x` that came before it, then its results for their turn.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np


@dataclass(frozen=True)
class Case:
    """The parameters of the formula; seconds and elements per second."""

    name: str
    w0: float = 1.0
    w1: float = 1.0
    f0: float = 200.0
    f1: float = 40.0
    sigma: float = 0.5
    x: int = 0
    t_join: float = 0.0
    t_plan: float = 0.0

    @property
    def load(self) -> float:
        """The share of the thread that is busy."""
        return self.f0 * (self.t_join + self.sigma * (self.w0 + self.w1) * self.f1 * self.t_plan)

    @property
    def terms(self) -> tuple[float, float, float]:
        """Overtaking before the join, waiting for progress, and results overtaken: as printed."""
        later = self.w0 / (self.w0 + self.w1)
        following = sum((self.w1 + n / self.f0) * later for n in range(1, round(self.w0 * self.f0) + 1))
        return (
            self.x * self.t_join,
            self.w0**2 / (2 * (self.w0 + self.w1)),
            self.sigma * (following + self.w0) * self.f1 * self.t_plan,
        )


def with_plan(name: str, load: float, x: int = 0) -> Case:
    """A case in which the plan above the join makes the load."""
    case = Case(name, x=x)
    return replace(case, t_plan=load / (case.f0 * case.sigma * (case.w0 + case.w1) * case.f1))


CASES: Final = (
    Case("waiting only"),
    Case("waiting only, wide left window", w0=3.0),
    Case("waiting only, wide right window", w1=3.0),
    Case("join of 1 ms, x = 100", x=100, t_join=0.001),
    Case("join of 4 ms, x = 500", x=500, t_join=0.004),
    *(with_plan(f"plan, load {load:g}", load) for load in (0.1, 0.5, 0.9, 1.5)),
    with_plan("plan, load 0.5, x = 100", 0.5, x=100),
)


def gain(case: Case, seed: int) -> float:
    """Run the join twice and give the mean latency that the prioritised element's results have won."""
    random = np.random.default_rng(seed)
    # So many come before that as many results are held as ever, and so many after that all have left.
    urgent = round((case.w0 + case.w1) * case.f0) + case.x
    count = urgent + round(case.w0 * case.f0) + 2
    times = np.arange(count) / case.f0
    right = np.arange(-case.w1, times[-1] + case.w0, 1 / case.f1) + random.random() / case.f1
    starts = []
    for time in times:
        partners = right[(right > time - case.w1) & (right < time + case.w0)]
        starts.append(np.maximum(partners[random.random(len(partners)) < case.sigma], time).tolist())
    if not starts[urgent]:
        return float("nan")
    arrivals = times.copy()
    arrivals[urgent - case.x : urgent] = times[urgent]  # the x that it may overtake came late, together with it
    in_order = list(range(count))
    overtaking = [*in_order[: urgent - case.x], urgent, *in_order[urgent - case.x : urgent], *in_order[urgent + 1 :]]
    plain = _left_at(case, times, arrivals, starts, urgent, in_order)
    prioritised = _left_at(case, times, arrivals, starts, urgent, overtaking, at_once=True)
    return float(np.mean(plain) - np.mean(prioritised))


def mean_gain(case: Case, repetitions: int) -> float:
    """Over several draws."""
    return float(np.nanmean([gain(case, seed) for seed in range(repetitions)]))


def _left_at(
    case: Case,
    times: Any,
    arrivals: Any,
    starts: list[list[float]],
    urgent: int,
    order: list[int],
    at_once: bool = False,
) -> list[float]:
    """When each result of the urgent element left."""
    clock, left = 0.0, []
    held: list[tuple[float, int]] = []  # results by start, and whose they are
    for number in order:
        clock = max(clock, arrivals[number]) + case.t_join
        if at_once and number == urgent:
            for _ in starts[number]:
                clock += case.t_plan
                left.append(clock)
            continue  # it does not move progress
        for start in starts[number]:
            heapq.heappush(held, (start, number))
        while held and held[0][0] < times[number]:  # others of that start may still come
            _, whose = heapq.heappop(held)
            clock += case.t_plan
            if whose == urgent:
                left.append(clock)
    return left
