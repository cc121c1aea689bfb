"""How much faster are similarity joins than the nested loop that Spark runs for its own expression; and boxes, than one
dimension after the other?

Sets of about ten words out of a few thousand, a tenth of them nearly the same as one of the other side. Spark gets its
built-in functions, `size(array_intersect(...)) / size(array_union(...)) >= 0.8`, in whatever plan it likes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions
from rich.table import Table

import streamjoin as sj
from benchmarks.contenders.in_spark import CORES, digest
from benchmarks.race import Contender, Verdict, check_equal, judge
from benchmarks.tables import new_table
from benchmarks.worker import Measurement
from streamjoin.algebra import Overlaps
from streamjoin.state import Batch, Matching, ValueTest

QUESTIONS: Final = ("sets", "growth", "boxes")
ROWS: Final = 20_000
GROWTH: Final = (50_000, 100_000, 200_000)
BOXES: Final = 100_000
TARGET: Final = 20.0
TARGET_BOXES: Final = 3.0
THRESHOLD: Final = 0.8
EXPRESSION: Final = f"size(array_intersect(a.words, b.words)) / size(array_union(a.words, b.words)) >= {THRESHOLD}"

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What one question gave: rows of a table, and verdicts."""

    question: str
    columns: tuple[str, ...]
    lines: list[tuple[str, ...]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def table(self) -> Table:
        table = new_table(self.question, *self.columns)
        for line in self.lines:
            table.add_row(*line)
        return table

    def to_json(self) -> dict[str, Any]:
        return {"lines": [dict(zip(self.columns, line, strict=True)) for line in self.lines]}


def draw_sets(seed: int, rows: int, other: list[list[str]] | None = None) -> list[list[str]]:
    """Sets of six to fourteen words; with another side, a tenth are one of its sets with a word changed."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array([f"word{number}" for number in range(5_000)])
    sizes = rng.integers(6, 15, rows)
    words = np.split(vocabulary[(rng.random(int(sizes.sum())) ** 2 * 5_000).astype(int)], np.cumsum(sizes)[:-1])
    sets = [list(dict.fromkeys(each.tolist())) for each in words]
    if other is not None:
        for row in rng.choice(rows, rows // 10, replace=False):
            copied = list(other[int(rng.integers(len(other)))])
            copied[int(rng.integers(len(copied)))] = str(rng.choice(vocabulary))
            sets[row] = copied
    return sets


def _frames(spark: Any, rows: int, folder: Path) -> tuple[Any, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    left = draw_sets(1, rows)
    frames = []
    for name, sets in (("v", left), ("w", draw_sets(2, rows, left))):
        file = folder / f"{name}.parquet"
        pq.write_table(pa.table({name: np.arange(rows), "words": pa.array(sets, pa.list_(pa.string()))}), file)
        frame = spark.read.parquet(str(file)).repartition(CORES).cache()
        frame.count()
        frames.append(frame)
    return frames[0], frames[1]


def _timed(label: str, joined: Any) -> Contender:
    def run() -> Measurement:
        started = time.perf_counter()
        found = digest(joined)
        return Measurement(time.perf_counter() - started, 0.0, 0.0, found)

    return Contender(label, run)


def _session() -> Any:
    return sj.session("streamjoin-bench", master=f"local[{CORES}]", spark__driver__memory="4g")


def measure_sets(quick: bool, repetitions: int, folder: Path, say: Say) -> Outcome:
    """Ours and the nested loop on the same cached frames; the nested loop once, after a small one that warms it up."""
    spark = _session()
    outcome = Outcome("similar sets in Spark", ("who", "rows a side", "pairs", "seconds, median", "of runs"))
    for rows in (1_000, 2_000 if quick else ROWS):
        say(f"jaccard {THRESHOLD}, {rows:,} sets a side: ours, then Spark's nested loop ...")
        left, right = _frames(spark, rows, folder / str(rows))
        ours = _timed("streamjoin", sj.join(left, right, where=sj.similar("words", jaccard=THRESHOLD)))
        nested = _timed("Spark's nested loop", left.alias("a").join(right.alias("b"), functions.expr(EXPRESSION)))
        ours.repeat(counted=False)
        nested.repeat(counted=True)
        for _ in range(repetitions):
            ours.repeat(counted=True)
        check_equal(ours, nested)
    for each in (ours, nested):
        assert each.digest is not None
        outcome.lines.append(
            (each.label, f"{rows:,}", f"{each.digest.count:,}", f"{each.median:.2f}", str(len(each.measured)))
        )
    outcome.verdicts.append(judge("similar sets", ours, [nested], TARGET))
    return outcome


def measure_growth(quick: bool, repetitions: int, folder: Path, say: Say) -> Outcome:
    """Ours alone, at growing sizes."""
    spark = _session()
    outcome = Outcome("similar sets, growth", ("rows a side", "pairs", "seconds, median", "times the size before"))
    before: float | None = None
    for rows in (1_000, 2_000) if quick else GROWTH:
        say(f"jaccard {THRESHOLD}, {rows:,} sets a side ...")
        left, right = _frames(spark, rows, folder / str(rows))
        ours = _timed("streamjoin", sj.join(left, right, where=sj.similar("words", jaccard=THRESHOLD)))
        for repetition in range(1 + repetitions):
            ours.repeat(counted=repetition > 0)
        assert ours.digest is not None
        grown = "" if before is None else f"{ours.median / before:.2f}"
        outcome.lines.append((f"{rows:,}", f"{ours.digest.count:,}", f"{ours.median:.2f}", grown))
        before = ours.median
    return outcome


def _boxes(seed: int, rows: int, dimensions: int) -> Batch:
    """Long along the first dimension, short along the others: those select."""
    rng = np.random.default_rng(seed)
    values: list[np.ndarray] = []
    for dimension in range(dimensions):
        lo = rng.random(rows)
        values += [lo, lo + (0.005 if dimension == 0 else 0.0005) * (1 + rng.random(rows))]
    zero = np.zeros(rows, np.int64)
    return Batch(pa.table({}), zero, zero + 1, zero, tuple(values))


class _Tested:
    """A dimension tested on index pairs, one after the other, as it was before boxes had a kernel."""

    def __init__(self, test: ValueTest) -> None:
        self.test = test

    def holds(self, *pairs: Any) -> Any:
        return self.test.holds(*pairs)


def measure_boxes(quick: bool, repetitions: int, say: Say) -> Outcome:
    """Boxes by their kernel, against one dimension after the other; the same pairs before any ratio."""
    rows = 5_000 if quick else BOXES
    outcome = Outcome(
        f"boxes, {rows:,} a side", ("dimensions", "pairs", "one after the other, seconds", "box, seconds", "ratio")
    )
    side = Overlaps(("lo", "hi"), ("lo", "hi"))
    for dimensions in (2, 3):
        say(f"boxes in {dimensions} dimensions, {rows:,} a side ...")
        tests = tuple(ValueTest(side, 2 * number) for number in range(1, dimensions))
        apart = Matching(side, tuple(_Tested(test) for test in tests), timed=False)
        together = Matching(side, tests, timed=False)
        a, b = (together.sorted_run(_boxes(seed, rows, dimensions)) for seed in (1, 2))
        seconds: dict[str, list[float]] = {"apart": [], "together": []}
        found: dict[str, np.ndarray] = {}
        for repetition in range(1 + repetitions):
            for name, matching in (("apart", apart), ("together", together)):
                started = time.perf_counter()
                chunks: Sequence[tuple[np.ndarray, np.ndarray]] = list(matching.pairs(a, b))
                if repetition:
                    seconds[name].append(time.perf_counter() - started)
                found[name] = np.sort(np.concatenate([i * rows + j for i, j in chunks]))
        assert np.array_equal(found["apart"], found["together"]), "boxes delivered other pairs"
        slow, fast = (statistics.median(seconds[name]) for name in ("apart", "together"))
        line = (str(dimensions), f"{len(found['together']):,}", f"{slow:.3f}", f"{fast:.3f}", f"{slow / fast:.1f}")
        outcome.lines.append(line)
        text = f"{slow / fast:.1f} times as fast as one dimension after the other ({fast:.3f} s against {slow:.3f} s)"
        outcome.verdicts.append(Verdict(f"boxes in {dimensions} dimensions", slow / fast, TARGET_BOXES, text))
    return outcome


def outcomes(
    progress: AbstractContextManager[Say], asked: Sequence[str], quick: bool, repetitions: int, folder: Path
) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """What each question gave, as soon as it is there."""
    with progress as say:
        for question in (each for each in QUESTIONS if each in asked):
            if question == "boxes":
                found = measure_boxes(quick, repetitions, say)
            else:
                measure = measure_sets if question == "sets" else measure_growth
                found = measure(quick, repetitions, folder / question, say)
            yield question, found.verdicts, found, found.table()
