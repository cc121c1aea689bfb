"""The newest n rows of each group, for row windows: only their time stamps and holders, never their payload.

A row that is pushed out by the n-th later one of its group has its end then. What is kept is 24 bytes per row.

What is stored are the rows as they came, in *parts*; a part is written once and forgotten when none of its rows is
kept. Who restores reads all parts in order, and keeps the newest n of each group: these are the same, whatever else a
part holds. When less than half of what is stored is still kept, all of it is written anew.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra.interval import Times
from streamjoin.kernels import move_rings, push_rings
from streamjoin.state.batch import Indices
from streamjoin.state.holders import Ends
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes

SMALLEST_RING = 4
LITTLE = 1 << 12  # rows that may be stored in vain
_FIRST = np.zeros(1, np.int64)


@dataclass
class StoredPart:
    """Rows that came together: how many, and how many of them are kept."""

    rows: int
    kept: int
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class RowRings:
    """The newest `size` rows of each group."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ghosts = 0  # rows that have been pushed out by one of their own time
        self.clear()

    def clear(self) -> None:
        """Keep nothing."""
        self.base, self.capacity, self.head, self.count = (np.zeros(0, np.int64) for _ in range(4))
        self.pool = np.zeros((3, 0), np.int64)  # time, holder, number of the part
        self.used = 0
        self.parts: dict[int, StoredPart] = {}
        self.next_part = 0

    @property
    def rows(self) -> int:
        """Rows kept."""
        return int(self.count.sum())

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return self.pool.nbytes + 4 * self.base.nbytes

    @property
    def holder_nbytes(self) -> int:
        """Those of the holders."""
        return int(self.pool[1].nbytes)

    def follow(self, group: Indices | None, ts: Times, holder: Indices) -> Ends:
        """Rows follow in any order: by time, and by their holders, which count arrivals; see `push`."""
        if not (ts[1:] > ts[:-1]).all():
            order = np.lexsort((holder, ts))
            group, ts, holder = None if group is None else group[order], ts[order], holder[order]
        return self.push(group, ts, holder)

    def push(self, group: Indices | None, ts: Times, holder: Indices) -> Ends:
        """Rows follow, of each group in their order; the ends that this makes known. Without groups there is one.

        >>> rings = RowRings(2)
        >>> rings.push(np.array([0, 1, 0]), np.array([3, 4, 5]), np.array([100, 101, 102])).holder.tolist()
        []
        >>> rings.push(np.array([0]), np.array([9]), np.array([103])).te.tolist()
        [9]
        """
        if not len(ts):
            return Ends.none()
        groups, added = (np.zeros(1, np.int64), np.array([len(ts)])) if group is None else _counted(group)
        self._make_room(groups, added)
        number, self.next_part = self.next_part, self.next_part + 1
        self.parts[number] = StoredPart(len(ts), len(ts))
        if len(groups) == 1:
            ends, label, began = self._push_one(int(groups[0]), ts, holder, number)
        else:
            rows = np.stack([ts, holder, np.full(len(ts), number)])
            out = push_rings(group, rows, self.size, self._rings, self.pool)
            ends, label, began = Ends(out[0], out[1]), out[2], out[3]
        self.ghosts += int((began == ends.te).sum())
        for gone, left in zip(*(column.tolist() for column in _counted(label)), strict=True):
            self.parts[gone].kept -= left
            if not self.parts[gone].kept:
                del self.parts[gone]
        if sum(part.rows for part in self.parts.values()) > 2 * self.rows + LITTLE:
            self._store_anew()
        return ends

    def _push_one(self, group: int, ts: Times, holder: Indices, number: int) -> tuple[Ends, Indices, Times]:
        """The same for rows of one group, without a step per row: what is pushed out, the numbers of its parts, and its
        own times.

        First in, first out: row i that goes is ended by row i of those that came when the ring was full.
        """
        kept = int(self.count[group])
        gone = max(0, kept + len(ts) - self.size)
        te = ts[len(ts) - gone :]
        old, new = min(gone, kept), max(0, gone - kept)  # new: rows that go in the step in which they come
        ring = self._ring(group)
        left = [_read(ring[column], int(self.head[group]), old) for column in (1, 2, 0)]
        if new:
            at_once = holder[:new], np.full(new, number), ts[:new]
            left = [np.concatenate(columns) for columns in zip(left, at_once, strict=True)]
        capacity = ring.shape[1]
        self.head[group] = (self.head[group] + old) % capacity
        self.count[group] = kept - old
        free = (int(self.head[group]) + kept - old) % capacity
        for column, values in enumerate((ts, holder, None)):
            _write(ring[column], free, number if values is None else values[new:], len(ts) - new)
        self.count[group] += len(ts) - new
        return Ends(left[0], te), left[1], left[2]

    def _ring(self, group: int) -> npt.NDArray[np.int64]:
        first = int(self.base[group])
        return self.pool[:, first : first + int(self.capacity[group])]

    def drain(self) -> Indices:
        """The holders of all rows kept; nothing is kept afterwards."""
        holders = self._in_order()[2]
        self.clear()
        return holders

    @property
    def _rings(self) -> tuple[Indices, Indices, Indices, Indices]:
        return self.base, self.capacity, self.head, self.count

    def _make_room(self, groups: Indices, added: Indices) -> None:
        missing = int(groups[-1]) + 1 - len(self.base)
        if missing > 0:
            self.base, self.capacity, self.head, self.count = (
                np.concatenate([column, np.zeros(max(missing, len(column)), np.int64)])
                for column in (self.base, self.capacity, self.head, self.count)
            )
        needed = np.minimum(self.size, self.count[groups] + added)
        small = needed > self.capacity[groups]
        if not small.any():
            return
        groups, needed = groups[small], needed[small]
        room = np.minimum(self.size, np.maximum(np.maximum(needed, 2 * self.capacity[groups]), SMALLEST_RING))
        total = int(room.sum())
        if self.used + total > self.pool.shape[1]:
            self._enlarge(groups, room)
            return
        to = self.used + np.cumsum(room) - room
        move_rings(groups, to, room, self._rings, self.pool, self.pool)
        self.used += total

    def _enlarge(self, grown: Indices, larger: Indices) -> None:
        """A pool in which these groups have so much room; places that rings have left behind are not taken along."""
        capacity = self.capacity.copy()
        capacity[grown] = larger
        groups = np.flatnonzero(capacity)
        room = capacity[groups]
        total = int(room.sum())
        # A single ring is as large as it will be asked to be; many grow one after the other, so there is some reserve.
        reserve = total // 4 if len(groups) > 1 else 0
        pool = np.zeros((3, total + reserve), np.int64)
        move_rings(groups, np.cumsum(room) - room, room, self._rings, self.pool, pool)
        self.pool, self.used = pool, total

    def _in_order(self) -> tuple[Indices, Times, Indices, Indices]:
        """Group, time, holder and part of all rows kept, of each group in their order."""
        group = np.repeat(np.arange(len(self.count)), self.count)
        first = np.cumsum(self.count) - self.count
        within = np.arange(len(group)) - first[group]
        places = self.base[group] + (self.head[group] + within) % np.maximum(self.capacity[group], 1)
        ts, holder, part = self.pool[:, places]
        return group, ts, holder, part

    def _store_anew(self) -> None:
        number, self.next_part = self.next_part, self.next_part + 1
        self.pool[2] = number
        self.parts = {number: StoredPart(self.rows, self.rows)}

    def snapshot(self, name: str) -> Snapshot:
        """What is kept, to be stored."""
        makers = {f"{name}/{part.id}": partial(self._part_bytes, number) for number, part in self.parts.items()}
        parts = [[part.id, part.rows] for part in self.parts.values()]
        return Snapshot({"name": name, "parts": parts}, Blobs(makers))

    def _part_bytes(self, number: int) -> bytes:
        group, ts, holder, part = self._in_order()
        mine = part == number
        return table_to_bytes(pa.table({"group": group[mine], "ts": ts[mine], "holder": holder[mine]}))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.clear()
        counted = self.ghosts  # who is pushed out now was so before
        name = snapshot.manifest["name"]
        for part_id, _ in snapshot.manifest["parts"]:
            columns: Any = table_from_bytes(snapshot.blobs[f"{name}/{part_id}"])
            number = self.next_part
            self.push(*(columns[column].to_numpy() for column in ("group", "ts", "holder")))
            if number in self.parts:
                self.parts[number].id = part_id
        self.ghosts = counted


def _counted(numbers: Indices) -> tuple[Indices, Indices]:
    """The different numbers, in order, and how often each is there."""
    if not len(numbers):
        return numbers, numbers
    starts = np.concatenate([_FIRST, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1])
    if (numbers[starts[1:]] > numbers[starts[:-1]]).all():  # in order already, as the parts of one group are
        return numbers[starts], np.diff(starts, append=len(numbers))
    first, last = int(numbers.min()), int(numbers.max())
    if last - first > 4 * len(numbers):  # few of many: sorting is cheaper than a counter for each
        return np.unique(numbers, return_counts=True)
    count = np.bincount(numbers - first)
    there = np.flatnonzero(count)
    return there + first, count[there]


def _read(column: Indices, first: int, rows: int) -> Indices:
    """So many rows of a ring, from a place on."""
    last = first + rows
    if last <= len(column):
        return column[first:last].copy()
    return np.concatenate([column[first:], column[: last - len(column)]])


def _write(column: Indices, first: int, values: Indices | int, rows: int) -> None:
    """Put so many rows into a ring, from a place on: values, or one value for all."""
    here = min(rows, len(column) - first)
    if isinstance(values, int):
        column[first : first + here] = values
        column[: rows - here] = values
    else:
        column[first : first + here] = values[:here]
        column[: rows - here] = values[here:]
