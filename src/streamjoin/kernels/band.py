"""Band joins within equal groups, by merging: `low <= b.value - a.value <= high`.

    needs    both sides sorted by (group, value); no NaN among the values
    cost     O(n log(m/n) + m' + candidates), candidates = pairs inside the band

For growing `a` the band moves up through `b`, so its lower edge only ever moves forward:

    a     . . . x . . .
    b     . . [ . . . . ] . .        every b in the bracket is a candidate, tested for validity on the spot

Bounds are tested on the difference of the two actual values. Subtraction rounds monotonically, so the edge found by
differences moves monotonically too, and no pair is lost or invented by forming `a + high` beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamjoin.kernels.pairs import (
    PAIRS_PER_CHUNK,
    Pairs,
    compiled,
    difference,
    end_of_group,
    first_in_band,
    first_not_below,
    in_chunks,
)


@compiled
def _band(
    a_group: Any, a_value: Any, a_ts: Any, a_te: Any,
    b_group: Any, b_value: Any, b_ts: Any, b_te: Any,
    low: Any, high: Any, low_closed: bool, high_closed: bool,
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
            value = a_value[i]
            j = first_in_band(b_value, value, low, low_closed, j, b_end)
            k = j
            while k < b_end:
                gap = difference(b_value[k], value)
                if gap > high or (not high_closed and gap == high):
                    break
                # Infinity less infinity is NaN: in no band, but further values may be.
                if gap >= low and (not timed or max(a_ts[i], b_ts[k]) < min(a_te[i], b_te[k])):
                    if out_a is not None:
                        out_a[found] = i
                        out_b[found] = k
                    found += 1
                k += 1
            i += 1
        if i >= a_end:
            j = b_end
        elif j >= b_end:
            i = a_end
    return found, i >= n or j >= m, i, j


def band_pairs(
    a: tuple[Any, Any, Any, Any],
    b: tuple[Any, Any, Any, Any],
    *,
    low: Any,
    high: Any,
    low_closed: bool = True,
    high_closed: bool = True,
    timed: bool,
    limit: int = PAIRS_PER_CHUNK,
) -> Iterator[Pairs]:
    """Index pairs of two sides `(group, value, ts, te)` with `low <= b - a <= high`; `timed` also tests the validity.

    >>> import numpy as np
    >>> zero, value = np.zeros(3, np.int64), np.array([0.0, 1.0, 5.0])
    >>> side = (zero, value, zero, zero)
    >>> [(i.tolist(), j.tolist()) for i, j in band_pairs(side, side, low=0.0, high=1.0, timed=False)]
    [([0, 0, 1, 2], [0, 1, 1, 2])]
    """
    # Bounds of the values' own type: one compiled kernel per type, and no integer compared as a float.
    kind = a[1].dtype.type
    low, high = kind(low), kind(high)
    if len(b[0]) < len(a[0]):
        # Walk the smaller side and gallop through the larger; negating both bounds is exact.
        swapped = (*b, *a, -high, -low, high_closed, low_closed, timed)
        return ((i, j) for j, i in in_chunks(_band, swapped, (0, 0), limit))
    return in_chunks(_band, (*a, *b, low, high, low_closed, high_closed, timed), (0, 0), limit)
