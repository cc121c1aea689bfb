"""Run by `test_connect.py` in a process of its own: joins through Spark Connect, batch and stream.

Prints one line of JSON: what the stream left, what it still held, and what the batch gives.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}


def main(folder: Path) -> None:
    builder = SparkSession.builder.remote("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    assert not hasattr(spark, "_jvm"), "this is no Connect session"
    for side, shift in enumerate((0, 2)):
        rows = spark.range(60).selectExpr("id", "id % 3 AS k", f"id + {shift} AS ts")
        rows.repartition(3, "ts").write.parquet(str(folder / str(side)))

    def joined(streaming: bool) -> DataFrame:
        reader = spark.readStream.option("maxFilesPerTrigger", 1) if streaming else spark.read
        frames = [reader.schema("id long, k long, ts long").parquet(str(folder / side)) for side in "01"]
        options = {"time": "ts", "window": sj.Range(4), "by": "k", "how": "left", "emit": "ordered", "buckets": 2}
        return sj.join(frames, **options, lateness=sj.Grace(100))

    def counted(frame: DataFrame) -> list[list[object]]:
        return sorted([list(row) for row in frame.collect()], key=str)

    query = (
        joined(True)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = sj.progress(query)["batch"] + 1
    left = counted(spark.read.schema(joined(True).schema).parquet(str(folder / "out")))
    rest = counted(sj.finish(folder / "checkpoint", spark))
    print(json.dumps({"batches": batches, "left": left, "rest": rest, "batch": counted(joined(False))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
