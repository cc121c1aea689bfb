"""What arrives: times, priorities, and the operator at which each element ends.

An element's fate is drawn before anything runs, so every scheduler and buffer has the same work and must deliver the
same elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks.priority_room.plan import Plan

RATE: Final = 10_000  # elements per second and source
PER_SOURCE: Final = 100_000
PRIORITIES: Final = (8, 9, 10)
SHARE: Final = 0.1  # of each priority
DELIVERED: Final = -1


@dataclass(frozen=True)
class Elements:
    """All elements in order of arrival. `rank` 0 is not prioritised, 1 the lowest priority."""

    arrival: Any  # seconds
    source: Any
    rank: Any
    ends_at: Any  # height of the operator that drops it, or DELIVERED
    ranks: int  # how many there are, with 0

    def __len__(self) -> int:
        return len(self.arrival)


def draw_elements(
    plan: Plan,
    per_source: int = PER_SOURCE,
    rate: float = RATE,
    priorities: int = len(PRIORITIES),
    share: float = SHARE,
    seed: int = 7,
) -> Elements:
    """Constant rates, the sources in turn; each priority has its share of the elements, whatever the source."""
    random = np.random.default_rng(seed)
    sources = len(plan.sources)
    source = np.tile(np.arange(sources), per_source)
    arrival = np.arange(per_source * sources) / (rate * sources)
    drawn = (random.random(len(source)) / share).astype(np.int64) + 1
    rank = np.where(drawn <= priorities, drawn, 0)
    ends_at = np.full(len(source), DELIVERED)
    for number, first in enumerate(plan.sources):
        mine = np.flatnonzero(source == number)
        for operator in plan.path(first):
            dropped = random.random(len(mine)) >= plan.operators[operator].selectivity
            ends_at[mine[dropped]] = plan.height(operator)
            mine = mine[~dropped]
    return Elements(arrival, source, rank, ends_at, priorities + 1)
