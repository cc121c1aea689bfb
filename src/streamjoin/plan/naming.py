"""Names: which columns a result has, and where they come from.

Keys given as `by` come first and once, coalesced, like Spark's USING. Then the other columns of input 0, then those of
input 1, names that occur twice with a suffix. Joins over validity add its two ends. Semi and anti joins have the
columns of input 0 only. Two columns of one name are an error, never a silent choice. Like Spark, names do not tell
upper from lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra import FOREVER, How
from streamjoin.algebra.interval import Times
from streamjoin.errors import CallError

INVALID_FLAG: Final = "_invalid"
LATE_FLAG: Final = "_late"
CHANGE: Final = "_change"


@dataclass(frozen=True)
class OutputColumn:
    """A column of the result and the members' columns it comes from: the first that is not NULL."""

    name: str
    sources: tuple[str, ...]
    type: pa.DataType


@dataclass(frozen=True)
class OutputNaming:
    """The columns of a result, in order."""

    columns: tuple[OutputColumn, ...]
    validity: tuple[str, str] | None
    time_type: pa.DataType | None
    flags: tuple[str, ...] = ()
    changelog: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The result's schema."""
        fields = [pa.field(column.name, column.type) for column in self.columns]
        if self.validity is not None:
            fields += [pa.field(name, self.time_type) for name in self.validity]
        fields += [pa.field(flag, pa.bool_()) for flag in self.flags]
        fields += [pa.field(CHANGE, pa.string())] * self.changelog
        return pa.schema(fields)

    def assemble(self, payload: pa.Table, ts: Times, te: Times, *, retracted: bool = False) -> pa.Table:
        """Results as the user sees them, or what is a result no longer."""
        columns = self._columns(payload, payload.num_rows)
        if self.validity is not None:
            columns += [time_column(ts, self.time_type), time_column(te, self.time_type)]
        columns += [pa.array(np.zeros(len(ts), np.bool_))] * len(self.flags)
        columns += [pa.repeat("retract" if retracted else "insert", len(ts))] * self.changelog
        return pa.table(columns, schema=self.schema)

    def assemble_marked(self, flag: str, number: int, rows: pa.Table) -> pa.Table:
        """Invalid or late rows of input `number` as the user sees them: unjoined, without a validity, marked. They are
        no change of the result.
        """
        named = rows.rename_columns([f"{number}.{name}" for name in rows.column_names])
        columns = self._columns(named, rows.num_rows)
        if self.validity is not None:
            columns += [pa.nulls(rows.num_rows, self.time_type)] * 2
        columns += [pa.array(np.full(rows.num_rows, name == flag)) for name in self.flags]
        columns += [pa.nulls(rows.num_rows, pa.string())] * self.changelog
        return pa.table(columns, schema=self.schema)

    def _columns(self, payload: pa.Table, rows: int) -> list[pa.ChunkedArray]:
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


def time_column(ticks: Times, kind: pa.DataType) -> pa.Array:
    """Ticks as a column of the time axis' type; for ever is NULL.

    >>> time_column(np.array([1, FOREVER]), pa.int64()).to_pylist()
    [1, None]
    """
    endless = ticks == FOREVER
    column = pa.array(np.where(endless, 0, ticks), mask=endless)
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    return column.cast(kind)


def name_columns(
    columns: Sequence[Sequence[str]],
    types: Sequence[dict[str, pa.DataType]],
    *,
    by: Sequence[str],
    how: How,
    suffix: str,
    validity: tuple[str, str] | None,
    time_type: pa.DataType | None,
    flags: tuple[str, ...] = (),
    changelog: bool = False,
) -> OutputNaming:
    """The columns of the result of joining inputs with these columns.

    >>> kinds = {"k": pa.int64(), "v": pa.int64()}
    >>> naming = name_columns([["k", "v"]] * 2, [kinds] * 2, by=["k"], how="inner", suffix="_right", validity=None,
    ...                       time_type=None)
    >>> naming.schema.names
    ['k', 'v', 'v_right']
    """
    left_only = how in ("semi", "anti")
    members = range(1 if left_only else len(columns))
    out = []
    for key in by:
        order = sorted(members, reverse=how == "right")
        out.append(OutputColumn(key, tuple(f"{number}.{key}" for number in order), types[0][key]))
    taken = {name.lower() for name in [*by, *columns[0]]}
    for number in members:
        before, beside = set(taken), {name.lower() for name in columns[number]}
        for name in columns[number]:
            if name in by:
                continue
            public = name
            if number > 0 and name.lower() in before:
                public = name + suffix
                if public.lower() in taken or public.lower() in beside:
                    raise CallError(
                        f"the result would have two columns {public!r}: {name!r} of input {number} with the suffix "
                        f"{suffix!r}, and another one",
                        hint="choose another suffix=, or rename a column",
                    )
            taken.add(public.lower())
            out.append(OutputColumn(public, (f"{number}.{name}",), types[number][name]))
    names = {column.name.lower() for column in out}
    for name in [*(validity or ()), *flags, *[CHANGE] * changelog]:
        if name.lower() in names:
            raise CallError(
                f"the result would have two columns {name!r}: an input's, and the one that this join adds",
                hint='name the result\'s validity with validity=("from", "to"), or rename the column',
            )
        names.add(name.lower())
    return OutputNaming(tuple(out), validity, time_type, flags, changelog)
