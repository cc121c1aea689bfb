"""How fast are as-of joins?

kernel   5M x 5M rows, 10,000 keys, in arrays on one thread: against DuckDB's ASOF JOIN and Polars' `join_asof`
spark    frames on local[2]: against what Spark itself has, `DataFrame._joinAsOf` (which pandas on Spark uses) and
         ASOF JOIN in SQL, which is switched off by default; each at a size that it can finish
stream   warm micro-batches of a million rows: beside our own equality join
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
from benchmarks.micro_batches import StreamRun
from benchmarks.race import Contender, Verdict, judge, race
from benchmarks.streaming import OURS, Track
from benchmarks.streaming import QUICK_ROWS as QUICK_STREAM_ROWS
from benchmarks.streaming import ROWS as STREAM_ROWS
from benchmarks.streaming_tables import TIMES, figures, warm
from benchmarks.streams import Stream, usual_step
from benchmarks.tables import new_table
from benchmarks.worker import Worker

QUESTIONS: Final = ("kernel", "spark", "stream")
PEERS: Final = {"DuckDB": "with_duckdb", "Polars": "with_polars"}
ROWS: Final = 5_000_000
QUICK_ROWS: Final = 200_000
TARGET: Final = 1.0
STREAM_TARGET: Final = 1.5
STREAM_BATCHES: Final = 10


@dataclass(frozen=True)
class Rival:
    """An as-of join of Spark's own: how many rows it can finish, and how many times as fast we want to be."""

    job: str
    rows: int
    target: float


RIVALS: Final = (Rival("joinAsOf", 10_000, 10.0), Rival("ASOF SQL", 1_000_000, 1.0))
QUICK_SPARK_ROWS: Final = 5_000


@dataclass
class SparkRace:
    """Ours and one of Spark's own, on the same cached frames."""

    rows: int
    contenders: list[Contender]
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "contenders": [contender.to_json() for contender in self.contenders],
            "verdict": self.verdict.to_json(),
        }


def measure_spark(rival: Rival, quick: bool, repetitions: int, folder: Path, say: Callable[[str], None]) -> SparkRace:
    """Both in turn, warm."""
    rows = QUICK_SPARK_ROWS if quick else rival.rows
    say(f"as-of in Spark, {rows:,} rows a side: ours and {rival.job} in turn ...")
    workloads.make("asof", rows).write(folder)
    with Worker(sys.executable, "benchmarks.contenders.asof_in_spark", ROOT) as worker:
        worker.load(rival.job, folder)
        contenders = [
            Contender(label, lambda job=job: worker.run(rival.job, job))
            for label, job in (("streamjoin", "ours"), (f"Spark, {rival.job}", rival.job))
        ]
        race(contenders, repetitions)
    ours, theirs = contenders
    return SparkRace(rows, contenders, judge(f"as-of on Spark, {rows:,} rows", ours, [theirs], rival.target))


def spark_table(outcome: SparkRace) -> Table:
    """Ours and Spark's own."""
    title = f"as-of: frames on Spark local[2], {outcome.rows:,} rows a side, {outcome.verdict.text}"
    table = new_table(title, "system", "median s", "min", "max", "results")
    for contender in outcome.contenders:
        assert contender.digest is not None
        seconds = (f"{value:.2f}" for value in (contender.median, min(contender.seconds), max(contender.seconds)))
        table.add_row(contender.label, *seconds, f"{contender.digest.count:,}")
    return table


@dataclass
class StreamOutcome:
    """Warm micro-batches: the equality join, and the as-of join of streams with the same rows."""

    equality: StreamRun
    asof: StreamRun

    @property
    def verdicts(self) -> list[Verdict]:
        slower = self.equality.throughput / self.asof.throughput
        text = (
            f"the equality join has {slower:.2f} times the throughput "
            f"({self.equality.throughput:,.0f} against {self.asof.throughput:,.0f} rows/s)"
        )
        return [Verdict("as-of of streams", slower, STREAM_TARGET, text, at_most=True)]

    def to_json(self) -> dict[str, Any]:
        return {
            "contenders": [run.to_json() for run in (self.equality, self.asof)],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


def measure_stream(track: Track, quick: bool) -> StreamOutcome:
    """Both one after the other."""
    rows, batches = (QUICK_STREAM_ROWS, 4) if quick else (STREAM_ROWS, STREAM_BATCHES)
    equality = track.reference(rows, batches)
    stream = Stream("asof", rows, batches, usual_step(rows))
    return StreamOutcome(equality, track.run(f"{OURS}, as-of", "stream_ours", stream))


def stream_table(outcome: StreamOutcome) -> Table:
    """Both, and what came out."""
    table = new_table("warm micro-batches on local[2], ours", "join", "warm", *TIMES, "results")
    for label, run in (("equality", outcome.equality), ("as-of", outcome.asof)):
        table.add_row(label, warm(run), *figures(run), f"{run.results:,.0f}")
    return table
