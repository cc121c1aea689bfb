"""Joins of arrays and frames, beside what users would pick instead: kernels, asof, nway, similar."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import (
    asof,
    best_match,
    growth,
    kernels,
    nway,
    nway_spark,
    similar,
    spark_nested_loop,
    spark_rivals,
    streaming,
    tables,
)
from benchmarks.asking.command import Asked, Command, Question, repetitions
from benchmarks.environments import peers_python, requirements_of
from benchmarks.reporting import Outcomes, progress

PEERS_FILE: Final = Path(__file__).parents[1] / "peers.txt"
FRAMES: Final = "Spark's own plan"


def peers() -> Sequence[str]:
    """Systems that run in an environment of their own."""
    return requirements_of(PEERS_FILE.read_text())


def _kernels(asked: Asked, folder: Path) -> Outcomes:
    quick, times = asked.quick, asked.repetitions
    for question in kernels.PEERS:
        if question in asked.names:
            python = peers_python(PEERS_FILE, asked.console.print)
            rows = kernels.QUICK_ROWS if quick else kernels.ROWS
            with progress(asked.console) as say:
                say(f"{question}: ours and its peers in turn ...")
                raced = kernels.measure(question, rows, times, folder / question, python)
            yield question, [raced.verdict], raced, tables.kernel_table(raced)
    if "spark" in asked.names:
        for question in spark_nested_loop.QUESTIONS:
            rows = spark_nested_loop.QUICK_ROWS if quick else spark_nested_loop.ROWS
            with progress(asked.console) as say:
                joined = spark_nested_loop.measure(question, rows, times, folder / "spark" / question, say)
            yield f"spark {question}", [joined.verdict], joined, tables.spark_table(joined)
    if "growth" in asked.names:
        for question in growth.QUESTIONS:
            smallest = growth.QUICK_SMALLEST if quick else growth.SMALLEST
            with progress(asked.console) as say:
                say(f"growth of {question} ...")
                grown = growth.measure(question, smallest, times, folder / "growth" / question)
            yield f"growth {question}", [grown.verdict], grown, tables.growth_table(grown)


def _asof(asked: Asked, folder: Path) -> Outcomes:
    quick, times = asked.quick, asked.repetitions
    if "kernel" in asked.names:
        python = peers_python(PEERS_FILE, asked.console.print)
        rows = asof.QUICK_ROWS if quick else asof.ROWS
        with progress(asked.console) as say:
            say(f"{rows:,} x {rows:,} rows in arrays: ours and its peers in turn ...")
            raced = kernels.measure("asof", rows, times, folder / "asof", python, asof.PEERS, asof.TARGET)
        yield "kernel", [raced.verdict], raced, tables.kernel_table(raced)
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
        yield "best growth", [grown.verdict], grown, tables.growth_table(grown)
        with progress(asked.console) as say:
            nearest = spark_rivals.measure("best match", best_match.NEAREST, quick, times, folder / "nearest", say)
        yield "best spark", [nearest.verdict], nearest, spark_rivals.table_of(nearest)


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


def _similar(asked: Asked, folder: Path) -> Outcomes:
    yield from similar.outcomes(progress(asked.console), asked.names, asked.quick, asked.repetitions, folder)


_KERNEL_GOAL: Final = f"{kernels.TARGET:g} times as fast as the best peer"
_GROWTH_GOAL: Final = f"at most {growth.ALLOWED:g} times n log n + results"

KERNELS: Final = Command(
    "kernels",
    (
        Question("overlap", "1M x 1M intervals that overlap, 10M pairs, one thread", "DuckDB, Polars, ncls",
                 _KERNEL_GOAL, 2),
        Question("band", "1M x 1M values within a band, one thread", "DuckDB, Polars", _KERNEL_GOAL, 2),
        Question("within", "1M x 1M points within a radius, one thread", "DuckDB, scipy", _KERNEL_GOAL, 2),
        Question("spark", "frames without an equality on local[2]", f"{FRAMES}, a nested loop",
                 f"{spark_nested_loop.TARGET:g} times as fast", 10),
        Question("growth", "n doubled five times, up to 2M rows a side", "the prediction", _GROWTH_GOAL, 4),
    ),
    _kernels, repetitions, peers, repeated=True,
)  # fmt: skip

ASOF: Final = Command(
    "asof",
    (
        Question("kernel", "the last row before each of 5M, 10,000 keys, one thread", "DuckDB, Polars",
                 f"{asof.TARGET:g} times as fast as the best peer", 3),
        Question("spark", "as-of of frames on local[2]", ", ".join(rival.job for rival in asof.RIVALS),
                 ", ".join(f"{rival.target:g} times" for rival in asof.RIVALS), 8),
        Question("stream", "as-of of streams, micro-batches of a million rows", "our own equality join",
                 f"the equality join has at most {asof.STREAM_TARGET:g} times the throughput", 4),
        Question("best", "best match in three dimensions; its growth, and on local[2]", best_match.NEAREST.job,
                 f"{_GROWTH_GOAL}; {best_match.NEAREST.target:g} times as fast", 8),
    ),
    _asof, repetitions, peers, repeated=True,
)  # fmt: skip

NWAY: Final = Command(
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

SIMILAR: Final = Command(
    "similar",
    (
        Question("sets", "similar sets of words, frames on local[2]", f"{FRAMES} of its set functions",
                 f"{similar.TARGET:g} times as fast", 6),
        Question("growth", "similar sets, n doubled", "the size before", "none: shown", 3),
        Question("boxes", "boxes in several dimensions, together", "one dimension after the other",
                 f"{similar.TARGET_BOXES:g} times as fast", 2),
    ),
    _similar, repetitions, repeated=True,
)  # fmt: skip
