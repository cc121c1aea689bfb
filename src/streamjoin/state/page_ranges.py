"""Which pages of a stored run can hold partners of which rows of another run.

Rows and pages are both in the order of the matching, so what can match lies in a range of rows for each page. A page of
several groups is bounded by its groups alone; one of a single group also by its values:

    band        whether a value is near enough is decided by the difference of actual values, never by `value + width`
    overlap     a row's interval must begin before the largest high end of the page, and end after the smallest low end
    distance    the page's rows of the grid, and those beside them

Law: a pair that matches is in the range of its page. Ranges may hold more; the kernel decides.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.predicate import Band, Overlaps, Within
from streamjoin.state.batch import Indices
from streamjoin.state.matching import Matching
from streamjoin.state.run import Run
from streamjoin.state.stores import PageIndex

_MOST: Final = 2**63 - 1


def rows_by_page(matching: Matching, mine: Run, side: int, index: PageIndex) -> tuple[Indices, Indices]:
    """Of each page, the rows of `mine` that may find someone there: from the one to before the other."""
    group = mine.rows.group
    start = np.searchsorted(group, index.first_group, side="left")
    stop = np.searchsorted(group, index.last_group, side="right")
    if matching.timed and len(mine):
        # Who shares an instant with nobody of a page finds nobody there.
        apart = (index.ends[:, -1] <= mine.rows.ts.min()) | (index.first_ts >= mine.rows.te.max())
        stop = np.where(apart, start, stop)
    single = (index.first_group == index.last_group) & (start < stop)
    if not single.any():
        return start, stop
    first = matching.first
    if isinstance(first, Band) and not matching.grid:
        kind = mine.value.dtype.type  # the kernel compares with bounds of this type
        low, high = (-first.below, first.above) if side == 0 else (-first.above, first.below)
        low, high = kind(low).item(), kind(high).item()
        for page in np.flatnonzero(single).tolist():
            bounds = index.first_value[page].item(), index.last_value[page].item()
            start[page], stop[page] = _in_band(mine.value, (low, high), bounds, int(start[page]), int(stop[page]))
    elif isinstance(first, Overlaps) or (first is None and matching.timed and type(matching) is Matching):
        _overlapping(mine, first, index, single, start, stop)
    elif isinstance(first, Within) and len(mine.cell):
        for page in np.flatnonzero(single).tolist():
            cells = mine.cell[start[page] : stop[page]]
            wanted = int(index.first_cell[page]) - 1, int(index.last_cell[page]) + 1
            begin = int(start[page])
            start[page] = begin + np.searchsorted(cells, wanted[0], side="left")
            stop[page] = begin + np.searchsorted(cells, wanted[1], side="right")
    return start, stop


def _in_band(
    value: npt.NDArray[Any], band: tuple[Any, Any], page: tuple[Any, Any], start: int, stop: int
) -> tuple[int, int]:
    """The rows for which `low <= other - value <= high` can hold for an `other` of the page."""
    if not all(abs(bound) < float("inf") for bound in page):
        return start, stop  # infinity less infinity is no number, in no order
    column, (low, high), (least, largest) = value[start:stop], band, page
    begin = bisect_left(column, True, key=lambda own: _gap(least, own) <= high)
    end = bisect_left(column, True, key=lambda own: _gap(largest, own) < low)
    return start + begin, start + max(begin, end)


def _gap(one: Any, two: Any) -> Any:
    """One less the other, as the kernel has it: doubles are rounded, integers too far apart saturate."""
    gap = one - two.item()
    return gap if isinstance(gap, float) else min(max(gap, -_MOST), _MOST)


def _overlapping(
    mine: Run,
    first: Overlaps | None,
    index: PageIndex,
    single: npt.NDArray[np.bool_],
    start: npt.NDArray[np.int64],
    stop: npt.NDArray[np.int64],
) -> None:
    """Narrow the ranges of pages with one group to intervals that can overlap one there; in place."""
    low, high = (mine.rows.ts, mine.rows.te) if first is None else mine.rows.values[:2]
    furthest = np.maximum.accumulate(high)  # over groups before, too: that only makes a range longer
    for page in np.flatnonzero(single).tolist():
        begin, end = int(start[page]), int(stop[page])
        start[page] = begin + np.searchsorted(furthest[begin:end], index.first_value[page], side="left")
        stop[page] = begin + np.searchsorted(low[begin:end], index.reach[page], side="right")
