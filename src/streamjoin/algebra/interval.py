"""Validity: half-open intervals `[ts, te)` on an int64 time axis.

An element is in the snapshot at `t` iff `ts <= t < te`. Two elements share an instant iff `a.ts < b.te and b.ts < a.te`
and neither is empty. The two infinities are the ends of int64: `NEVER` is before all time (the progress of an input
that has said nothing), `FOREVER` is after it (the end of an element that never ends, the progress of a finished input).
An end that is not known yet is also stored as `FOREVER`; who learns it later holds an index to it beside the element.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NEVER: Final = int(np.iinfo(np.int64).min)
FOREVER: Final = int(np.iinfo(np.int64).max)


def saturating_add(times: Times, ticks: int | Times) -> Times:
    """`times + ticks`, staying at the infinities instead of wrapping around.

    >>> saturating_add(np.array([1, FOREVER - 1]), 5).tolist() == [6, FOREVER]
    True
    """
    step = np.asarray(ticks, np.int64)
    with np.errstate(over="ignore"):
        moved = times + step
    moved = np.where((step >= 0) & (moved < times), FOREVER, moved)
    moved = np.where((step < 0) & (moved > times), NEVER, moved)
    infinite = (times == FOREVER) | (times == NEVER)
    return np.where(infinite, times, moved)


def share_an_instant(a_ts: Times, a_te: Times, b_ts: Times, b_te: Times) -> Mask:
    """Which of the aligned pairs of validities overlap.

    >>> one = np.array([0, 0]), np.array([5, 5])
    >>> two = np.array([4, 5]), np.array([9, 9])
    >>> share_an_instant(*one, *two).tolist()
    [True, False]
    """
    return np.maximum(a_ts, b_ts) < np.minimum(a_te, b_te)
