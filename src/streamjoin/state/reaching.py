"""Who of a sorted run can still be met: rows come by in the order of the matching, and have come to a key.

    band        rows from which the key is not further away than the band reaches upwards, by the difference of values
    overlap     rows whose interval has not ended before the key; without a predicate, whose validity has not
    distance    rows of the grid's row that the key is in, and of the one before, as far as they lie within the radius
    otherwise   all rows of the key's group

Law: a row that is left out matches nobody who comes at the key or behind it. Others may match nobody, too.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Mask
from streamjoin.algebra.predicate import Band, Overlaps, Within
from streamjoin.state.matching import GRID_MARGIN, Matching, grid_radius
from streamjoin.state.run import Run

Key = tuple[Any, Any, Any]  # group, cell (0 where there is no grid), value

_MOST: Final = np.uint64(2**63 - 1)


def still_met(matching: Matching, side: int, run: Run, key: Key) -> Mask:
    """Which rows of a run of input `side` can match a row of the other input that comes at `key` or behind it. None of
    them lies behind it.
    """
    group, cell, value = key
    alive = np.asarray(run.rows.group == group, np.bool_)
    first = matching.first
    if isinstance(first, Band) and not matching.grid:
        return alive & _within_reach(run.value, value, first.above if side == 0 else first.below)
    if isinstance(first, Overlaps):
        return np.asarray(alive & (run.rows.values[1] >= value), np.bool_)
    if isinstance(first, Within):
        near = _within_reach(run.value, value, grid_radius(first) * GRID_MARGIN)
        if len(first.left) == 1:
            return alive & near
        return np.asarray(alive & ((run.cell == cell) | ((run.cell == cell - 1) & near)), np.bool_)
    if matching.timed and not matching.grid:  # by their validity: rows are ordered by its beginning
        return np.asarray(alive & (run.rows.te > value), np.bool_)
    return alive


def _within_reach(mine: npt.NDArray[Any], value: Any, reach: Any) -> Mask:
    """Whether the value is no further above each of mine than `reach`."""
    if mine.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):  # infinity less infinity is no number, and lies in reach
            return np.asarray(~(value - mine > reach), np.bool_)
    if reach < 0:
        return np.zeros(len(mine), np.bool_)
    # The value is not below any of mine, so differences fit into numbers without a sign; kernels saturate them.
    gap = np.asarray(value, np.int64).astype(np.uint64) - mine.astype(np.uint64)
    return np.asarray(np.minimum(gap, _MOST) <= np.uint64(int(mine.dtype.type(reach))), np.bool_)
