"""Neighbours in one dimension: for each left value the nearest right value below or above it, in one merging pass.

Both sides are ordered by (group, value). `before` finds the *last* right row at or below (strictly below) a left value,
`after` the first value at or above (strictly above) it, and of the rows with that value the last: rows of equal value
are ordered so that the last is the one to take.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.pairs import Indices, compiled, frozen

Side = tuple[Indices, npt.NDArray[np.int64]]


@compiled
def _before(lg: Any, lv: Any, rg: Any, rv: Any, strict: bool, found: Any) -> None:
    place, n = 0, len(rg)
    for i in range(len(lg)):
        group, value = lg[i], lv[i]
        # `place` is the first right row that is not before the left one; left rows ascend, so it only moves up.
        while place < n and (
            rg[place] < group or (rg[place] == group and (rv[place] < value or (rv[place] == value and not strict)))
        ):
            place += 1
        found[i] = place - 1 if place > 0 and rg[place - 1] == group else -1


@compiled
def _after(lg: Any, lv: Any, rg: Any, rv: Any, strict: bool, found: Any) -> None:
    place, last, n = 0, 0, len(rg)
    for i in range(len(lg)):
        group, value = lg[i], lv[i]
        while place < n and (
            rg[place] < group or (rg[place] == group and (rv[place] < value or (rv[place] == value and strict)))
        ):
            place += 1
        if place < n and rg[place] == group:
            last = max(last, place)
            while last + 1 < n and rg[last + 1] == group and rv[last + 1] == rv[place]:
                last += 1
            found[i] = last
        else:
            found[i] = -1


def before(left: Side, right: Side, *, strict: bool) -> Indices:
    """Per left row the position of the last right row of its group at or below its value; -1 where there is none.

    >>> left = np.array([0, 0, 1]), np.array([3, 5, 9])
    >>> before(left, (np.array([0, 0, 1]), np.array([3, 4, 10])), strict=False).tolist()
    [0, 1, -1]
    """
    found = np.empty(len(left[0]), np.int64)
    _before(frozen(left[0]), frozen(left[1]), frozen(right[0]), frozen(right[1]), strict, found)
    return found


def after(left: Side, right: Side, *, strict: bool) -> Indices:
    """Per left row the position of the nearest right row of its group at or above its value; -1 where there is none.

    >>> left = np.array([0, 0, 1]), np.array([3, 5, 9])
    >>> after(left, (np.array([0, 0, 1]), np.array([3, 4, 10])), strict=True).tolist()
    [1, -1, 2]
    """
    found = np.empty(len(left[0]), np.int64)
    _after(frozen(left[0]), frozen(left[1]), frozen(right[0]), frozen(right[1]), strict, found)
    return found


@compiled
def _successors(group: Any, value: Any, none: int, found: Any) -> None:
    n = len(group)
    for i in range(n):
        found[i] = value[i + 1] if i + 1 < n and group[i + 1] == group[i] else none


def successors(side: Side, none: int) -> npt.NDArray[np.int64]:
    """Per row the value of the next row of its group; `none` for the last.

    >>> successors((np.array([0, 0, 1]), np.array([3, 5, 9])), 99).tolist()
    [5, 99, 99]
    """
    found = np.empty(len(side[0]), np.int64)
    _successors(frozen(side[0]), frozen(side[1]), none, found)
    return found
