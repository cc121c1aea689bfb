"""Overlap of half-open intervals within equal groups, by forward scan.

    needs    both sides sorted by (group, lo); no empty interval among them
    cost     O(n + m + candidates), candidates = pairs whose value intervals overlap

The side whose interval starts first scans forward through the other side while the other's start lies before its end.
Whoever starts first is the one that scans, so each overlapping pair is met exactly once:

    a   |-------------)            a starts first: meets b1 and b2, then is done
    b1     |---)                   b1 starts before the next a: it scans the a's that follow
    b2            |-------)

With `lo = ts` and `hi = te` this is also the equality join over validity: groups are the keys, and nothing else is left
to test (`timed = False`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamjoin.kernels.pairs import PAIRS_PER_CHUNK, Pairs, compiled, end_of_group, first_not_below, in_chunks


@compiled
def _overlap(
    a_group: Any, a_lo: Any, a_hi: Any, a_ts: Any, a_te: Any,
    b_group: Any, b_lo: Any, b_hi: Any, b_ts: Any, b_te: Any,
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
                hi = a_hi[i]
                k = j
                while k < b_end and b_lo[k] < hi:
                    if not timed or max(a_ts[i], b_ts[k]) < min(a_te[i], b_te[k]):
                        if out_a is not None:
                            out_a[found] = i
                            out_b[found] = k
                        found += 1
                    k += 1
                i += 1
            else:
                hi = b_hi[j]
                k = i
                while k < a_end and a_lo[k] < hi:
                    if not timed or max(a_ts[k], b_ts[j]) < min(a_te[k], b_te[j]):
                        if out_a is not None:
                            out_a[found] = k
                            out_b[found] = j
                        found += 1
                    k += 1
                j += 1
        # One side of the group is used up: the rest of the other has met everyone it can meet.
        if i >= a_end:
            j = b_end
        elif j >= b_end:
            i = a_end
    return found, i >= n or j >= m, i, j


def overlap_pairs(
    a: tuple[Any, Any, Any, Any, Any],
    b: tuple[Any, Any, Any, Any, Any],
    *,
    timed: bool,
    limit: int = PAIRS_PER_CHUNK,
) -> Iterator[Pairs]:
    """Index pairs of two sides `(group, lo, hi, ts, te)`; with `timed` the validities must overlap too.

    >>> import numpy as np
    >>> zero, lo, hi = np.zeros(2, np.int64), np.array([0, 5]), np.array([6, 9])
    >>> side = (zero, lo, hi, lo, hi)
    >>> [(i.tolist(), j.tolist()) for i, j in overlap_pairs(side, side, timed=False)]
    [([0, 0, 1, 1], [0, 1, 0, 1])]
    """
    return in_chunks(_overlap, (*a, *b, timed), (0, 0), limit)
