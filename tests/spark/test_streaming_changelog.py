"""Joins that choose, as streams on Spark: finished they give what the batch gives, and a changelog sums up to it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from tests.spark.streams import SLACK, Source, counted, random_rows, row

Joined = Callable[..., DataFrame]
GRACE = sj.Grace(f"{SLACK} seconds")
NEAREST = partial(sj.join_nearest, on=("v", "lo"), within=1.0, time="ts", tolerance="4 seconds", lateness=GRACE)
CASES: list[tuple[str, Joined, int]] = [
    ("the nearest", partial(NEAREST, buckets=2), 3),
    ("the three nearest of a key, in order", partial(NEAREST, k=3, by="k", emit="ordered", buckets=5), 5),
    ("changes of the nearest", partial(NEAREST, k=2, how="inner", output="changelog", buckets=2), 4),
    (
        "changes as of",
        partial(sj.join_asof, on="ts", by="k", direction="nearest", lateness=GRACE, output="changelog", buckets=2),
        5,
    ),
    (
        "changes of the best",
        partial(sj.join_best_match, on={"ts": "4 seconds", "v": 1.0}, lateness=GRACE, output="changelog", buckets=2),
        4,
    ),
]


def summed(changes: Counter[Any]) -> Counter[Any]:
    """What a changelog comes to: whoever was inserted, without whoever was retracted."""
    total: Counter[Any] = Counter()
    for change, count in changes.items():
        columns = dict(change)
        sign = -1 if columns.pop("_change", "insert") == "retract" else 1
        total[tuple(columns.items())] += sign * count
    assert all(count >= 0 for count in total.values()), "what was never inserted is retracted"
    return +total


@pytest.mark.parametrize(("name", "join", "pieces"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_differential_a_finished_stream_gives_what_the_batch_gives(
    spark: SparkSession, tmp_path: Path, name: str, join: Joined, pieces: int
) -> None:
    rng, source = random.Random(name), Source(spark, tmp_path)
    left, right = random_rows(rng, 60), random_rows(rng, 60)
    source.add([left[:20], []])  # their partners come later
    source.add([left[20:], right], pieces - 1)
    expected = summed(counted(join(*source.frames(streaming=False))))
    changes = source.finished(join(*source.frames(streaming=True)))
    assert summed(changes) == expected
    assert sum(expected.values()) > 40
    if name.startswith("changes"):
        assert any(dict(one)["_change"] == "retract" for one in changes), "the example is wrong: nothing is corrected"


def test_a_first_answer_comes_at_once_and_is_corrected(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    options: dict[str, Any] = {"on": "ts", "by": "k", "lateness": GRACE, "output": "changelog", "late": "output"}
    frame = sj.join_asof(*source.frames(streaming=True), **options)
    seen: Counter[Any] = Counter()

    def news() -> set[tuple[Any, Any, Any]]:
        nonlocal seen
        now = source.run(frame)
        rows = [dict(one) for one in (now - seen).elements()]
        seen = now
        return {(one["id"], one["id_right"], one["_change"]) for one in rows}

    source.add([[row(1, 0, 20)], []])
    assert news() == {(1, None, "insert")}
    source.add([[], [row(7, 0, 18)]])
    assert news() == {(1, None, "retract"), (1, 7, "insert")}
    source.add([[], [row(8, 0, 17)]])
    assert news() == set(), "an older quote changes nothing"
    source.add([[row(2, 0, 60)], [row(9, 0, 60)]])
    assert news() == {(2, 9, "insert")}
    source.add([[row(3, 0, 21)], [row(10, 0, 19)]])
    assert news() == {(3, None, None), (None, 10, None)}, "late rows are no change"
