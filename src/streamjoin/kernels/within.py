"""Distance joins within equal groups: rows of an epsilon grid, swept along the first axis.

    needs    both sides sorted by (group, cell, first axis); cell = floor(second axis / width), width a little above
             the radius, so that partners lie in the same or in a neighbouring row of the grid; no NaN
    cost     O(n log m + candidates); in two dimensions a candidate lies in a box of 3 x 2 radii around the point, so
             about half of the candidates are results

    row +1   . . [ . . . . ] . .      a point of row 0 looks at three rows of the other side, and in each of them only
    row  0   . . [ . x . . ] . .      at those within the radius along the first axis: a window that moves forward with
    row -1   . . [ . . . . ] . .      the points of its row

Further axes are tested in the loop. With one axis all points are in row 0 and this is a band join.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamjoin.kernels.pairs import PAIRS_PER_CHUNK, Pairs, compiled, end_of_group, first_not_below, in_chunks

METRICS: Final = {"euclidean": 0, "manhattan": 1, "chebyshev": 2}


@compiled
def _near(a: Any, b: Any, i: int, k: int, radius: float, metric: int) -> bool:
    """The distance test on differences of actual values, all axes."""
    total = 0.0
    for axis in range(a.shape[1]):
        gap = abs(b[k, axis] - a[i, axis])
        if not gap <= radius:
            return False
        if metric == 0:
            total += gap * gap
        elif metric == 1:
            total += gap
    if metric == 0:
        return bool(total <= radius * radius)
    if metric == 1:
        return bool(total <= radius)
    return True


@compiled
def _row_of_grid(group: Any, cell: Any, wanted_group: int, wanted_cell: int) -> tuple[int, int]:
    """Where the rows with this group and cell begin and end; an empty range if there are none."""
    start = first_not_below(group, wanted_group, 0, len(group))
    if start == len(group) or group[start] != wanted_group:
        return 0, 0
    end = end_of_group(group, start, len(group))
    first = first_not_below(cell, wanted_cell, start, end)
    if first == end or cell[first] != wanted_cell:
        return 0, 0
    return first, end_of_group(cell, first, end)


@compiled
def _within(
    a_group: Any, a_cell: Any, a_axes: Any, a_ts: Any, a_te: Any,
    b_group: Any, b_cell: Any, b_axes: Any, b_ts: Any, b_te: Any,
    radius: float, metric: int,
    timed: bool, i: int, row: int, limit: int, out_a: Any, out_b: Any,
) -> tuple[int, bool, int, int]:  # fmt: skip
    n, found = len(a_group), 0
    while i < n and found < limit:
        a_start, a_end = _row_of_grid(a_group, a_cell, a_group[i], a_cell[i])
        low, b_end = _row_of_grid(b_group, b_cell, a_group[i], a_cell[i] + row)
        while i < a_end and low < b_end and found < limit:
            x = a_axes[i, 0]
            while low < b_end and b_axes[low, 0] - x < -radius:
                low += 1
            k = low
            while k < b_end and b_axes[k, 0] - x <= radius:
                if (not timed or max(a_ts[i], b_ts[k]) < min(a_te[i], b_te[k])) and _near(
                    a_axes, b_axes, i, k, radius, metric
                ):
                    if out_a is not None:
                        out_a[found] = i
                        out_b[found] = k
                    found += 1
                k += 1
            i += 1
        if i >= a_end or low >= b_end:
            # This row of the other side is done: the next one, or the next row of this side.
            if row < 1:
                i, row = a_start, row + 1
            else:
                i, row = a_end, -1
    return found, i >= n, i, row


def within_pairs(
    a: tuple[Any, Any, Any, Any, Any],
    b: tuple[Any, Any, Any, Any, Any],
    *,
    radius: float,
    metric: str,
    timed: bool,
    limit: int = PAIRS_PER_CHUNK,
) -> Iterator[Pairs]:
    """Index pairs of two sides `(group, cell, axes, ts, te)` at most `radius` apart; `axes` has a row per element.

    >>> import numpy as np
    >>> zero, axes = np.zeros(2, np.int64), np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> side = (zero, zero, axes, zero, zero)
    >>> [(i.tolist(), j.tolist()) for i, j in within_pairs(side, side, radius=5.0, metric="euclidean", timed=False)]
    [([0, 0, 1, 1], [0, 1, 0, 1])]
    """
    if len(b[0]) < len(a[0]):
        swapped = (*b, *a, radius, METRICS[metric], timed)
        return ((i, j) for j, i in in_chunks(_within, swapped, (0, -1), limit))
    return in_chunks(_within, (*a, *b, radius, METRICS[metric], timed), (0, -1), limit)
