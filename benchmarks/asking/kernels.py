"""`streamjoin bench kernels`: pairs from arrays, frames beside Spark's nested loop, growth."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import growth, kernel_tables, kernels, spark_nested_loop
from benchmarks.asking.command import Asked, Command, Question, repetitions
from benchmarks.asking.shared import FRAMES, GROWTH_GOAL, PEERS_FILE, peers
from benchmarks.environments import peers_python
from benchmarks.reporting import Outcomes, progress


def _kernels(asked: Asked, folder: Path) -> Outcomes:
    quick, times = asked.quick, asked.repetitions
    for question in kernels.PEERS:
        if question in asked.names:
            python = peers_python(PEERS_FILE, asked.console.print)
            rows = kernels.QUICK_ROWS if quick else kernels.ROWS
            with progress(asked.console) as say:
                say(f"{question}: ours and its peers in turn ...")
                raced = kernels.measure(question, rows, times, folder / question, python)
            yield question, [raced.verdict], raced, kernel_tables.kernel_table(raced)
    if "spark" in asked.names:
        for question in spark_nested_loop.QUESTIONS:
            rows = spark_nested_loop.QUICK_ROWS if quick else spark_nested_loop.ROWS
            with progress(asked.console) as say:
                joined = spark_nested_loop.measure(question, rows, times, folder / "spark" / question, say)
            yield f"spark {question}", [joined.verdict], joined, kernel_tables.spark_table(joined)
    if "growth" in asked.names:
        for question in growth.QUESTIONS:
            smallest = growth.QUICK_SMALLEST if quick else growth.SMALLEST
            with progress(asked.console) as say:
                say(f"growth of {question} ...")
                grown = growth.measure(question, smallest, times, folder / "growth" / question)
            yield f"growth {question}", [grown.verdict], grown, kernel_tables.growth_table(grown)


_KERNEL_GOAL: Final = f"{kernels.TARGET:g} times as fast as the best peer"


COMMAND: Final = Command(
    "kernels",
    (
        Question("overlap", "1M x 1M intervals that overlap, 10M pairs, one thread", "DuckDB, Polars, ncls",
                 _KERNEL_GOAL, 2),
        Question("band", "1M x 1M values within a band, one thread", "DuckDB, Polars", _KERNEL_GOAL, 2),
        Question("within", "1M x 1M points within a radius, one thread", "DuckDB, scipy", _KERNEL_GOAL, 2),
        Question("spark", "frames without an equality on local[2]", f"{FRAMES}, a nested loop",
                 f"{spark_nested_loop.TARGET:g} times as fast", 10),
        Question("growth", "n doubled five times, up to 2M rows a side", "the prediction", GROWTH_GOAL, 4),
    ),
    _kernels, repetitions, peers, repeated=True,
)  # fmt: skip
