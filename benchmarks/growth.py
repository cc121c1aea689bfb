"""Does the cost grow as n log n + results? n is doubled five times, the results per row stay the same.

A measured ratio of successive times stands beside what `n log2 n + results` predicts: a little above 2. Caches make the
larger sizes dearer than that, so the verdict allows 1.5 times the prediction over all five doublings together (an
exponent that is 0.12 larger); a quadratic cost would be about 25 times the prediction.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from benchmarks import workloads
from benchmarks.environments import ROOT
from benchmarks.race import Contender, Verdict
from benchmarks.worker import ONE_THREAD, WARM_MEMORY, Worker

QUESTIONS: Final = ("overlap", "band", "within", "validity")
DOUBLINGS: Final = 5
SMALLEST: Final = 62_500
QUICK_SMALLEST: Final = 3_125
ALLOWED: Final = 1.5


@dataclass
class GrowthOutcome:
    """The times of one question at growing sizes."""

    question: str
    rows: list[int]
    contenders: list[Contender]

    @property
    def results(self) -> list[int]:
        return [contender.digest.count if contender.digest else 0 for contender in self.contenders]

    @property
    def measured(self) -> list[float]:
        """The ratios of successive medians."""
        times = [contender.median for contender in self.contenders]
        return [after / before for before, after in pairwise(times)]

    @property
    def predicted(self) -> list[float]:
        """The ratios of successive costs."""
        costs = [cost(rows, results) for rows, results in zip(self.rows, self.results, strict=True)]
        return [after / before for before, after in pairwise(costs)]

    @property
    def verdict(self) -> Verdict:
        measured, predicted = math.prod(self.measured), math.prod(self.predicted)
        text = (
            f"{self.rows[-1] // self.rows[0]} times the rows took {measured:.1f} times as long, "
            f"predicted {predicted:.1f}: {measured / predicted:.2f} of the prediction"
        )
        return Verdict(f"growth of {self.question}", measured / predicted, ALLOWED, text, at_most=True)

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "contenders": [contender.to_json() for contender in self.contenders],
            "measured": self.measured,
            "predicted": self.predicted,
            "verdict": self.verdict.to_json(),
        }


def cost(rows: int, results: int) -> float:
    """What is expected to be proportional to the time: both sides have `rows` rows, and are sorted."""
    return 2 * rows * math.log2(rows) + results


def measure(question: str, smallest: int, repetitions: int, folder: Path, per_row: int = 10) -> GrowthOutcome:
    """Time ours at every size, the sizes in turn, so that a disturbance does not hit one of them alone."""
    sizes = [smallest << doubling for doubling in range(DOUBLINGS + 1)]
    with Worker(sys.executable, "benchmarks.contenders.ours", ROOT, **ONE_THREAD, **WARM_MEMORY) as worker:
        contenders = []
        for rows in sizes:
            workloads.make(question, rows, per_row).write(folder / str(rows))
            worker.load(str(rows), folder / str(rows))
            run = lambda rows=rows: worker.run(str(rows), "pairs")  # noqa: E731
            contenders.append(Contender(f"{rows:,} rows", run))
        for repetition in range(1 + repetitions):
            for contender in contenders:
                contender.repeat(counted=repetition > 0)
    return GrowthOutcome(question, sizes, contenders)
