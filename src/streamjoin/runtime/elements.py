"""Elements as rows: how they look between two stages where Spark has something to compute.

A row is an element: the relation's columns, and hidden ones beside them.

    __sj_ts, __sj_te   the validity in ticks; `te` is infinity where the element never ends, or its end is not known
    __sj_holder        who will know the end; -1 where it is known
    __sj_sign          in a query by plus and minus tuples: 1 where a row appears at `ts`, -1 where it disappears; also
                       -1 where a result is taken back
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
from streamjoin.runtime.packets import Kind, Packet
from streamjoin.state.batch import with_columns

TS: Final = "__sj_ts"
TE: Final = "__sj_te"
HOLDER: Final = "__sj_holder"
SIGN: Final = "__sj_sign"
REPORT: Final = "__sj_report"
HIDDEN_SCHEMA: Final = pa.schema([
    (TS, pa.int64()), (TE, pa.int64()), (HOLDER, pa.int64()), (SIGN, pa.int8()), (REPORT, pa.binary()),
])  # fmt: skip


def element_rows(results: Results) -> pa.Table:
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
    )


def report_rows(schema: pa.Schema, packet: Packet) -> pa.Table:
    """A packet as rows beside elements with these columns."""
    head = f"{packet.kind} {packet.channel} ".encode()
    reports = pa.array([head + blob for blob in packet.blobs()], pa.binary())
    columns = {field.name: pa.nulls(len(reports), field.type) for field in (*schema, *HIDDEN_SCHEMA)}
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
    unknown = holder if sign is not None or (holder >= 0).any() else None
    return Results(rows.select(names) if names else pa.table({}), ts, te, holder=unknown, sign=sign)
