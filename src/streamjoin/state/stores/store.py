"""The interface of run stores: a run is written once, page by page in its order, read by page, and deleted.

    write     a writer takes pages of sorted rows, one after the other; `close` makes a `StoredRun` of them
    read      `pages(first, last)`: the rows of some neighbouring pages. Which of them can match is said by the index
    delete    the store forgets the run; who still has rows of it keeps them

What is stored of a row is a `Batch`, and beside it, where asked for, a label: whichever small number the writer gives.
Runs are named by their ids, which no two attempts at the same work share; so a run never changes under its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.state.batch import Batch
from streamjoin.state.run import Run
from streamjoin.state.stores.page_index import PAGE_ROWS, PageIndex

Labels = npt.NDArray[np.int32]


@dataclass
class StoreFigures:
    """What a store has done so far, in pages, and what lies in it."""

    pages_written: int = 0
    pages_read: int = 0
    bytes: int = 0


class StoredRun(ABC):
    """A run in a store."""

    id: str
    index: PageIndex
    nbytes: int

    def __len__(self) -> int:
        return self.index.rows

    @property
    @abstractmethod
    def rows(self) -> Batch:
        """All rows; where they lie in files nothing of them is read before it is looked at."""

    @property
    @abstractmethod
    def labels(self) -> Labels | None:
        """The labels of all rows, if it was written with labels."""

    @abstractmethod
    def pages(self, first: int, last: int) -> Batch:
        """The rows of the pages from `first` to before `last`."""

    def forget(self) -> None:
        """What has been read need not stay in memory."""
        return

    @property
    def damage(self) -> Exception | None:
        """Why it cannot be read any more; None where it can."""
        return None

    def ensure_whole(self) -> None:
        """An error where it cannot be read any more: for whoever is about to look at its rows."""
        if (error := self.damage) is not None:
            raise error


class RunWriter(ABC):
    """Takes a run page by page."""

    page_rows: int = PAGE_ROWS

    @abstractmethod
    def append(
        self, page: Run, reach: npt.NDArray[Any] | None = None, labels: npt.NDArray[np.int32] | None = None
    ) -> None:
        """The next rows, in order, at most `page_rows`. `reach`: of value intervals, their high ends."""

    @abstractmethod
    def close(self) -> StoredRun:
        """The run is complete."""

    @abstractmethod
    def abandon(self) -> None:
        """It will never be."""

    def write(
        self, run: Run, reach: npt.NDArray[Any] | None = None, labels: npt.NDArray[np.int32] | None = None
    ) -> None:
        """Any number of rows, cut into pages."""
        for start in range(0, len(run), self.page_rows):
            stop = min(start + self.page_rows, len(run))
            self.append(
                run.part(start, stop),
                None if reach is None else reach[start:stop],
                None if labels is None else labels[start:stop],
            )


@dataclass
class RunStore(ABC):
    """Where runs lie."""

    page_rows: int = PAGE_ROWS
    figures: StoreFigures = field(default_factory=StoreFigures)

    @abstractmethod
    def writer(self, run_id: str, most_rows: int) -> RunWriter:
        """A new run of at most so many rows, under a name that no other has."""

    @abstractmethod
    def find(self, run_id: str) -> StoredRun | None:
        """A run that is here already; None where there is none, or not all of it."""

    @abstractmethod
    def array(self, rows: int, kind: Any) -> npt.NDArray[Any]:
        """Zeros that can be written, for what changes beside a run; they go with whoever has them."""

    @abstractmethod
    def delete(self, run: StoredRun) -> None:
        """A run that nobody needs any more."""

    def write(
        self, run: Run, reach: npt.NDArray[Any] | None = None, labels: npt.NDArray[np.int32] | None = None
    ) -> StoredRun:
        """A run that is in memory as a whole."""
        writer = self.writer(run.id, len(run))
        try:
            writer.write(run, reach, labels)
            return writer.close()
        except BaseException:
            writer.abandon()
            raise
