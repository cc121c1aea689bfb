"""What every contender on Spark shares: the same session settings, the same source, the same sink, the same digest.

The sink is `noop`: it takes every row and does nothing, so that what is measured is the join. The digest of the results
is an observed metric on the way there, the same small work for everyone: the run that is measured is the run that is
checked. A separate run would have to be believed to do the same, and would double the minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.contenders.spark_end import end_spark
from benchmarks.one_shot import Answer, answer
from benchmarks.streams import COLUMNS, FILES_PER_BATCH, Kind

CORES: Final = 2
_HALF: Final = 0xFFFFFFFF
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
    return {"batches": [described(progress) for progress in run_observed(frame, request, digest_columns(frame))]}


def run_observed(frame: DataFrame, request: dict[str, Any], columns: Sequence[Column]) -> list[Any]:
    """Spark's word about every micro-batch that had input, with these aggregates of its results as the digest."""
    query = (
        frame.observe("digest", *columns)
        .writeStream.format("noop")
        .option("checkpointLocation", request["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [progress for progress in query.recentProgress if progress["numInputRows"]]


def digest_columns(frame: DataFrame) -> list[Column]:
    """What `digested` needs, as aggregates: of a micro-batch by observing it, of a batch by asking for it."""
    mixed = F.xxhash64(*frame.columns)
    # The halves of the hashes are summed apart, so that no sum can overflow.
    low, high = mixed.bitwiseAND(F.lit(_HALF)), F.shiftrightunsigned(mixed, 32)
    return [F.count("*").alias("count"), F.sum(low).alias("low"), F.sum(high).alias("high")]


def digested(told: Mapping[str, Any]) -> dict[str, int]:
    """How many results, and the sum of their hashes modulo 2**64: the same in whatever order and cut they came."""
    return {"results": told["count"], "checksum": ((told["low"] or 0) + ((told["high"] or 0) << 32)) % (1 << 64)}


def described(progress: dict[str, Any]) -> dict[str, Any]:
    """A micro-batch as `MicroBatch` wants it."""
    duration = {name: millis / 1000 for name, millis in progress["durationMs"].items()}
    return {
        "rows": progress["numInputRows"],
        "seconds": duration.pop("triggerExecution"),
        "parts": duration,
        **digested(progress["observedMetrics"]["digest"]),
    }


def serve(do: Callable[[dict[str, Any]], Answer]) -> None:
    """Answer one request, and end Spark: what its JVM still had to do would disturb whoever is next."""
    answer(do, end_spark)


def reason(error: Exception) -> str:
    """Why Spark refused a query: the first line of what it says, without the names of the query and of exceptions."""
    return str(error).strip().splitlines()[0].rpartition("terminated with exception: ")[2].rstrip("; ")
