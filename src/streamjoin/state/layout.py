"""Where the rows of a run are stored. Runs are merged in memory; what is stored is written once.

A run that has been merged from others is not written anew: its rows stay in the *parts* that were stored when they
came, and whoever restores it merges the parts again. Merging keeps the order of equal rows (older parts first), and
drops what ends at or before the same progress, so the run comes back row by row as it was.

Two laws keep what is stored in proportion. They are applied whenever a run is made anew in memory:

1. A part of which no row is left is forgotten. One of which less than a quarter is left is written anew: copying a
   quarter is paid for by what goes.
2. Neighbouring parts that are small together become one. So parts are not many, and a row is copied O(log) times until
   its part is of `PART_BYTES`, and then not any more.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from streamjoin.state.batch import Indices
from streamjoin.state.holders import Ends

PART_BYTES: Final = 1 << 20
_AT_ONCE: Final = 1 << 20
WORTH_KEEPING: Final = 4  # a part is kept while at least one row of so many is left

Labels = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Layout:
    """The parts of a run: their names, how many rows each was stored with, and which part each row of the run is in.

    `part_of` is None where there is one part.
    """

    names: tuple[str, ...]
    stored_rows: tuple[int, ...]
    part_of: Labels | None = None

    @staticmethod
    def whole(rows: int) -> Layout:
        """One part for a new run, under a name that no attempt at the same work uses.

        >>> Layout.whole(3).stored_rows
        (3,)
        """
        return Layout((uuid.uuid4().hex,), (rows,))

    @staticmethod
    def merged(layouts: Sequence[Layout], lengths: Sequence[int], order: Indices) -> Layout:
        """The parts of several runs, after their rows (one run after the other) have been taken in this order.

        >>> both = Layout.merged([Layout(("a",), (2,)), Layout(("b",), (1,))], [2, 1], np.array([2, 0]))
        >>> both.names, both.part_of.tolist()
        (('a', 'b'), [1, 0])
        """
        labels, first = [], 0
        for layout, length in zip(layouts, lengths, strict=True):
            own = np.zeros(length, np.int32) if layout.part_of is None else layout.part_of
            labels.append(own + np.int32(first))
            first += len(layout.names)
        names = tuple(name for layout in layouts for name in layout.names)
        return Layout(
            names, tuple(rows for layout in layouts for rows in layout.stored_rows), np.concatenate(labels)[order]
        )

    def rows_of(self, part: int) -> Indices | None:
        """The positions of a part's rows in the run; None for all of them."""
        if self.part_of is None:
            return None
        found = [np.empty(0, np.int64)]  # some at a time: the labels may lie in a file, and be many
        for first in range(0, len(self.part_of), _AT_ONCE):
            found.append(np.flatnonzero(self.part_of[first : first + _AT_ONCE] == part) + first)
        return np.concatenate(found)

    def tidied(self, row_bytes: float) -> Layout:
        """The same rows, laid out by the two laws; `row_bytes` is the size of a row.

        >>> Layout(("a", "b"), (9, 1), np.array([0, 1], np.int32)).tidied(1e9).stored_rows
        (1, 1)
        >>> Layout(("a", "b"), (1, 1), np.array([0, 1], np.int32)).tidied(8).stored_rows
        (2,)
        """
        if self.part_of is None:
            return self
        left = np.bincount(self.part_of, minlength=len(self.names))
        laid_out, new_label = self.laid_out(left, row_bytes)
        return laid_out if len(laid_out.names) == 1 else replace(laid_out, part_of=new_label[self.part_of])

    def laid_out(self, left: Indices, row_bytes: float) -> tuple[Layout, Labels]:
        """The parts by the two laws when so many rows are left of each, and the new label of each part; where rows
        lie is not said.

        >>> Layout(("a", "b"), (1, 1)).laid_out(np.array([0, 1]), 8)
        (Layout(names=('b',), stored_rows=(1,), part_of=None), array([0, 0], dtype=int32))
        """
        groups: list[list[int]] = []
        room = 0.0
        for part in np.flatnonzero(left).tolist():
            size = left[part] * row_bytes
            if groups and size <= room:
                groups[-1].append(part)
                room -= size
            else:
                groups.append([part])
                room = PART_BYTES - size
        new_label = np.zeros(len(self.names), np.int32)
        names: list[str] = []
        stored: list[int] = []
        for label, group in enumerate(groups):
            new_label[group] = label
            rows = int(left[group].sum())
            (first, *others) = group
            if others or WORTH_KEEPING * rows < self.stored_rows[first]:
                names.append(uuid.uuid4().hex)
                stored.append(rows)
            else:
                names.append(self.names[first])
                stored.append(self.stored_rows[first])
        return Layout(tuple(names), tuple(stored)), new_label


@dataclass(frozen=True)
class LateEnds:
    """Ends of rows that had been stored without, in which parts those are, and when the area heard of them."""

    id: str
    ends: Ends
    parts: frozenset[str]
    number: int
