"""State larger than memory on Spark: the same rows as a batch gives, over restarts, with files where they belong."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.state.stores.scratch import FOLDER, process_name
from tests.spark.streams import BEGIN

SCHEMA = "id long, k long, v double, note string, ts timestamp"
ROWS, BATCHES = 10_000, 4
GRACE = sj.Grace("0 seconds")


def write(folder: Path, side: int, number: int) -> None:
    """A file of rows, one second of each micro-batch: enough of them to be more than the budget."""
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


def joined(spark: SparkSession, folder: Path, kind: str, *, streaming: bool, **options: Any) -> DataFrame:
    given: dict[str, Any] = {"time": "ts", "window": sj.Range("4 seconds"), "lateness": GRACE, "buckets": 2, **options}
    inputs = frames(spark, folder, streaming=streaming)
    if kind == "band":
        return sj.join_band(*inputs, on="v", below=5.0, above=5.0, **given)
    return sj.join(*inputs, by="k", how="left", **given)


def ids(rows: DataFrame) -> Counter[Any]:
    return Counter((row.id, row.id_right) for row in rows.select("id", "id_right").collect())


def spilled_files(spark: SparkSession) -> list[Path]:
    """Runs in the local folders of this application."""
    context = spark.sparkContext
    local = context.getConf().get("spark.local.dir", None) or tempfile.gettempdir()
    owner = process_name(context._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    return list(Path(local).glob(f"blockmgr-*/{FOLDER}/{owner}/*/*.keys"))


@pytest.mark.parametrize("kind", ["band", "left"])
def test_a_query_goes_on_with_state_that_does_not_fit(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    def run(memory: str) -> None:
        query = (
            joined(spark, tmp_path, kind, streaming=True, memory=memory)
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for number in range(BATCHES):
        for side in (0, 1):
            write(tmp_path, side, number)
        if number == BATCHES // 2:
            run("2 MB")
            assert spilled_files(spark)
    run("3 MB")  # it may be another one
    rest = sj.finish(str(tmp_path / "checkpoint"))
    left = ids(spark.read.parquet(str(tmp_path / "out"))) + ids(rest)
    assert left == ids(joined(spark, tmp_path, kind, streaming=False))
