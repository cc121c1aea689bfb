"""Overlap of boxes in two and more dimensions within equal groups, by forward scan along the first.

    needs    both sides sorted by (group, lo) of the first dimension; no empty interval in any
    cost     O(n + m + c), c = pairs that overlap along the first dimension; one of them costs a comparison or two,
             and only those that overlap everywhere are written down

The scan is that of `overlap`. The second dimension is two columns of its own, which the scan walks through as it walks
through the first; the third and further ones are asked of who is left, and lie beside each row as `lo, hi, lo, hi`. All
are whole numbers in the order of the values, whatever these are. That is what makes it fast: what fails in the second
dimension is never an index pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamjoin.kernels.pairs import PAIRS_PER_CHUNK, Indices, Pairs, compiled, end_of_group, first_not_below, in_chunks


@compiled
def _overlap_beside(a: Any, i: int, b: Any, j: int) -> bool:
    shared = True
    for low in range(0, a.shape[1], 2):
        shared = shared and a[i, low] < b[j, low + 1] and b[j, low] < a[i, low + 1]
    return shared


@compiled
def _boxes(
    a_group: Any, a_lo: Any, a_hi: Any, a_low: Any, a_high: Any, a_beside: Any, a_ts: Any, a_te: Any,
    b_group: Any, b_lo: Any, b_hi: Any, b_low: Any, b_high: Any, b_beside: Any, b_ts: Any, b_te: Any,
    timed: bool, i: int, j: int, limit: int, out_a: Any, out_b: Any,
) -> tuple[int, bool, int, int]:  # fmt: skip
    n, m, found = len(a_group), len(b_group), 0
    while i < n and j < m and found < limit:
        if a_group[i] < b_group[j]:
            i = first_not_below(a_group, b_group[j], i, n)
            continue
        if b_group[j] < a_group[i]:
            j = first_not_below(b_group, a_group[i], j, m)
            continue
        a_end, b_end = end_of_group(a_group, i, n), end_of_group(b_group, j, m)
        while i < a_end and j < b_end and found < limit:
            if a_lo[i] <= b_lo[j]:
                hi, low, high = a_hi[i], a_low[i], a_high[i]
                k = j
                while k < b_end and b_lo[k] < hi:
                    if (
                        b_low[k] < high
                        and low < b_high[k]
                        and _overlap_beside(a_beside, i, b_beside, k)
                        and (not timed or max(a_ts[i], b_ts[k]) < min(a_te[i], b_te[k]))
                    ):
                        if out_a is not None:
                            out_a[found] = i
                            out_b[found] = k
                        found += 1
                    k += 1
                i += 1
            else:
                hi, low, high = b_hi[j], b_low[j], b_high[j]
                k = i
                while k < a_end and a_lo[k] < hi:
                    if (
                        a_low[k] < high
                        and low < a_high[k]
                        and _overlap_beside(a_beside, k, b_beside, j)
                        and (not timed or max(a_ts[k], b_ts[j]) < min(a_te[k], b_te[j]))
                    ):
                        if out_a is not None:
                            out_a[found] = k
                            out_b[found] = j
                        found += 1
                    k += 1
                j += 1
        if i >= a_end:
            j = b_end
        elif j >= b_end:
            i = a_end
    return found, i >= n or j >= m, i, j


def box_overlap_pairs(
    a: tuple[Any, Any, Any, Indices, Indices, Indices, Any, Any],
    b: tuple[Any, Any, Any, Indices, Indices, Indices, Any, Any],
    *,
    timed: bool,
    limit: int = PAIRS_PER_CHUNK,
) -> Iterator[Pairs]:
    """Index pairs of two sides `(group, lo, hi, low, high, beside, ts, te)`; `low` and `high` are the second dimension,
    `beside` has two columns for each further one.

    >>> import numpy as np
    >>> zero, lo, hi = np.zeros(2, np.int64), np.array([0, 5]), np.array([6, 9])
    >>> side = (zero, lo, hi, np.array([0, 1]), np.array([1, 2]), np.zeros((2, 0), np.int64), lo, hi)
    >>> [(i.tolist(), j.tolist()) for i, j in box_overlap_pairs(side, side, timed=False)]
    [([0, 1], [0, 1])]
    """
    return in_chunks(_boxes, (*a, *b, timed), (0, 0), limit)
