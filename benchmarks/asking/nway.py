"""`streamjoin bench nway`: four inputs at once, in memory and through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import nway, nway_spark
from benchmarks.asking.command import Asked, Command, Question, repetitions
from benchmarks.asking.shared import PEERS_FILE, peers
from benchmarks.environments import peers_python
from benchmarks.reporting import Outcomes, progress


def _nway(asked: Asked, folder: Path) -> Outcomes:
    in_memory = [question for question in asked.names if question in nway.QUESTIONS]
    if in_memory:
        python = peers_python(PEERS_FILE, asked.console.print)
        say = progress(asked.console)
        yield from nway.outcomes(say, in_memory, asked.quick, asked.repetitions, folder, python)
    through_spark = [question for question in asked.names if question in nway_spark.QUESTIONS]
    if through_spark:
        say = progress(asked.console)
        yield from nway_spark.outcomes(say, through_spark, asked.quick, asked.repetitions, folder)


COMMAND: Final = Command(
    "nway",
    (
        Question("overlap", "4 x 1M intervals that share a point, one thread, 1 to 1,000 dangling",
                 "DuckDB, Polars, a cascade of ours",
                 f"{nway.target('overlap', 'DuckDB', 1):g} times DuckDB, {nway.target('overlap', nway.CASCADE, 1):g} "
                 "times the cascade", 12),
        Question("equality", "the same with equal keys and validities that overlap",
                 "DuckDB, Polars, a cascade of ours",
                 f"{nway.target('equality', 'DuckDB', 1):g} to {nway.target('equality', 'DuckDB', 10):g} times DuckDB, "
                 f"{nway.target('equality', nway.CASCADE, 1):g} times the cascade", 6),
        Question("batch", "four frames at once on local[2]", "the kernel alone",
                 f"at most {nway_spark.WITHIN:g} times the kernel's time", 4),
        Question("streaming", "four streams at once", "a cascade of our joins",
                 f"{nway_spark.FASTER:g} times the throughput, {nway_spark.STATE:g} of the state", 6),
        Question("document", "the experiment with four streams, through Spark", "brute force",
                 f"{nway_spark.EXPECTED:,} results, give or take {nway_spark.TOLERANCE:,}", 3),
    ),
    _nway, repetitions, peers, repeated=True,
)  # fmt: skip
