"""A plan on batch frames: pack, exchange, operate, unpack.

    frame 0 --pack--\\
                      exchange by bucket --operate--> rows
    frame 1 --pack--/                    --operate--> exchange --judge--> rows

The lower way is taken when rows are replicated over buckets and some must know that they met nobody.

Each stage is a callable for `mapInArrow`: Arrow in, Arrow out, lazily, inside Spark's own tasks. A batch is a stream
that ends: one micro-batch per input, then `on_end`.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamjoin.algebra import NEVER
from streamjoin.plan.planner import JoinPlan
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.packing import PACKED_SCHEMA, Packet, pack, unpack
from streamjoin.spark.stages import JoinStage, RunningVerdictStage, VerdictStage

# Rows are collected to this many before they are packed: Spark hands over a few thousand at a time.
ROWS_PER_PACK: Final = 1 << 18
BYTES_PER_PACK: Final = 64 << 20
ROWS_PER_BATCH: Final = 1 << 16

log = logging.getLogger("streamjoin")


def run_batch(plan: JoinPlan, frames: tuple[DataFrame, DataFrame], schema: StructType) -> DataFrame:
    """The result of a plan over two batch frames, lazily, as a frame of this schema."""
    buckets = plan.partitioning.buckets
    labels = bucket_labels(buckets)
    packed = [frame.mapInArrow(Pack(plan, number, labels), PACKED_SCHEMA) for number, frame in enumerate(frames)]
    exchanged = reduce(DataFrame.unionAll, packed).repartition(buckets, "label")
    operate = Operate(JoinStage(plan), labels)
    if not any(plan.followed):
        return exchanged.mapInArrow(operate, schema)
    testified = exchanged.mapInArrow(operate, PACKED_SCHEMA)
    return testified.repartition(buckets, "label").mapInArrow(Judge(VerdictStage(plan)), schema)


@dataclass(frozen=True)
class Pack:
    """Rows of one input to blobs, one or more per bucket."""

    plan: JoinPlan
    number: int
    labels: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.run(batches, Packed())

    def run(self, batches: Iterable[pa.RecordBatch], packed: Packed) -> Iterator[pa.RecordBatch]:
        """Pack the rows, and note what they were."""
        schema = self.plan.node.inputs[self.number].schema
        for table in collected(batches, schema):
            for packet in self._packets(table, packed):
                yield from pack(packet, self.labels)

    def _packets(self, table: pa.Table, packed: Packed) -> Iterator[Packet]:
        bound = self.plan.bindings[self.number].bind(table)
        packed.rows += table.num_rows
        newest = int(bound.batch.ts.max()) if len(bound.batch) else NEVER
        if newest > NEVER:
            packed.largest = newest if packed.largest is None else max(newest, packed.largest)
        if bound.invalid.num_rows:
            packed.invalid += bound.invalid.num_rows
            if self.plan.node.invalid == "output":
                yield Packet(0, self.number, "invalid", bound.invalid)
            else:
                log.warning("dropped %d invalid row(s) of input %d", bound.invalid.num_rows, self.number)
        for bucket, part in self.plan.distribute(self.number, bound.batch):
            yield Packet(bucket, self.number, "rows", part.to_table())


@dataclass
class Packed:
    """What a task has packed: rows, invalid ones among them, and the largest time stamp."""

    rows: int = 0
    invalid: int = 0
    largest: int | None = None


def collected(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in larger pieces, with the types that the plan was made for."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= ROWS_PER_PACK or size >= BYTES_PER_PACK:
            yield _in_schema(waiting, schema)
            waiting, rows, size = [], 0, 0
    if rows:
        yield _in_schema(waiting, schema)


def _in_schema(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    # Spark names the session's time zone in the type of time stamps; the plan says UTC. The instants are the same.
    table = pa.Table.from_batches(batches).combine_chunks().rename_columns(schema.names)
    return table if table.schema.equals(schema) else table.cast(schema)


def in_batches(table: pa.Table) -> list[pa.RecordBatch]:
    """The rows in pieces that Spark takes over without holding a large result twice."""
    return table.to_batches(max_chunksize=ROWS_PER_BATCH)  # type: ignore[no-any-return]


def by_bucket(packed: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[Packet]]]:
    """The packets of each bucket that has come here."""
    arrived: dict[int, list[Packet]] = defaultdict(list)
    for packet in unpack(packed):
        arrived[packet.bucket].append(packet)
    for bucket in sorted(arrived):
        yield bucket, arrived.pop(bucket)


@dataclass(frozen=True)
class Operate:
    """Blobs of a partition's buckets to final rows; or, where a court decides, to packed rows for it."""

    stage: JoinStage
    labels: tuple[int, ...]

    def __call__(self, packed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, packets in by_bucket(packed):
            running = self.stage.build(bucket)
            yield from self._send(running.take(packets))
            yield from self._send(running.end())

    def _send(self, packets: Iterator[Packet]) -> Iterator[pa.RecordBatch]:
        followed = any(self.stage.plan.followed)
        for packet in packets:
            if packet.kind != "joined":  # a batch ends: the court hears it from Spark
                yield from pack(packet, self.labels) if followed else in_batches(packet.table)


@dataclass(frozen=True)
class Judge:
    """Results pass; rows that several buckets have seen get their verdict."""

    stage: VerdictStage

    def __call__(self, packed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        courts: dict[int, RunningVerdictStage] = {}
        for packet in unpack(packed):
            if packet.bucket not in courts:
                courts[packet.bucket] = self.stage.build(packet.bucket)
            yield from _rows(courts[packet.bucket].take([packet]))
        for court in courts.values():
            yield from _rows(court.end())


def _rows(packets: Iterable[Packet]) -> Iterator[pa.RecordBatch]:
    for packet in packets:
        yield from in_batches(packet.table)
