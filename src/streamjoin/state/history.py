"""History: what must be kept of an input whose newest rows are looked up by key and time.

Rows lie in runs ordered by (key, time, tie), the row to take last among those of one key and time. Looking backward
from a time `t`, a row is in the shadow of the next one of its key: whoever comes from the time of that one on takes
that one, or a later one. So a row's end is the time of its successor, if that is before its end by tolerance: when no
left row before it can come any more, it goes, and of every key there stays what can still be the answer. In a run that
was merged the successor may be another one than in the runs before, so ends are set anew with every merge.

    key a:   --x----x--------x------->     left rows to come
                    |        ^ ------ kept: after the bound
               gone   kept  |bound
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra.interval import FOREVER, Times, saturating_add
from streamjoin.errors import StreamjoinError
from streamjoin.kernels import after, before, sort_order, successors
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.matching import KeyTest, Matching
from streamjoin.state.run import Run


@dataclass(frozen=True)
class History(Matching):
    """The order and the ends of rows that are looked up by key and time.

    `tie_break`: columns whose greatest value wins among rows of one time. `shadowed`: rows are looked for backward, so
    a later row puts an earlier one into its shadow; `exact` says that it does so at its own time already.
    """

    timed: bool = False
    tie_break: tuple[str, ...] = ()
    shadowed: bool = True
    exact: bool = True

    def sorted_run(self, batch: Batch) -> Run:
        order = sort_order([batch.group, batch.ts])
        return self.run_of(batch.take(self.in_tie_order(batch, order)))

    def run_of(self, batch: Batch) -> Run:
        te = self.ends(batch, None)
        return Run(batch if te is batch.te else replace(batch, te=te), batch.ts, np.zeros(0, np.int64))

    @property
    def regards_neighbours(self) -> bool:
        return True

    def ends(self, batch: Batch, order: Indices | None) -> Times:
        group, ts, te = (column if order is None else column[order] for column in (batch.group, batch.ts, batch.te))
        if not self.shadowed:
            return te
        shadow = successors((group, ts), FOREVER)
        return np.minimum(te, shadow if self.exact else saturating_add(shadow, 1))

    def in_tie_order(self, batch: Batch, order: Indices) -> Indices:
        group, ts = batch.group[order], batch.ts[order]
        if self.shadowed and batch.proof is not None:
            _check_codes(group, batch.proof.take(pa.array(order)))
        same = (group[1:] == group[:-1]) & (ts[1:] == ts[:-1])
        if not same.any():
            return order
        tied = np.zeros(len(order), np.bool_)
        tied[1:] |= same
        tied[:-1] |= same
        places = np.flatnonzero(tied)
        which = np.concatenate([[0], np.cumsum(~same)])[places]
        rows = order[places]
        order = order.copy()
        order[places] = rows[tie_order(batch.payload.take(pa.array(rows)), which, self.tie_break)]
        return order


@dataclass(frozen=True)
class Lookup(Matching):
    """Each row of input 0, ordered by key and time, with the nearest row of a history in one direction.

    `ahead`: the first one after it, otherwise the last one before it; `exact` says that one of its own time will do.
    """

    timed: bool = False
    ahead: bool = False
    exact: bool = True

    def pairs(self, a: Run, b: Run) -> Iterator[tuple[Indices, Indices]]:
        nearest = after if self.ahead else before
        found = nearest((a.rows.group, a.rows.ts), (b.rows.group, b.rows.ts), strict=not self.exact)
        rows = np.flatnonzero(found >= 0)
        if not len(rows):
            return
        if a.rows.proof is not None and not KeyTest().holds(a.rows, rows, b.rows, found[rows]).all():
            raise same_code()
        yield rows, found[rows]


def tie_order(rows: pa.Table, which: Indices, tie_break: Sequence[str]) -> Indices:
    """The order of rows by (`which`, the columns `tie_break`, all columns); NULL is smaller than anything, then NaN.

    >>> tie_order(pa.table({"a": [1, 2, 1], "b": ["x", "y", "z"]}), np.array([0, 0, 0]), ["b"]).tolist()
    [0, 1, 2]
    """
    names = [*tie_break, *(name for name in rows.column_names if name not in tie_break)]
    columns = [pa.array(which), *(_sortable(rows[name]) for name in names)]
    table = pa.table(columns, names=[str(number) for number in range(len(columns))])
    keys = [(name, "ascending", "at_start") for name in table.column_names]
    return np.asarray(pc.sort_indices(table, sort_keys=keys)).astype(np.int64)


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    kind: Any = column.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    return column


def _check_codes(group: npt.NDArray[Any], proof: pa.Table) -> None:
    """Rows of one code, one after the other, must have one key."""
    same = group[1:] == group[:-1]
    if not same.any():
        return
    for column in proof.columns:
        differ = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
        if (differ.astype(np.bool_) & same).any():
            raise same_code()


def same_code() -> StreamjoinError:
    """Two keys that share a hash of 64 bits: so improbable that there is no second way, but never a wrong result."""
    return StreamjoinError(
        "two different keys have the same hash", hint="add another key column to by=, a constant one will do"
    )
