"""How long does it take to restore a large state that lies in many small parts?

    area    a sweep area that was stored in so many parts, from their bytes
    merge   the kernel that merges the parts' orders into one

The rows came in as many micro-batches as there are parts: keys are all over, times follow each other.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.checkouts import Checkout
from benchmarks.environments import ROOT
from benchmarks.house import ROUNDS_MORE
from benchmarks.race import Contender, Verdict, race, ratio
from benchmarks.worker import ONE_THREAD, Worker

ROWS: Final = 2_000_000
PARTS: Final = 1_024
QUICK_ROWS: Final = 20_000
QUICK_PARTS: Final = 16
ROWS_OF_A_KEY: Final = 20
NOT_SLOWER: Final = 1.0
JOBS: Final = ("area", "merge")
SEED: Final = 20_260_301


@dataclass
class RestoreOutcome:
    """A job by all states, this one first."""

    job: str
    rows: int
    parts: int
    contenders: list[Contender]
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[Verdict]:
        ours, *others = self.contenders
        return [
            Verdict(
                f"restore, {self.job} of {self.rows:,} rows in {self.parts:,} parts",
                ratio(ours, other),
                NOT_SLOWER,
                f"{ratio(ours, other):.2f} times as fast as {other.label} "
                f"({ours.median:.3f} s against {other.median:.3f} s)",
            )
            for other in others
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "parts": self.parts,
            "contenders": [contender.to_json() for contender in self.contenders],
            "notes": self.notes,
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def write(rows: int, parts: int, folder: Path) -> None:
    """The parts one after another, each in the order of (key, time)."""
    rng = np.random.default_rng([SEED, rows, parts])
    offsets = np.linspace(0, rows, parts + 1).astype(np.int64)
    group, ts = rng.integers(0, max(1, rows // ROWS_OF_A_KEY), rows), np.arange(rows)
    for start, end in itertools.pairwise(offsets):
        order = np.lexsort((ts[start:end], group[start:end]))
        group[start:end], ts[start:end] = group[start:end][order], ts[start:end][order]
    folder.mkdir(parents=True)
    for name, column in (("group", group), ("ts", ts), ("offsets", offsets)):
        np.save(folder / f"{name}.npy", column)


def measure(checkouts: Sequence[Checkout], quick: bool, rounds: int, folder: Path) -> list[RestoreOutcome]:
    """Both jobs by all states in turn."""
    rows, parts = (QUICK_ROWS, QUICK_PARTS) if quick else (ROWS, PARTS)
    write(rows, parts, folder)
    outcomes = {job: RestoreOutcome(job, rows, parts, []) for job in JOBS}
    with ExitStack() as stack:
        for checkout in checkouts:
            module, environment = "benchmarks.contenders.restore", {**ONE_THREAD, **checkout.environment}
            worker = stack.enter_context(Worker(sys.executable, module, ROOT, **environment))
            jobs, notes = worker.load("restore", folder)
            checkout.check([notes["code"]])
            for job in jobs:
                run = lambda worker=worker, job=job: worker.run("restore", job)  # noqa: E731
                outcomes[job].contenders.append(Contender(checkout.label, run))
            outcomes["area"].notes[checkout.label] = notes["stored"]
        for outcome in outcomes.values():
            race(outcome.contenders, rounds if quick else rounds + ROUNDS_MORE)
    return list(outcomes.values())
