"""Similarity through Spark: against its own expressions, on streams, in CQL, and what is refused."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj

SCHEMA = "id int, ts timestamp, words array<string>, numbers array<int>, name string"
LETTERS = ["a", "b", "ä", "a\u0308", "👩"]
# Two empty sets would divide by zero.
JACCARD = "try_divide(size(array_intersect(l.words, r.words)), size(array_union(l.words, r.words))) >= 0.6"


def drawn(spark: SparkSession, seed: int, rows: int = 80) -> DataFrame:
    rng = random.Random(seed)
    made = []
    for number in range(rows):
        words = None if rng.random() < 0.1 else rng.choices(["a", "b", "c", "ä", "zz"], k=rng.randint(0, 6))
        name = None if rng.random() < 0.1 else "".join(rng.choices(LETTERS, k=rng.randint(0, 7)))
        numbers = rng.choices(range(6), k=rng.randint(0, 5))
        made.append((number, rng.randint(0, 60), words, numbers, name))
    frame = spark.createDataFrame(made, "id int, ts long, words array<string>, numbers array<int>, name string")
    return frame.withColumn("ts", F.timestamp_seconds("ts"))


def pairs(frame: DataFrame) -> Counter:
    return Counter((row["id"], row["id_right"]) for row in frame.select("id", "id_right").collect())


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    left, right = drawn(spark, 1).cache(), drawn(spark, 2).cache()
    return left, right


def test_differential_against_sparks_own_expressions(frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    asked = {
        JACCARD: sj.similar("words", jaccard=0.6),
        "levenshtein(l.name, r.name) <= 2": sj.similar("name", edit=2),
        "size(array_intersect(l.numbers, r.numbers)) >= 2": sj.similar("numbers", overlap=2),
    }
    for text, predicate in asked.items():
        expected = pairs(left.alias("l").join(right.alias("r"), F.expr(text)).selectExpr("l.id", "r.id AS id_right"))
        assert pairs(sj.join(left, right, where=predicate, buckets=3)) == expected, text
        assert sum(expected.values()) > 30
    outer = sj.join(left, right, where=sj.similar("words", jaccard=0.6), how="left", buckets=3)
    expected = pairs(
        left.alias("l").join(right.alias("r"), F.expr(JACCARD), "left").selectExpr("l.id", "r.id AS id_right")
    )
    assert pairs(outer) == expected


def test_a_stream_gives_what_a_batch_gives(
    spark: SparkSession, frames: tuple[DataFrame, DataFrame], tmp_path: Path
) -> None:
    live = []
    for number, frame in enumerate(frames):
        for part in range(2):  # two files, so two micro-batches
            some = frame.where((F.col("ts") >= F.timestamp_seconds(F.lit(30))) == bool(part))
            some.coalesce(1).write.mode("append").parquet(str(tmp_path / str(number)))
        reader = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1)
        live.append(reader.parquet(str(tmp_path / str(number))))
    where = sj.similar("words", jaccard=0.7) & sj.similar("name", edit=6)
    options = {"time": "ts", "window": sj.Range("20 seconds"), "where": where, "buckets": 2}
    joined = sj.join(*live, lateness=sj.Grace("1 hour"), **options)
    query = (
        joined.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    expected = pairs(sj.join(*frames, **options))
    assert pairs(spark.read.parquet(str(tmp_path / "out"))) == expected
    assert sum(expected.values()) > 10


def test_in_cql(frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    query = """
        SELECT l.id AS id, r.id AS id_right FROM l [UNBOUNDED], r [UNBOUNDED]
        WHERE similar(l.words, r.words) >= 0.6 AND levenshtein(l.name, r.name) < 5
    """
    found = sj.cql(left.sparkSession, query, time="ts", l=left, r=right)
    assert "jaccard" in sj.explain(found)
    text = f"{JACCARD} AND levenshtein(l.name, r.name) < 5"
    expected = left.alias("l").join(right.alias("r"), F.expr(text)).selectExpr("l.id", "r.id AS id_right")
    assert pairs(found) == pairs(expected)


def test_what_is_no_set_is_refused(frames: tuple[DataFrame, DataFrame]) -> None:
    left, right = frames
    with pytest.raises(sj.CallError, match="jaccard compares sets, arrays of strings or of integers; 'name' of"):
        sj.join(left, right, where=sj.similar("name", jaccard=0.5))
    with pytest.raises(sj.CallError, match="whose elements are never equal"):
        sj.join(left, right, where=sj.similar("words", "numbers", jaccard=0.5))
    with pytest.raises(sj.CallError, match="edit counts changes of a text, 'words' of input 0 is array<string>"):
        sj.join(left, right, where=sj.similar("words", edit=1))
