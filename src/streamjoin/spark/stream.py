"""A plan on streaming frames: pack, exchange, operate with state, unpack. The same pieces as for a batch.

Every task of an input tells every bucket the largest time stamp it has seen, so each bucket learns every input's
progress without Spark's watermark, which would drop late rows before we see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamjoin.algebra import Grace
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.planner import JoinPlan
from streamjoin.spark.batch import Pack, in_batches
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.packing import PACKED_SCHEMA, pack_progress
from streamjoin.spark.processor import OUTPUT_SCHEMA, JoinProcessor
from streamjoin.state import table_from_bytes

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_stream(
    plan: JoinPlan, frames: tuple[DataFrame, DataFrame], schema: StructType, lateness: tuple[Grace, Grace]
) -> DataFrame:
    """The result of a plan over two streaming frames, as a streaming frame of this schema."""
    check_session(frames[0])
    if any(plan.followed):
        raise UnsupportedError(
            f"a streaming {plan.join.how} join whose rows go to several buckets is not there yet",
            hint="give equality keys (by=), or buckets=1",
        )
    buckets = plan.partitioning.buckets
    labels = bucket_labels(buckets)
    packed = [
        frame.mapInArrow(PackWithProgress(Pack(plan, number, labels)), PACKED_SCHEMA)
        for number, frame in enumerate(frames)
    ]
    joined = (
        reduce(DataFrame.unionAll, packed)
        .groupBy("label")
        .transformWithStateInPandas(JoinProcessor(plan, lateness), OUTPUT_SCHEMA, "append", "none")
    )
    return joined.mapInArrow(unpack_rows, schema)


@dataclass(frozen=True)
class PackWithProgress:
    """Rows of one input to blobs, and how far the input is to every bucket."""

    pack: Pack

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        largest: list[int] = []
        yield from self.pack.run(batches, largest)
        if largest:
            for bucket, label in enumerate(self.pack.labels):
                yield pack_progress(label, bucket, self.pack.number, max(largest))


def unpack_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Blobs of finished rows to rows."""
    for batch in batches:
        for blob in batch.column(0):
            yield from in_batches(table_from_bytes(blob.as_buffer()))


def check_session(frame: DataFrame) -> None:
    """Refuse a session whose state store cannot hold what we keep."""
    provider = frame.sparkSession.conf.get(PROVIDER, "")
    if provider != ROCKSDB:
        raise CallError(
            f"streaming joins keep their state in RocksDB, and this session has {PROVIDER}={provider}",
            hint=f'use sj.session(), or spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )
