"""The state of a stopped query, spread over another number of partitions. Buckets stay what they are.

Spark can do it from 4.2 on, offline: it writes one more micro-batch into the checkpoint, without input, whose state has
every key where the new number of partitions wants it. A bucket is a key of ours, so it moves as a whole.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.spark.stored.begun import begun_with


def rescale_query(spark: SparkSession, checkpoint: str, partitions: int) -> int:
    """Let a stopped query go on over so many partitions; how many buckets are spread over them."""
    begun = begun_with(spark, checkpoint)
    if begun.buckets is None:
        raise CallError(
            f"the query of {checkpoint} has no state of a streamjoin call",
            hint="give the checkpoint of a query that has run at least one micro-batch",
        )
    if partitions > begun.buckets:
        raise CallError(
            f"{partitions} partitions for the {begun.buckets} buckets of {checkpoint}: the others would stay empty",
            hint="a query keeps the buckets that it was begun with; begin with more of them",
        )
    if not hasattr(spark, "_streamingCheckpointManager"):
        raise UnsupportedError(
            "this session cannot spread state anew", hint="use a classic session of Spark 4.2 or later"
        )
    try:
        spark._streamingCheckpointManager.repartition(checkpoint, partitions)
    except Exception as error:  # py4j's: PySpark has none of its own for these
        if "SHUFFLE_PARTITIONS_ALREADY_MATCH" in str(error):
            raise CallError(f"the query of {checkpoint} has {partitions} partitions already") from None
        if "LAST_BATCH_FAILED" in str(error):
            raise CallError(
                f"the last micro-batch of the query of {checkpoint} was begun and is not over",
                hint="start the query once more, with trigger(availableNow=True), and rescale it when it has stopped",
            ) from None
        raise
    return begun.buckets
