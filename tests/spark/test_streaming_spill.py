"""State larger than memory on Spark: the same rows as a batch gives, over restarts, with files where they belong."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.api import stored_trees
from streamjoin.state.stores.scratch import FOLDER, process_name
from tests.spark.streams import BEGIN

SCHEMA = "id long, k long, v double, note string, ts timestamp"
ROWS = 12_000
NEAR = {"below": 5.0, "above": 5.0}
TIMED: dict[str, Any] = {"time": "ts", "window": sj.Range("2 seconds")}
COMMON: dict[str, Any] = {"lateness": sj.Grace("0 seconds"), "buckets": 2}
QUERY = """SELECT l.id, r.id AS id_right, r.note FROM l [RANGE 2 SECONDS] JOIN r [RANGE 2 SECONDS]
           ON abs(l.v - r.v) <= 5.0D"""
KINDS = ("query", "merged")


def write(folder: Path, side: int, number: int) -> None:
    """A file of rows, one second of each micro-batch: more of them than the budget takes."""
    rng = np.random.default_rng([side, number])
    ids = np.arange(ROWS) + number * ROWS
    ts = number * 1_000_000 + rng.integers(0, 1_000_000, ROWS)
    table = pa.table({
        "id": ids, "k": rng.integers(0, 4_000, ROWS), "v": rng.random(ROWS) * 1e6,
        "note": [f"row {number} of side {side}" for number in ids.tolist()],
        "ts": pa.array(np.sort(ts), pa.timestamp("us", tz="UTC")),
    })  # fmt: skip
    (folder / str(side)).mkdir(exist_ok=True)
    path = folder / str(side) / f"{number:04d}.parquet"
    pq.write_table(table, path)
    os.utime(path, (BEGIN + number, BEGIN + number))


def frames(spark: SparkSession, folder: Path, *, streaming: bool) -> list[DataFrame]:
    reader: Any = spark.readStream.option("maxFilesPerTrigger", 1) if streaming else spark.read
    return [reader.schema(SCHEMA).parquet(str(folder / side)) for side in "01"]


def joined(spark: SparkSession, folder: Path, kind: str, memory: str, **options: Any) -> DataFrame:
    """The same join in CQL, in sweep areas, and in sorted runs."""
    left, right = frames(spark, folder, streaming=True)
    if kind == "query":
        return sj.cql(spark, QUERY, l=left, r=right, memory=memory, **COMMON)
    merged: dict[str, Any] = {"algorithm": "tpmj", "emit": "ordered", "merge": sj.Greedy(), **COMMON, **options}
    return sj.join(left, right, where=sj.band("v", **NEAR), memory=memory, **TIMED, **merged)


def ids(rows: DataFrame) -> Counter[Any]:
    return Counter((row.id, row.id_right) for row in rows.select("id", "id_right").collect())


def spilled_states(spark: SparkSession) -> set[Path]:
    """Folders of states, in the local folders of this application, that have runs of sweep areas."""
    context = spark.sparkContext
    local = context.getConf().get("spark.local.dir", None) or tempfile.gettempdir()
    owner = process_name(context._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    return {path.parent for path in Path(local).glob(f"blockmgr-*/{FOLDER}/{owner}/*/*.keys")}


def test_queries_go_on_with_state_that_does_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    """Both at once, over the same files: it is rounds of micro-batches that take the time, not their rows."""

    def run(memory: str) -> None:
        queries = [
            joined(spark, tmp_path, kind, memory)
            .writeStream.format("parquet")
            .option("path", str(tmp_path / kind / "out"))
            .option("checkpointLocation", str(tmp_path / kind / "checkpoint"))
            .trigger(availableNow=True)
            .start()
            for kind in KINDS
        ]
        for query in queries:
            query.awaitTermination()

    before = spilled_states(spark)
    for number, side in itertools.product((0, 1), (0, 1)):
        write(tmp_path, side, number)
    run("2 MB")
    assert len(spilled_states(spark) - before) == 2, "both buckets of the join in sweep areas"
    trees = stored_trees(spark, str(tmp_path / "merged" / "checkpoint"))
    assert all(tree.groups and tree.figures["merges"] > 0 for tree in trees)
    for side in (0, 1):
        write(tmp_path, side, 2)
    run("3 MB")  # it may be another one
    expected = ids(sj.join_band(*frames(spark, tmp_path, streaming=False), on="v", **NEAR, **TIMED, **COMMON))
    for kind in KINDS:
        rest = sj.finish(str(tmp_path / kind / "checkpoint"))
        assert ids(spark.read.parquet(str(tmp_path / kind / "out"))) + ids(rest) == expected, kind
    assert spilled_states(spark) <= before, "whoever is finished leaves no files"
    assert expected.total() > 1000


def test_a_table_beside_a_stream_goes_to_files_and_is_there_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is handed over in several pieces; who goes on has a budget of another size, and finds it as it was."""
    for number, side in itertools.product((0, 1), (0, 1)):
        write(tmp_path, side, number)

    def run(memory: str) -> None:
        stream, table = frames(spark, tmp_path, streaming=True)[0], frames(spark, tmp_path, streaming=False)[1]
        near = sj.join_band(stream, table, on="v", **NEAR, **TIMED, **COMMON, how="left", memory=memory)
        writing = near.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writing = writing.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writing.trigger(availableNow=True).start().awaitTermination()

    before, most = spilled_states(spark), spark.conf.get("spark.sql.execution.arrow.maxBytesPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", 100_000)
    try:
        run("2 MB")
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(most))
    assert len(spilled_states(spark) - before) == 2, "both buckets"
    write(tmp_path, 0, 2)
    run("3 MB")
    found = ids(spark.read.parquet(str(tmp_path / "out"))) + ids(sj.finish(str(tmp_path / "checkpoint")))
    whole = frames(spark, tmp_path, streaming=False)
    expected = ids(sj.join_band(*whole, on="v", **NEAR, **TIMED, buckets=2, how="left"))
    assert found == expected
    assert spilled_states(spark) <= before
    assert sum(pair[1] is not None for pair in expected) > 100


PATIENCE = 60  # seconds; a bound for what hangs, not what is expected


@pytest.mark.long
def test_merges_go_on_by_timers_while_nothing_comes(spark: SparkSession, tmp_path: Path) -> None:
    """Two groups at a time with the flank: more than what comes pays for. Who waits is merged in micro-batches without
    rows, and results leave there; when nothing waits any more, none of them merges anything.
    """
    for number, side in itertools.product(range(3), (0, 1)):
        write(tmp_path, side, number)
    query = (
        joined(spark, tmp_path, "merged", "2 MB", merge=sj.Greedy(2), buckets=1, timers=True)
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    until, idle = time.monotonic() + PATIENCE, list[Any]()
    try:
        # A timer comes after 200 ms: one of these would have brought it.
        while not any(each["merges"] for each in idle) or any(each["pages_read"] for each in idle[-4:]):
            assert time.monotonic() < until, "no merges by timers, or no end of them"
            time.sleep(0.1)
            told = [sj.from_progress(each)["joins"] for each in query.recentProgress]
            joins = [join for each in told for join in each.values()]
            last = max((at for at, join in enumerate(joins) if join["rows_in"]), default=len(joins))
            idle = joins[last + 1 :]
    finally:
        query.stop()
    assert sum(each["rows_out"] for each in idle) > 0
    (tree,) = stored_trees(spark, str(tmp_path / "checkpoint"))
    assert tree.merging is None
    assert len(tree.groups) == 1, "the flank alone"
    whole = ids(sj.join_band(*frames(spark, tmp_path, streaming=False), on="v", **NEAR, **TIMED, **COMMON))
    begins = [times(tmp_path, side) for side in (0, 1)]
    due = Counter({pair: n for pair, n in whole.items() if max(begins[0][pair[0]], begins[1][pair[1]]) < tree.left})
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == due, "all results that begin before that, and no others"
    assert 0 < due.total() < whole.total()


def times(folder: Path, side: int) -> dict[int, int]:
    """When rows begin, in microseconds, by their ids."""
    rows = pq.read_table(folder / str(side))
    return dict(zip(rows["id"].to_pylist(), rows["ts"].cast(pa.int64()).to_pylist(), strict=True))
