"""Rows per (class of keys, cell of time): all that a recall target must know of a stream.

A *cell* is a stretch of time of a fixed width, a *class* the lowest bits of the hash of a row's keys: rows that match
are of one class, whatever its bits. So counts become smaller in two ways, and both keep their meaning: fewer bits, and
wider cells. Counts are whole numbers: in whatever order they are added, the sum is the same.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import FOREVER, Times
from streamjoin.kernels import classes_of, count_cells, entries_of, extents, merge_counts, steps_between, tally

Floats = npt.NDArray[np.float64]

MOST_BITS: Final = 16
# Room for the number of a cell beside its class.
CELLS_OF_CLASS: Final = 1 << 44
# From here on rows are counted without sorting them, in a table with a place for each class and cell if it is small.
MANY_ROWS: Final = 1 << 16
PLACES: Final = 1 << 18
# Rows that are looked at first; and how many times too many entries are counted, to be told in less detail afterwards.
SAMPLE: Final = 1 << 13
MANY_TIMES: Final = 4
_COLUMNS: Final = 3
# Where the width of cells stood when all columns were stored in eight bytes.
_NARROW: Final = 0
_HEAD, _WIDE_HEAD = 8 * (4 + _COLUMNS), 16
# What halving classes must save to be worth it: where cells hold single rows, classes cost nothing.
_WORTH: Final = 0.8


@dataclass(frozen=True)
class Counts:
    """Rows per class and cell, sorted by class, then cell. Class and cell are numbers, cell `c` begins at `c * width`.

    >>> counted(np.array([7, 7, 7]), np.array([0, 4, 5]), width=5, bits=0).cell.tolist()
    [0, 1]
    """

    width: int
    bits: int
    cls: Times
    cell: Times
    rows: Times

    def __len__(self) -> int:
        return len(self.cell)

    # What follows from all entries is asked for in every micro-batch, and entries do not change.

    @cached_property
    def first(self) -> int:
        """The earliest cell."""
        return int(self.cell.min())

    @cached_property
    def last(self) -> int:
        """The latest cell."""
        return int(self.cell.max())

    @cached_property
    def middle(self) -> int:
        """Half of the entries are of this cell or earlier."""
        half = (len(self) - 1) // 2
        return int(np.partition(self.cell, half)[half])

    @cached_property
    def halves(self) -> tuple[Counts, Counts]:
        """The older entries, and the others: about as many. The older ones are some, if there are any at all."""
        older, newer = self.split(int(np.median(self.cell)) * self.width)
        return (older, newer) if len(older) else (newer, older)  # all of it is of one time

    @property
    def columns(self) -> tuple[Times, Times, Times]:
        """Classes, cells and rows."""
        return self.cls, self.cell, self.rows

    @property
    def classes(self) -> int:
        """How many have any rows."""
        return int(np.count_nonzero(np.diff(self.cls))) + min(1, len(self))

    @property
    def total(self) -> int:
        """Rows in all."""
        return int(self.rows.sum())

    def with_bits(self, bits: int) -> Counts:
        """The same rows in fewer classes."""
        if bits >= self.bits:
            return self
        if bits not in self._fewer:
            self._fewer[bits] = _grouped(self.width, bits, self.cls & ((1 << bits) - 1), self.cell, self.rows)
        return self._fewer[bits]

    @cached_property
    def _fewer(self) -> dict[int, Counts]:
        """What `with_bits` has answered: old rows meet new ones of the same few details again and again."""
        return {}

    def with_width(self, width: int) -> Counts:
        """The same rows in wider cells; the width is a multiple of the one before."""
        if width <= self.width:
            return self
        return _summed(width, self.bits, self.cls, self.cell // (width // self.width), self.rows)

    def since(self, time: int) -> Counts:
        """Without the cells that end at or before a time."""
        return self._some((self.cell + 1) * self.width > time)

    def split(self, time: int) -> tuple[Counts, Counts]:
        """The cells that begin before a time, and the others."""
        before = self.cell * self.width < time
        return self._some(before), self._some(~before)

    def _some(self, mask: Any) -> Counts:
        if mask.all():
            return self
        return Counts(self.width, self.bits, self.cls[mask], self.cell[mask], self.rows[mask])

    def to_bytes(self) -> bytes:
        """To be stored, small: classes and cells as steps from one to the next, in types that just hold them."""
        columns = [steps_between(self.cls), steps_between(self.cell), (self.rows, int(self.rows.max(initial=0)))]
        sizes = [_bytes_of(most) for _, most in columns]
        head = np.array([_NARROW, self.width, self.bits, len(self), *sizes], "<i8").tobytes()
        stored = [column.astype(f"<i{size}").tobytes() for (column, _), size in zip(columns, sizes, strict=True)]
        return head + zlib.compress(b"".join(stored), 1)

    @staticmethod
    def from_bytes(stored: bytes) -> Counts:
        """The inverse of `to_bytes`; what was stored before columns had types of their own is read as well."""
        width, bits = np.frombuffer(bytes(stored[:_WIDE_HEAD]), "<i8").tolist()
        if width == _NARROW:
            _, width, bits, entries, *sizes = np.frombuffer(bytes(stored[:_HEAD]), "<i8").tolist()
            packed = zlib.decompress(bytes(stored[_HEAD:]))
        else:
            packed = zlib.decompress(bytes(stored[_WIDE_HEAD:]))
            entries, sizes = len(packed) // (8 * _COLUMNS), [8] * _COLUMNS
        ends = [entries * sum(sizes[: at + 1]) for at in range(_COLUMNS)]
        cls, cell, rows = (
            np.frombuffer(packed, f"<i{size}", entries, end - size * entries).astype(np.int64)
            for size, end in zip(sizes, ends, strict=True)
        )
        return Counts(width, bits, np.cumsum(cls), np.cumsum(cell), rows)


def _bytes_of(most: int) -> int:
    """Of the smallest whole numbers that hold all up to this one."""
    return next(size for size in (1, 2, 4, 8) if most < 1 << (8 * size - 1))


def _grouped(width: int, bits: int, cls: Times, cell: Times, rows: Times) -> Counts:
    """Counts of what may occur several times, in any order."""
    if not len(cell):
        return Counts(width, bits, cls, cell, rows)
    first = int(cell.min())
    if int(cell.max()) - first < CELLS_OF_CLASS:
        # Counts of several parts, and of fewer classes, are a few sorted runs: a stable sort merges them.
        order = np.argsort(cls * CELLS_OF_CLASS + (cell - first), kind="stable")
    else:
        order = np.lexsort((cell, cls))
    return _summed(width, bits, cls[order], cell[order], rows[order])


def _summed(width: int, bits: int, cls: Times, cell: Times, rows: Times) -> Counts:
    """Counts of what may occur several times, sorted by class and cell."""
    if not len(cell):
        return Counts(width, bits, cls, cell, rows)
    new = np.empty(len(cell), np.bool_)
    new[0] = True
    np.not_equal(cell[1:], cell[:-1], out=new[1:])
    new[1:] |= cls[1:] != cls[:-1]
    first = np.flatnonzero(new)
    if len(first) == len(cell):
        return Counts(width, bits, cls, cell, rows)
    return Counts(width, bits, cls[first], cell[first], np.add.reduceat(rows, first))


@dataclass(frozen=True)
class Rows:
    """Rows to be counted: the class of each, its time stamp, and the earliest and the latest of each block of rows."""

    cls: npt.NDArray[np.uint16]
    ts: Times
    ends: Times

    def __len__(self) -> int:
        return len(self.ts)

    @staticmethod
    def of(group: Times, ts: Times, bits: int, ends: Times | None = None) -> Rows:
        """Rows with these codes of keys; `ends`: the `extents` of their time stamps, where they are known."""
        return Rows(classes_of(group, bits), ts, extents(ts) if ends is None else ends)

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """Rows of all parts."""
        if len(parts) == 1:
            return parts[0]
        ts = np.concatenate([each.ts for each in parts])
        return Rows(np.concatenate([each.cls for each in parts]), ts, extents(ts))

    def count(self, *, width: int, bits: int, most: int = FOREVER) -> Counts:
        """The counts of rows whose classes have so many bits.

        Many rows are counted in fewer classes, and in wider cells if these are too many by themselves, where there
        would be far more entries than `most`. It is entries that count: a few rows that are late, or of no time at all,
        add a few, however many cells lie between them and the others.
        """
        ts = self.ts
        if len(ts) < MANY_ROWS or most == FOREVER:
            return _grouped(width, bits, self.cls.astype(np.int64), ts // width, np.ones(len(ts), np.int64))
        width, bits = self._detail(width, bits, most)
        first, last = int(self.ends[0].min()) // width, int(self.ends[1].max()) // width
        if last - first < PLACES >> bits:
            return _in_a_table(self, (first, last), width, bits, most)
        while (entries := tally(self.cls, ts, width, bits, MANY_TIMES * most)) is None:
            width, bits = (width, bits - 1) if bits else (2 * width, bits)
        return _grouped(width, bits, *entries)

    def _detail(self, width: int, bits: int, most: int) -> tuple[int, int]:
        """The width of cells, and the bits of classes, with which some of the rows have at most so many entries. What
        is too many for some of them is too many for all.
        """
        step = max(1, len(self) // SAMPLE)
        cls, ts = np.ascontiguousarray(self.cls[::step]), np.ascontiguousarray(self.ts[::step])
        bits = bisect_left(range(bits), True, key=lambda less: tally(cls, ts, width, less + 1, most) is None)
        while not bits and tally(cls, ts, width, bits, most) is None:
            width *= 2
        return width, bits


def counted(group: Times, ts: Times, *, width: int, bits: int, most: int = FOREVER) -> Counts:
    """The counts of rows with these codes of keys and time stamps."""
    return Rows.of(group, ts, bits).count(width=width, bits=bits, most=most)


def _in_a_table(rows: Rows, between: tuple[int, int], width: int, bits: int, most: int) -> Counts:
    """The counts of rows between two cells, of which a table with all classes has places enough."""
    first, last = between
    span = last - first + 1
    table = count_cells(rows.cls, rows.ts, rows.ends, width, first, (span, 1 << bits))
    while bits and (entries := np.count_nonzero(table)) > most:
        half = half_of(bits, int(np.count_nonzero(table.any(axis=0))))
        fewer = table.reshape(span, -1, 1 << half).sum(axis=1, dtype=table.dtype)
        if np.count_nonzero(fewer) > _WORTH * entries:
            break
        table, bits = fewer, half
    return Counts(width, bits, *entries_of(table, first))


def half_of(bits: int, classes: int) -> int:
    """How many bits leave about half of the classes that there are."""
    return min(bits, classes.bit_length()) - 1


def together(parts: Sequence[Counts]) -> Counts:
    """Counts of several parts of a stream in one: of the fewest bits, and the widest cells.

    >>> one = counted(np.array([1]), np.array([8]), width=2, bits=0)
    >>> both = together([one, one.with_width(4)])
    >>> both.width, both.cell.tolist(), both.rows.tolist()
    (4, [2], [2])
    """
    width, bits = max(part.width for part in parts), min(part.bits for part in parts)
    if len(parts) == 1:
        return parts[0]
    same = [part.with_bits(bits).with_width(width).columns for part in parts]
    while len(same) > 1:
        pairs = [merge_counts(*same[at : at + 2]) for at in range(0, len(same) - 1, 2)]
        same = pairs + same[2 * len(pairs) :]
    return Counts(width, bits, *same[0])


def fitted(counts: Counts, most: int, widest: int | None = None) -> Counts:
    """Counts in at most so many entries: classes are halved where that helps, otherwise cells become twice as wide.

    Cells wider than `widest` come last of all: in those rows cannot be told from rows of other windows.
    """
    while len(counts) > most:
        fewer = counts.with_bits(half_of(counts.bits, counts.classes)) if counts.bits else counts
        wide = widest is not None and 2 * counts.width > widest
        if counts.bits and (wide or len(fewer) <= _WORTH * len(counts)):
            counts = fewer
        else:
            counts = counts.with_width(2 * counts.width)
    return counts
