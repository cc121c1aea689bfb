"""Pairs that counts per class of keys and cell of time make: how many, and how long their rows must be kept for that.

Times are told from the begin of the cell that looks for partners, never from one origin: years may lie between two
cells, or all that 64 bits can tell.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Times
from streamjoin.kernels.pairs import Indices, compiled, difference, first_not_below, frozen

# More than any slack, and still a whole number.
_FAR: Final = 2.0**62


@compiled
def _offset(cell: Any, width: int, begin: Any) -> Any:
    """How far a cell begins from a time. What two clocks say may be too far apart for 64 bits: then it is far."""
    return np.float64(difference(cell * width, begin))


@compiled
def _forward(position: float, begin: Any, at: int, end: int, before: float, cells: Any, width: int, rows: Any) -> Any:
    """On from an entry to the cell of a position (from `begin` on): where that is, rows before it, and before the
    position.
    """
    while at < end and _offset(cells[at], width, begin) + width <= position:
        before += rows[at]
        at += 1
    if at < end:
        return at, before, before + max(0.0, position - _offset(cells[at], width, begin)) / width * rows[at]
    return at, before, before


@compiled
def _begin(position: float, begin: Any, at: int, end: int, cells: Any, width: int) -> int:
    """Where that is, from the first entry of a class: most of one is far from what is new."""
    low, high = at, end
    while low < high:
        middle = (low + high) // 2
        if _offset(cells[middle], width, begin) + width <= position:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _met(
    own: Any, times: Any, weight: Any, own_width: int, back: int, on: int, cls: Any, cells: Any, rows: Any, width: int
) -> float:
    total, entry, start = 0.0, 0, 0
    # From the begin of an own cell, whose row stands in its middle.
    low = own_width / 2 - back + 0.5
    high = max(low, own_width / 2 + on - 0.5)
    while entry < len(own):
        one = own[entry]
        start = first_not_below(cls, one, start, len(cls))
        end = first_not_below(cls, one + 1, start, len(cls))
        # Windows move on with the entries of a class, and so do both of their ends.
        left = right = _begin(low, times[entry] * own_width, start, end, cells, width)
        before_left, before_right = 0.0, 0.0
        while left < end and entry < len(own) and own[entry] == one:  # behind the last cell is every later window too
            begin = times[entry] * own_width
            left, before_left, begins = _forward(low, begin, left, end, before_left, cells, width, rows)
            right, before_right, ends = _forward(high, begin, right, end, before_right, cells, width, rows)
            total += weight[entry] * (ends - begins)
            entry += 1
        entry, start = first_not_below(own, one + 1, entry, len(own)), end
    return total


def count_pairs(
    news: tuple[Indices, Indices, Indices],
    others: tuple[Indices, Indices, Indices],
    widths: tuple[int, int],
    window: tuple[int, int],
) -> float:
    """How many pairs entries (class, cell, rows) make with others; `widths`: of the cells of both.

    A row stands in the middle of its cell and meets what lies in its window, so far back and so far on; within a cell
    of the others rows lie evenly. Both are sorted by class and then cell.

    >>> one = (np.array([3]), np.array([1]), np.array([2]))
    >>> count_pairs(one, (np.array([2, 3, 3]), np.array([1, 0, 1]), np.array([9, 4, 1])), (10, 10), (11, 6))
    6.4
    """
    own, times, weight = (frozen(each) for each in news)
    cls, cells, rows = (frozen(each) for each in others)
    back, on = window
    return float(_met(own, times, weight, widths[0], back, on, cls, cells, rows, widths[1]))


@compiled
def _need(
    own: Any, times: Any, weight: Any, own_width: int, back: int, on: int, ended: int,
    cls: Any, cells: Any, rows: Any, width: int, edges: Any, bins: Any,
) -> None:  # fmt: skip
    start = end = left = 0
    low, furthest = own_width / 2 - back + 0.5, own_width / 2 + on - 0.5
    for entry in range(len(own)):
        one, begin = own[entry], times[entry] * own_width
        if not entry or own[entry - 1] != one:
            start = first_not_below(cls, one, start, len(cls))
            end = first_not_below(cls, one + 1, start, len(cls))
            left = _begin(low, begin, start, end, cells, width)
            start = end
        last = np.float64(difference(ended, begin))
        high = min(furthest, last + 1)
        while left < end and _offset(cells[left], width, begin) + width <= low:
            left += 1
        for at in range(left, end):
            offset = _offset(cells[at], width, begin)
            if offset >= high:
                break
            since, until = max(low, offset), min(high, offset + width)
            if until > since:
                need = np.int64(min(np.floor(last - (since + until - 1) / 2), _FAR))
                place = max(0, first_not_below(edges, need + 1, 0, len(edges)) - 1)
                bins[place] += weight[entry] * rows[at] * (until - since) / width


def needs_of_pairs(
    news: tuple[Indices, Indices, Indices],
    others: tuple[Indices, Indices, Indices],
    widths: tuple[int, int],
    window: tuple[int, int],
    ended: int,
    edges: Times,
) -> npt.NDArray[np.float64]:
    """The same pairs with those of the others that are of the time `ended` or earlier, by how much earlier: between
    which of the edges, of which the last one has all beyond it.

    >>> one = (np.array([3]), np.array([1]), np.array([2]))
    >>> others = (np.array([2, 3, 3]), np.array([1, 0, 1]), np.array([9, 4, 1]))
    >>> needs_of_pairs(one, others, (10, 10), (11, 6), 14, np.array([0, 5])).tolist()
    [1.0, 4.4]
    """
    own, times, weight = (frozen(each) for each in news)
    cls, cells, rows = (frozen(each) for each in others)
    bins, (back, on) = np.zeros(len(edges)), window
    _need(own, times, weight, widths[0], back, on, ended, cls, cells, rows, widths[1], frozen(edges), bins)
    return bins
