"""Rows per class of keys and cell of time, each in one pass: counting them without sorting, and the pairs they make."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Times
from streamjoin.kernels.hashing import GOLDEN, mix
from streamjoin.kernels.pairs import Indices, compiled, frozen

Floats = npt.NDArray[np.float64]


@compiled
def _count(group: Any, ts: Any, width: int, first: int, mask: np.uint64, table: Any) -> None:
    begin, cell = ts[0], np.int64(-1)
    for row in range(len(ts)):
        time = ts[row]
        # Streams are nearly in order: the cell of the row before saves the division.
        if cell < 0 or time < begin or time - begin >= width:
            number = time // width
            begin, cell = number * width, number - first
        table[cell, mix(group[row] + GOLDEN) & mask] += 1


def count_cells(group: Indices, ts: Times, width: int, first: int, shape: tuple[int, int]) -> npt.NDArray[np.int32]:
    """Rows by cell, from the `first` one on, and by class, the lowest bits of the hash of their keys' code.

    Rows that come one after the other are of one cell, mostly: what is written to lies together.

    >>> count_cells(np.array([7, 7, 7]), np.array([10, 14, 15]), 5, 2, (2, 1)).tolist()
    [[2], [1]]
    """
    table = np.zeros(shape, np.int32)
    if len(ts):
        _count(frozen(group).view(np.uint64), frozen(ts), width, first, np.uint64(shape[1] - 1), table)
    return table


@compiled
def _forward(position: float, one: int, at: int, before: float, cls: Any, cells: Any, rows: Any) -> Any:
    """On from an entry to the cell of a position (in cells): where that is, rows before it, and before the position."""
    cell = np.floor(position)
    while at < len(cells) and cls[at] == one and cells[at] < cell:
        before += rows[at]
        at += 1
    if at < len(cells) and cls[at] == one and cells[at] == cell:
        return at, before, before + (position - cell) * rows[at]
    return at, before, before


@compiled
def _met(own: Any, weight: Any, low: Any, high: Any, cls: Any, cells: Any, rows: Any, width: int) -> float:
    total, entry, start = 0.0, 0, 0
    while entry < len(own):
        one = own[entry]
        while start < len(cls) and cls[start] < one:
            start += 1
        # Windows move on with the entries of a class, and so do both of their ends.
        left, right, before_left, before_right = start, start, 0.0, 0.0
        while entry < len(own) and own[entry] == one:
            left, before_left, begin = _forward(low[entry] / width, one, left, before_left, cls, cells, rows)
            right, before_right, end = _forward(high[entry] / width, one, right, before_right, cls, cells, rows)
            total += weight[entry] * (end - begin)
            entry += 1
        start = right
    return total


def count_pairs(
    news: tuple[Indices, Indices], windows: tuple[Floats, Floats], others: tuple[Indices, Indices, Indices], width: int
) -> float:
    """How many pairs entries (class, rows) make with others (class, cell, rows), each within its window.

    Both are sorted by class and then time; within a cell of the others rows lie evenly.

    >>> one, window = (np.array([3]), np.array([2])), (np.array([5.0]), np.array([20.0]))
    >>> count_pairs(one, window, (np.array([2, 3, 3]), np.array([1, 0, 1]), np.array([9, 4, 1])), 10)
    6.0
    """
    own, weight = (frozen(each) for each in news)
    low, high = frozen(windows[0]), frozen(np.maximum(*windows))
    cls, cells, rows = (frozen(each) for each in others)
    return float(_met(own, weight, low, high, cls, cells, rows, width))
