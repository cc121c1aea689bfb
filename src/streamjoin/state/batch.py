"""A batch: rows of one input as the operators see them. Payload that travels, and arrays that decide.

    payload    Arrow table, never looked into
    ts, te     the validity `[ts, te)`; in an event join `te` is the instant from which the row can be forgotten
    group      the code of its equality keys (0 where there are none); equal keys have equal codes
    values     the columns that the predicates read, one predicate after the other
    proof      the key values themselves, where codes are hashes and have to be verified
    matchable  False for rows that can match nothing: a NULL or NaN key or value, an empty value interval
    origin     a number that all replicas of one row share, where a row goes to several buckets
    home       True for exactly one of the replicas
    holder     where an end is not known yet, who will know it (see `holders`); -1 where it is known
    sign       in a stream of plus and minus tuples: 1 where a row appears at `ts`, -1 where it disappears; then
               `holder` is what a plus and its minus have in common

A batch travels as one Arrow table: its payload, and its arrays in columns whose names begin with `__sj_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra.interval import Mask, Times

Indices = npt.NDArray[np.int64]

Signs = npt.NDArray[np.int8]

RESERVED_PREFIX: Final = "__sj_"
_OPTIONAL: Final = ("matchable", "origin", "home", "holder", "sign")


@dataclass(frozen=True)
class Batch:
    """Rows of one input: payload and the arrays that decide about them."""

    payload: pa.Table
    ts: Times
    te: Times
    group: Indices
    values: tuple[npt.NDArray[Any], ...] = ()
    proof: pa.Table | None = None
    matchable: Mask | None = None
    origin: Indices | None = None
    home: Mask | None = None
    holder: Indices | None = None
    sign: Signs | None = None

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def nbytes(self) -> int:
        """Bytes of payload and arrays."""
        arrays = (self.ts, self.te, self.group, *self.values)
        return int(self.payload.nbytes) + sum(array.nbytes for array in arrays)

    def take(self, rows: Indices | Mask) -> Batch:
        """The rows at these positions, or where this mask is true."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        indices = pa.array(rows)
        return Batch(
            self.payload.take(indices) if self.payload.num_columns else self.payload,
            self.ts[rows],
            self.te[rows],
            self.group[rows],
            tuple(column[rows] for column in self.values),
            None if self.proof is None else self.proof.take(indices),
            None if self.matchable is None else self.matchable[rows],
            None if self.origin is None else self.origin[rows],
            None if self.home is None else self.home[rows],
            None if self.holder is None else self.holder[rows],
            None if self.sign is None else self.sign[rows],
        )

    def split(self, mask: Mask) -> tuple[Batch, Batch]:
        """The rows where `mask` is true, and the others. Costs nothing when all are on one side."""
        if mask.all():
            return self, self.empty()
        if not mask.any():
            return self.empty(), self
        return self.take(mask), self.take(~mask)

    def empty(self) -> Batch:
        """No rows, of the same shape."""
        return self.take(np.empty(0, np.int64))

    def without_matchable(self) -> Batch:
        """The same rows, once it has been settled that all of them can match."""
        return replace(self, matchable=None)

    def with_known_ends(self) -> Batch:
        """The same rows, said to have ends that are known."""
        return replace(self, holder=np.full(len(self), -1, np.int64))

    @staticmethod
    def concat(batches: Sequence[Batch]) -> Batch:
        """All rows of several batches of the same shape, one after the other, in one piece of memory."""
        if len(batches) == 1:
            return batches[0]
        if any(batch.matchable is not None for batch in batches):
            batches = [
                batch if batch.matchable is not None else replace(batch, matchable=np.ones(len(batch), np.bool_))
                for batch in batches
            ]
        if any(batch.holder is not None for batch in batches):
            batches = [batch if batch.holder is not None else batch.with_known_ends() for batch in batches]
        return Batch.from_table(pa.concat_tables([batch.to_table() for batch in batches]))

    def to_table(self) -> pa.Table:
        """The batch as one Arrow table, to be stored or sent."""
        arrays: dict[str, Any] = {"ts": self.ts, "te": self.te, "group": self.group}
        arrays |= {f"value{i}": column for i, column in enumerate(self.values)}
        arrays |= {name: column for name in _OPTIONAL if (column := getattr(self, name)) is not None}
        columns = [*self.payload.columns, *(pa.array(column) for column in arrays.values())]
        names = [*self.payload.column_names, *(RESERVED_PREFIX + name for name in arrays)]
        if self.proof is not None:
            columns += self.proof.columns
            names += [f"{RESERVED_PREFIX}proof{i}" for i in range(self.proof.num_columns)]
        return pa.table(columns, names=names)

    @staticmethod
    def from_table(table: pa.Table) -> Batch:
        """The inverse of `to_table`."""
        names = table.column_names
        payload = [name for name in names if not name.startswith(RESERVED_PREFIX)]
        proof = [name for name in names if name.startswith(RESERVED_PREFIX + "proof")]
        values = sum(name.startswith(RESERVED_PREFIX + "value") for name in names)

        def column(name: str) -> Any:
            return table[RESERVED_PREFIX + name].to_numpy()

        def optional(name: str) -> Any:
            return column(name) if RESERVED_PREFIX + name in names else None

        return Batch(
            table.select(payload).combine_chunks(),
            column("ts"),
            column("te"),
            column("group"),
            tuple(column(f"value{i}") for i in range(values)),
            table.select(proof).combine_chunks() if proof else None,
            optional("matchable"),
            optional("origin"),
            optional("home"),
            optional("holder"),
            optional("sign"),
        )


def with_columns(table: pa.Table, **columns: Any) -> pa.Table:
    """A table with more columns; a table without any has no length, and takes that of the columns.

    >>> with_columns(pa.table({}), a=np.array([1, 2])).num_rows
    2
    """
    arrays = [*table.columns, *(pa.array(column) for column in columns.values())]
    return pa.table(arrays, names=[*table.column_names, *columns])
