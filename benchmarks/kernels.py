"""How fast are pairs found in arrays, on one thread, beside what users would pick instead?

1M x 1M rows and about 10M pairs. Everyone delivers the pairs with a payload column of each side, from unsorted arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks import workloads
from benchmarks.environments import ROOT
from benchmarks.race import Contender, Verdict, check_one_core, judge, race
from benchmarks.worker import ONE_THREAD, WARM_MEMORY, Worker

ROWS: Final = 1_000_000
QUICK_ROWS: Final = 100_000
TARGET: Final = 1.5

PEERS: Final = {
    "overlap": {"DuckDB": "with_duckdb", "Polars": "with_polars", "ncls": "with_ncls"},
    "band": {"DuckDB": "with_duckdb", "Polars": "with_polars"},
    "within": {"scipy cKDTree": "with_scipy"},
}


@dataclass
class KernelOutcome:
    """A race of kernels: ours first, then the peers."""

    question: str
    rows: int
    contenders: list[Contender]
    verdict: Verdict
    notes: dict[str, str] = field(default_factory=dict)
    inputs: int = 2

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "contenders": [contender.to_json() for contender in self.contenders],
            "verdict": self.verdict.to_json(),
            "notes": self.notes,
        }


def measure(
    question: str,
    rows: int,
    repetitions: int,
    folder: Path,
    peers_python: Path,
    peers: Mapping[str, str] | None = None,
    target: float = TARGET,
) -> KernelOutcome:
    """Race ours against the question's peers."""
    workloads.make(question, rows).write(folder)
    notes: dict[str, str] = {}
    contenders: list[Contender] = []
    with ExitStack() as stack:

        def enter(label: str, python: Path | str, module: str) -> None:
            worker = Worker(python, f"benchmarks.contenders.{module}", ROOT, **ONE_THREAD, **WARM_MEMORY)
            stack.enter_context(worker)
            jobs, told = worker.load(question, folder)
            notes.update(told)
            for job in jobs:
                name = label if job == "pairs" else f"{label}, {job} only"
                run = lambda worker=worker, job=job: worker.run(question, job)  # noqa: E731
                contenders.append(Contender(name, run, equal_work=job == "pairs"))

        enter("streamjoin", sys.executable, "ours")
        for label, module in (peers or PEERS[question]).items():
            enter(label, peers_python, module)
        race(contenders, repetitions)
    check_one_core(contenders)
    verdict = judge(question, contenders[0], contenders[1:], target)
    return KernelOutcome(question, rows, contenders, verdict, notes)
