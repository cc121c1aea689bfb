"""Rows that wait for ends that are not known.

Rows come in parts, and stay where they are: beside a part is noted which of its rows still wait. What is stored of a
part is written once, and the note when it changes; a part of which most have left is made anew. Mostly rows leave as
they came, one after the other: then nothing is copied.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import Mask, Times
from streamjoin.state.batch import RESERVED_PREFIX, Indices, with_columns
from streamjoin.state.holders import Ends, HolderIndex
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes

_HOLDER: Final = RESERVED_PREFIX + "holder"
WORTH_KEEPING: Final = 4  # a part is kept while more than one row of so many waits


@dataclass
class UnknownPart:
    """Rows that began to wait together, and which of them still do."""

    holder: Indices
    rows: pa.Table
    waits: Mask
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    note: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.index = HolderIndex(self.holder)

    def settle(self, ends: Ends) -> tuple[Times, pa.Table] | None:
        """The rows whose ends these are; they wait no longer."""
        positions, te = self.index.find(ends)
        if not len(positions):
            return None
        self.waits[positions] = False
        self.note = uuid.uuid4().hex
        first, count = int(positions[0]), len(positions)
        if (positions == np.arange(first, first + count)).all():
            return te, self.rows.slice(first, count)
        return te, self.rows.take(pa.array(positions))

    def left(self) -> pa.Table:
        """The rows that still wait."""
        return self.rows if self.waits.all() else self.rows.filter(pa.array(self.waits))

    def tidied(self) -> UnknownPart:
        """The same without those that have left, if they are most."""
        if WORTH_KEEPING * int(self.waits.sum()) > len(self.waits):
            return self
        holder = self.holder[self.waits]
        return UnknownPart(holder, self.left(), np.ones(len(holder), np.bool_))


@dataclass
class UnknownEnds:
    """Rows that wait for ends that are not known; the rows have at least one column."""

    parts: list[UnknownPart] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(int(part.waits.sum()) for part in self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return sum(int(part.rows.nbytes) + part.holder.nbytes for part in self.parts)

    def add(self, holder: Indices, rows: pa.Table) -> None:
        """Rows begin to wait."""
        if len(holder):
            self.parts.append(UnknownPart(holder, rows, np.ones(len(holder), np.bool_)))

    def settle(self, ends: Ends) -> Iterator[tuple[Times, pa.Table]]:
        """The rows whose ends these are, and the ends.

        >>> unknown = UnknownEnds()
        >>> unknown.add(np.array([7, 8]), pa.table({"a": ["x", "y"]}))
        >>> [(te.tolist(), rows.to_pydict()) for te, rows in unknown.settle(Ends(np.array([8]), np.array([30])))]
        [([30], {'a': ['y']})]
        >>> len(unknown)
        1
        """
        kept = []
        for part in self.parts:
            known = part.settle(ends)
            if known is None:
                kept.append(part)
                continue
            yield known
            if part.waits.any():
                kept.append(part.tidied())
        self.parts = kept

    def snapshot(self, name: str) -> Snapshot:
        """What waits, to be stored."""
        makers = {}
        for part in self.parts:
            makers[f"{name}/{part.id}"] = partial(_bytes, part)
            makers[f"{name}/{part.id}/{part.note}"] = partial(_mask_bytes, part.waits.copy())
        parts = [[part.id, part.note, len(part.waits)] for part in self.parts]
        return Snapshot({"name": name, "parts": parts}, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        name, self.parts = snapshot.manifest["name"], []
        for part, note, rows in snapshot.manifest["parts"]:
            table = table_from_bytes(snapshot.blobs[f"{name}/{part}"])
            bits = np.frombuffer(snapshot.blobs[f"{name}/{part}/{note}"], np.uint8)
            waits = np.unpackbits(bits, count=rows).astype(np.bool_)
            holder = table[_HOLDER].to_numpy()
            self.parts.append(UnknownPart(holder, table.drop_columns([_HOLDER]), waits, part, note))


def _bytes(part: UnknownPart) -> bytes:
    return table_to_bytes(with_columns(part.rows, **{_HOLDER: part.holder}))


def _mask_bytes(mask: Mask) -> bytes:
    return np.packbits(mask).tobytes()
