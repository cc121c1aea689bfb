"""`streamjoin bench asof`: as-of joins of arrays, frames and streams, and best match."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import asof, best_match, kernel_tables, kernels, spark_rivals, streaming
from benchmarks.asking.command import Asked, Command, Question, repetitions
from benchmarks.asking.shared import GROWTH_GOAL, PEERS_FILE, peers
from benchmarks.environments import peers_python
from benchmarks.reporting import Outcomes, progress


def _asof(asked: Asked, folder: Path) -> Outcomes:
    quick, times = asked.quick, asked.repetitions
    if "kernel" in asked.names:
        python = peers_python(PEERS_FILE, asked.console.print)
        rows = asof.QUICK_ROWS if quick else asof.ROWS
        with progress(asked.console) as say:
            say(f"{rows:,} x {rows:,} rows in arrays: ours and its peers in turn ...")
            raced = kernels.measure("asof", rows, times, folder / "asof", python, asof.PEERS, asof.TARGET)
        yield "kernel", [raced.verdict], raced, kernel_tables.kernel_table(raced)
    if "spark" in asked.names:
        for rival in asof.RIVALS:
            with progress(asked.console) as say:
                there = folder / "spark" / rival.job
                raced_on_spark = spark_rivals.measure("as-of", rival, quick, times, there, say)
            yield f"spark {rival.job}", [raced_on_spark.verdict], raced_on_spark, spark_rivals.table_of(raced_on_spark)
    if "stream" in asked.names:
        with progress(asked.console) as say:
            streamed = asof.measure_stream(streaming.Track(folder, say), quick)
        yield "stream", streamed.verdicts, streamed, asof.stream_table(streamed)
    if "best" in asked.names:
        with progress(asked.console) as say:
            say("growth of best match ...")
            grown = best_match.measure_growth(quick, times, folder / "best")
        yield "best growth", [grown.verdict], grown, kernel_tables.growth_table(grown)
        with progress(asked.console) as say:
            nearest = spark_rivals.measure("best match", best_match.NEAREST, quick, times, folder / "nearest", say)
        yield "best spark", [nearest.verdict], nearest, spark_rivals.table_of(nearest)


COMMAND: Final = Command(
    "asof",
    (
        Question("kernel", "the last row before each of 5M, 10,000 keys, one thread", "DuckDB, Polars",
                 f"{asof.TARGET:g} times as fast as the best peer", 3),
        Question("spark", "as-of of frames on local[2]", ", ".join(rival.job for rival in asof.RIVALS),
                 ", ".join(f"{rival.target:g} times" for rival in asof.RIVALS), 8),
        Question("stream", "as-of of streams, micro-batches of a million rows", "our own equality join",
                 f"the equality join has at most {asof.STREAM_TARGET:g} times the throughput", 4),
        Question("best", "best match in three dimensions; its growth, and on local[2]", best_match.NEAREST.job,
                 f"{GROWTH_GOAL}; {best_match.NEAREST.target:g} times as fast", 8),
    ),
    _asof, repetitions, peers, repeated=True,
)  # fmt: skip
