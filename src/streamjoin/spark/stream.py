"""A plan on streaming frames: pack, exchange, operate with state, unpack. The same pieces as for a batch.

    frame 0 --pack--\\
                      exchange by bucket --join stage--> [exchange --verdict stage-->] figures --> unpack
    frame 1 --pack--/

Every task of an input tells every bucket the largest time stamp it has seen, so each bucket learns every input's
progress without Spark's watermark, which would drop late rows before we see them.

A static frame beside a streaming one goes into the state once, as the join stage's initial state: its packets wait in
the buckets for the first micro-batch. It is frozen then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from time import perf_counter_ns
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from streamjoin.errors import CallError
from streamjoin.plan.planner import JoinPlan
from streamjoin.plan.stored import to_stored
from streamjoin.spark.batch import Pack, Packed, in_batches
from streamjoin.spark.figures import Figures
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.packing import PACKED_SCHEMA, Packet, pack
from streamjoin.spark.processor import StageProcessor
from streamjoin.spark.residual import filtered
from streamjoin.spark.stages import JoinStage, VerdictStage
from streamjoin.state import table_from_bytes

PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_stream(
    plan: JoinPlan, frames: tuple[DataFrame, DataFrame], schema: StructType, call: dict[str, Any]
) -> DataFrame:
    """The result of a plan over frames of which at least one is streaming, as a streaming frame of this schema."""
    check_session(frames[0])
    labels = bucket_labels(plan.partitioning.buckets)
    streams, tables = [], []
    for number, frame in enumerate(frames):
        pack_rows = Pack(plan, number, labels)
        if plan.arrivals.has_ended(number):
            tables.append(frame.mapInArrow(pack_rows, PACKED_SCHEMA))
        else:
            clocked = plan.arrivals.idle_after is not None
            if clocked:
                frame = frame.withColumn("clock", F.unix_micros(F.current_timestamp()))
            streams.append(frame.mapInArrow(PackWithProgress(pack_rows, clocked), PACKED_SCHEMA))
    figures = Figures(plan.node.axis)
    packed = figures.observed(reduce(DataFrame.unionAll, streams), "pack")
    joined = packed.groupBy("label").transformWithStateInPandas(
        StageProcessor(JoinStage(plan), labels, call, idle_timer(plan)),
        PACKED_SCHEMA,
        "append",
        "processingTime" if plan.timers else "none",
        initialState=reduce(DataFrame.unionAll, tables).groupBy("label") if tables else None,
    )
    joined = figures.observed(joined, "join")
    if any(plan.followed):
        processor = StageProcessor(VerdictStage(plan), labels, call)
        joined = joined.groupBy("label").transformWithStateInPandas(processor, PACKED_SCHEMA, "append", "none")
        joined = figures.observed(joined, "verdict")
    rows = joined.mapInArrow(unpack_rows, schema)
    return rows if plan.residual is None else figures.counted(filtered(rows, plan))


def stored_call(
    plan: JoinPlan, schema: StructType, reads: tuple[str | None, ...], within: dict[str, Any] | None
) -> dict[str, Any]:
    """What is stored of a join beside its state: enough to read the state without the program.

    `reads` names, of each input, the join whose result it is, as it left that join; None for any other frame. `within`
    is the tree of the query that the join is part of.
    """
    call = {"node": to_stored(plan.node), "schema": schema.json(), "reads": reads}
    if within is not None:
        call["within"] = within
    # The name is the same with other lateness, with which a query may go on.
    name = hashlib.sha256(json.dumps(call).encode()).hexdigest()
    return {"name": name, "arrivals": to_stored(plan.arrivals), **call}


def idle_timer(plan: JoinPlan) -> int | None:
    """After how many milliseconds a timer looks for idle inputs; None without timers."""
    return -(-plan.arrivals.idle_after // 1000) if plan.timers and plan.arrivals.idle_after is not None else None


@dataclass(frozen=True)
class PackWithProgress:
    """Rows of one input to blobs, and how far the input is to every bucket.

    `clocked`: the last column is the batch's clock, and travels with the progress.
    """

    pack: Pack
    clocked: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        began, packed, seen = perf_counter_ns(), Packed(), _Clock()
        yield from self.pack.run(seen.taken_off(batches) if self.clocked else batches, packed)
        if not packed.rows:
            return
        report = {"largest": packed.largest, "clock": seen.time}
        for bucket in range(len(self.pack.labels)):
            yield from pack(Packet(bucket, self.pack.number, "progress", report), self.pack.labels)
        # Includes the time that Spark takes to deliver the rows: the two cannot be told apart from in here.
        took = (perf_counter_ns() - began) // 1000
        figures = {"rows_in": packed.rows, "invalid": packed.invalid, "pack_us": took}
        yield from pack(Packet(0, self.pack.number, "figures", figures), self.pack.labels)


@dataclass
class _Clock:
    """Takes the clock off the rows, and remembers it."""

    time: int | None = None

    def taken_off(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                self.time = batch.column(batch.num_columns - 1)[0].as_py()
            yield batch.select(range(batch.num_columns - 1))


def unpack_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Blobs of finished rows to rows."""
    for batch in batches:
        for kind, blob in zip(batch.column(3), batch.column(4), strict=True):
            if kind.as_py() == "final":
                yield from in_batches(table_from_bytes(blob.as_buffer()))


def check_session(frame: DataFrame) -> None:
    """Refuse a session whose state store cannot hold what we keep."""
    provider = frame.sparkSession.conf.get(PROVIDER, "")
    if provider != ROCKSDB:
        raise CallError(
            f"streaming joins keep their state in RocksDB, and this session has {PROVIDER}={provider}",
            hint=f'use sj.session(), or spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )
