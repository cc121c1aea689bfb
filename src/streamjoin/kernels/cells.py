"""Rows per class of keys and cell of time, each in one pass: counting them without sorting, and adding counts up."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Times
from streamjoin.kernels.hashing import GOLDEN, mix
from streamjoin.kernels.pairs import Indices, compiled, frozen

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
def _tally(classes: Any, ts: Any, width: int, mask: np.uint16, room: int) -> tuple[int, Any, Any, Any]:
    cls, cells, rows = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    slots = 1
    while slots < 2 * room:
        slots *= 2
    entries, size, last = np.zeros(slots, np.int32), 0, np.uint64(slots - 1)  # of an entry, its place and one more
    begin, end, cell, spread = np.int64(1), np.int64(0), np.int64(0), np.uint64(0)
    for row, time in enumerate(ts):
        if time < begin or time > end:
            cell = time // width
            begin, end, spread = cell * width, cell * width + (width - 1), mix(np.uint64(cell) + GOLDEN)
        one = np.int64(classes[row] & mask)
        slot = (spread + np.uint64(one) * GOLDEN) & last
        while entries[slot] and (cls[entries[slot] - 1] != one or cells[entries[slot] - 1] != cell):
            slot = (slot + np.uint64(1)) & last
        if entries[slot]:
            rows[entries[slot] - 1] += 1
        elif size == room:
            return row, cls, cells, rows
        else:
            cls[size], cells[size], rows[size] = one, cell, 1
            size += 1
            entries[slot] = size
    return len(ts), cls[:size], cells[:size], rows[:size]


def tally(
    classes: npt.NDArray[np.uint16], ts: Times, width: int, bits: int, room: int
) -> tuple[Indices, Indices, Indices] | None:
    """Classes of so many bits, cells and rows, in any order, however far apart cells are; None where there are more
    than there is room for.

    >>> classes, ts = np.array([6, 7, 6], np.uint16), np.array([10, 14, 10**9])
    >>> [each.tolist() for each in tally(classes, ts, 5, 0, 2)], tally(classes, ts, 5, 1, 2)
    ([[0, 0], [2, 200000000], [2, 1]], None)
    """
    done, *columns = _tally(frozen(classes), frozen(ts), width, np.uint16((1 << bits) - 1), room)
    if done < len(ts):
        return None
    cls, cells, rows = columns
    return cls, cells, rows


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
