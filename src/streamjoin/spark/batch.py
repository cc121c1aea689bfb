"""A plan on batch frames: pack, exchange, operate, unpack.

    frame 0 --pack--\\
                      exchange by bucket --operate--> rows
    frame 1 --pack--/                    --testify--> exchange --judge--> rows

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

from streamjoin.algebra import FOREVER
from streamjoin.operators import Results, Rows
from streamjoin.operators.ordering import HeldResults
from streamjoin.plan.naming import INVALID_FLAG
from streamjoin.plan.planner import JoinPlan
from streamjoin.runtime import finish, run_micro_batch
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.packing import PACKED_SCHEMA, Kind, pack, unpack
from streamjoin.state import Batch

# Rows are collected to this many before they are packed: Spark hands over a few thousand at a time.
ROWS_PER_PACK: Final = 1 << 18
BYTES_PER_PACK: Final = 64 << 20
ROWS_PER_BATCH: Final = 1 << 16

log = logging.getLogger("streamjoin")


def run_batch(plan: JoinPlan, frames: tuple[DataFrame, DataFrame], schema: StructType) -> DataFrame:
    """The result of a plan over two batch frames, lazily, as a frame of this schema."""
    buckets = plan.partitioning.buckets
    packed = [
        frame.mapInArrow(Pack(plan, number, bucket_labels(buckets)), PACKED_SCHEMA)
        for number, frame in enumerate(frames)
    ]
    exchanged = reduce(DataFrame.unionAll, packed).repartition(buckets, "label")
    if not any(plan.followed):
        return exchanged.mapInArrow(Operate(plan), schema)
    testified = exchanged.mapInArrow(Testify(plan, bucket_labels(buckets)), PACKED_SCHEMA)
    return testified.repartition(buckets, "label").mapInArrow(Judge(plan), schema)


@dataclass(frozen=True)
class Pack:
    """Rows of one input to blobs, one or more per bucket."""

    plan: JoinPlan
    number: int
    labels: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.run(batches, [])

    def run(self, batches: Iterable[pa.RecordBatch], largest: list[int]) -> Iterator[pa.RecordBatch]:
        """Pack the rows, noting in `largest` the largest time stamp of each piece."""
        schema = self.plan.node.inputs[self.number].schema
        for table in collected(batches, schema):
            yield from self._pack(table, largest)

    def _pack(self, table: pa.Table, largest: list[int]) -> Iterator[pa.RecordBatch]:
        bound = self.plan.bindings[self.number].bind(table)
        if len(bound.batch):
            largest.append(int(bound.batch.ts.max()))
        if bound.invalid.num_rows:
            if self.plan.node.invalid == "output":
                yield from self._blob(0, "invalid", bound.invalid)
            else:
                log.warning("dropped %d invalid row(s) of input %d", bound.invalid.num_rows, self.number)
        for bucket, part in self.plan.distribute(self.number, bound.batch):
            yield from self._blob(bucket, "rows", part.to_table())

    def _blob(self, bucket: int, kind: Kind, table: pa.Table) -> Iterator[pa.RecordBatch]:
        return pack(self.labels[bucket], bucket, self.number, kind, table)


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


def operate(
    plan: JoinPlan, packed: Iterable[pa.RecordBatch]
) -> Iterator[tuple[int, Results | Rows | tuple[int, pa.Table]]]:
    """Join what has arrived, bucket by bucket: what leaves each bucket, and invalid rows `(input, table)` untouched."""
    arrived: dict[int, dict[int, list[pa.Table]]] = defaultdict(lambda: defaultdict(list))
    for bucket, number, kind, table in unpack(packed):
        if kind == "invalid":
            yield bucket, (number, table)
        else:
            arrived[bucket][number].append(table)
    for bucket in sorted(arrived):
        inputs = arrived.pop(bucket)
        batches = {number: Batch.concat([Batch.from_table(table) for table in inputs[number]]) for number in inputs}
        operator = plan.join_in(bucket).build()
        for output in run_micro_batch(operator, batches, {}):
            yield bucket, output
        for output in finish(operator):
            yield bucket, output


@dataclass(frozen=True)
class Operate:
    """Blobs of a partition's buckets to result rows."""

    plan: JoinPlan

    def __call__(self, packed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        naming = self.plan.naming
        for _, output in operate(self.plan, packed):
            if isinstance(output, Results):
                yield from in_batches(naming.assemble(output.payload, output.ts, output.te))
            elif isinstance(output, tuple):
                yield from in_batches(naming.assemble_marked(INVALID_FLAG, *output))


@dataclass(frozen=True)
class Testify:
    """Blobs of a partition's buckets to results, and to what each bucket knows about rows that others know too."""

    plan: JoinPlan
    labels: tuple[int, ...]

    def __call__(self, packed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        buckets = len(self.labels)
        for bucket, output in operate(self.plan, packed):
            if isinstance(output, Results):
                yield from pack(self.labels[bucket], bucket, 0, "results", output.to_table())
            elif isinstance(output, tuple):
                yield from pack(self.labels[bucket], bucket, output[0], "invalid", output[1])
            else:
                assert output.batch.origin is not None
                for target in range(buckets):
                    mine = output.batch.take(output.batch.origin % buckets == target)
                    if len(mine):
                        yield from pack(self.labels[target], target, output.input, output.name, mine.to_table())  # type: ignore[arg-type]


@dataclass(frozen=True)
class Judge:
    """Results pass; rows that several buckets have seen get their verdict."""

    plan: JoinPlan

    def __call__(self, packed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        naming, ordered = self.plan.naming, self.plan.node.emit == "ordered"
        verdicts = {verdict.number: verdict.build() for verdict in self.plan.verdicts()}
        held = HeldResults()
        for _, number, kind, table in unpack(packed):
            if kind == "results":
                results = Results.from_table(table)
                if ordered:
                    held.add(results)
                else:
                    yield from in_batches(naming.assemble(results.payload, results.ts, results.te))
            elif kind == "invalid":
                yield from in_batches(naming.assemble_marked(INVALID_FLAG, number, table))
            else:
                list(verdicts[number].on_batch(0 if kind == "candidate" else 1, Batch.from_table(table)))
        for verdict in verdicts.values():
            for output in finish(verdict):
                assert isinstance(output, Results)
                held.add(output)
        for results in held.release(FOREVER):
            yield from in_batches(naming.assemble(results.payload, results.ts, results.te))
