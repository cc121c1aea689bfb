"""Streaming frames: what has been joined over any number of micro-batches equals the join of the batch."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj

SCHEMA = "id int, k int, v double, ts timestamp"
CLOSING = -1  # the key of rows that come last, far in the future, and let everything else be decided


def _rows(rng: random.Random, count: int) -> list[tuple[int, int, float, int]]:
    rows = [
        (number, rng.randint(0, 3), rng.choice([0.0, 0.5, 1.0, 7.5]), rng.randint(0, 60)) for number in range(count)
    ]
    return sorted(rows, key=lambda row: row[3] + rng.randint(0, 5))  # at most 5 seconds late


class Source:
    """Two folders of Parquet files, one file a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0

    def add(self, sides: list[list[tuple[int, int, float, int]]], pieces: int) -> None:
        for side, rows in enumerate(sides):
            for piece in range(pieces):
                some = rows[len(rows) * piece // pieces : len(rows) * (piece + 1) // pieces]
                frame = self.spark.createDataFrame(some, "id int, k int, v double, s int")
                target = str(self.folder / f"{side}" / f"{self.files + piece:03d}.parquet")
                frame.selectExpr("id", "k", "v", "timestamp_seconds(s) ts").coalesce(1).write.parquet(target)
        self.files += pieces

    def close(self) -> None:
        self.add([[(-1, CLOSING, 0.0, 10_000)], [(-1, CLOSING, 100.0, 10_000)]], 1)

    def frames(self, *, streaming: bool) -> list[DataFrame]:
        paths = [str(self.folder / side / "*.parquet") for side in "01"]
        if not streaming:
            return [self.spark.read.schema(SCHEMA).parquet(path) for path in paths]
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return [reader.parquet(path) for path in paths]

    def run(self, joined: DataFrame) -> Counter[Any]:
        """All that has left so far; a second call goes on from the checkpoint."""
        query = (
            joined.writeStream.format("parquet")
            .option("path", str(self.folder / "out"))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return _without_closing(self.spark.read.schema(joined.schema).parquet(str(self.folder / "out")))


def _without_closing(frame: DataFrame) -> Counter[Any]:
    return Counter(row for row in frame.collect() if CLOSING not in (row["id"], row.asDict().get("id_right")))


JOINS: dict[str, dict[str, Any]] = {
    "keys": {"by": "k"},
    "keys, left, ordered": {"by": "k", "how": "left", "emit": "ordered"},
    "keys, full by snapshot": {"by": "k", "how": "full", "outer": "snapshot"},
    "keys, anti": {"by": "k", "how": "anti"},
    "band without keys": {"where": sj.band("v", below=0.5, above=0.5)},
    "band without keys, semi": {"where": sj.band("v", below=0.5, above=0.5), "how": "semi"},
    "distance, right": {"where": sj.within("v", radius=0.6), "how": "right"},
    "theta": {"where": sj.theta("l.v < r.v")},
}


@pytest.mark.parametrize(("name", "pieces"), [(name, 1 + 2 * (n % 3)) for n, name in enumerate(JOINS)])
def test_differential_a_stream_gives_what_the_batch_gives(
    spark: SparkSession, tmp_path: Path, name: str, pieces: int
) -> None:
    rng, source = random.Random(name), Source(spark, tmp_path)
    source.add([_rows(rng, 40), _rows(rng, 40)], pieces)
    source.close()
    options = {"time": "ts", "window": sj.Range("4 seconds"), "lateness": sj.Grace("5 seconds"), "buckets": 2}
    options |= JOINS[name]
    expected = _without_closing(sj.join(source.frames(streaming=False), **options))
    assert expected, "the case itself is wrong: nothing is joined"
    assert source.run(sj.join(source.frames(streaming=True), **options)) == expected


def test_a_restart_goes_on_where_the_query_stopped(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(7), Source(spark, tmp_path)
    sides = [_rows(rng, 60), _rows(rng, 60)]

    def joined(streaming: bool) -> DataFrame:
        left, right = source.frames(streaming=streaming)
        options = {"on": "ts", "by": "k", "lower": "-2 s", "upper": "3 s", "how": "left"}
        return sj.join_interval(left, right, **options, lateness=sj.Grace("5 s"), buckets=2)

    source.add([side[:30] for side in sides], 2)
    source.run(joined(True))
    source.add([side[30:] for side in sides], 2)
    source.close()
    assert source.run(joined(True)) == _without_closing(joined(False))


def test_a_restart_with_another_window_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(8), Source(spark, tmp_path)
    for window in ("4 seconds", "5 seconds"):
        source.add([_rows(rng, 10), _rows(rng, 10)], 1)
        options = {"time": "ts", "by": "k", "lateness": sj.Grace("60 seconds"), "buckets": 1}
        joined = sj.join(source.frames(streaming=True), window=sj.Range(window), **options)
        if window == "4 seconds":
            source.run(joined)
        else:
            with pytest.raises(Exception, match="this state was made by another join"):
                source.run(joined)


@pytest.mark.parametrize("policy", ["output", "drop"])
def test_late_rows_are_shown_or_dropped_and_nothing_else_is_lost(
    spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    source = Source(spark, tmp_path)
    source.add([[(1, 1, 0.0, 50)], [(1, 1, 0.0, 50)]], 1)
    source.add([[(2, 1, 0.0, 10), (3, 1, 0.0, 51)], [(2, 1, 0.0, 52)]], 1)
    frames = [frame.withWatermark("ts", "2 seconds") for frame in source.frames(streaming=True)]
    joined = sj.join(frames, time="ts", window=sj.Range("4 seconds"), by="k", late=policy, buckets=1)
    rows = source.run(joined)
    late = [row["id"] for row in rows if row.asDict().get("_late")]
    pairs = {(row["id"], row["id_right"]) for row in rows if not row.asDict().get("_late")}
    assert late == ([2] if policy == "output" else [])
    assert pairs == {(1, 1), (1, 2), (3, 1), (3, 2)}


def test_state_shrinks_to_what_can_still_be_met(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(9), Source(spark, tmp_path)
    source.add([_rows(rng, 200), _rows(rng, 200)], 3)
    source.close()
    options = {"time": "ts", "window": sj.Range("4 seconds"), "by": "k", "lateness": sj.Grace("5 s"), "buckets": 1}
    source.run(sj.join(source.frames(streaming=True), **options))
    blobs = spark.read.format("statestore").option("stateVarName", "blobs").load(str(tmp_path / "checkpoint"))
    assert blobs.count() == 2, "one run per input, with the closing row in it"


def test_a_stream_must_say_how_late_rows_may_be(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    with pytest.raises(sj.CallError) as refused:
        sj.join(source.frames(streaming=True), time="ts", window=sj.Range("4 seconds"), by="k")
    assert "nothing says how late rows of input 0 may be" in str(refused.value)
    assert 'lateness=sj.Grace("10 seconds")' in str(refused.value)
    assert 'withWatermark("ts", "10 seconds")' in str(refused.value)


def test_what_a_stream_cannot_do_yet_is_refused_at_the_call(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    streams, tables = source.frames(streaming=True), source.frames(streaming=False)
    lateness = sj.Grace("5 seconds")
    with pytest.raises(sj.UnsupportedError, match="not one of each"):
        sj.join([streams[0], tables[1]], time="ts", window=sj.Range("4 s"), by="k", lateness=lateness)
    where = sj.theta("l.v < r.v")
    with pytest.raises(sj.UnsupportedError, match="rows go to several buckets"):
        sj.join(streams, time="ts", window=sj.Range("4 s"), where=where, how="left", lateness=lateness, buckets=2)
    with pytest.raises(sj.CallError, match="needs time, or its state would grow for ever"):
        sj.join(streams, by="k", lateness=None)


def test_a_session_without_rocksdb_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    setting = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(sj.CallError, match="keep their state in RocksDB"):
            sj.join(source.frames(streaming=True), time="ts", window=sj.Range("4 s"), by="k", lateness=sj.Grace("5 s"))
    finally:
        spark.conf.set(setting, before)
