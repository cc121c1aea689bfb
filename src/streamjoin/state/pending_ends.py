"""Ends of pairs that are not known yet: each the smaller of its two members' ends.

Law: the end of a pair is known when both members' ends are, or when one is, and progress of the other member's input
has reached it: what is unknown there is not smaller. Never before: an end that is known may still be undercut.

    members   17: ?  and  23: ?       the pair waits for both
              17: 9  and  23: ?       it ends at 9, or before: known when input 1's progress is at 9, or 23 is known
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
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
    """Pairs that were formed together: their own holders, their members' holders, the smallest end that is known."""

    id: Indices
    members: tuple[Indices, Indices]
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

    def known(self, progress: tuple[int, int]) -> Ends | None:
        """The pairs whose ends are known now; they wait no longer."""
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
        return PendingPart(self.id[waits], (self.members[0][waits], self.members[1][waits]), self.te[waits])


@dataclass
class PendingEnds:
    """Pairs whose ends are not known."""

    next_id: int
    parts: list[PendingPart] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(part.left for part in self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return sum(4 * part.id.nbytes + sum(index.nbytes for index in part.index) for part in self.parts)

    def add(self, members: tuple[Indices, Indices], te: Times, progress: tuple[int, int]) -> Indices:
        """Pairs are formed: the holders of their ends, -1 where the end is known already, as `te`.

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
            self.parts.append(PendingPart(holder[rows], (members[0][rows], members[1][rows]), te[rows]))
        return holder

    def settle(self, number: int, ends: Ends) -> None:
        """Ends of one input's elements become known."""
        for part in self.parts:
            part.settle(number, ends)

    def known(self, progress: tuple[int, int]) -> Iterator[Ends]:
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
            pair, one, two, te = (table[column].to_numpy().copy() for column in ("id", "one", "two", "te"))
            self.parts.append(PendingPart(pair, (one, two), te, part))


def _bytes(part: PendingPart) -> bytes:
    waits = part.id >= 0
    columns = (part.id, *part.members, part.te)
    return table_to_bytes(pa.table(dict(zip(("id", "one", "two", "te"), (c[waits] for c in columns), strict=True))))
