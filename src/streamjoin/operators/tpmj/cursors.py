"""Merging sorted runs page by page: a portion at a time, with a few pages of each run in memory.

The *frontier* is the smallest last row among the pages of those runs that have more of them. What is not behind it is
taken, in order; what is left waits for the next portion.

    run 0   | a c e | g ...        frontier: e (run 0 has more pages, and ends there first)
    run 1   | b d f | h ...        taken: a b c d e; f waits
    run 2   | a z |                it has no more pages, so z cannot be the frontier

Law: merging is stable. Rows that are equal come in the order of their runs, whatever the pages are: of the runs behind
the one that gave the frontier, rows that are equal to it wait. So a run that is made again has the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from streamjoin.kernels import sort_order
from streamjoin.kernels.merge_sweep import place_of_key
from streamjoin.state import Batch
from streamjoin.state.paged import PagedRun

Columns = list[npt.NDArray[Any]]
Key = tuple[Any, ...]


@dataclass
class Cursor:
    """How far a run of input `number` has been read. `page`: the next one; `at`: the first row in memory not taken."""

    number: int
    run: PagedRun
    changed: Callable[[Batch], Batch] | None = None  # what is done to rows that have been read
    counted: bool = True  # as pages of a disk
    page: int = 0
    at: int = 0
    rows: Batch | None = None
    columns: Columns = field(default_factory=list)

    @property
    def more(self) -> bool:
        """Whether there are pages that have not been read."""
        return self.page < self.run.pages

    def fill(self, pages: int, columns: Callable[[int, Batch], Columns]) -> int:
        """If nothing is left in memory, read so many pages; how many have been read."""
        if self.rows is not None or not self.more:
            return 0
        behind = min(self.page + pages, self.run.pages)
        read, rows = behind - self.page, self.run.read(self.page, behind)
        self.rows = rows if self.changed is None else self.changed(rows)
        self.columns, self.page, self.at = columns(self.number, self.rows), behind, 0
        return read if self.counted else 0

    def last(self) -> Key:
        """The last row in memory, by what it is sorted by."""
        return tuple(column[-1] for column in self.columns)

    def take(self, key: Key | None, *, equal: bool) -> Batch | None:
        """The rows before a key (or at it, with `equal`); all for None."""
        if self.rows is None:
            return None
        end = len(self.rows) if key is None else place_of_key(self.columns, self.at, key, equal=equal)
        start, self.at = self.at, end
        rows = self.rows
        if end == len(rows):
            self.rows = None
        if start == end:
            return None
        return rows if end - start == len(rows) else rows.part(start, end)


@dataclass
class Portion:
    """Rows of each input that has some, run by run, each in order; the frontier, None when nothing is left; and pages
    that were read.
    """

    rows: dict[int, list[Batch]]
    frontier: Key | None
    read: int


def next_portion(cursors: Sequence[Cursor], pages: int, columns: Callable[[int, Batch], Columns]) -> Portion:
    """Everything up to the next frontier; `pages` of a run are read at a time."""
    read = sum(cursor.fill(pages, columns) for cursor in cursors)
    frontier: Key | None = None
    first = len(cursors)
    for place, cursor in enumerate(cursors):
        if cursor.more:
            last = cursor.last()
            if frontier is None or last < frontier:
                frontier, first = last, place
    taken: dict[int, list[Batch]] = {}
    for place, cursor in enumerate(cursors):
        some = cursor.take(frontier, equal=place <= first)
        if some is not None:
            taken.setdefault(cursor.number, []).append(some)
    return Portion(taken, frontier, read)


def merged(cursors: Sequence[Cursor], pages: int, columns: Callable[[int, Batch], Columns]) -> Iterator[Batch]:
    """All rows of runs of one input, in order."""
    while True:
        portion = next_portion(cursors, pages, columns)
        for number, parts in portion.rows.items():
            rows = Batch.concat(parts)
            yield rows.take(sort_order(columns(number, rows))) if len(parts) > 1 else rows
        if portion.frontier is None:
            return
