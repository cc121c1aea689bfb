"""A table of rows: payload that travels, and columns of arrays beside it. What batches and results have in common.

Law: what a row consists of is declared once, by the fields of a class. Whatever is done to rows goes through all of
them, so no column can be forgotten, and to add one is to add a field.

    payload            an Arrow table, never looked into
    any other field    an array with a place for each row; None where there is no such column
    numbered           several arrays
    beside             an Arrow table with a row for each row
    whole              nothing of rows: one value for all of them, which only rows with the same value can share

The last three are said in the field's metadata.
A column that is missing in some of the rows that are put together may have a meaning (`optional`), which is filled in.
Without one, rows with and without the column are never put together.

As one Arrow table (`to_table`) columns have names that begin with `__sj_`, so payload may have any other name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra.interval import Mask, Times

Indices = npt.NDArray[np.int64]

RESERVED_PREFIX: Final = "__sj_"

_Kind = Literal["array", "numbered", "beside", "whole", "payload"]


@dataclass(frozen=True)
class Column:
    """What a field is: its kind, its name and the one in an Arrow table, and what it means that it is missing."""

    kind: _Kind
    label: str = ""
    missing: Any = None
    name: str = ""


_DECLARED: dict[type[Any], tuple[Column, ...]] = {}  # by class, looked at once


def optional(missing: Any) -> dict[str, Column]:
    """A column that may be missing, and then means this value for every row."""
    return {"column": Column("array", missing=missing)}


def numbered(label: str) -> dict[str, Column]:
    """Any number of columns; in an Arrow table they have this name and a number."""
    return {"column": Column("numbered", label)}


def beside(label: str) -> dict[str, Column]:
    """A further Arrow table, or None; its columns are told by place, and have this name and a number."""
    return {"column": Column("beside", label)}


def whole() -> dict[str, Column]:
    """A value for all rows together."""
    return {"column": Column("whole")}


@dataclass(frozen=True)
class RowTable:
    """Rows: payload, validity, and whatever else a class declares."""

    payload: pa.Table = field(metadata={"column": Column("payload")})
    ts: Times
    te: Times

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def nbytes(self) -> int:
        """Bytes of payload and columns."""
        beside = [getattr(self, each.name) for each in declared(type(self)) if each.kind == "beside"]
        tables = [self.payload, *(table for table in beside if table is not None)]
        return sum(int(table.nbytes) for table in tables) + sum(array.nbytes for _, array in self.arrays())

    def take(self, rows: Indices | Mask) -> Self:
        """The rows at these positions, or where this mask is true."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        indices = pa.array(rows)
        taken: dict[str, Any] = {}
        for each in declared(type(self)):
            column = getattr(self, each.name)
            if each.kind == "whole" or column is None:
                continue
            if each.kind == "array":
                taken[each.name] = column[rows]
            elif each.kind == "numbered":
                taken[each.name] = tuple(one[rows] for one in column)
            else:
                taken[each.name] = column.take(indices) if column.num_columns else column
        return replace(self, **taken)

    def part(self, start: int, stop: int) -> Self:
        """The rows from one position to before another, not copied."""
        rows = slice(start, stop)
        cut: dict[str, Any] = {}
        for each in declared(type(self)):
            column = getattr(self, each.name)
            if each.kind == "whole" or column is None:
                continue
            if each.kind == "array":
                cut[each.name] = column[rows]
            elif each.kind == "numbered":
                cut[each.name] = tuple(one[rows] for one in column)
            else:
                cut[each.name] = column.slice(start, stop - start) if column.num_columns else column
        return replace(self, **cut)

    def owned(self) -> Self:
        """The same rows in memory of their own, whatever larger piece they lie in; quicker than to take them."""
        copied: dict[str, Any] = {}
        for each in declared(type(self)):
            column = getattr(self, each.name)
            if each.kind == "whole" or column is None:
                continue
            if each.kind == "array":
                copied[each.name] = column.copy()
            elif each.kind == "numbered":
                copied[each.name] = tuple(one.copy() for one in column)
            else:
                copied[each.name] = _owned(column)
        return replace(self, **copied)

    def split(self, mask: Mask) -> tuple[Self, Self]:
        """The rows where `mask` is true, and the others. Costs nothing when all are on one side."""
        if mask.all():
            return self, self.empty()
        if not mask.any():
            return self.empty(), self
        return self.take(mask), self.take(~mask)

    def empty(self) -> Self:
        """No rows, of the same shape."""
        return self.take(np.empty(0, np.int64))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """All rows of several tables, one after the other, in one piece of memory."""
        first = parts[0]
        if len(parts) == 1:
            return first
        joined: dict[str, Any] = {}
        for each in declared(cls):
            columns = [getattr(part, each.name) for part in parts]
            if each.kind == "whole":
                if any(column != columns[0] for column in columns):
                    raise AssertionError(f"rows that differ in `{each.name}` cannot be put together")
            elif each.kind == "array":
                joined[each.name] = _joined(each, columns, [len(part) for part in parts])
            elif each.kind == "numbered":
                joined[each.name] = tuple(np.concatenate(same) for same in zip(*columns, strict=True))
            elif each.kind == "payload":
                joined[each.name] = _stacked([_plain(column, column.column_names) for column in columns])
            elif any(column is not None for column in columns):
                joined[each.name] = _stacked([_plain(column, each.label) for column in columns])
        return replace(first, **joined)

    def to_table(self) -> pa.Table:
        """All of it as one Arrow table, to be stored or sent."""
        columns, names = list(self.payload.columns), list(self.payload.column_names)
        for name, array in self.arrays():
            columns.append(pa.array(array))
            names.append(RESERVED_PREFIX + name)
        said = {}
        for each in declared(type(self)):
            value = getattr(self, each.name)
            if each.kind == "beside" and value is not None:
                columns += value.columns
                names += [f"{RESERVED_PREFIX}{each.label}{number}" for number in range(value.num_columns)]
            elif each.kind == "whole":
                said[each.name] = value
        table = pa.table(columns, names=names)
        return table.replace_schema_metadata({RESERVED_PREFIX: json.dumps(said)}) if said else table

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """The inverse of `to_table`."""
        names = table.column_names
        payload = [name for name in names if not name.startswith(RESERVED_PREFIX)]
        read: dict[str, Any] = {"payload": table.select(payload).combine_chunks()}
        read |= json.loads((table.schema.metadata or {}).get(RESERVED_PREFIX.encode(), b"{}"))
        for each in declared(cls):
            mine = RESERVED_PREFIX + each.label
            if each.kind == "array" and mine in names:
                read[each.name] = table[mine].to_numpy()
            elif each.kind in ("numbered", "beside"):
                several = [f"{mine}{number}" for number in range(sum(name.startswith(mine) for name in names))]
                if each.kind == "numbered":
                    read[each.name] = tuple(table[name].to_numpy() for name in several)
                elif several:
                    read[each.name] = table.select(several).combine_chunks()
        return cls(**read)

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """All arrays, by the name that they have in an Arrow table."""
        for each in declared(type(self)):
            column = getattr(self, each.name)
            if each.kind == "numbered":
                yield from ((f"{each.label}{number}", one) for number, one in enumerate(column))
            elif each.kind == "array" and column is not None:
                yield each.label, column


def declared(rows: type[RowTable]) -> tuple[Column, ...]:
    """The fields of a class of rows."""
    if rows not in _DECLARED:
        told = {each.name: each.metadata.get("column", Column("array")) for each in fields(rows)}
        _DECLARED[rows] = tuple(replace(column, name=name, label=column.label or name) for name, column in told.items())
    return _DECLARED[rows]


def _joined(column: Column, arrays: list[Any], lengths: list[int]) -> npt.NDArray[Any] | None:
    there = [array for array in arrays if array is not None]
    if not there:
        return None
    if len(there) < len(arrays):
        if column.missing is None:
            raise AssertionError(f"rows with and without `{column.name}` cannot be put together")
        arrays = [
            np.full(length, column.missing, there[0].dtype) if array is None else array
            for array, length in zip(arrays, lengths, strict=True)
        ]
    return np.concatenate(arrays)


def _plain(table: pa.Table | None, names: Sequence[str] | str) -> pa.Table:
    """A table with names (or one name and numbers) and types only: who may be NULL is no reason to refuse it."""
    assert table is not None, "rows with and without keys to verify cannot be put together"
    if isinstance(names, str):
        names = [f"{RESERVED_PREFIX}{names}{number}" for number in range(table.num_columns)]
    return pa.table(table.columns, names=names)


def _stacked(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).combine_chunks()


def _owned(table: pa.Table) -> pa.Table:
    # One array alone would not be copied.
    columns = [pa.concat_arrays([*each.chunks, each.chunk(0).slice(0, 0)]) for each in table.columns if each.num_chunks]
    return pa.table(columns, schema=table.schema) if len(columns) == table.num_columns > 0 else table


def with_columns(table: pa.Table, **columns: Any) -> pa.Table:
    """A table with more columns; a table without any has no length, and takes that of the columns.

    >>> with_columns(pa.table({}), a=np.array([1, 2])).num_rows
    2
    """
    arrays = [*table.columns, *(pa.array(column) for column in columns.values())]
    return pa.table(arrays, names=[*table.column_names, *columns])
