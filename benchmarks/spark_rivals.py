"""Ours against a join that Spark itself has, on the same cached frames on local[2].

A rival whose cost is the product of the sizes takes a minute where ours takes a second. It has a number of repetitions
of its own, and is warmed up on tiny frames only: what is left to compile is little of a minute. Results are compared at
both sizes, and the table says how often each ran.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks import workloads
from benchmarks.environments import ROOT
from benchmarks.race import Contender, Verdict, judge, race
from benchmarks.tables import new_table
from benchmarks.worker import Worker

WARM_UP_ROWS: Final = 300
QUICK_ROWS: Final = 600


@dataclass(frozen=True)
class Rival:
    """A join of Spark's own: how many rows it can finish, how often, and how many times as fast we want to be.

    `module` has it and ours as jobs. `at_most`: so many repetitions, instead of the usual number.
    """

    workload: str
    module: str
    job: str
    rows: int
    target: float
    at_most: int | None = None
    per_row: int = 10


@dataclass
class SparkRace:
    """Ours and one of Spark's own."""

    title: str
    rows: int
    contenders: list[Contender]
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "contenders": [contender.to_json() for contender in self.contenders],
            "verdict": self.verdict.to_json(),
        }


def measure(
    title: str, rival: Rival, quick: bool, repetitions: int, folder: Path, say: Callable[[str], None]
) -> SparkRace:
    """Both in turn, warm."""
    rows = QUICK_ROWS if quick else rival.rows
    with Worker(sys.executable, f"benchmarks.contenders.{rival.module}", ROOT) as worker:

        def entrants(size: int, at_most: int | None = None) -> list[Contender]:
            workloads.make(rival.workload, size, rival.per_row).write(folder / str(size))
            worker.load(str(size), folder / str(size))
            return [
                Contender("streamjoin", lambda: worker.run(str(size), "ours")),
                Contender(f"Spark, {rival.job}", lambda: worker.run(str(size), rival.job), at_most=at_most),
            ]

        if rival.at_most is not None:
            say(f"{title} in Spark: ours and {rival.job}, {WARM_UP_ROWS} rows a side to warm up ...")
            race(entrants(WARM_UP_ROWS), 1)
        say(f"{title} in Spark, {rows:,} rows a side: ours and {rival.job} in turn ...")
        contenders = entrants(rows, rival.at_most)
        race(contenders, repetitions)
    ours, theirs = contenders
    verdict = judge(f"{title} on Spark, {rows:,} rows", ours, [theirs], rival.target)
    return SparkRace(title, rows, contenders, verdict)


def table_of(outcome: SparkRace) -> Table:
    """Ours and Spark's own, and how often each ran."""
    title = f"{outcome.title}: frames on Spark local[2], {outcome.rows:,} rows a side, {outcome.verdict.text}"
    table = new_table(title, "system", "median s", "min", "max", "runs", "results", "checksum")
    for contender in outcome.contenders:
        assert contender.digest is not None
        seconds = (f"{value:.2f}" for value in (contender.median, min(contender.seconds), max(contender.seconds)))
        found = (f"{contender.digest.count:,}", f"{contender.digest.pairs:016x}")
        table.add_row(contender.label, *seconds, str(len(contender.measured)), *found)
    return table
