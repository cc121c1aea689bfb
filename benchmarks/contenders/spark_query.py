"""What every contender on Spark shares: the same session settings, the same source, the same sink, the same digest.

The sink is `noop`: it takes every row and does nothing, so that what is measured is the join. The digest of the results
is an observed metric on the way there, the same small work for everyone: the run that is measured is the run that is
checked. A separate run would have to be believed to do the same, and would double the minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.one_shot import Answer, answer
from benchmarks.streams import COLUMNS, FILES_PER_BATCH, Kind

CORES: Final = 2
_TYPES: Final = {"ts": "timestamp", "x": "bigint", "v": "double"}


def settings(scratch: str) -> dict[str, str]:
    """For every session, ours and others'; `scratch` is a folder of its own."""
    return {
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.driver.memory": "8g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": str(Path(scratch) / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }


def schema(kind: Kind, *, millis: bool = False) -> str:
    """The columns of a stream, in Spark's words."""
    types = {**_TYPES, "ts": "bigint"} if millis else _TYPES
    types = {**types, "x": "double", "y": "double"} if kind == "within" else types
    return ", ".join(f"{name} {types.get(name, 'bigint')}" for name in COLUMNS[kind])


def read(spark: SparkSession, request: dict[str, Any]) -> list[DataFrame]:
    """Both sides, a micro-batch of each per trigger."""
    form = request.get("format", "parquet")
    reader = spark.readStream.schema(schema(request["kind"], millis=form == "csv")).option("header", "true")
    reader = reader.option("maxFilesPerTrigger", FILES_PER_BATCH).format(form)
    return [reader.load(str(Path(request["folder"]) / side)) for side in ("left", "right")]


def columns_of_result(kind: Kind) -> list[str]:
    """The columns that every contender delivers: the left row's, then the right row's, an equal key once."""
    left, right = COLUMNS[kind], [name for name in COLUMNS[kind] if name != "k"]
    return [*left, *(f"{name}_right" for name in right)]


def run(frame: DataFrame, request: dict[str, Any]) -> Answer:
    """Run the query until its input is used up: its micro-batches that had any."""
    mixed = F.xxhash64(*frame.columns)
    observed = frame.observe(
        "digest",
        F.count("*").alias("count"),
        F.bit_xor(mixed).alias("xor"),
        # Part of each hash is summed, so that the sum cannot overflow; the exclusive or has the other bits.
        F.sum(mixed.bitwiseAND(F.lit(0xFFFFFFFF))).alias("sum"),
    )
    query = (
        observed.writeStream.format("noop")
        .option("checkpointLocation", request["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return {"batches": [described(progress) for progress in query.recentProgress if progress["numInputRows"]]}


def described(progress: dict[str, Any]) -> dict[str, Any]:
    """A micro-batch as `MicroBatch` wants it."""
    digest = progress["observedMetrics"]["digest"]
    duration = {name: millis / 1000 for name, millis in progress["durationMs"].items()}
    return {
        "rows": progress["numInputRows"],
        "seconds": duration.pop("triggerExecution"),
        "parts": duration,
        "results": digest["count"],
        "checksum": checksum(digest["xor"], digest["sum"]),
    }


def checksum(xor: int | None, total: int | None) -> int:
    """Both numbers in one. Nothing at all has the checksum 0."""
    return ((xor or 0) + 0x9E3779B97F4A7C15 * (total or 0)) % (1 << 64)


def serve(do: Callable[[dict[str, Any]], Answer]) -> None:
    """Answer one request, and end Spark before: what its JVM still had to do would disturb whoever is next."""

    def done(request: dict[str, Any]) -> Answer:
        try:
            return do(request)
        finally:
            spark = SparkSession.getActiveSession()
            if spark is not None:
                gateway: Any = spark.sparkContext._gateway
                spark.stop()
                gateway.shutdown()
                gateway.proc.stdin.close()  # what the JVM waits for
                gateway.proc.wait(timeout=60)

    answer(done)


def first_line(error: Exception) -> str:
    """The first line of what Spark says about a refused query."""
    return str(error).strip().splitlines()[0]
