"""How fast are as-of joins?

kernel   5M x 5M rows, 10,000 keys, in arrays on one thread: against DuckDB's ASOF JOIN and Polars' `join_asof`
spark    frames on local[2]: against what Spark itself has, `DataFrame._joinAsOf` (which pandas on Spark uses) and
         ASOF JOIN in SQL, which is switched off by default; each at a size that it can finish
stream   warm micro-batches of a million rows: beside our own equality join

`_joinAsOf` becomes a correlated subquery, and that a nested loop over the distinct times of the left side and all rows
of the right one. The keys are no part of it: they come in when its pairs have been sorted and aggregated, and the
optimizer lets all of this happen again for the filter that drops what found nothing. So its cost is the product of the
sizes however many keys there are, and it gets a size of its own and few repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rich.table import Table

from benchmarks.micro_batches import StreamRun
from benchmarks.race import Verdict
from benchmarks.spark_rivals import Rival
from benchmarks.streaming import OURS, Track
from benchmarks.streaming import QUICK_ROWS as QUICK_STREAM_ROWS
from benchmarks.streaming import ROWS as STREAM_ROWS
from benchmarks.streaming_tables import TIMES, figures, warm
from benchmarks.streams import Stream, usual_step
from benchmarks.tables import new_table

QUESTIONS: Final = ("kernel", "spark", "stream", "best")
PEERS: Final = {"DuckDB": "with_duckdb", "Polars": "with_polars"}
ROWS: Final = 5_000_000
QUICK_ROWS: Final = 200_000
TARGET: Final = 1.0
STREAM_TARGET: Final = 1.5
STREAM_BATCHES: Final = 10


RIVALS: Final = (
    Rival("asof", "asof_in_spark", "joinAsOf", 8_000, 10.0, at_most=2),
    Rival("asof", "asof_in_spark", "ASOF SQL", 1_000_000, 1.0),
)


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
