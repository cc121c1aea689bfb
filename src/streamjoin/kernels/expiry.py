"""Expiry: which rows are behind progress."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamjoin.algebra.interval import Mask, Times
from streamjoin.kernels.pairs import compiled, frozen


@compiled
def _alive(until: Any, progress: int, alive: Any) -> int:
    count = 0
    for row in range(len(until)):
        alive[row] = until[row] > progress
        count += alive[row]
    return count


def expired_mask(until: Times, progress: int) -> tuple[Mask, int]:
    """Which rows are still alive (`until > progress`), and how many have expired.

    >>> mask, expired = expired_mask(np.array([3, 5, 9]), 5)
    >>> mask.tolist(), expired
    ([False, False, True], 2)
    """
    alive = np.empty(len(until), np.bool_)
    return alive, len(until) - int(_alive(frozen(until), progress, alive))
