"""Elements as rows: how they look between two stages where Spark has something to compute.

A row is an element: the relation's columns, and hidden ones beside them.

    __sj_ts, __sj_te   the validity in ticks; `te` is infinity where the element never ends, or its end is not known
    __sj_holder        who will know the end; -1 where it is known
    __sj_sign          in a query by plus and minus tuples: 1 where a row appears at `ts`, -1 where it disappears; also
                       -1 where a result is taken back
    __sj_priority      how urgent it is; only where the query knows of urgent rows
    __sj_report        NULL; in a *report* it is a packet in bytes, and everything else is NULL

Reports are rows that travel with the elements: how far a stage is, ends that have become known, rows to be shown. So
selections and projections can be Spark's own, any expression will do, and still nobody downstream loses sight of
progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.operators import Results
from streamjoin.operators.urgency import at_least_0
from streamjoin.runtime.packets import Kind, Packet
from streamjoin.state.batch import Priorities, with_columns

TS: Final = "__sj_ts"
TE: Final = "__sj_te"
HOLDER: Final = "__sj_holder"
SIGN: Final = "__sj_sign"
PRIORITY: Final = "__sj_priority"
REPORT: Final = "__sj_report"
HIDDEN_SCHEMA: Final = pa.schema([
    (TS, pa.int64()), (TE, pa.int64()), (HOLDER, pa.int64()), (SIGN, pa.int8()), (REPORT, pa.binary()),
])  # fmt: skip


def hidden_schema(*, prioritised: bool) -> pa.Schema:
    """The hidden columns of elements."""
    return HIDDEN_SCHEMA.append(pa.field(PRIORITY, pa.int64())) if prioritised else HIDDEN_SCHEMA


def element_rows(results: Results, *, prioritised: bool = False) -> pa.Table:
    """Elements as rows."""
    rows, holder, sign = len(results), results.holder, results.sign
    if results.retracted:
        sign = np.full(rows, -1, np.int8)
    return with_columns(
        results.payload,
        **{
            TS: results.ts,
            TE: results.te,
            HOLDER: np.full(rows, -1) if holder is None else holder,
            SIGN: pa.nulls(rows, pa.int8()) if sign is None else sign,
            REPORT: pa.nulls(rows, pa.binary()),
        },
        **({PRIORITY: priorities(results)} if prioritised else {}),
    )


def priorities(results: Results) -> Priorities:
    """How urgent each element is."""
    return np.zeros(len(results), np.int64) if results.priority is None else results.priority


def report_rows(schema: pa.Schema, packet: Packet, *, prioritised: bool = False) -> pa.Table:
    """A packet as rows beside elements with these columns."""
    head = f"{packet.kind} {packet.channel} ".encode()
    reports = pa.array([head + blob for blob in packet.blobs()], pa.binary())
    hidden = hidden_schema(prioritised=prioritised)
    columns = {field.name: pa.nulls(len(reports), field.type) for field in (*schema, *hidden)}
    return pa.table({**columns, REPORT: reports})


def reports_of(rows: pa.Table, bucket: int = 0) -> Iterator[Packet]:
    """The packets among rows of elements."""
    for report in rows[REPORT].drop_null().to_pylist():
        kind, channel, blob = report.split(b" ", 2)
        yield Packet.of(bucket, int(channel), cast(Kind, kind.decode()), blob)


def elements_of(rows: pa.Table, names: tuple[str, ...]) -> Results:
    """The elements among rows of elements, with these columns."""
    if rows[REPORT].null_count < rows.num_rows:
        rows = rows.filter(pc.is_null(rows[REPORT])).combine_chunks()
    ts, te, holder = (rows[name].to_numpy() for name in (TS, TE, HOLDER))
    sign = None if rows[SIGN].null_count == rows.num_rows else pc.fill_null(rows[SIGN], 1).to_numpy()
    priority = at_least_0(rows[PRIORITY].to_numpy()) if PRIORITY in rows.column_names else None
    unknown = holder if sign is not None or (holder >= 0).any() else None
    return Results(rows.select(names) if names else pa.table({}), ts, te, holder=unknown, sign=sign, priority=priority)
