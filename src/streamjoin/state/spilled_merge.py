"""Runs merged into one in a store: with who has met someone, and with where the rows are stored for good.

Nothing here grows with the rows but what the store holds: marks and labels lie in its files, too.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from streamjoin.kernels import expired_mask
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.kept import Kept
from streamjoin.state.layout import Labels, Layout
from streamjoin.state.matching import Matching
from streamjoin.state.meetings import HeldPieces, Meetings
from streamjoin.state.run import Run
from streamjoin.state.spilled_run import SpilledRun, reach_of
from streamjoin.state.stores import RunStore, RunWriter, StoredRun
from streamjoin.state.streamed_merge import Chunk, StreamedMerge

_AT_ONCE: Final = 1 << 18


def merged_into(
    store: RunStore,
    parts: Sequence[Kept],
    matching: Matching,
    progress: int,
    heard: int,
    page_rows: int,
) -> Kept | None:
    """Several runs as one in a store, without what has expired; None where nothing is left."""
    relabel = Relabelling.of(parts, progress)
    most = sum(len(part.run) for part in parts)
    writer = store.writer(uuid.uuid4().hex, most)
    holders = any(part.open_ended for part in parts)
    ranked = any(part.run.rows.priority is not None for part in parts)
    pages = PageWriter(writer, matching, page_rows, holders, ranked)
    notes = MergedNotes(store, [part.meetings for part in parts], [len(part.run) for part in parts])
    try:
        for chunk in StreamedMerge([part.run for part in parts], matching, progress, page_rows).chunks():
            notes.add(chunk)
            pages.add(chunk.rows, relabel.labels(chunk))
        stored = pages.close()
    except BaseException:
        writer.abandon()
        raise
    for part in parts:
        if isinstance(part.run, SpilledRun):
            part.run.stored.forget()
    if stored is None:
        return None
    layout = replace(relabel.layout, part_of=stored.labels)
    run = SpilledRun.of(stored, matching, _level(parts, len(stored)))
    return Kept(run, notes.close(), 0, False, layout, progress, heard)


def _level(parts: Sequence[Kept], rows: int) -> int:
    """The level of a run of so many rows that was merged from others: the next one, if it is much larger than they."""
    levels = [part.run.level for part in parts if isinstance(part.run, SpilledRun)]
    grown = rows >= 2 * max(len(part.run) for part in parts)
    return max(levels) + grown if levels else 0


@dataclass
class PageWriter:
    """Puts rows together to pages. `holders`: some ends are not known; otherwise nobody need be told of them. `ranked`:
    some rows are urgent. All pages have the columns of the first, so it must have a priority if any has.
    """

    writer: RunWriter
    matching: Matching
    page_rows: int
    holders: bool
    ranked: bool = False
    waiting: list[Batch] = field(default_factory=list)
    labels: list[Labels] = field(default_factory=list)
    rows: int = 0
    written: int = 0

    def add(self, rows: Batch, labels: Labels | None) -> None:
        """More rows, in order."""
        if self.ranked and rows.priority is None:
            rows = replace(rows, priority=np.zeros(len(rows), np.int64))
        self.waiting.append(rows if self.holders else replace(rows, holder=None))
        if labels is not None:
            self.labels.append(labels)
        self.rows += len(rows)
        if self.rows >= self.page_rows:
            self._write(self.rows // self.page_rows * self.page_rows)

    def _write(self, rows: int) -> None:
        together = Batch.concat(self.waiting)
        labels = np.concatenate(self.labels) if self.labels else None
        for start in range(0, rows, self.page_rows):
            page = slice(start, min(start + self.page_rows, rows))
            run = self.matching.run_of(together.part(page.start, page.stop))
            self.writer.append(run, reach_of(self.matching, run), None if labels is None else labels[page])
        self.waiting, self.rows = [together.part(rows, len(together))], len(together) - rows
        self.labels = [] if labels is None else [labels[rows:]]
        self.written += rows

    def close(self) -> StoredRun | None:
        """The run; None where there were no rows."""
        if self.rows:
            self._write(self.rows)
        if not self.written:
            self.writer.abandon()
            return None
        return self.writer.close()


@dataclass(frozen=True)
class Relabelling:
    """Where merged rows are stored for good: the parts of the run that they become, and of each of the runs the labels
    that its rows had, and the new ones of these labels.
    """

    layout: Layout
    old: list[Labels | None]
    new: list[Labels]

    @staticmethod
    def of(parts: Sequence[Kept], progress: int) -> Relabelling:
        """That of these runs, without what has expired.

        Of a history more may go than that: then a part has fewer rows than is said here, at worst none.
        """
        counts = [_left(part, progress) for part in parts]
        layouts = [part.layout or Layout.whole(int(left[0])) for part, left in zip(parts, counts, strict=True)]
        names = tuple(name for layout in layouts for name in layout.names)
        stored = tuple(rows for layout in layouts for rows in layout.stored_rows)
        rows = sum(len(part.run) for part in parts)
        row_bytes = sum(part.run.rows.nbytes for part in parts) / max(1, rows)
        laid_out, new = Layout(names, stored).laid_out(np.concatenate(counts), row_bytes)
        cuts = np.cumsum([len(layout.names) for layout in layouts])[:-1]
        return Relabelling(laid_out, [layout.part_of for layout in layouts], np.split(new, cuts))

    def labels(self, chunk: Chunk) -> Labels | None:
        """The labels of merged rows; None where there is one part."""
        if len(self.layout.names) < 2:
            return None
        found = np.empty(len(chunk.where), np.int32)
        for number, (old, new) in enumerate(zip(self.old, self.new, strict=True)):
            mine = np.flatnonzero(chunk.number == number)
            if len(mine):
                found[mine] = new[0 if old is None else old[chunk.where[mine]]]
        return found


def _left(part: Kept, progress: int) -> Indices:
    """How many rows of each of its parts are left."""
    layout = part.layout
    te, labels = part.run.rows.te, None if layout is None else layout.part_of
    left = np.zeros(1 if layout is None else len(layout.names), np.int64)
    for start in range(0, len(te), _AT_ONCE):
        alive, gone = expired_mask(te[start : start + _AT_ONCE], progress)
        if labels is None:
            left[0] += len(alive) - gone
        else:
            left += np.bincount(labels[start : start + _AT_ONCE][alive], minlength=len(left))
    return left


@dataclass
class MergedNotes:
    """Who has met someone, while runs are merged."""

    store: RunStore
    notes: Sequence[Meetings | None]
    lengths: Sequence[int]
    done: int = 0

    def __post_init__(self) -> None:
        self.tracked = [each for each in self.notes if each is not None]
        self.covered = bool(self.tracked) and self.tracked[0].covered
        rows = sum(self.lengths)
        self.met = self.store.array(rows, np.bool_) if self.tracked else None
        self.moved = [self.store.array(rows, np.int64) for rows in self.lengths] if self.covered else []

    def add(self, chunk: Chunk) -> None:
        """The next rows, and whence they came."""
        if self.met is None:
            return
        last = self.done + len(chunk.where)
        for number, each in enumerate(self.tracked):
            mine = np.flatnonzero(chunk.number == number)
            if len(mine):
                self.met[self.done + mine] = each.met[chunk.where[mine]]
                if self.covered:
                    self.moved[number][chunk.where[mine]] = self.done + mine + 1  # 0: left behind
        self.done = last

    def close(self) -> Meetings | None:
        """Those of the merged run."""
        if self.met is None:
            return None
        pieces: list[HeldPieces] = []
        for moved, each in zip(self.moved, self.tracked, strict=False):
            row, start, end, holder = each.all_pieces()
            to = moved[row] - 1
            there = to >= 0
            pieces.append((to[there], start[there], end[there], holder[there]))
        return Meetings(self.met[: self.done], self.covered, pieces)


def spilled(store: RunStore, run: Run, layout: Layout, matching: Matching, level: int = 0) -> tuple[SpilledRun, Layout]:
    """A run that is in memory, in a store; it keeps its name."""
    stored = store.write(run, reach_of(matching, run), layout.part_of)
    return SpilledRun.of(stored, matching, level), replace(layout, part_of=stored.labels)
