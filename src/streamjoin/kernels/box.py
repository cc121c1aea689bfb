"""Box joins within equal groups: at most so far apart along one axis, and in the same part of a grid over further axes.

    needs    both sides sorted by (group, cell, value); `cell` packs the coordinates of a grid cell into one number, so
             that its neighbours lie at fixed distances, the `offsets`; no NaN among the values
    cost     O(n log(m/n) + candidates) for each offset; with two axes on the grid, 3 x 3 neighbours

             . . .  . . .  . . .
             . . .  . x .  . . .      a point of the middle cell looks at every neighbouring cell, and in each only at
             . . .  . . .  . . .      those within the bounds along the sorted axis: a window that moves with the points

The bounds along the sorted axis are tested on the difference of actual values. Along the axes of the grid pairs are
only sorted out roughly, a little beyond `reach`: whoever calls tests them by their actual values, which may be no
doubles.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.grid import cells_of
from streamjoin.kernels.pairs import PAIRS_PER_CHUNK, Indices, Pairs, compiled, difference, first_in_band, in_chunks

MOST_GRID_AXES: Final = 2
_CELLS: Final = 1 << 30  # coordinates are clipped to this: two of them fit into one number. Neighbours stay neighbours
_ROW: Final = 1 << 32
_MARGIN: Final = 1.001  # cells are a little wider than the reach, by more than `value / width` can round
_ROUNDING: Final = 4e-16  # of a difference of two doubles, relative to them

Side = tuple[Indices, Indices, npt.NDArray[Any], npt.NDArray[np.float64]]


def packed_cells(axes: npt.NDArray[np.float64], reach: npt.NDArray[np.float64]) -> Indices:
    """The cell of each point in a grid over its axes, one or two of them, as one number.

    >>> packed_cells(np.array([[0.5], [-0.5]]), np.array([1.0])).tolist()
    [0, -1]
    """
    packed = np.zeros(len(axes), np.int64)
    for axis, far in enumerate(reach):
        width = min(float(far) * _MARGIN, sys.float_info.max) or 1.0
        packed = packed * _ROW + np.clip(cells_of(axes[:, axis], width), -_CELLS, _CELLS)
    return packed


def _neighbours(axes: int) -> Indices:
    """How far the neighbours of a cell lie from it in the packed numbers, ascending."""
    offsets = np.zeros(1, np.int64)
    for _ in range(axes):
        offsets = (offsets[:, None] * _ROW + np.array([-1, 0, 1])).ravel()
    return offsets


@compiled
def _first_in_cell(group: Any, cell: Any, wanted_group: int, wanted_cell: int, start: int, end: int) -> int:
    """The first position from `start` on whose (group, cell) is not below the wanted one."""
    step, low = 1, start
    if low >= end or group[low] > wanted_group or (group[low] == wanted_group and cell[low] >= wanted_cell):
        return low
    while low + step < end and (
        group[low + step] < wanted_group or (group[low + step] == wanted_group and cell[low + step] < wanted_cell)
    ):
        low += step
        step *= 2
    high = min(low + step, end)
    low += 1
    while low < high:
        middle = (low + high) // 2
        if group[middle] < wanted_group or (group[middle] == wanted_group and cell[middle] < wanted_cell):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _roughly_near(a: Any, b: Any, i: int, k: int, reach: Any) -> bool:
    for axis in range(len(reach)):
        one, two = a[i, axis], b[k, axis]
        if not abs(two - one) <= reach[axis] + _ROUNDING * (abs(one) + abs(two)):
            return False
    return True


@compiled
def _box(
    a_group: Any, a_cell: Any, a_value: Any, a_axes: Any,
    b_group: Any, b_cell: Any, b_value: Any, b_axes: Any,
    far: Any, reach: Any, offsets: Any,
    i: int, first: int, turn: int, base: int, limit: int, out_a: Any, out_b: Any,
) -> tuple[int, bool, int, int, int, int]:  # fmt: skip
    n, m, found = len(a_group), len(b_group), 0
    while first < n and found < limit:
        # `first` is where a cell of `a` begins; it is walked once for every neighbour.
        group, cell = a_group[first], a_cell[first] + offsets[turn]
        a_end = _first_in_cell(a_group, a_cell, group, a_cell[first] + 1, first, n)
        # Cells of `a` ascend, and so do the first neighbours of each: they are searched for from the last one on.
        low = _first_in_cell(b_group, b_cell, group, cell, base, m)
        if turn == 0:
            base = low
        b_end = _first_in_cell(b_group, b_cell, group, cell + 1, low, m)
        while i < a_end and low < b_end and found < limit:
            value = a_value[i]
            low = first_in_band(b_value, value, -far, True, low, b_end)
            k = low
            while k < b_end:
                gap = difference(b_value[k], value)
                if gap > far:
                    break
                # Infinity less infinity is NaN: no distance at all.
                if gap >= -far and _roughly_near(a_axes, b_axes, i, k, reach):
                    if out_a is not None:
                        out_a[found] = i
                        out_b[found] = k
                    found += 1
                k += 1
            i += 1
        if i >= a_end or low >= b_end:
            turn += 1
            if turn == len(offsets):
                turn, first = 0, a_end
            i = first
    return found, first >= n, i, first, turn, base


def box_pairs(
    a: Side, b: Side, *, far: Any, reach: npt.NDArray[np.float64], limit: int = PAIRS_PER_CHUNK
) -> Iterator[Pairs]:
    """Index pairs of two sides `(group, cell, value, axes)` whose values are at most `far` apart, and the axes roughly
    at most `reach`.

    >>> zero, axes = np.zeros(3, np.int64), np.array([[0.0], [0.5], [9.0]])
    >>> side = (zero, packed_cells(axes, np.array([1.0])), np.array([1.0, 2.0, 1.0]), axes)
    >>> [(i.tolist(), j.tolist()) for i, j in box_pairs(side, side, far=1.0, reach=np.array([1.0]))]
    [([0, 0, 1, 1, 2], [0, 1, 0, 1, 2])]
    """
    far = a[2].dtype.type(far)
    further = (far, reach, _neighbours(len(reach)))
    if len(b[0]) < len(a[0]):
        return ((i, j) for j, i in in_chunks(_box, (*b, *a, *further), (0, 0, 0, 0), limit))
    return in_chunks(_box, (*a, *b, *further), (0, 0, 0, 0), limit)
