"""differential_: seeded random data through streamjoin, and through Spark or DuckDB where they say the same thing."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj

SPELLING = {"semi": "left_semi", "anti": "left_anti"}
SCHEMA = "id int, k int, s string, n long, x double, y double, lo long, hi long, at timestamp"


def _rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        lo = rng.randint(0, 300)
        rows.append((
            number,
            rng.choice([None, *range(12)]),
            rng.choice([None, "", "a", "b", "ß"]),
            rng.choice([None, rng.randint(-400, 400)]) if rng.random() < 0.1 else rng.randint(-400, 400),
            rng.uniform(0, 20),
            rng.choice([None, float("nan")]) if rng.random() < 0.05 else rng.uniform(0, 20),
            lo,
            lo + rng.randint(0, 6),
            rng.randint(0, 600_000_000),
        ))  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def left(spark: SparkSession) -> DataFrame:
    return _frame(spark, 1, 250)


@pytest.fixture(scope="module")
def right(spark: SparkSession) -> DataFrame:
    return _frame(spark, 2, 200)


def _frame(spark: SparkSession, seed: int, count: int) -> DataFrame:
    frame = spark.createDataFrame(_rows(seed, count), SCHEMA.replace("timestamp", "long"))
    return frame.withColumn("at", F.timestamp_micros("at"))


def _ids(frame: DataFrame, *more: str) -> Counter[tuple[Any, ...]]:
    right = ["id_right"] if "id_right" in frame.columns else []
    return Counter(map(tuple, frame.select("id", *right, *more).collect()))


@dataclass(frozen=True)
class Same:
    """A condition said twice: to streamjoin, and to Spark over the columns of l and r."""

    options: dict[str, Any]
    condition: str


CONDITIONS = {
    "two equal keys": Same({"left_by": ["k", "s"], "right_by": ["k", "s"]}, "l.k = r.k AND l.s = r.s"),
    "a band": Same({"where": sj.band("n", below=3, above=5, closed="left")}, "r.n - l.n >= -3 AND r.n - l.n < 5"),
    "an overlap": Same(
        {"where": sj.overlaps("lo", "hi")}, "l.lo < r.hi AND r.lo < l.hi AND l.lo < l.hi AND r.lo < r.hi"
    ),
    "an overlap in cells": Same(
        {"where": sj.overlaps("lo", "hi"), "cell": 10},
        "l.lo < r.hi AND r.lo < l.hi AND l.lo < l.hi AND r.lo < r.hi",
    ),
    "a distance": Same(
        {"where": sj.within(("x", "y"), radius=1.5)},
        "(r.x - l.x) * (r.x - l.x) + (r.y - l.y) * (r.y - l.y) <= 1.5D * 1.5D",
    ),
    "a key and theta": Same(
        {"where": sj.equals("k") & sj.theta("l.n + r.n BETWEEN -50 AND 50 OR l.s LIKE '%ß'")},
        "l.k = r.k AND (l.n + r.n BETWEEN -50 AND 50 OR l.s LIKE '%ß')",
    ),
}


def _by_spark(left: DataFrame, right: DataFrame, condition: str, how: str) -> DataFrame:
    joined = left.alias("l").join(right.alias("r"), F.expr(condition), SPELLING.get(how, how))
    if how in SPELLING:
        return joined
    return joined.select("l.id", F.col("r.id").alias("id_right"))


@pytest.mark.parametrize("how", ["full", "semi"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_differential_a_condition_joins_as_in_spark(left: DataFrame, right: DataFrame, name: str, how: str) -> None:
    same = CONDITIONS[name]
    got = _ids(sj.join([left, right], how=how, buckets=3, **same.options))
    expected = _ids(_by_spark(left, right, same.condition, how))
    assert got == expected
    assert any(None not in pair for pair in got), "the case itself is wrong: no pair matches"


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "left_semi", "leftanti", "LEFTOUTER", "outer"])
def test_differential_every_spelling_of_how_means_what_it_means_in_spark(
    left: DataFrame, right: DataFrame, how: str
) -> None:
    got = sj.join([left, right], left_by="n", right_by="n", how=how, buckets=2)
    expected = left.alias("l").join(right.alias("r"), F.expr("l.n = r.n"), how)
    if "id_right" in got.columns:
        expected = expected.select("l.id", F.col("r.id").alias("id_right"))
    assert _ids(got) == _ids(expected)


def _until(column: str) -> Column:
    return F.col(column) + F.expr("INTERVAL 7 SECONDS")


@pytest.mark.parametrize("how", ["full", "anti"])
def test_differential_a_window_is_a_condition_on_times(left: DataFrame, right: DataFrame, how: str) -> None:
    joined = sj.join([left, right], time="at", window=sj.Range("7 seconds"), where=sj.equals("s"), how=how, buckets=2)
    condition = "l.s = r.s AND l.at < r.until AND r.at < l.until"
    one, two = left.withColumn("until", _until("at")), right.withColumn("until", _until("at"))
    expected = one.alias("l").join(two.alias("r"), F.expr(condition), SPELLING.get(how, how))
    if how == "full":  # greatest and least skip NULLs, so a padded row keeps its own validity
        validity = [F.greatest("l.at", "r.at").alias("valid_from"), F.least("l.until", "r.until").alias("valid_to")]
        expected = expected.select("l.id", F.col("r.id").alias("id_right"), *validity)
    else:
        expected = expected.select("id", F.col("at").alias("valid_from"), F.col("until").alias("valid_to"))
    assert _ids(joined, "valid_from", "valid_to") == _ids(expected, "valid_from", "valid_to")


# -- DuckDB ------------------------------------------------------------------------------------------------------------


def _by_duckdb(query: str) -> Counter[tuple[Any, ...]]:
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    tables = [
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in _rows(seed, count)])
        for seed, count in ((1, 250), (2, 200))
    ]
    with duckdb.connect() as connection:
        connection.register("l", tables[0])
        connection.register("r", tables[1])
        return Counter(connection.execute(query).fetchall())


def test_differential_an_interval_join_is_duckdbs_range_join(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join_interval(
        left, right, on="at", lower="-2 seconds", upper="1500 ms", closed="right", by="k", how="left", buckets=3
    )
    expected = _by_duckdb(
        "SELECT l.id, r.id FROM l LEFT JOIN r ON l.k = r.k AND r.at - l.at > -2000000 AND r.at - l.at <= 1500000"
    )
    assert _ids(joined) == expected


def test_differential_an_overlap_join_is_duckdbs_inequality_join(left: DataFrame, right: DataFrame) -> None:
    joined = sj.join_overlap(left, right, on=("lo", "hi"), how="full", buckets=4)
    expected = _by_duckdb(
        """
        WITH a AS (FROM l WHERE lo < hi), b AS (FROM r WHERE lo < hi)
        SELECT a.id, b.id, greatest(a.lo, b.lo), least(a.hi, b.hi) FROM a FULL JOIN b ON a.lo < b.hi AND b.lo < a.hi
        """
    )
    assert _ids(joined, "valid_from", "valid_to") == expected


# -- inside a stream ---------------------------------------------------------------------------------------------------


def test_differential_a_join_inside_foreach_batch_joins_every_batch(
    spark: SparkSession, left: DataFrame, right: DataFrame, tmp_path: Path
) -> None:
    for number in range(2):
        left.where(F.col("id") % 2 == number).coalesce(1).write.parquet(str(tmp_path / "in" / f"part={number}"))
    found: list[Counter[tuple[Any, ...]]] = []

    def join_batch(batch: DataFrame, number: int) -> None:
        joined = sj.join_band(batch, right, on="n", below=3, above=5, how="left", buckets=2)
        found.append(_ids(joined))

    source = spark.readStream.schema(left.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in/*"))
    query = (
        source.writeStream.foreachBatch(join_batch)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert len(found) == 2
    assert sum(found, Counter()) == _ids(_by_spark(left, right, "r.n - l.n BETWEEN -3 AND 5", "left"))
