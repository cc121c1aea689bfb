"""Who has met someone: what is noted beside a run whose rows must know their fate (outer, semi, anti joins).

    met      a mark for each row: it has met a partner
    pieces   where it is asked in which parts of a row's validity: (row, from, to, holder of the end, -1 if it is known)

A run is immutable, this is not. So it has a name of its own, new with every change and with every attempt at one: two
attempts at a micro-batch can never take each other's notes for their own.

A piece whose end is unknown lasts as long as its row; when the partner's end is learned it ends there, if not before,
and may turn out to be empty.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.algebra.interval import Mask, Times
from streamjoin.kernels.coverage import parts_of_validity
from streamjoin.state.batch import NO_HOLDER, Batch, Indices
from streamjoin.state.holders import Ends, HolderIndex
from streamjoin.state.snapshot import table_from_bytes, table_to_bytes

Pieces = tuple[Indices, Times, Times]
# The same with the holder of the end, -1 where it is known.
HeldPieces = tuple[Indices, Times, Times, Indices]
_NOTHING: Indices = np.empty(0, np.int64)
# So few pieces are not worth looking at.
MANY: Final = 256
NO_PIECES: Pieces = (_NOTHING, _NOTHING, _NOTHING)


@dataclass(frozen=True)
class Decided:
    """Rows that have left a tracked area, whether each met anyone, and the pieces `(row, from, to)` where it did."""

    rows: Batch
    matched: Mask
    pieces: Pieces = NO_PIECES


@dataclass
class Meetings:
    """What is known of the meetings of a run's rows; `covered` says that it is asked in which parts."""

    met: Mask
    covered: bool = False
    pieces: list[HeldPieces] = field(default_factory=list)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    united: int = MANY  # how many pieces there were when they were united last

    @staticmethod
    def nobody(rows: int, *, covered: bool) -> Meetings:
        """None of so many rows has met anyone."""
        return Meetings(np.zeros(rows, np.bool_), covered)

    def meet(self, rows: Indices) -> Indices:
        """These rows, in any order and any number of times, meet someone: those of them that had met nobody.

        >>> meetings = Meetings.nobody(3, covered=False)
        >>> meetings.meet(np.array([2, 0, 2])).tolist(), meetings.meet(np.array([0, 1])).tolist()
        ([0, 2], [1])
        """
        newly = np.unique(rows)
        newly = newly[~self.met[newly]]
        if len(newly):
            self.met[newly] = True
            self._changed()
        return newly

    def cover(self, rows: Indices, start: Times, end: Times, holder: Indices | None) -> None:
        """These rows have a partner in these parts of their validity; the ends are known where there is no holder."""
        self.pieces.append((rows, start, end, np.full(len(rows), NO_HOLDER) if holder is None else holder))
        self._changed()

    def all_pieces(self) -> HeldPieces:
        """The pieces of all rows, in one. Those with known ends that meet one another are united, whenever there are
        twice as many as the last time: a row that meets the same partners for ever needs no more than one.
        """
        if len(self.pieces) > 1:
            self.pieces = [_concatenated(self.pieces)]
            if len(self.pieces[0][0]) > 2 * self.united:
                self.pieces = [self._united(self.pieces[0])]
                self.united = max(MANY, len(self.pieces[0][0]))
        return self.pieces[0] if self.pieces else (_NOTHING, _NOTHING, _NOTHING, _NOTHING)

    def _united(self, pieces: HeldPieces) -> HeldPieces:
        known = pieces[3] == NO_HOLDER
        rows = len(self.met)
        always = np.full(rows, NEVER), np.full(rows, FOREVER)
        row, start, end = parts_of_validity(
            *always, (pieces[0][known], pieces[1][known], pieces[2][known]), covered=True
        )
        unknown = tuple(column[~known] for column in pieces)
        return _concatenated([(row, start, end, np.full(len(row), NO_HOLDER)), unknown])

    @property
    def nbytes(self) -> int:
        """How large the notes are."""
        return self.met.nbytes + sum(column.nbytes for piece in self.pieces for column in piece)

    def settle(self, ends: Ends) -> None:
        """Ends of partners become known, and with them those of pieces."""
        row, start, end, holder = self.all_pieces()
        places, te = HolderIndex(holder).find(ends)
        if len(places):
            end, holder = end.copy(), holder.copy()
            end[places], holder[places] = np.minimum(end[places], te), NO_HOLDER
            self.pieces = [(row, start, end, holder)]
            self._changed()

    def hand_out(self, rows: Batch, positions: Indices) -> Decided:
        """Rows of the run leave, with what is known of them; their pieces are kept no longer."""
        pieces = NO_PIECES
        if self.covered:
            new_row = np.full(len(rows), -1, np.int64)
            new_row[positions] = np.arange(len(positions))
            row, start, end, holder = self.all_pieces()
            mine = new_row[row] >= 0
            until = np.minimum(end, rows.te[row])
            real = mine & (start < until)
            pieces = (new_row[row[real]], start[real], until[real])
            self.pieces = [(row[~mine], start[~mine], end[~mine], holder[~mine])]
            self._changed()
        return Decided(rows.take(positions), self.met[positions], pieces)

    @staticmethod
    def merged(parts: Sequence[Meetings], order: Indices) -> Meetings:
        """Those of several runs, after their rows (one run after the other) have been taken in this order."""
        everyone = np.concatenate([part.met for part in parts])
        new_row = np.full(len(everyone), -1, np.int64)
        new_row[order] = np.arange(len(order))
        pieces, offset = [], 0
        for part in parts:
            row, start, end, holder = part.all_pieces()
            moved = new_row[row + offset]
            there = moved >= 0
            pieces.append((moved[there], start[there], end[there], holder[there]))
            offset += len(part.met)
        covered = parts[0].covered
        return Meetings(everyone[order], covered, pieces if covered else [])

    def _changed(self) -> None:
        self.name = uuid.uuid4().hex


def _concatenated(pieces: Sequence[HeldPieces]) -> HeldPieces:
    row, start, end, holder = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    return row, start, end, holder


def marks_to_bytes(met: Mask) -> bytes:
    """Marks, to be stored.

    >>> marks_from_bytes(marks_to_bytes(np.array([True, False, True])), 3).tolist()
    [True, False, True]
    """
    return np.packbits(met).tobytes()


def marks_from_bytes(blob: bytes, rows: int) -> Mask:
    """The inverse of `marks_to_bytes`."""
    return np.unpackbits(np.frombuffer(blob, np.uint8), count=rows).astype(np.bool_)


def pieces_to_bytes(pieces: HeldPieces) -> bytes:
    """Pieces, to be stored."""
    return table_to_bytes(pa.table(dict(zip(("row", "from", "to", "holder"), pieces, strict=True))))


def pieces_from_bytes(blob: bytes) -> HeldPieces:
    """The inverse of `pieces_to_bytes`."""
    table = table_from_bytes(blob)
    row, start, end, holder = (table[column].to_numpy() for column in ("row", "from", "to", "holder"))
    return row, start, end, holder
