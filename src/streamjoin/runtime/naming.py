"""The shape of what leaves: which columns a result has, and where they come from.

A result is a row of columns, and what says when it holds: two ends of a validity, or one time, or nothing for events.
Rows that leave unjoined (late, invalid) are marked: by a flag beside the columns that they have, or, where the result
has other columns than the source, in a column of their own that holds the whole row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra import FOREVER
from streamjoin.algebra.interval import Times
from streamjoin.operators import Results

INVALID_FLAG: Final = "_invalid"
LATE_FLAG: Final = "_late"
CHANGE: Final = "_change"
TIME: Final = "_time"
Mark = Literal["late", "invalid"]
FLAGS: Final[dict[Mark, str]] = {"late": LATE_FLAG, "invalid": INVALID_FLAG}


@dataclass(frozen=True)
class OutputColumn:
    """A column of the result and the columns it comes from: the first that is not NULL."""

    name: str
    sources: tuple[str, ...]
    type: pa.DataType


@dataclass(frozen=True)
class MarkedColumn:
    """A column for whole rows of one source that leave unjoined. One that is read twice may lose a row by one reading
    and not by the other, so each shows its own.
    """

    name: str
    mark: Mark
    channels: tuple[int, ...]
    type: pa.DataType


@dataclass(frozen=True)
class Shape:
    """The columns of a result, in order. `change`: rows are said to appear or disappear."""

    columns: tuple[OutputColumn, ...]
    validity: tuple[str, str] | None = None
    time: str | None = None
    time_type: pa.DataType | None = None
    flags: tuple[str, ...] = ()
    marked: tuple[MarkedColumn, ...] = ()
    change: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The result's schema."""
        fields = [pa.field(column.name, column.type) for column in self.columns]
        if self.validity is not None:
            fields += [pa.field(name, self.time_type) for name in self.validity]
        fields += [pa.field(flag, pa.bool_()) for flag in self.flags]
        fields += [pa.field(each.name, each.type) for each in self.marked]
        fields += [pa.field(CHANGE, pa.string())] * self.change
        fields += [] if self.time is None else [pa.field(self.time, self.time_type)]
        return pa.schema(fields)

    def assemble(self, results: Results) -> pa.Table:
        """Results as the user sees them, or what is a result no longer."""
        rows = len(results)
        columns = self._columns(results.payload, rows)
        if self.validity is not None:
            columns += [time_column(times, self.time_type) for times in (results.ts, results.te)]
        columns += [pa.array(np.zeros(rows, np.bool_))] * len(self.flags)
        columns += [pa.nulls(rows, each.type) for each in self.marked]
        columns += [_changes(results)] * self.change
        columns += [] if self.time is None else [time_column(results.ts, self.time_type)]
        return pa.table(columns, schema=self.schema)

    def assemble_marked(self, mark: Mark, channel: int, rows: pa.Table) -> pa.Table:
        """Late or invalid rows of a source as the user sees them: unjoined, without a validity, marked. They are no
        change of the result.
        """
        count = rows.num_rows
        columns = self._columns(rows if self.flags else pa.table({}), count)
        if self.validity is not None:
            columns += [pa.nulls(count, self.time_type)] * 2
        columns += [pa.array(np.full(count, flag == FLAGS[mark])) for flag in self.flags]
        for each in self.marked:
            mine = each.mark == mark and channel in each.channels
            columns.append(_folded(rows).cast(each.type) if mine else pa.nulls(count, each.type))
        columns += [pa.nulls(count, pa.string())] * self.change
        columns += [] if self.time is None else [pa.nulls(count, self.time_type)]
        return pa.table(columns, schema=self.schema)

    def _columns(self, payload: pa.Table, rows: int) -> list[Any]:
        present = set(payload.column_names)
        columns = []
        for column in self.columns:
            sources = [payload[source] for source in column.sources if source in present]
            if not sources:
                columns.append(pa.nulls(rows, column.type))
            elif len(sources) == 1:
                columns.append(sources[0])
            else:
                columns.append(pc.coalesce(*sources))
        return columns


def _folded(rows: pa.Table) -> Any:
    return pa.chunked_array([rows.combine_chunks().to_struct_array().combine_chunks()])


def _changes(results: Results) -> Any:
    if results.sign is not None:
        return pc.if_else(pa.array(results.sign > 0), "insert", "retract")
    return pa.repeat("retract" if results.retracted else "insert", len(results))


def time_column(ticks: Times, kind: pa.DataType | None) -> Any:
    """Ticks as a column of the time axis' type; for ever is NULL.

    >>> time_column(np.array([1, FOREVER]), pa.int64()).to_pylist()
    [1, None]
    """
    endless = ticks == FOREVER
    column = pa.array(np.where(endless, 0, ticks), mask=endless)
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    return column.cast(kind)
