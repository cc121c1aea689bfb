"""A run whose rows lie in a store, and how it is looked at page by page.

Its arrays are those of the store: mapped, not in memory. Whatever goes by positions (who was found, what they are, when
they end) reads them like any others. What has to be worked out from all rows of a run (cells of a grid, an index of
tokens, another order) is worked out for some pages at a time, and let go again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.predicate import Band, Overlaps
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.matching import Matching
from streamjoin.state.page_ranges import rows_by_page
from streamjoin.state.run import Run
from streamjoin.state.stores import StoredRun
from streamjoin.state.stores.paged_table import PagedTable

# Pages that follow one another are looked at together, up to so many rows, where nothing has to be worked out.
ROWS_AT_ONCE: Final = 1 << 20
_NOTHING: Final = np.empty(0, np.int64)


@dataclass(frozen=True)
class SpilledRun(Run):
    """A run in a store. `level`: how often its rows have been merged there."""

    stored: StoredRun = None  # type: ignore[assignment]
    matching: Matching = None  # type: ignore[assignment]
    level: int = 0

    @staticmethod
    def of(stored: StoredRun, matching: Matching, level: int = 0) -> SpilledRun:
        """What is in a store, as a run in the order of this matching."""
        return SpilledRun(stored.rows, _NOTHING, _NOTHING, None, stored.id, stored, matching, level)

    @property
    def last_end(self) -> int:
        """The largest end: when progress is there, the whole run can go."""
        return self.stored.index.last_end

    @property
    def first_end(self) -> int:
        """The smallest end: before progress is there, no row can go."""
        return self.stored.index.first_end

    def pages(self, first: int, last: int) -> Run:
        """Some of its pages, as a run of their own."""
        return self.matching.run_of(self.stored.pages(first, last))

    def met_by(self, mine: Run, side: int, by: Matching | None = None) -> Iterator[tuple[int, int, int, Run]]:
        """What rows of another run, which stands on this side of the matching, have to look at: (first row of theirs,
        from which of mine, to which, pages as a run). Pages that none of them can match are left out.
        """
        matching = self.matching if by is None else by
        start, stop = rows_by_page(matching, mine, side, self.stored.index)
        self.stored.ensure_whole()
        at, index = 0, self.stored.index.start
        most = ROWS_AT_ONCE if works_on_mapped(matching) else 0
        while at < len(start):
            if start[at] >= stop[at]:
                at += 1
                continue
            last = at + 1
            while last < len(start) and start[last] < stop[last] and index[last + 1] - index[at] <= most:
                last += 1
            begin, end = int(start[at:last].min()), int(stop[at:last].max())
            yield int(index[at]), begin, end, self.pages(at, last)
            at = last
        self.stored.forget()

    def ending(self, after: int, until: int) -> Indices:
        """The rows with `after < te <= until`."""
        ends, start = self.stored.index.ends, self.stored.index.start
        found = [_NOTHING]
        for page in np.flatnonzero((ends[:, 0] <= until) & (ends[:, -1] > after)).tolist():
            te = self.rows.te[start[page] : start[page + 1]]
            found.append(np.flatnonzero((te > after) & (te <= until)) + start[page])
        return np.concatenate(found)

    def first_start(self, progress: int, met: npt.NDArray[np.bool_] | None, known: int | None) -> int | None:
        """The smallest `ts` among rows that end after `progress` and, if it is asked, have met nobody; or `known`."""
        self.stored.ensure_whole()
        index = self.stored.index
        smallest = known
        for page in np.argsort(index.first_ts, kind="stable").tolist():
            if smallest is not None and index.first_ts[page] >= smallest:
                break
            rows = slice(int(index.start[page]), int(index.start[page + 1]))
            there = self.rows.te[rows] > progress
            if met is not None:
                there &= ~met[rows]
            if there.any():
                least = int(self.rows.ts[rows][there].min())
                smallest = least if smallest is None else min(smallest, least)
        return smallest


def works_on_mapped(matching: Matching) -> bool:
    """Whether a matching looks at the arrays as they are, and works nothing out of them for every row."""
    if isinstance(matching.first, Overlaps):
        return not matching.box
    return not matching.grid and (matching.first is None or isinstance(matching.first, Band))


def reach_of(matching: Matching, run: Run) -> npt.NDArray[Any] | None:
    """Of rows that match as intervals, their high ends."""
    if isinstance(matching.first, Overlaps):
        return run.rows.values[1]
    return run.rows.te if matching.first is None and matching.timed else None


def opened(rows: Batch) -> Batch:
    """The same rows with real tables: as they are read when they are written elsewhere."""
    tables = {
        name: table.pages(0, len(table.start) - 1)
        for name in ("payload", "proof", "contents")
        if isinstance(table := getattr(rows, name), PagedTable)
    }
    return replace(rows, **tables) if tables else rows


def sided_pairs(matching: Matching, mine: Run, theirs: Run, side: int) -> Iterator[tuple[Indices, Indices]]:
    """The pairs of two runs, of which `mine` stands on this side of the matching; input 0 comes first in a pair."""
    return matching.pairs(mine, theirs) if side == 0 else matching.pairs(theirs, mine)


def spilled_pairs(matching: Matching, mine: Run, theirs: SpilledRun, side: int) -> Iterator[tuple[Indices, Indices]]:
    """Positions in a run, and in one that lies in a store, of rows that match; some pages at a time."""
    for first, start, stop, pages in theirs.met_by(mine, side, matching):
        # To cut off a few rows would lose what has been worked out of them.
        cut = 2 * (stop - start) < len(mine)
        asking, offset = (mine.part(start, stop), start) if cut else (mine, 0)
        for pair in sided_pairs(matching, asking, pages, side):
            yield pair[side] + offset, pair[1 - side] + first
