"""How much faster are our joins of frames than the nested loop that Spark itself runs for the same condition?

Batch, local[2], the same cached frames for both, about one result per row. The nested loop's cost is the product of the
sizes, so it gets one repetition per size, after a small one that warms the JVM up; ours gets several, warm.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import workloads
from benchmarks.environments import ROOT
from benchmarks.race import Contender, Verdict, check_equal, judge
from benchmarks.worker import Worker

QUESTIONS: Final = ("band", "overlap")
ROWS: Final = 200_000
QUICK_ROWS: Final = 20_000
WARM_UP_ROWS: Final = 10_000
TARGET: Final = 10.0


@dataclass
class SparkOutcome:
    """Ours and the nested loop at two sizes, the second twice the first."""

    question: str
    rows: tuple[int, int]
    ours: list[Contender]
    nested: list[Contender]
    plans: list[str]
    verdict: Verdict

    @staticmethod
    def growth(contenders: list[Contender]) -> float:
        """How many times as long the larger size took."""
        return contenders[1].median / contenders[0].median

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "ours": [_to_json(contender) for contender in self.ours],
            "nested_loop": [_to_json(contender) for contender in self.nested],
            "growth": {"ours": self.growth(self.ours), "nested_loop": self.growth(self.nested)},
            "plans": self.plans,
            "verdict": self.verdict.to_json(),
        }


def _to_json(contender: Contender) -> dict[str, Any]:
    # The CPU time of the process that asks Spark says nothing.
    return {name: value for name, value in contender.to_json().items() if name not in ("user", "system")}


def measure(question: str, rows: int, repetitions: int, folder: Path, say: Callable[[str], None]) -> SparkOutcome:
    """Time both at `rows` and at twice as many; the target is for the smaller size."""
    ours, nested, plans = [], [], []
    with Worker(sys.executable, "benchmarks.contenders.in_spark", ROOT) as worker:
        for size in (WARM_UP_ROWS, rows, 2 * rows):
            say(f"{question} in Spark, {size:,} rows a side: ours, then the nested loop, which takes its time ...")
            workloads.make(question, size, per_row=1).write(folder / str(size))
            _, notes = worker.load(str(size), folder / str(size))
            mine, theirs = (
                Contender(label, lambda size=size, job=job: worker.run(str(size), job))
                for label, job in (("streamjoin", "ours"), ("Spark's nested loop", "nested loop"))
            )
            mine.repeat(counted=False)
            for _ in range(repetitions):
                mine.repeat(counted=True)
            theirs.repeat(counted=True)
            check_equal(mine, theirs)
            if size != WARM_UP_ROWS:
                ours.append(mine)
                nested.append(theirs)
                plans.append(notes["Spark's plan"])
    verdict = judge(f"{question} in Spark", ours[0], [nested[0]], TARGET)
    return SparkOutcome(question, (rows, 2 * rows), ours, nested, plans, verdict)
