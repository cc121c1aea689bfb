"""The grid over values that spreads a join without equality keys over buckets.

A cell is a box of the grid; its bucket is a hash of its coordinates. A row covers one cell (its home) or a box of cells
(where its partners may be at home), and is sent once to every bucket that any of them falls into.

Cells are clipped to +-2**40. Clipping keeps the order, so neighbours stay neighbours and a box still covers the cells
of everything inside it; beyond 2**40 cells the rounding of `value / width` could otherwise move a point by a whole
cell.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.hashing import mix
from streamjoin.kernels.pairs import Indices, compiled, frozen

NO_CELL_LIMIT: Final = 1 << 40


def cells_of(values: npt.NDArray[Any], width: float) -> Indices:
    """The cell of each value in a grid of this width.

    >>> cells_of(np.array([-0.5, 0.0, 2.5]), 1.0).tolist()
    [-1, 0, 2]
    """
    with np.errstate(over="ignore"):  # what overflows is beyond the limit anyway
        cells = np.floor(values / width)
    return np.clip(cells, -NO_CELL_LIMIT, NO_CELL_LIMIT).astype(np.int64)


@compiled
def _bucket(cell: Any, buckets: int) -> Any:
    state = np.uint64(0)
    for axis in range(len(cell)):
        state = mix(state + np.uint64(cell[axis]))
    return np.int64(state % np.uint64(buckets))


@compiled
def _buckets(cells: Any, buckets: int, out: Any) -> None:
    for row in range(len(cells)):
        out[row] = _bucket(cells[row], buckets)


def bucket_of_cells(cells: Indices, buckets: int) -> Indices:
    """The bucket of each cell; `cells` has a row per cell and a column per axis.

    >>> bucket_of_cells(np.array([[0, 0], [0, 0], [5, 7]]), 1).tolist()
    [0, 0, 0]
    """
    out = np.empty(len(cells), np.int64)
    _buckets(frozen(cells), buckets, out)
    return out


@compiled
def _spread(low: Any, high: Any, buckets: int, out_row: Any, out_bucket: Any) -> int:
    axes = low.shape[1]
    cell = np.empty(axes, np.int64)
    last_row = np.full(buckets, -1, np.int64)  # the last row that was sent to each bucket: sends it there once
    found = 0
    for row in range(len(low)):
        covered = 1.0
        for axis in range(axes):
            cell[axis] = low[row, axis]
            covered *= high[row, axis] - low[row, axis] + 1.0
        everywhere = covered > 16.0 * buckets
        remaining = buckets
        while remaining > 0:
            bucket = buckets - remaining if everywhere else _bucket(cell, buckets)
            if last_row[bucket] != row:
                last_row[bucket] = row
                remaining -= 1
                if out_row is not None:
                    out_row[found] = row
                    out_bucket[found] = bucket
                found += 1
            if not everywhere:
                axis = 0
                while axis < axes:
                    cell[axis] += 1
                    if cell[axis] <= high[row, axis]:
                        break
                    cell[axis] = low[row, axis]
                    axis += 1
                if axis == axes:
                    break
    return found


def spread_over_buckets(low: Indices, high: Indices, buckets: int) -> tuple[Indices, Indices]:
    """Row numbers and buckets for rows that cover the boxes of cells from `low` to `high`, inclusive; each pair once.

    A row that covers very many cells goes to every bucket without counting them.

    >>> rows, buckets = spread_over_buckets(np.array([[0], [0]]), np.array([[0], [10**9]]), 3)
    >>> rows.tolist()[1:], buckets.tolist()[1:]
    ([1, 1, 1], [0, 1, 2])
    """
    low, high = frozen(low), frozen(high)
    count = _spread(low, high, buckets, None, None)
    rows, placed = np.empty(count, np.int64), np.empty(count, np.int64)
    _spread(low, high, buckets, rows, placed)
    return rows, placed
