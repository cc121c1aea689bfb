"""Many sorted runs on their way to one, a few of which are open at a time: each has files, and a page in memory.

    [ ][ ][ ] ... [ ]     as many neighbours of one level as a merge takes become one of the next
    [      ][      ][ ]   in the end no more are left than that

Law: only neighbours become one, so rows that are equal stay in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from streamjoin.operators.tpmj.cursors import Columns, Cursor, merged
from streamjoin.state import Batch
from streamjoin.state.paged import PagedRun, PageStore

AT_A_TIME: Final = 16


@dataclass
class Tiers:
    """Runs of input `number`, one after the other. `room`: pages that a merge may have in memory."""

    store: PageStore
    columns: Callable[[int, Batch], Columns]
    number: int
    room: int
    runs: list[PagedRun] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    moved: int = 0  # pages that were read and written again

    def add(self, run: PagedRun) -> None:
        """One more, behind all others."""
        self.runs.append(run)
        self.levels.append(0)
        while len(self.runs) >= AT_A_TIME and self.levels[-AT_A_TIME] == self.levels[-1]:
            self._merge(AT_A_TIME)

    def few(self) -> list[PagedRun]:
        """As many as can be merged at a time; the smallest, which came last, have become one."""
        while len(self.runs) > AT_A_TIME:
            self._merge(min(AT_A_TIME, len(self.runs) - AT_A_TIME + 1))
        return self.runs

    def one(self) -> PagedRun | None:
        """All of them as one; None where there are none."""
        if len(self.few()) > 1:
            self._merge(len(self.runs))
        return self.runs[0] if self.runs else None

    def forget(self) -> None:
        """Nothing of it is needed any more."""
        for run in self.runs:
            run.delete()
        self.runs, self.levels = [], []

    def _merge(self, count: int) -> None:
        some, level = self.runs[-count:], max(self.levels[-count:])
        writer = self.store.writer(some[0].page_rows, sum(run.rows for run in some))
        cursors = [Cursor(self.number, run) for run in some]
        try:
            for rows in merged(cursors, max(1, self.room // (count + 1)), self.columns):
                writer.append(rows)
            together = writer.close()
        except BaseException:
            writer.abandon()
            raise
        self.moved += sum(run.pages for run in some) + together.pages
        for run in some:
            run.delete()
        self.runs[-count:], self.levels[-count:] = [together], [level + 1]
