"""What Spark's tasks do: callables for `mapInArrow`, Arrow in, Arrow out, lazily. The work is in `plan.tasks` and in
the stages; here it is told what Spark delivers, and delivered what Spark takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from streamjoin.plan.physical import Edge, Source
from streamjoin.plan.tasks import EdgeTask, SinkTask, SourceTask
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import Stage
from streamjoin.spark.running.packed import bucket_by_bucket, by_bucket, pack
from streamjoin.spark.running.urgent import Handler, telling
from streamjoin.spark.stored.local_runs import passing_folder
from streamjoin.state import table_from_bytes
from streamjoin.state.giving_back import give_back

# Rows are collected to this many before they are packed: Spark hands over a few thousand at a time.
ROWS_PER_PACK: Final = 1 << 18
BYTES_PER_PACK: Final = 64 << 20
ROWS_PER_BATCH: Final = 1 << 16


@dataclass(frozen=True)
class PackSource:
    """Rows of a source to packed rows. `told`: also reports and figures, on a stream. `clocked`: the last column is the
    clock of the micro-batch, and travels with the progress.
    """

    source: Source
    labels: tuple[int, ...]
    told: bool
    clocked: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, clock = SourceTask(self.source), _Clock()
        if self.clocked:
            batches = clock.taken_off(batches)
        for packet in task.packets(collected(batches, task.schema), first_arrival(), clock):
            asked = packet.kind == "progress" and self.source.complete  # a window ends with the last row
            if self.told or asked or packet.kind not in ("progress", "figures"):
                yield from pack(packet, self.labels)


@dataclass(frozen=True)
class ReadElements:
    """Rows of a source that no stage reads to rows of elements. `told`: also figures, on a stream."""

    source: Source
    told: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = SourceTask(self.source)
        for table in task.elements(collected(batches, task.schema), told=self.told):
            yield from in_batches(numbered(table))


@dataclass(frozen=True)
class PackEdge:
    """Rows of elements to packed rows. `told`: also how many, on a stream."""

    edge: Edge
    labels: tuple[int, ...]
    told: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for packet in EdgeTask(self.edge).packets(collected(batches, self.edge.rows_after), told=self.told):
            yield from pack(packet, self.labels)


@dataclass(frozen=True)
class Leave:
    """Rows of elements to rows as the user sees them."""

    task: SinkTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in self.task.rows(collected(batches, self.task.edge.rows_after)):
            yield from in_batches(numbered(table))


@dataclass(frozen=True)
class OperateAtOnce:
    """Packed rows of a partition's buckets to what leaves the stage, everything being there. With a budget they are
    taken one after the other, and what does not fit goes to files that are gone when the task is over.
    """

    stage: Stage
    labels: tuple[int, ...]  # of the buckets of the next stage
    urgent: Handler | None = None

    def __call__(self, packed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.stage.memory is None:
            yield from self._operated(by_bucket(packed))
            return
        with passing_folder() as scratch:
            yield from self._operated(bucket_by_bucket(packed), scratch)
        give_back()

    def _operated(
        self, arrived: Iterable[tuple[int, Iterable[Packet]]], scratch: str | None = None
    ) -> Iterator[pa.RecordBatch]:
        for bucket, packets in arrived:
            running = self.stage.build(bucket, scratch)
            left = telling(chain(running.take(packets), running.end()), self.stage, self.urgent, 0)
            for packet in left:
                if not self.stage.outlet.packed:
                    yield from in_batches(numbered(packet.table))
                elif packet.kind != "progress":  # a batch ends: the next stage hears it from Spark
                    yield from pack(packet, self.labels)


def unpack_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Packed rows of what leaves a stage to rows."""
    for batch in batches:
        for kind, blob in zip(batch.column(3), batch.column(4), strict=True):
            if kind.as_py() == "final":
                yield from in_batches(numbered(table_from_bytes(blob.as_buffer())))


class _Clock:
    """Takes the clock off the rows, and remembers it."""

    def __init__(self) -> None:
        self.time: int | None = None

    def taken_off(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                self.time = batch.column(batch.num_columns - 1)[0].as_py()
            yield batch.select(range(batch.num_columns - 1))

    def __call__(self) -> int | None:
        return self.time


def first_arrival() -> int:
    """The number of the first row of this task: by partition, then by position."""
    context = TaskContext.get()
    return (context.partitionId() if context is not None else 0) << 40


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


def numbered(table: pa.Table) -> pa.Table:
    """A table with numbers for names: `mapInArrow` does not quote names, so a dot in one would be misread."""
    return table.rename_columns([f"c{number}" for number in range(table.num_columns)])


def in_batches(table: pa.Table) -> list[pa.RecordBatch]:
    """The rows in pieces that Spark takes over without holding a large result twice."""
    return table.to_batches(max_chunksize=ROWS_PER_BATCH)  # type: ignore[no-any-return]
