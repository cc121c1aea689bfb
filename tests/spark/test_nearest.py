"""Nearest joins through Spark: against the oracle, beside a stream, and their errors."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from tests import oracle
from tests.spark.streams import Source, counted, random_rows
from tests.spark.wrong_calls import Call, Wrong, check, make_frames, short

Row = dict[str, Any]


def drawn(seed: int, rows: int = 60) -> list[Row]:
    """Places on a small grid, so that many are equally far; some NULL or NaN."""
    rng = random.Random(seed)
    return [
        {
            "id": number,
            "k": rng.choice([None, 1, 2]),
            "x": rng.choice([None, float("nan"), *(n / 2 for n in range(-8, 9))]),
            "y": rng.choice([n / 2 for n in range(-8, 9)]),
        }
        for number in range(rows)
    ]


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], "id int, k int, x double, y double")


def squared(row: Row, other: Row) -> float | None:
    """The square of a distance of at most 1.5."""
    gaps = [None if None in (row[axis], other[axis]) else abs(row[axis] - other[axis]) for axis in ("x", "y")]
    if any(gap is None or gap != gap for gap in gaps):
        return None
    distance = sum(gap * gap for gap in gaps)
    return distance if distance <= 1.5 * 1.5 else None


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize(("by", "k", "how"), [(None, 1, "left"), ("k", 2, "inner"), (None, 3, "left")])
def test_oracle_whatever_the_buckets(spark: SparkSession, by: str | None, k: int, how: str, buckets: int) -> None:
    left, right = drawn(1), drawn(2)
    joined = sj.join_nearest(
        frame(spark, left), frame(spark, right), on=("x", "y"), within=1.5, k=k, how=how, by=by, buckets=buckets
    )
    keys = () if by is None else (by,)
    expected = Counter(oracle.nearest(left, right, keys, squared, k, (), how))
    assert Counter((row["id"], row["id_right"]) for row in joined.collect()) == expected
    assert sum(expected.values()) > 20


def test_ties_are_broken_by_columns_then_by_content(spark: SparkSession) -> None:
    left = spark.createDataFrame([(1, 0.0)], "id int, x double")
    right = spark.createDataFrame([(1, 1.0, 5), (2, -1.0, 9), (3, 1.0, 9), (4, 0.5, 0)], "id int, x double, rank int")
    near = sj.join_nearest(left, right, on="x", within=2.0, k=2, tie_break="rank")
    assert sorted(row["id_right"] for row in near.collect()) == [3, 4]
    near = sj.join_nearest(left, right, on="x", within=2.0, k=2)
    assert sorted(row["id_right"] for row in near.collect()) == [3, 4]
    assert "ties: the greatest by rank, content" in sj.explain(
        sj.join_nearest(left, right, on="x", within=2.0, tie_break="rank")
    )


def test_metres_on_earth(spark: SparkSession) -> None:
    here = spark.createDataFrame([("Munich", 48.137, 11.575)], "city string, lat double, lon double")
    there = spark.createDataFrame(
        [("Augsburg", 48.366, 10.898), ("Nuremberg", 49.454, 11.077), ("Tokyo", 35.68, 139.69)],
        "town string, lat double, lon double",
    )
    near = sj.join_nearest(here, there, on=("lat", "lon"), metric="haversine", within=200_000, k=5)
    assert sorted(row.town for row in near.collect()) == ["Augsburg", "Nuremberg"]


def test_a_batch_changelog_has_insertions_only(spark: SparkSession) -> None:
    left, right = frame(spark, drawn(1)), frame(spark, drawn(2))
    plain = sj.join_nearest(left, right, on=("x", "y"), within=1.5)
    changes = sj.join_nearest(left, right, on=("x", "y"), within=1.5, output="changelog")
    rows = changes.collect()
    assert {row["_change"] for row in rows} == {"insert"}
    pairs = Counter((row["id"], row["id_right"]) for row in rows)
    assert pairs == Counter((row["id"], row["id_right"]) for row in plain.collect())


@pytest.mark.stream
def test_differential_a_stream_beside_a_table_needs_no_time(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(3), Source(spark, tmp_path)
    source.add([random_rows(rng, 40), random_rows(rng, 20)], 2)

    def near(stream: bool) -> DataFrame:
        frames = source.frame(0, streaming=stream), source.frame(1, streaming=False)
        return sj.join_nearest(*frames, on=("v", "lo"), within=1.0, k=2, by="k")

    expected = counted(near(False))
    assert source.run(near(True)) == expected, "rows are final at once"
    assert sum(expected.values()) > 40


def near(**options: Any) -> Call:
    return short(sj.join_nearest, **{"on": "v", "within": 1.0, **options})


WRONG: dict[str, Wrong] = {
    "no k": (near(k=0), "k must be a whole number from 1 on, got 0", "k=3 takes the three nearest"),
    "a radius": (near(within=-1.0), "radius must not be negative, got -1.0", "a radius of 0 is equality"),
    "time without tolerance": (
        near(time="ts"),
        "time and tolerance go together, got time='a column' and tolerance=None",
        'time="ts", tolerance="10 seconds": only right rows count whose time is at most so far away',
    ),
    "a negative tolerance": (
        near(time="ts", tolerance=-1), "tolerance must not be negative, got -1", "it is a distance in time",
    ),
    "an output": (near(output="log"), "output must be one of 'append', 'changelog', got 'log'", None),
    "changes in order": (
        near(output="changelog", emit="ordered"),
        'output="changelog" cannot be combined with emit="ordered"',
        "a correction comes after the row that it corrects, so it cannot be in order of time",
    ),
    "a stream on the right": (
        lambda frames: sj.join_nearest(frames.long, frames.stream, left_on="speed", right_on="value", within=1.0),
        "a nearest join with a stream on the right needs time, or a row would wait for ever for a nearer one",
        'give time="ts" and tolerance="10 seconds"; beside a static right frame neither is needed',
    ),
    "a join type": (near(how="full"), 'a nearest join is how="left" or how="inner", got \'full\'', None),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_is_refused(spark: SparkSession, what: str) -> None:
    check(make_frames(spark), WRONG[what], sj.CallError)
