"""Results of a merge, sorted by (ts, te): in memory as long as they fit there, otherwise by an external sort.

They come in the order of values. When they outgrow the memory, what is there is sorted and written as a run; in the end
the runs are merged page by page. However many results there are, few runs are open (see `tiers`). Equal results leave
in the order in which they came, either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.operators.contract import Results
from streamjoin.operators.tpmj.cursors import Cursor, merged
from streamjoin.operators.tpmj.tiers import Tiers
from streamjoin.state import Batch
from streamjoin.state.paged import PageStore

# A portion that leaves is about this share of what may lie in memory.
PORTIONS: Final = 8


@dataclass
class SortedResults:
    """Results that wait for the end of their merge. `limit`: bytes in memory; `page_bytes`: of a page on disk."""

    store: PageStore
    limit: int
    page_bytes: int
    waiting: list[Results] = field(default_factory=list)
    nbytes: int = 0
    passed: int = 0  # pages, when they are written and when they leave

    def __post_init__(self) -> None:
        self.tiers = Tiers(self.store, _columns, 0, max(1, self.limit // (PORTIONS * self.page_bytes)))

    @property
    def pages(self) -> int:
        """Pages written and read."""
        return self.passed + self.tiers.moved

    def add(self, results: Results) -> None:
        """More results, in any order."""
        self.waiting.append(results)
        self.nbytes += results.nbytes
        if self.nbytes > self.limit:
            self._spill()

    def _spill(self) -> None:
        rows = Results.concat(self.waiting).sorted()
        width = max(1, rows.nbytes // len(rows))
        run = self.store.write(_as_batch(rows), max(1, self.page_bytes // width))
        self.waiting, self.nbytes = [], 0
        self.passed += run.pages
        self.tiers.add(run)

    def leave(self) -> Iterator[Results]:
        """All results in order."""
        if not self.tiers.runs:
            if self.waiting:
                yield Results.concat(self.waiting).sorted()
            return
        if self.waiting:
            self._spill()
        runs = self.tiers.few()
        cursors = [Cursor(0, run) for run in runs]
        self.passed += sum(run.pages for run in runs)
        ahead = max(1, self.limit // (PORTIONS * self.page_bytes * len(cursors)))
        for rows in merged(cursors, ahead, _columns):
            yield Results(rows.payload, rows.ts, rows.te)
        self.forget()

    def forget(self) -> None:
        """Nothing of it is needed any more."""
        self.tiers.forget()
        self.waiting, self.nbytes = [], 0


def _as_batch(results: Results) -> Batch:
    return Batch(results.payload, results.ts, results.te, np.zeros(len(results), np.int64))


def _columns(number: int, rows: Batch) -> list[npt.NDArray[Any]]:
    return [rows.ts, rows.te, rows.group, rows.group]
