"""Runs merged into a store, page by page: never more than a page of each in memory.

    run 0   [ . . . . | . . . . | . . ]
    run 1   [ . . | . . . | . . . . . ]
                  ^ frontier: the smallest last row among pages that others follow. All rows up to it are there.

Law: the order is that of a merge in memory. Equal rows stay in the order of their runs, the oldest first, so what comes
up to the frontier are rows not after its last row, and of younger runs only those before it. Where a row's fate depends
on its neighbours (a history's), rows equal to the frontier wait for the next page, and the last row for the next one.

What expired by `cut` is left behind. Of each row it is told which run it came from, and where it was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamjoin.kernels import expired_mask, merge_order
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.matching import Matching
from streamjoin.state.run import Run
from streamjoin.state.spilled_run import SpilledRun, opened

Key = tuple[Any, Any, Any]


@dataclass
class Cursor:
    """Where the merge is in one run: the rows of its next pages that have not been taken."""

    run: Run
    page_rows: int
    next: int = 0  # the page to be read next
    rows: Run | None = None
    first: int = 0  # the position in the run of the first of `rows`

    def __post_init__(self) -> None:
        stored = self.run.stored.index.start if isinstance(self.run, SpilledRun) else None
        cuts = np.append(np.arange(0, len(self.run), self.page_rows), len(self.run))
        self.start = cuts if stored is None else stored

    @property
    def more(self) -> bool:
        """Whether pages follow."""
        return self.next < len(self.start) - 1

    def fill(self) -> None:
        """Have rows, if there are any."""
        if self.rows is None and self.more:
            self.rows, self.first = self._read(self.next), int(self.start[self.next])
            self.next += 1

    def extend(self, matching: Matching) -> None:
        """Have one more page."""
        assert self.rows is not None
        both = Batch.concat([self.rows.rows, self._read(self.next).rows])
        self.rows = matching.run_of(both)
        self.next += 1

    def _read(self, page: int) -> Run:
        if isinstance(self.run, SpilledRun):
            return self.run.matching.run_of(opened(self.run.stored.pages(page, page + 1)))
        return self.run.part(int(self.start[page]), int(self.start[page + 1]))

    def last(self) -> Key:
        """The last row that is here."""
        assert self.rows is not None
        return _key(self.rows, len(self.rows) - 1)

    def take(self, until: int) -> tuple[Run, Indices]:
        """The rows that are here up to a position, and where they lie in the run."""
        assert self.rows is not None
        taken, where = self.rows.part(0, until), np.arange(self.first, self.first + until)
        left = len(self.rows) - until
        self.rows = self.rows.part(until, len(self.rows)) if left else None
        self.first += until
        return taken, where


@dataclass
class Chunk:
    """Rows in the order of the merge, from which run each came and where it was there."""

    rows: Batch
    number: Indices
    where: Indices

    def take(self, which: Any) -> Chunk:
        """Some of them."""
        return Chunk(self.rows.take(which), self.number[which], self.where[which])


@dataclass
class StreamedMerge:
    """Several runs on their way to one. `step` is one frontier."""

    runs: Sequence[Run]
    matching: Matching
    cut: int
    page_rows: int
    cursors: list[Cursor] = field(init=False)
    carried: Chunk | None = None  # the last row of what was taken, where its neighbour decides about it

    def __post_init__(self) -> None:
        self.cursors = [Cursor(run, self.page_rows) for run in self.runs]

    def chunks(self) -> Iterator[Chunk]:
        """The merged rows, some at a time."""
        while True:
            for cursor in self.cursors:
                cursor.fill()
            waiting = [(number, each) for number, each in enumerate(self.cursors) if each.rows is not None]
            if not waiting:
                break
            ends = self._frontier(waiting)
            taken = [(number, *each.take(until)) for (number, each), until in zip(waiting, ends, strict=True) if until]
            chunk = self._merged(taken)
            if chunk is not None and len(chunk.rows):
                yield chunk
        if self.carried is not None:
            last, self.carried = self.carried, None
            alive = self.matching.ends(last.rows, np.zeros(1, np.int64)) > self.cut
            if alive.any():
                yield last

    def _frontier(self, waiting: list[tuple[int, Cursor]]) -> list[int]:
        """How many rows of each run come now."""
        whole = self.matching.regards_neighbours
        while True:
            bounds = [(each.last(), number) for number, each in waiting if each.more]
            if not bounds:
                return [len(each.rows) for _, each in waiting if each.rows is not None]
            key, owner = min(bounds)
            ends = [_up_to(each.rows, key, equal=not whole and number <= owner) for number, each in waiting]
            if any(ends):
                return ends
            for _, each in waiting:  # a page of nothing but one key, and more may follow
                if each.more and each.last() == key:
                    each.extend(self.matching)

    def _merged(self, taken: list[tuple[int, Run, Indices]]) -> Chunk | None:
        runs = [run for _, run, _ in taken]
        number = np.repeat([each for each, _, _ in taken], [len(run) for run in runs])
        where = np.concatenate([where for _, _, where in taken])
        rows = Batch.concat([run.rows for run in runs])
        offsets = np.cumsum([0] + [len(run) for run in runs])
        cell = np.concatenate([run.cell for run in runs])
        value = np.concatenate([run.value for run in runs])
        order = merge_order(rows.group, cell if len(cell) else np.zeros(len(rows), np.int64), value, offsets)
        order = self.matching.in_tie_order(rows, order)
        if self.carried is not None:  # it is before all others
            before = self.carried
            rows = Batch.concat([before.rows, rows])
            number, where = np.append(before.number, number), np.append(before.where, where)
            order = np.append(0, order + 1)
        chunk, ends = Chunk(rows, number, where), self.matching.ends(rows, order)
        self.carried = None
        if self.matching.regards_neighbours:
            self.carried = chunk.take(order[-1:])
            order, ends = order[:-1], ends[:-1]
        if not len(order):
            return None
        alive, gone = expired_mask(ends, self.cut)
        merged = chunk.take(order[alive] if gone else order)
        if self.matching.regards_neighbours:
            merged.rows = replace(merged.rows, te=ends[alive])
        return merged


def _key(run: Run, at: int) -> Key:
    return run.rows.group[at], run.cell[at] if len(run.cell) else 0, run.value[at]


def _up_to(run: Run | None, key: Key, *, equal: bool) -> int:
    """How many rows come before a key, or are not after it."""
    assert run is not None
    start, stop = 0, len(run)
    for column, wanted in zip((run.rows.group, run.cell, run.value), key, strict=True):
        if len(column):
            part = column[start:stop]
            first = start + int(np.searchsorted(part, wanted, side="left"))
            stop = start + int(np.searchsorted(part, wanted, side="right"))
            start = first
    return stop if equal else start
