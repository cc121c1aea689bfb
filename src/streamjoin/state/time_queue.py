"""A queue of rows that wait for a time: for their ends, above all. Lazily sorted.

Law: *what is not due is not sorted*. Rows are added in parts, unsorted, each part with its smallest time remembered;
a part is sorted only when that time is reached. The direct method's lazy expiry sort (Imaki and Nishizawa): inserting
each row at its place would cost the size of the queue per row, sorting what is due costs log of a part.

    part  [ 9 5 7 ]  first 5          take(6):  sort it, 5 leaves      [ . 7 9 ]  first 7
    part  [ 8 9 8 ]  first 8                    untouched              [ 8 9 8 ]  first 8

Rows leave in the order of time: all up to `reached` are gone, and nothing is added behind it. So a stored part is never
written again, and who restores it knows which of its rows have left. Small parts are merged when there are many. Of a
part that is not stored yet, and most of whose rows have left, only the others are kept: most rows of a micro-batch are
due in the same one.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import FOREVER, NEVER, Times
from streamjoin.kernels import sort_order
from streamjoin.state.batch import RESERVED_PREFIX, Indices
from streamjoin.state.snapshot import Blobs, Snapshot, table_from_bytes, table_to_bytes

MOST_PARTS: Final = 32
FEW: Final = 1024  # rows that may be stored in vain
_TIME: Final = RESERVED_PREFIX + "time"


@dataclass
class QueuePart:
    """Rows that came together."""

    times: Times
    rows: pa.Table
    taken: int = 0  # how many, in the order of time, have left
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    stored: bool = False  # or about to be

    def __post_init__(self) -> None:
        self.first = int(self.times.min())

    @cached_property
    def in_order(self) -> bool:
        """Whether the rows came in the order of time: then there is nothing to sort, and nothing to copy."""
        return bool((self.times[1:] >= self.times[:-1]).all())

    @cached_property
    def order(self) -> Indices:
        """The rows in the order of time."""
        return sort_order([self.times])

    @cached_property
    def sorted_times(self) -> Times:
        """The times in order."""
        return self.times if self.in_order else self.times[self.order]

    def __len__(self) -> int:
        return len(self.times) - self.taken

    def due(self, before: int) -> tuple[Times, pa.Table]:
        """The rows whose time is now before `before`, in the order of time; they are gone then."""
        taken, reached = self.taken, int(np.searchsorted(self.sorted_times, before))
        self.taken = reached
        self.first = int(self.sorted_times[reached]) if reached < len(self.times) else FOREVER
        times = self.sorted_times[taken:reached]
        if self.in_order:
            return times, self.rows.slice(taken, reached - taken)
        return times, self.rows.take(pa.array(self.order[taken:reached]))

    def left(self) -> tuple[Times, pa.Table]:
        """What is still there."""
        if not self.taken:
            return self.times, self.rows
        if self.in_order:
            return self.times[self.taken :], self.rows.slice(self.taken)
        positions = np.sort(self.order[self.taken :])
        return self.times[positions], self.rows.take(pa.array(positions))

    def trimmed(self) -> QueuePart:
        """Without what has left, where that is worth while."""
        kept = self.stored or self.taken < FEW or 2 * self.taken < len(self.times)
        return self if kept else QueuePart(*self.left())


@dataclass
class TimeQueue:
    """Rows that wait for a time."""

    reached: int = NEVER
    parts: list[QueuePart] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return sum(int(part.rows.nbytes) + part.times.nbytes for part in self.parts)

    @property
    def first(self) -> int:
        """The time of the next row."""
        return min((part.first for part in self.parts), default=FOREVER)

    def add(self, times: Times, rows: pa.Table) -> None:
        """Let rows wait; none of them for a time that has been reached."""
        if len(times):
            self.parts.append(QueuePart(times, rows))

    def take(self, before: int) -> tuple[Times, pa.Table] | None:
        """The rows whose time is before `before`, part by part in the order of time; None when there are none.

        >>> queue = TimeQueue()
        >>> queue.add(np.array([5, 3]), pa.table({"a": ["five", "three"]}))
        >>> queue.take(4)[1].to_pydict(), len(queue)
        ({'a': ['three']}, 1)
        """
        self.reached = max(self.reached, before - 1 if before > NEVER else NEVER)
        due = [part for part in self.parts if part.first < before]
        if not due:
            return None
        taken = [part.due(before) for part in due]
        self.parts = [part.trimmed() for part in self.parts if len(part)]
        self._merge()
        if len(taken) == 1:
            return taken[0][0], taken[0][1].combine_chunks()
        rows = pa.concat_tables([rows for _, rows in taken]).combine_chunks()
        return np.concatenate([times for times, _ in taken]), rows

    def take_up_to(self, time: int) -> tuple[Times, pa.Table] | None:
        """The rows whose time is `time` or before; what waits for ever is never due."""
        return self.take(time + 1 if time < FOREVER else FOREVER)

    def _merge(self) -> None:
        if len(self.parts) <= MOST_PARTS:
            return
        # The smaller half becomes one part: a row is copied again only when its part has become one of the smaller.
        self.parts.sort(key=len, reverse=True)
        kept, small = self.parts[: MOST_PARTS // 2], self.parts[MOST_PARTS // 2 :]
        left = [part.left() for part in small]
        times = np.concatenate([times for times, _ in left])
        self.parts = [*kept, QueuePart(times, pa.concat_tables([rows for _, rows in left]).combine_chunks())]

    def snapshot(self, name: str) -> Snapshot:
        """What waits, to be stored."""
        makers = {f"{name}/{part.id}": partial(_bytes, part) for part in self.parts}
        for part in self.parts:
            part.stored = True
        return Snapshot(
            {"name": name, "reached": self.reached, "parts": [part.id for part in self.parts]}, Blobs(makers)
        )

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        name, self.reached = snapshot.manifest["name"], snapshot.manifest["reached"]
        self.parts = []
        for part_id in snapshot.manifest["parts"]:
            table = table_from_bytes(snapshot.blobs[f"{name}/{part_id}"])
            times = table[_TIME].to_numpy()
            part = QueuePart(times, table.drop_columns([_TIME]).combine_chunks(), id=part_id, stored=True)
            if part.first <= self.reached:
                part.due(self.reached + 1)
            self.parts.append(part)


def _bytes(part: QueuePart) -> bytes:
    return table_to_bytes(part.rows.append_column(_TIME, pa.array(part.times)))
