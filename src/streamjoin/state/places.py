"""Places: rows of an area by one number each, over all of its runs, and what is there.

    runs        [ 0 1 2 3 ] [ 4 5 ] [ 6 ]

Whoever has found rows in several runs keeps their numbers, and looks up what is needed of them when it is needed: the
payload last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.state.batch import NO_HOLDER, Batch, Indices, Priorities
from streamjoin.state.kept import Kept

_NOTHING = pa.table({})


class Places:
    """The rows of some runs, which do not change meanwhile."""

    def __init__(self, runs: Sequence[Kept]) -> None:
        self.runs = tuple(runs)

    @cached_property
    def first(self) -> Indices:
        """The number of each run's first row, and of the one behind the last."""
        return np.cumsum([0, *(len(kept.run) for kept in self.runs)])

    def __len__(self) -> int:
        return int(self.first[-1])

    def column(self, place: Indices, get: Callable[[Batch], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """An array of the rows, at these places."""
        if len(self.runs) == 1:
            return get(self.runs[0].run.rows)[place]
        number = np.searchsorted(self.first, place, side="right") - 1
        found: npt.NDArray[Any] | None = None
        for each, kept in enumerate(self.runs):
            mine = np.flatnonzero(number == each)
            if len(mine):
                values = get(kept.run.rows)
                found = np.empty(len(place), values.dtype) if found is None else found
                found[mine] = values[place[mine] - self.first[each]]
        return np.empty(0, np.int64) if found is None else found

    def holder(self, place: Indices) -> Indices | None:
        """Who knows the ends at these places; None when all are known."""
        if all(kept.run.rows.holder is None for kept in self.runs):
            return None
        return self.column(place, _holder)

    def priority(self, place: Indices) -> Priorities | None:
        """How urgent the rows at these places are; None when none can be."""
        if all(kept.run.rows.priority is None for kept in self.runs):
            return None
        return self.column(place, _priority)

    def table(self, place: Indices, get: Callable[[Batch], pa.Table]) -> pa.Table:
        """A table of the rows, at these places; there must be one."""
        number = np.searchsorted(self.first, place, side="right") - 1
        found, places = [], []
        for each, kept in enumerate(self.runs):
            mine = np.flatnonzero(number == each)
            if len(mine):
                found.append(get(kept.run.rows).take(pa.array(place[mine] - self.first[each])))
                places.append(mine)
        if len(found) == 1:
            return found[0]
        back = np.empty(len(place), np.int64)
        back[np.concatenate(places)] = np.arange(len(place))
        return pa.concat_tables(found).take(pa.array(back))

    def rows(self, place: Indices) -> Batch:
        """What decides about the rows at these places, without their payload."""
        width = len(self.runs[0].run.rows.values)
        proof = self.runs[0].run.rows.proof
        return Batch(
            _NOTHING,
            self.column(place, lambda rows: rows.ts),
            self.column(place, lambda rows: rows.te),
            self.column(place, lambda rows: rows.group),
            tuple(self.column(place, _value(number)) for number in range(width)),
            None if proof is None else self.table(place, _proof),
            contents=None if self.runs[0].run.rows.contents is None else self.table(place, _contents),
        )


def _holder(rows: Batch) -> Indices:
    return np.full(len(rows), NO_HOLDER) if rows.holder is None else rows.holder


def _priority(rows: Batch) -> Priorities:
    return np.zeros(len(rows), np.int64) if rows.priority is None else rows.priority


def _proof(rows: Batch) -> pa.Table:
    return _by_place(rows.proof)


def _contents(rows: Batch) -> pa.Table:
    return _by_place(rows.contents)


def _by_place(table: pa.Table | None) -> pa.Table:
    """Columns that are told by their place: after a restart they have other names."""
    assert table is not None
    return table.rename_columns([str(number) for number in range(table.num_columns)])


def _value(number: int) -> Callable[[Batch], npt.NDArray[Any]]:
    return lambda rows: rows.values[number]
