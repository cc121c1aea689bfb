"""Runs in pages: sorted rows, written once from front to back, read page by page, and deleted.

    store.writer(page_rows, most_rows)   takes rows in order, any number at a time
    writer.close()                       the run; every page but the last has `page_rows` rows
    run.read(first, behind)              the rows of some neighbouring pages
    run.take(positions)                  some rows, wherever they lie
    run.delete()                         the run is not needed any more
    store.find(id, page_rows)            a run that somebody else has written, in pages of so many rows

Two stores: in this process's memory, and in files of a folder, by way of the stores that sweep areas use. A page is the
unit in which accesses are counted. What is in a store can be made again from what Spark's state holds: whoever goes on
with a state elsewhere looks for its runs, and makes those again that are not there.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.state.batch import Batch, Indices
from streamjoin.state.run import Run
from streamjoin.state.stores import FileStore, StoredRun


class PagedRun(ABC):
    """Rows in pages."""

    rows: int
    page_rows: int
    nbytes: int
    id: str | None = None  # by which others find it

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return -(-self.rows // self.page_rows)

    @abstractmethod
    def read(self, first: int, behind: int) -> Batch:
        """The rows of the pages from `first` on, up to the one before `behind`; there must be one."""

    @abstractmethod
    def take(self, positions: Indices) -> Batch:
        """The rows at these positions."""

    @abstractmethod
    def labels(self) -> npt.NDArray[Any]:
        """The last value of each row; where rows are in files, nothing else of them is read."""

    @abstractmethod
    def delete(self) -> None:
        """The run is not needed any more. Whoever still reads it may go on."""


class PageWriter(ABC):
    """Takes rows in order. `pages`: how many pages are full so far."""

    def __init__(self, page_rows: int) -> None:
        self.page_rows = page_rows
        self.rows = 0

    @property
    def pages(self) -> int:
        """Pages that have been filled."""
        return self.rows // self.page_rows

    def append(self, batch: Batch) -> None:
        """More rows, behind all others."""
        if len(batch):
            self.rows += len(batch)
            self._take(batch)

    @abstractmethod
    def _take(self, batch: Batch) -> None: ...

    @abstractmethod
    def close(self) -> PagedRun:
        """All rows are there."""

    @abstractmethod
    def abandon(self) -> None:
        """What has been written is not needed."""


class PageStore(ABC):
    """Where runs lie."""

    @abstractmethod
    def writer(self, page_rows: int, most_rows: int) -> PageWriter:
        """A new run, of at most so many rows."""

    def find(self, run_id: str, page_rows: int) -> PagedRun | None:
        """A run that is here already; None where it is not, or not all of it."""
        return None

    def keep_only(self, ids: set[str]) -> None:
        """Nothing else that is here is needed: somebody else may have left it."""
        return

    def write(self, batch: Batch, page_rows: int) -> PagedRun:
        """A whole run at once."""
        writer = self.writer(page_rows, len(batch))
        writer.append(batch)
        return writer.close()


# -- in memory ---------------------------------------------------------------------------------------------------------


@dataclass
class RunInMemory(PagedRun):
    """Rows of one batch."""

    batch: Batch | None
    rows: int
    page_rows: int

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Nothing lies on a disk."""
        return 0

    def read(self, first: int, behind: int) -> Batch:
        assert self.batch is not None
        start, stop = first * self.page_rows, min(behind * self.page_rows, self.rows)
        return self.batch if stop - start == self.rows else self.batch.take(np.arange(start, stop))

    def take(self, positions: Indices) -> Batch:
        assert self.batch is not None
        return self.batch.take(positions)

    def labels(self) -> npt.NDArray[Any]:
        return np.zeros(0, np.int64) if self.batch is None else self.batch.values[-1]

    def delete(self) -> None:
        pass  # it goes when nobody refers to it


class WriterInMemory(PageWriter):
    """Batches until all are there."""

    def __init__(self, page_rows: int) -> None:
        super().__init__(page_rows)
        self.parts: list[Batch] = []

    def _take(self, batch: Batch) -> None:
        self.parts.append(batch)

    def close(self) -> PagedRun:
        return RunInMemory(Batch.concat(self.parts) if self.parts else None, self.rows, self.page_rows)

    def abandon(self) -> None:
        self.parts = []


class MemoryPages(PageStore):
    """A store for what fits, and for tests."""

    def writer(self, page_rows: int, most_rows: int) -> PageWriter:
        return WriterInMemory(page_rows)


# -- in files ----------------------------------------------------------------------------------------------------------


class RunInFiles(PagedRun):
    """A run of a store of files, mapped: whoever has it can read it even after it was deleted."""

    def __init__(self, store: FileStore, stored: StoredRun, page_rows: int) -> None:
        self.store, self.stored, self.page_rows = store, stored, page_rows
        self.rows, self.nbytes, self.id = len(stored), stored.nbytes, stored.id

    def read(self, first: int, behind: int) -> Batch:
        rows = self.stored.pages(first, min(behind, self.pages))
        # All of it goes on, so nothing is gained by reading the payload later.
        beside = {name: getattr(rows, name) for name in ("payload", "proof", "contents")}
        return replace(rows, **{name: table.combine_chunks() for name, table in beside.items() if table is not None})

    def take(self, positions: Indices) -> Batch:
        self.stored.ensure_whole()
        return self.stored.rows.take(positions)

    def labels(self) -> npt.NDArray[Any]:
        self.stored.ensure_whole()
        return self.stored.rows.values[-1]

    def delete(self) -> None:
        self.store.delete(self.stored)


class WriterInFiles(PageWriter):
    """Rows wait until they fill a page."""

    def __init__(self, store: FileStore, page_rows: int, most_rows: int) -> None:
        super().__init__(page_rows)
        self.store = store
        self.writer = store.writer(uuid.uuid4().hex, most_rows)
        self.waiting: list[Batch] = []
        self.waiting_rows = 0

    def _take(self, batch: Batch) -> None:
        self.waiting.append(batch)
        self.waiting_rows += len(batch)
        if self.waiting_rows >= self.page_rows:
            self._flush(self.waiting_rows // self.page_rows * self.page_rows)

    def _flush(self, rows: int) -> None:
        together = Batch.concat(self.waiting)
        with self._or_nothing():
            for start in range(0, rows, self.page_rows):
                page = together.part(start, min(start + self.page_rows, rows))
                self.writer.append(Run(page, page.ts, np.zeros(0, np.int64)))
        rest = together.part(rows, len(together))
        self.waiting, self.waiting_rows = [rest] if len(rest) else [], len(rest)

    def close(self) -> PagedRun:
        if self.waiting_rows:
            self._flush(self.waiting_rows)
        if not self.rows:
            self.writer.abandon()
            return RunInMemory(None, 0, self.page_rows)
        with self._or_nothing():
            stored = self.writer.close()
        return RunInFiles(self.store, stored, self.page_rows)

    @contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """What cannot be written to its end is not left behind: on a full disk others need the room."""
        try:
            yield
        except BaseException:
            self.writer.abandon()
            raise

    def abandon(self) -> None:
        self.writer.abandon()


@dataclass
class FilePages(PageStore):
    """A folder with the files of runs (see `stores.files`: checked when they are read, and a full disk is an error)."""

    folder: Path

    def writer(self, page_rows: int, most_rows: int) -> PageWriter:
        return WriterInFiles(FileStore(page_rows=page_rows, folder=self.folder), page_rows, most_rows)

    def find(self, run_id: str, page_rows: int) -> PagedRun | None:
        store = FileStore(page_rows=page_rows, folder=self.folder)
        stored = store.find(run_id)
        return None if stored is None else RunInFiles(store, stored, page_rows)

    def keep_only(self, ids: set[str]) -> None:
        FileStore(folder=self.folder).keep_only(ids)
