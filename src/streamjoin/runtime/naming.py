"""The shape of what leaves: which columns a result has, and where they come from.

A result is a row of columns, and what says when it holds: two ends of a validity, or one time, or nothing for events.
Rows that leave unjoined (late, invalid) are marked: by a flag beside the columns that they have, or, where the result
has other columns than the source, in a column of their own that holds the whole row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra import FOREVER
from streamjoin.algebra.interval import Times
from streamjoin.algebra.policy import ADDED
from streamjoin.operators import Results
from streamjoin.runtime.elements import priorities
from streamjoin.runtime.intake import PRIORITY

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
    """The columns of a result, in order. `change`: rows are said to appear or disappear. `priority`: the column that
    says how urgent they are.
    """

    columns: tuple[OutputColumn, ...]
    validity: tuple[str, str] | None = None
    time: str | None = None
    time_type: pa.DataType | None = None
    flags: tuple[str, ...] = ()
    marked: tuple[MarkedColumn, ...] = ()
    change: bool = False
    priority: str | None = field(default=None, metadata=ADDED)

    @property
    def schema(self) -> pa.Schema:
        """The result's schema."""
        fields = [pa.field(column.name, column.type) for column in self.columns]
        if self.validity is not None:
            fields += [pa.field(name, self.time_type) for name in self.validity]
        fields += [] if self.priority is None else [pa.field(self.priority, pa.int64())]
        fields += [pa.field(flag, pa.bool_()) for flag in self.flags]
        fields += [pa.field(each.name, each.type) for each in self.marked]
        fields += [pa.field(CHANGE, pa.string())] * self.change
        fields += [] if self.time is None else [pa.field(self.time, self.time_type)]
        return pa.schema(fields)

    def assemble(self, results: Results) -> pa.Table:
        """Results as the user sees them, or what is a result no longer."""
        known: dict[str, Any] = dict.fromkeys(self.flags, pa.array(np.zeros(len(results), np.bool_)))
        for name, times in zip(self.validity or (), (results.ts, results.te), strict=False):
            known[name] = time_column(times, self.time_type)
        if self.priority is not None:
            known[self.priority] = pa.array(priorities(results))
        if self.change:
            known[CHANGE] = _changes(results)
        if self.time is not None:
            known[self.time] = time_column(results.ts, self.time_type)
        return self._table(results.payload, len(results), known)

    def assemble_marked(self, mark: Mark, channel: int, rows: pa.Table) -> pa.Table:
        """Late or invalid rows of a source as the user sees them: unjoined, without a validity, marked. They are no
        change of the result. Late ones have their own priority; that of an invalid one is not known.
        """
        known: dict[str, Any] = {flag: pa.array(np.full(rows.num_rows, flag == FLAGS[mark])) for flag in self.flags}
        if self.priority is not None and self.flags and mark == "late":
            own = rows[PRIORITY] if PRIORITY in rows.column_names else pa.array(np.zeros(rows.num_rows, np.int64))
            known[self.priority] = own
        for each in self.marked:
            if each.mark == mark and channel in each.channels:
                known[each.name] = _folded(rows).cast(each.type)
        return self._table(rows if self.flags else pa.table({}), rows.num_rows, known)

    def _table(self, payload: pa.Table, rows: int, known: dict[str, Any]) -> pa.Table:
        """The columns of the payload, those beside them that are known, and NULL for all others."""
        beside = list(self.schema)[len(self.columns) :]
        columns = [known[each.name] if each.name in known else pa.nulls(rows, each.type) for each in beside]
        return pa.table(self._columns(payload, rows) + columns, schema=self.schema)

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
