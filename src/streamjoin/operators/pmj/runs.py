"""Sorted runs of one input, in files or in memory: rows from one position to another, and the last row of each page.

    file     [page][page][page] ...       record batches of Arrow, one after the other, memory-mapped
    memory   where each begins, and its last row: enough to say which rows come before a key

Files have no names. So whatever becomes of a process, nothing is left behind, and nobody can cut, change or remove one
while it is read. They are written through the file, not through a mapping: a full disk is an error, and not a signal.
"""

from __future__ import annotations

import mmap
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra import Band, Overlaps, Within
from streamjoin.operators.pmj.sides import Side
from streamjoin.state import Batch, Matching, Run
from streamjoin.state.batch import RESERVED_PREFIX, Indices
from streamjoin.state.reaching import Key
from streamjoin.state.stores.private import make_private
from streamjoin.state.stores.trouble import full

Columns = tuple[Indices, Indices, npt.NDArray[Any]]

_ALIGNED: Final = 64
_SIDES: Final[tuple[Literal["left"], Literal["right"]]] = ("left", "right")
PAGES_GATHERED: Final = 16  # pages whose payload is gathered at a time
FORGOTTEN_AT_ONCE: Final = 1 << 19  # bytes of a run: to tell the system of every page costs more than to have it


class SortedRun(ABC):
    """Rows in the order of the matching, in pages. `ends`: the position behind each page; `last`: its last row."""

    rows: int
    nbytes: int  # in files
    ends: Indices
    last: Columns

    @abstractmethod
    def read(self, start: int, stop: int) -> pa.Table:
        """The rows from one position to before another, as `Batch.to_table` has them; there must be one."""

    def forget(self, before: int) -> None:
        """What has been read before a position need not stay in memory."""
        return

    def position(self, matching: Matching, start: int, key: Key) -> int:
        """How many rows do not lie behind a key, if those before `start` do not."""
        page = not_behind(self.last, key)
        if page == len(self.ends):
            return self.rows
        begin = max(start, int(self.ends[page - 1]) if page else 0)
        return begin + not_behind(sorted_by(matching, self.read(begin, int(self.ends[page]))), key)


@dataclass
class RunInMemory(SortedRun):
    """A run that fits: one page."""

    side: Side

    def __post_init__(self) -> None:
        self.rows, self.nbytes = len(self.side), 0
        self.ends, self.last = np.array([self.rows]), columns_of(self.side.run.part(self.rows - 1, self.rows))

    def read(self, start: int, stop: int) -> pa.Table:
        return self.side.part(start, stop).to_table()

    def position(self, matching: Matching, start: int, key: Key) -> int:
        return not_behind(columns_of(self.side.run), key)


@dataclass
class RunInFile(SortedRun):
    """A run that has been written: in this file, pages begin at `offsets`, the last of which is the end."""

    file: Any
    schema: pa.Schema
    offsets: list[int]
    ends: Indices
    last: Columns

    def __post_init__(self) -> None:
        self.rows, self.nbytes = int(self.ends[-1]), self.offsets[-1]
        self.map = mmap.mmap(self.file.fileno(), self.nbytes, access=mmap.ACCESS_READ)
        self.buffer = pa.py_buffer(self.map)
        self.file.close()  # the mapping keeps it
        self.known: tuple[int, pa.RecordBatch] | None = None  # a portion ends where the next one begins
        self.forgotten = 0

    def read(self, start: int, stop: int) -> pa.Table:
        first = int(np.searchsorted(self.ends, start, side="right"))
        behind = int(np.searchsorted(self.ends, stop, side="left")) + 1
        pages = [self._page(number) for number in range(first, behind)]
        before = int(self.ends[first - 1]) if first else 0
        return pa.Table.from_batches(pages, self.schema).slice(start - before, stop - start)

    def _page(self, number: int) -> pa.RecordBatch:
        if self.known is None or self.known[0] != number:
            begin, end = self.offsets[number : number + 2]
            self.known = number, pa.ipc.read_record_batch(self.buffer.slice(begin, end - begin), self.schema)
        return self.known[1]

    def forget(self, before: int) -> None:
        page = int(np.searchsorted(self.ends, before, side="right"))
        behind = self.offsets[page] // mmap.PAGESIZE * mmap.PAGESIZE
        if behind - self.forgotten >= FORGOTTEN_AT_ONCE:
            self.map.madvise(mmap.MADV_DONTNEED, self.forgotten, behind - self.forgotten)
            self.forgotten = behind


class RunWriter:
    """Writes a run page by page to a file of a folder."""

    def __init__(self, folder: Path, page_rows: int) -> None:
        self.folder, self.page_rows = folder, page_rows
        self.file: Any = None
        self.schema: pa.Schema | None = None
        self.offsets, self.ends = [0], [0]
        self.last: list[Columns] = []

    def append(self, side: Side) -> None:
        """More rows, behind all others."""
        begun, size = self.ends[-1], PAGES_GATHERED * self.page_rows
        try:
            if self.file is None:
                make_private(self.folder)
                self.file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 - closed with the run
            for start in range(0, len(side), size):
                self._write(side.part(start, min(start + size, len(side))).to_table())
        except OSError as error:
            raise full(error, self.folder) from error
        ends = np.array([end for end in self.ends if end > begun]) - begun - 1
        group, cell, value = columns_of(side.run)
        self.last.append((group[ends], cell[ends], value[ends]))

    def _write(self, table: pa.Table) -> None:
        self.schema = self.schema or table.schema
        for page in table.to_batches(max_chunksize=self.page_rows):
            content = page.serialize()
            padding = bytes(-content.size % _ALIGNED)
            self.file.write(content)
            self.file.write(padding)
            self.offsets.append(self.offsets[-1] + content.size + len(padding))
            self.ends.append(self.ends[-1] + page.num_rows)

    def close(self) -> RunInFile | None:
        """The run; None without rows."""
        if self.file is None:
            return None
        try:
            self.file.flush()
        except OSError as error:
            raise full(error, self.folder) from error
        group, cell, value = (np.concatenate([each[column] for each in self.last]) for column in range(3))
        return RunInFile(self.file, self.schema, self.offsets, np.array(self.ends[1:]), (group, cell, value))

    def abandon(self) -> None:
        """It will never be."""
        if self.file is not None:
            with suppress(OSError):  # what a full disk has not taken yet
                self.file.close()


def splits(runs: Sequence[SortedRun], pages: int) -> list[Key]:
    """Keys that cut runs into portions of about so many pages."""
    if not runs:
        return []
    group, cell, value = (np.concatenate([run.last[column] for run in runs]) for column in range(3))
    order = np.lexsort((value, cell, group))
    return [(group[at], cell[at], value[at]) for at in order[pages - 1 : -1 : pages].tolist()]


def columns_of(run: Run) -> Columns:
    """What rows are sorted by, always three columns."""
    return run.rows.group, run.cell if len(run.cell) else np.zeros(len(run), np.int64), run.value


def sorted_by(matching: Matching, table: pa.Table) -> Columns:
    """What rows are sorted by, of a table as `Batch.to_table` has it."""
    first = matching.first
    if type(matching) is not Matching or matching.grid or isinstance(first, Within):  # it has to be worked out
        names = [name for name in table.column_names if name.startswith(RESERVED_PREFIX)]
        return columns_of(matching.run_of(Batch.from_table(table.select(names))))
    name = "value0" if isinstance(first, Band | Overlaps) else "ts"
    group, value = (table[RESERVED_PREFIX + each].to_numpy() for each in ("group", name))
    return group, np.zeros(len(group), np.int64), value


def not_behind(columns: Columns, key: Key) -> int:
    """How many of sorted rows do not lie behind a key.

    >>> zero = np.zeros(3, np.int64)
    >>> not_behind((zero, zero, np.array([1.0, 2.0, 2.0])), (0, 0, 1.5)), not_behind((zero, zero, zero), (-1, 5, 5))
    (1, 0)
    """
    start, stop = 0, len(columns[0])
    for column, value in zip(columns[:2], key[:2], strict=True):
        part = column[start:stop]
        if len(part) and part[0] == value == part[-1]:  # mostly there is one group, and no grid
            continue
        before, behind = (int(np.searchsorted(part, value, side=side)) for side in _SIDES)
        start, stop = start + before, start + behind
    return start + int(np.searchsorted(columns[2][start:stop], key[2], side="right"))
