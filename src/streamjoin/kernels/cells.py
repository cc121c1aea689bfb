"""Rows per class of keys and cell of time, each in one pass: counting them without sorting, and the pairs they make."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Times
from streamjoin.kernels.hashing import GOLDEN, mix
from streamjoin.kernels.pairs import Indices, compiled, first_not_below, frozen

# Where time is nearly in order, most blocks of so many rows are of one cell.
BLOCK: Final = 256


@compiled
def _classes(group: Any, mask: np.uint64, out: Any) -> None:
    for row in range(len(group)):
        out[row] = np.uint16(mix(group[row] + GOLDEN) & mask)


def classes_of(group: Indices, bits: int) -> npt.NDArray[np.uint16]:
    """The class of each row: so many of the lowest bits, 16 at most, of the hash of its keys' code.

    >>> one, two, other = classes_of(np.array([7, 8, 7]), 4).tolist()
    >>> one == other, max(one, two) < 16
    (True, True)
    """
    if not bits:
        return np.zeros(len(group), np.uint16)
    out = np.empty(len(group), np.uint16)
    _classes(frozen(group).view(np.uint64), np.uint64((1 << bits) - 1), out)
    return out


@compiled
def _extents(ts: Any, out: Any) -> None:
    for block in range(out.shape[1]):
        some = ts[block * BLOCK : (block + 1) * BLOCK]
        low = high = some[0]
        for row in range(len(some)):
            low = min(low, some[row])
            high = max(high, some[row])
        out[0, block], out[1, block] = low, high


def extents(ts: Times) -> npt.NDArray[np.int64]:
    """The earliest and the latest time stamp of each block of rows.

    >>> extents(np.arange(300)[::-1]).tolist()
    [[44, 0], [299, 43]]
    """
    out = np.empty((2, -(-len(ts) // BLOCK)), np.int64)
    _extents(frozen(ts), out)
    return out


@compiled
def _classes_in(classes: Any, step: int, bits: int, enough: int) -> int:
    there, size = np.zeros(1 << bits, np.bool_), 0
    for row in range(0, len(classes), step):
        cls = classes[row] & np.uint16(len(there) - 1)
        size += not there[cls]
        there[cls] = True
    while bits and size > enough:
        bits -= 1
        size, half = 0, 1 << bits
        for cls in range(half):
            there[cls] |= there[cls + half]
            size += there[cls]
    return bits


def bits_for(classes: npt.NDArray[np.uint16], step: int, bits: int, enough: int) -> int:
    """As many of so many bits as leave at most `enough` classes among each `step`-th row, or none of them.

    >>> bits_for(np.arange(64, dtype=np.uint16), 2, 6, 8)
    4
    """
    return int(_classes_in(frozen(classes), step, bits, enough))


@compiled
def _count(classes: Any, ts: Any, ends: Any, width: int, first: int, table: Any) -> None:
    mask = np.uint16(table.shape[1] - 1)
    begin, last, cell = np.int64(1), np.int64(0), np.int64(0)
    for block in range(ends.shape[1]):
        some = classes[block * BLOCK : (block + 1) * BLOCK]
        low, high = ends[0, block], ends[1, block]
        # Streams are nearly in order: the cell of the block before saves a division, and that of a block all others.
        if low < begin or low > last:
            number = low // width
            begin, last, cell = number * width, number * width + (width - 1), number - first
        if begin <= low and high <= last:
            line, whole = table[cell], len(some) & ~3
            if not mask:
                line[0] += len(some)
                continue
            for row in range(0, whole, 4):  # four are looked up before any is counted: they wait less for one another
                one, two, three, four = some[row], some[row + 1], some[row + 2], some[row + 3]
                line[one & mask] += 1
                line[two & mask] += 1
                line[three & mask] += 1
                line[four & mask] += 1
            for row in range(whole, len(some)):
                line[some[row] & mask] += 1
            continue
        for row, time in enumerate(ts[block * BLOCK : (block + 1) * BLOCK]):
            if time < begin or time > last:
                number = time // width
                begin, last, cell = number * width, number * width + (width - 1), number - first
            table[cell, some[row] & mask] += 1


def count_cells(
    classes: npt.NDArray[np.uint16],
    ts: Times,
    ends: npt.NDArray[np.int64],
    width: int,
    first: int,
    shape: tuple[int, int],
) -> npt.NDArray[np.int32]:
    """Rows by cell, from the `first` one on, and by the lowest bits of their class; `ends`: the `extents` of their time
    stamps.

    Rows that come one after the other are of one cell, mostly: what is written to lies together.

    >>> ts = np.array([10, 14, 15])
    >>> count_cells(np.array([6, 6, 7], np.uint16), ts, extents(ts), 5, 2, (2, 2)).tolist()
    [[2, 0], [0, 1]]
    """
    table = np.zeros(shape, np.int32)
    _count(frozen(classes), frozen(ts), frozen(ends), width, first, table)
    return table


@compiled
def _entries(table: Any, first: int) -> tuple[Any, Any, Any]:
    ends = np.zeros(table.shape[1] + 1, np.int64)
    for cell in range(table.shape[0]):
        for one in range(table.shape[1]):
            ends[one + 1] += table[cell, one] != 0
    for one in range(table.shape[1]):
        ends[one + 1] += ends[one]
    size = ends[-1]
    cls, cells, rows = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    for cell in range(table.shape[0]):
        for one in range(table.shape[1]):
            if table[cell, one]:
                at = ends[one]
                cls[at], cells[at], rows[at] = one, cell + first, table[cell, one]
                ends[one] = at + 1
    return cls, cells, rows


def entries_of(table: npt.NDArray[np.int32], first: int) -> tuple[Indices, Indices, Indices]:
    """What a table by cell and class has: classes, cells and rows, by class and then cell.

    >>> [each.tolist() for each in entries_of(np.array([[0, 2], [1, 3]], np.int32), 7)]
    [[0, 1, 1], [8, 7, 8], [1, 2, 3]]
    """
    cls, cells, rows = _entries(frozen(table), first)
    return cls, cells, rows


@compiled
def _steps(values: Any, out: Any) -> int:
    most, before = 0, 0
    for at in range(len(values)):
        step = values[at] - before
        out[at], before = step, values[at]
        most = max(most, step ^ (step >> 63))  # -1 needs no more room than 0
    return most


def steps_between(values: Indices) -> tuple[Indices, int]:
    """The steps from each value to the next, the first one from 0, and what bounds them: `-1 - most <= step <= most`.

    >>> steps, most = steps_between(np.array([3, 3, -5]))
    >>> steps.tolist(), most
    ([3, 0, -8], 7)
    """
    out = np.empty(len(values), np.int64)
    return out, int(_steps(frozen(values), out))


@compiled
def _merged(cls: Any, cells: Any, rows: Any, other_cls: Any, other_cells: Any, other_rows: Any) -> tuple[Any, Any, Any]:
    most = len(cls) + len(other_cls)
    to_cls, to_cells, to_rows = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    one, two, at = 0, 0, 0
    while one < len(cls) and two < len(other_cls):
        if cls[one] < other_cls[two] or (cls[one] == other_cls[two] and cells[one] < other_cells[two]):
            to_cls[at], to_cells[at], to_rows[at] = cls[one], cells[one], rows[one]
            one += 1
        else:
            to_cls[at], to_cells[at], to_rows[at] = other_cls[two], other_cells[two], other_rows[two]
            if cls[one] == other_cls[two] and cells[one] == other_cells[two]:
                to_rows[at] += rows[one]
                one += 1
            two += 1
        at += 1
    for rest in range(one, len(cls)):
        to_cls[at], to_cells[at], to_rows[at] = cls[rest], cells[rest], rows[rest]
        at += 1
    for rest in range(two, len(other_cls)):
        to_cls[at], to_cells[at], to_rows[at] = other_cls[rest], other_cells[rest], other_rows[rest]
        at += 1
    if at == most:
        return to_cls, to_cells, to_rows
    return to_cls[:at].copy(), to_cells[:at].copy(), to_rows[:at].copy()


def merge_counts(
    one: tuple[Indices, Indices, Indices], two: tuple[Indices, Indices, Indices]
) -> tuple[Indices, Indices, Indices]:
    """Classes, cells and rows of both; each is sorted by class and cell, which occur once.

    >>> one = (np.array([0, 0, 1]), np.array([0, 4, 0]), np.array([1, 2, 3]))
    >>> two = (np.array([0, 1]), np.array([1, 0]), np.array([5, 7]))
    >>> [each.tolist() for each in merge_counts(one, two)]
    [[0, 0, 0, 1], [0, 1, 4, 0], [1, 5, 2, 10]]
    """
    cls, cells, rows = _merged(*map(frozen, one), *map(frozen, two))
    return cls, cells, rows


@compiled
def _forward(position: float, at: int, end: int, before: float, cells: Any, first: int, rows: Any) -> Any:
    """On from an entry to the cell of a position (in cells): where that is, rows before it, and before the position."""
    cell = np.floor(position)
    while at < end and cells[at] - first < cell:
        before += rows[at]
        at += 1
    if at < end and cells[at] - first == cell:
        return at, before, before + (position - cell) * rows[at]
    return at, before, before


@compiled
def _begin(position: float, at: int, end: int, cells: Any, first: int, rows: Any) -> Any:
    """Where that is, and the rows before it, from the first entry of a class: most of one is far from what is new."""
    cell, low, high = np.floor(position), at, end
    while low < high:
        middle = (low + high) // 2
        if cells[middle] - first < cell:
            low = middle + 1
        else:
            high = middle
    # Whole numbers: their sum is the same as that of one after the other.
    return low, np.float64(rows[at:low].sum())


@compiled
def _met(
    own: Any, times: Any, weight: Any, own_width: int, back: int, on: int,
    cls: Any, cells: Any, rows: Any, width: int, first: int,
) -> float:  # fmt: skip
    total, entry, start = 0.0, 0, 0
    origin = first * width
    while entry < len(own):
        one = own[entry]
        start = first_not_below(cls, one, start, len(cls))
        end = first_not_below(cls, one + 1, start, len(cls))
        if start == end:
            entry = first_not_below(own, one + 1, entry, len(own))
            continue
        # Windows move on with the entries of a class, and so do both of their ends.
        left, right, before_left, before_right, new = start, start, 0.0, 0.0, True
        while entry < len(own) and own[entry] == one:
            middle = np.float64(times[entry] * own_width - origin) + own_width / 2
            low = middle - back + 0.5
            high = max(low, middle + on - 0.5)
            if new:
                left, before_left = _begin(low / width, start, end, cells, first, rows)
                right, before_right, new = left, before_left, False
            if left == end:  # so is every window after this one
                break
            left, before_left, begins = _forward(low / width, left, end, before_left, cells, first, rows)
            right, before_right, ends = _forward(high / width, right, end, before_right, cells, first, rows)
            total += weight[entry] * (ends - begins)
            entry += 1
        entry, start = first_not_below(own, one + 1, entry, len(own)), end
    return total


def count_pairs(
    news: tuple[Indices, Indices, Indices],
    others: tuple[Indices, Indices, Indices],
    widths: tuple[int, int],
    window: tuple[int, int],
    first: int,
) -> float:
    """How many pairs entries (class, cell, rows) make with others; `widths`: of the cells of both.

    A row stands in the middle of its cell and meets what lies in its window, so far back and so far on; within a cell
    of the others rows lie evenly. Both are sorted by class and then cell; `first`: the earliest cell of the others.

    >>> one = (np.array([3]), np.array([1]), np.array([2]))
    >>> count_pairs(one, (np.array([2, 3, 3]), np.array([1, 0, 1]), np.array([9, 4, 1])), (10, 10), (11, 6), 0)
    6.4
    """
    own, times, weight = (frozen(each) for each in news)
    cls, cells, rows = (frozen(each) for each in others)
    back, on = window
    return float(_met(own, times, weight, widths[0], back, on, cls, cells, rows, widths[1], first))
