"""The rival of lazy sorting: rows that wait for their ends in one list, each inserted at its place when it comes.

The document's "DT: insertion". Its list is walked from the front, so a row costs as many steps as there are rows before
its place: of rows that come in the order of their ends, all of them. `by_halving` finds the place by binary search
instead and moves what is behind it, which is nothing for such rows: kinder than the document's, shown for honesty.

Tuples come one by one in the document, and what a tuple's time has reached leaves the list before it is inserted. So it
is here, though they come in micro-batches: the list is never longer than the window. Lazy sorting has no such need.

`ExpiryArea` is a join's area with such a list beside it, sorted one way or the other: our own areas keep rows with
known ends in runs, and need none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import numpy as np
import pyarrow as pa

from benchmarks.lifetimes_plan import Operators
from streamjoin.algebra import FOREVER
from streamjoin.algebra.interval import Times
from streamjoin.kernels.pairs import compiled
from streamjoin.operators.temporal_join import RunningTemporalJoin
from streamjoin.state import Decided, SweepArea, TimeQueue

Sorting = Literal["none", "lazy", "walking", "halving"]
SORTINGS: Final[tuple[Sorting, ...]] = get_args(Sorting)


@compiled
def _insert(
    times: Any, rows: Any, head: int, tail: int, new_times: Any, new_rows: Any, now: Any, by_halving: bool
) -> tuple[int, int]:
    """Put each new row at its place among those from `head` to `tail`, behind equal ones; the new head and tail."""
    for number in range(len(new_times)):
        time = new_times[number]
        while head < tail and times[head] <= now[number]:
            head += 1
        place = head
        if by_halving:
            end = tail
            while place < end:
                middle = (place + end) // 2
                if times[middle] <= time:
                    place = middle + 1
                else:
                    end = middle
        else:
            while place < tail and times[place] <= time:
                place += 1
        for position in range(tail, place, -1):
            times[position] = times[position - 1]
            rows[position] = rows[position - 1]
        times[place] = time
        rows[place] = new_rows[number]
        tail += 1
    return head, tail


class InsertionQueue:
    """Rows that wait for a time, always in order."""

    def __init__(self, *, by_halving: bool) -> None:
        self.by_halving = by_halving
        self.times, self.rows = np.zeros(1 << 10, np.int64), np.zeros(1 << 10, np.int64)
        self.front = self.head = self.tail = 0  # the first that has not been taken, the first that still waits, the end

    def __len__(self) -> int:
        return self.tail - self.front

    def add(self, times: Times, rows: pa.Table, now: Times) -> None:
        """Let rows wait, each at its place; when it comes, at `now`, those whose time that is wait no longer.

        >>> queue = InsertionQueue(by_halving=False)
        >>> queue.add(np.array([5, 3, 4]), pa.table({"row": [0, 1, 2]}), np.array([0, 0, 3]))
        >>> queue.take(5)[1]["row"].to_pylist(), len(queue)
        ([1, 2], 1)
        """
        if self.tail + len(times) > len(self.times):
            room = 2 * (len(self) + len(times))
            for name in ("times", "rows"):
                old = getattr(self, name)[self.front : self.tail]
                setattr(self, name, np.concatenate([old, np.zeros(room - len(old), np.int64)]))
            self.front, self.head, self.tail = 0, self.head - self.front, self.tail - self.front
        new = np.array(times), np.array(rows["row"].to_numpy()), np.array(now)
        self.head, self.tail = _insert(self.times, self.rows, self.head, self.tail, *new, self.by_halving)

    def take(self, before: int) -> tuple[Times, pa.Table] | None:
        """The rows whose time is before `before`."""
        reached = self.front + int(np.searchsorted(self.times[self.front : self.tail], before))
        if reached == self.front:
            return None
        due = slice(self.front, reached)
        self.front, self.head = reached, max(reached, self.head)
        return self.times[due].copy(), pa.table({"row": self.rows[due].copy()})


@dataclass
class ExpiryArea(SweepArea):
    """An area whose rows also wait in a list, ordered by their ends, until progress has reached them."""

    queue: TimeQueue | InsertionQueue = field(default_factory=TimeQueue)
    numbered: int = 0
    reached: int = 0  # how many rows have left the list

    def purge(self, progress: int, *, ended: bool = True) -> Iterator[Decided]:
        for kept in self.kept:
            if kept.fresh:
                numbers = self.numbered + np.arange(len(kept.run))
                self.numbered += len(numbers)
                rows = kept.run.rows
                if isinstance(self.queue, InsertionQueue):
                    self.queue.add(rows.te, pa.table({"row": numbers}), rows.ts)
                else:
                    self.queue.add(rows.te, pa.table({"row": numbers}))
        due = self.queue.take(progress + 1 if progress < FOREVER else FOREVER)
        self.reached += 0 if due is None else len(due[0])
        yield from super().purge(progress, ended=ended)


def with_expiry_lists(operators: Operators, sorting: Sorting) -> Operators:
    """The same operators; the areas of joins have such a list."""
    for operator in operators.running:
        if isinstance(operator, RunningTemporalJoin) and sorting != "none":
            operator.areas = [
                ExpiryArea(operator.config.matching, tracked, queue=_queue(sorting))
                for tracked in operator.config.tracked
            ]
    return operators


def _queue(sorting: Sorting) -> TimeQueue | InsertionQueue:
    return TimeQueue() if sorting == "lazy" else InsertionQueue(by_halving=sorting == "halving")
