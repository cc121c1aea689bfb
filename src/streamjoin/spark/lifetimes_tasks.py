"""What Spark's tasks do for a query over lifetimes: read streams, and pack elements for the buckets of an operator.

    stream --read--> elements, and how far the stream is --(Spark: select, filter, union)--> elements, reports
    elements --pack--> blobs by bucket, reports to every bucket --exchange--> stage --> elements, reports

Each is a callable for `mapInArrow`: Arrow in, Arrow out, lazily.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter_ns
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from streamjoin.algebra import FOREVER
from streamjoin.operators import Results
from streamjoin.plan.binding import InputBinding
from streamjoin.plan.partition import modulo
from streamjoin.plan.planner import JoinPlan
from streamjoin.spark.batch import by_bucket, collected, in_batches
from streamjoin.spark.lifetimes_frame import (
    CHANNEL,
    HIDDEN,
    HIDDEN_SCHEMA,
    HOLDER,
    REPORT,
    SIGN,
    TE,
    TS,
    element_rows,
    progress_report,
    read_report,
    report_row,
)
from streamjoin.spark.lifetimes_stage import ElementStage
from streamjoin.spark.packing import Packet, pack
from streamjoin.state import Batch, Ends
from streamjoin.state.batch import Indices, Signs, with_columns
from streamjoin.state.columns import row_hashes


@dataclass(frozen=True)
class ReadStream:
    """The rows of a stream to elements. `schema` is that of the rows; `columns` those that the relation has of them.

    Without a window in the binding it is a row window, whose ends are not known here: such elements come without.
    """

    schema: pa.Schema
    binding: InputBinding
    columns: tuple[str, ...]
    channel: int
    stamped: bool = False  # a further column says in which order rows came

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        largest: int | None = None
        payload = pa.schema([self.schema.field(name) for name in self.columns])
        payload = payload.append(pa.field("arrival", pa.int64())) if self.stamped else payload
        arrived = first_arrival() if self.stamped else 0
        for table in collected(batches, self.schema):
            batch = self.binding.bind(table).batch
            if not len(batch):
                continue
            if self.stamped:
                batch = replace(batch, payload=with_columns(batch.payload, arrival=arrived + np.arange(len(batch))))
                arrived += len(batch)
            newest = int(batch.ts.max())
            largest = newest if largest is None else max(largest, newest)
            ends_known = self.binding.window is not None
            if ends_known:  # what ends before it begins is in no snapshot
                batch = batch.take(batch.ts < batch.te)
            columns = [batch.payload[name] for name in payload.names]
            te = batch.te if ends_known else np.full(len(batch), FOREVER)
            hidden = element_rows(Results(pa.table({}), batch.ts, te), self.channel)
            yield from in_batches(_numbered(columns, hidden))
        if largest is not None:
            report = report_row(payload, progress_report(self.channel, largest=largest))
            yield from in_batches(_numbered(report.columns[: len(payload)], report.select(list(HIDDEN))))


def first_arrival() -> int:
    """The number of the first row of this task: by partition, then by position."""
    context = TaskContext.get()
    return (context.partitionId() if context is not None else 0) << 40


def _numbered(columns: list[pa.ChunkedArray], hidden: pa.Table) -> pa.Table:
    names = [f"c{number}" for number in range(len(columns))]
    return pa.table([*columns, *hidden.columns], names=[*names, *hidden.column_names])


class Placing(Protocol):
    """How the elements of an input become batches, and which buckets they go to."""

    def place(self, number: int, table: pa.Table) -> Iterator[tuple[int, Batch, Indices]]:
        """Bucket, rows, and where in the table they are."""
        ...


@dataclass(frozen=True)
class ByColumns:
    """Elements that are equal in some columns meet in one bucket. Columns after `payload` make groups of windows."""

    payload: tuple[str, ...]
    columns: tuple[str, ...]
    buckets: int

    def place(self, number: int, table: pa.Table) -> Iterator[tuple[int, Batch, Indices]]:
        rows = table.num_rows
        proof = table.select([name for name in table.column_names if name not in (*self.payload, *HIDDEN)])
        batch = elements_of(table, self.payload, proof)
        if self.buckets == 1 or not self.columns:
            yield 0, batch, np.arange(rows)
            return
        bucket = modulo(row_hashes(table.select(list(self.columns))), self.buckets)
        for each in np.unique(bucket):
            where = np.flatnonzero(bucket == each)
            yield int(each), batch.take(where), where


@dataclass(frozen=True)
class ByJoin:
    """Elements of a join, where its plan has them meet."""

    plan: JoinPlan

    def place(self, number: int, table: pa.Table) -> Iterator[tuple[int, Batch, Indices]]:
        batch = self.plan.bindings[number].bind(table).batch
        # Rows are told apart by where they are in the table: a plan may send one to several buckets.
        batch = replace(batch, holder=np.arange(len(batch)))
        holder, sign = table[HOLDER].to_numpy(), signs_of(table)
        for bucket, part in self.plan.distribute(number, batch):
            assert part.holder is not None
            where = part.holder
            unknown = holder[where] if (holder[where] >= 0).any() else None
            yield bucket, replace(part, holder=unknown, sign=None if sign is None else sign[where]), where


def elements_of(table: pa.Table, payload: tuple[str, ...], proof: pa.Table) -> Batch:
    """Elements as rows of an operator."""
    ts, te, holder = (table[name].to_numpy() for name in (TS, TE, HOLDER))
    group = np.zeros(len(ts), np.int64)
    unknown = holder if (holder >= 0).any() else None
    columns = table.select(list(payload)) if payload else pa.table({})
    proof_or_none = proof if proof.num_columns else None
    return Batch(columns, ts, te, group, proof=proof_or_none, holder=unknown, sign=signs_of(table))


def signs_of(table: pa.Table) -> Signs | None:
    """Of plus and minus tuples, which they are; None for elements."""
    return None if table[SIGN].null_count else table[SIGN].to_numpy()


@dataclass(frozen=True)
class PackElements:
    """Elements and reports of one input to packets for the buckets of an operator. `schema` has the columns by name."""

    number: int
    schema: pa.Schema
    placing: Placing
    labels: tuple[int, ...]
    told: bool = False  # also figures: rows of streams, and how long it took

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([*self.schema, *HIDDEN_SCHEMA])
        began, rows_in = perf_counter_ns(), 0
        for table in collected(batches, schema):
            reports = pc.is_valid(table[REPORT])
            for report in table[REPORT].filter(reports).to_pylist():
                yield from self._broadcast(report)
            elements = table.filter(pc.invert(reports)).combine_chunks()
            if elements.num_rows:
                rows_in += int((elements[CHANNEL].to_numpy() >= 0).sum())
                yield from self._place(elements)
        if self.told:
            figures = {"rows_in": rows_in, "pack_us": (perf_counter_ns() - began) // 1000}
            yield from pack(Packet(0, self.number, "figures", figures), self.labels)

    def _place(self, elements: pa.Table) -> Iterator[pa.RecordBatch]:
        channel = elements[CHANNEL].to_numpy()
        for bucket, batch, where in self.placing.place(self.number, elements):
            rows = with_columns(batch.to_table(), **{CHANNEL: channel[where]})
            yield from pack(Packet(bucket, self.number, "rows", rows), self.labels)

    def _broadcast(self, report: bytes) -> Iterator[pa.RecordBatch]:
        told = read_report(report)
        for bucket in range(len(self.labels)):
            if isinstance(told, Ends):
                yield from pack(Packet(bucket, self.number, "ends", told.to_table()), self.labels)
            else:
                yield from pack(Packet(bucket, self.number, "progress", told), self.labels)


@dataclass(frozen=True)
class OperateElements:
    """Blobs of a partition's buckets to elements, all of them being there."""

    stage: ElementStage

    def __call__(self, packed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, packets in by_bucket(packed):
            running = self.stage.build(bucket)
            for packet in chain(running.take(packets), running.end()):
                yield from in_batches(packet.table)
