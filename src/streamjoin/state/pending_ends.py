"""Ends of pairs, or of results with more members, that are not known yet: each the smallest of its members' ends.

Law: the end of a result is known when all members' ends are, or when the smallest that is known has been reached by the
progress of every input whose member's end is not: what is unknown there is not smaller. Never before: an end that is
known may still be undercut.

    members   17: ?  and  23: ?       the pair waits for both
              17: 9  and  23: ?       it ends at 9, or before: known when input 1's progress is at 9, or 23 is known
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import Mask, Times
from streamjoin.state.batch import Indices
from streamjoin.state.holders import NO_HOLDER, Ends, HolderIndex
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes


@dataclass
class PendingPart:
    """Results that were formed together: their own holders, their members' holders, the smallest end that is known."""

    id: Indices
    members: tuple[Indices, ...]  # of each input
    te: Times
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.index = tuple(HolderIndex(holder) for holder in self.members)
        self.left = len(self.id)
        self.touched = False
        self.first = int(self.te.min())  # before progress is there, nobody is known by progress

    def settle(self, number: int, ends: Ends) -> None:
        """Ends of one input's elements become known."""
        rows, te = self.index[number].find(ends)
        if len(rows):
            self.te[rows] = np.minimum(self.te[rows], te)
            self.members[number][rows] = NO_HOLDER
            self.first = min(self.first, int(te.min()))
            self.touched = True
            self.name = uuid.uuid4().hex

    def known(self, progress: Sequence[int]) -> Ends | None:
        """The results whose ends are known now; they wait no longer."""
        if not self.touched and self.first > max(progress):
            return None
        done: Mask = self.id >= 0
        for holder, reached in zip(self.members, progress, strict=True):
            done &= (holder < 0) | (self.te <= reached)
        self.touched = False
        rows = np.flatnonzero(done)
        if not len(rows):
            return None
        ends = Ends(self.id[rows], self.te[rows])
        self.id[rows] = NO_HOLDER
        self.left -= len(rows)
        self.name = uuid.uuid4().hex
        return ends

    def tidied(self) -> PendingPart:
        """The same without those that wait no longer, if they are most."""
        if 2 * self.left > len(self.id):
            return self
        waits = self.id >= 0
        return PendingPart(self.id[waits], tuple(holder[waits] for holder in self.members), self.te[waits])


@dataclass
class PendingEnds:
    """Results whose ends are not known."""

    next_id: int
    parts: list[PendingPart] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(part.left for part in self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        indices = sum(index.nbytes for part in self.parts for index in part.index)
        return sum((2 + len(part.members)) * part.id.nbytes for part in self.parts) + indices

    def add(self, members: Sequence[Indices], te: Times, progress: Sequence[int]) -> Indices:
        """Results are formed, of members with these holders: the holders of their ends, -1 where they end at `te`.

        >>> pending = PendingEnds(100)
        >>> holders = np.array([17, -1]), np.array([-1, -1])
        >>> pending.add(holders, np.array([9, 8]), (5, 5)).tolist()
        [100, -1]
        """
        unknown = np.zeros(len(te), np.bool_)
        for holder, reached in zip(members, progress, strict=True):
            unknown |= (holder >= 0) & (te > reached)
        rows = np.flatnonzero(unknown)
        holder = np.full(len(te), NO_HOLDER)
        if len(rows):
            holder[rows] = self.next_id + np.arange(len(rows))
            self.next_id += len(rows)
            mine = tuple(member[rows] for member in members)
            self.parts.append(PendingPart(holder[rows], mine, te[rows]))
        return holder

    def settle(self, number: int, ends: Ends) -> None:
        """Ends of one input's elements become known."""
        for part in self.parts:
            part.settle(number, ends)

    def known(self, progress: Sequence[int]) -> Iterator[Ends]:
        """What is known now."""
        for part in self.parts:
            ends = part.known(progress)
            if ends is not None:
                yield ends
        self.parts = [part.tidied() for part in self.parts if part.left]

    def snapshot(self, name: str) -> Snapshot:
        """To be stored."""
        makers = {f"{name}/{part.name}": partial(_bytes, part) for part in self.parts}
        parts = [part.name for part in self.parts]
        return Snapshot({"name": name, "parts": parts, "next_id": self.next_id}, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        name, self.next_id, self.parts = snapshot.manifest["name"], snapshot.manifest["next_id"], []
        for part in snapshot.manifest["parts"]:
            table = table_from_bytes(snapshot.blobs[f"{name}/{part}"])
            result, te, *members = (table[column].to_numpy().copy() for column in table.column_names)
            self.parts.append(PendingPart(result, tuple(members), te, part))


def _bytes(part: PendingPart) -> bytes:
    waits = part.id >= 0
    members = {f"member{number}": holder[waits] for number, holder in enumerate(part.members)}
    return table_to_bytes(pa.table({"id": part.id[waits], "te": part.te[waits], **members}))
