"""Runs in memory, behind the interface of stores: what files are compared with, and who has no disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.state.batch import Batch
from streamjoin.state.run import Run
from streamjoin.state.stores.page_index import Page, PageIndex
from streamjoin.state.stores.store import Labels, RunStore, RunWriter, StoredRun


@dataclass
class RunInMemory(StoredRun):
    """A run whose pages are slices of one batch."""

    id: str
    index: PageIndex
    whole: Batch
    own_labels: Labels | None
    store: MemoryStore

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Bytes of all rows."""
        return self.whole.nbytes

    @property
    def rows(self) -> Batch:
        return self.whole

    @property
    def labels(self) -> Labels | None:
        return self.own_labels

    def pages(self, first: int, last: int) -> Batch:
        self.store.figures.pages_read += last - first
        return self.whole.part(int(self.index.start[first]), int(self.index.start[last]))


@dataclass
class MemoryWriter(RunWriter):
    """Puts pages together."""

    store: MemoryStore
    run_id: str
    page_rows: int
    pages: list[Page] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    labels: list[Labels] = field(default_factory=list)

    def append(
        self, page: Run, reach: npt.NDArray[Any] | None = None, labels: npt.NDArray[np.int32] | None = None
    ) -> None:
        self.pages.append(Page.of(page, reach))
        self.batches.append(page.rows)
        if labels is not None:
            self.labels.append(labels)

    def close(self) -> StoredRun:
        labels = np.concatenate(self.labels) if self.labels else None
        run = RunInMemory(self.run_id, PageIndex.of(self.pages), Batch.concat(self.batches), labels, self.store)
        self.store.runs[self.run_id] = run
        self.store.figures.pages_written += len(self.pages)
        self.store.figures.bytes += run.nbytes
        return run

    def abandon(self) -> None:
        self.pages, self.batches, self.labels = [], [], []


@dataclass
class MemoryStore(RunStore):
    """Runs in memory, by their ids."""

    runs: dict[str, RunInMemory] = field(default_factory=dict)

    def writer(self, run_id: str, most_rows: int) -> RunWriter:
        return MemoryWriter(self, run_id, self.page_rows)

    def find(self, run_id: str) -> StoredRun | None:
        return self.runs.get(run_id)

    def array(self, rows: int, kind: Any) -> npt.NDArray[Any]:
        return np.zeros(rows, kind)

    def delete(self, run: StoredRun) -> None:
        if self.runs.pop(run.id, None) is not None:
            self.figures.bytes -= run.nbytes
