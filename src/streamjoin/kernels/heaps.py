"""The least living value of each group: two heaps per group, one of what came, one of what went (lazy deletion).

    came   3 5 5 8          The least living value is on top of `came`, once equal tops have been taken off both heaps.
    went   5                What went from below the top stays in both until it comes up.

Laws: when more than half of what came has gone, the group's heaps are rebuilt without it, which its removals pay for.
So what came is at most twice what lives. All heaps lie in one pool of blocks, heap 2g of what came to group g, and
2g + 1 of what went. A heap that outgrows its block moves to one of twice the size at the end of the pool. When the pool
is full, or mostly air, all blocks are laid out anew with a third of each free. A change costs O(log n) on average.

Entries are integers in the order of the values (the greatest value: of their complements), or numbers of byte strings
in a text `(offsets, data, direction)`, compared byte by byte; direction -1 turns the order around.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.aggregation import Steps
from streamjoin.kernels.pairs import Indices, compiled, frozen
from streamjoin.kernels.per_group import with_room

Text = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], int]

_USED: Final = 0  # places in `figures`: up to where the pool is taken
_ENTRIES: Final = 1  # and how many entries all heaps have
_SMALLEST_BLOCK: Final = 4
_SMALL_POOL: Final = 1024  # not worth to be shrunk


@compiled
def compare(a: int, b: int, text: Any) -> Any:
    """Below, equal to or above zero as entry `a` comes before `b`, is equal to it, or comes after it."""
    if text is None:
        return int(a > b) - int(a < b)
    offsets, data, direction = text
    a_length, b_length = offsets[a + 1] - offsets[a], offsets[b + 1] - offsets[b]
    for place in range(min(a_length, b_length)):
        one, two = data[offsets[a] + place], data[offsets[b] + place]
        if one != two:
            return direction if one > two else -direction
    return direction * (int(a_length > b_length) - int(a_length < b_length))


@compiled
def _push(pool: Any, first: int, size: int, entry: int, text: Any) -> None:
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if compare(pool[first + parent], entry, text) <= 0:
            break
        pool[first + place] = pool[first + parent]
        place = parent
    pool[first + place] = entry


@compiled
def _pop(pool: Any, first: int, size: int, text: Any) -> None:
    """Take the top off a heap; its last place becomes free."""
    last, place = pool[first + size - 1], 0
    while 2 * place + 1 < size - 1:
        child = 2 * place + 1
        if child + 1 < size - 1 and compare(pool[first + child + 1], pool[first + child], text) < 0:
            child += 1
        if compare(last, pool[first + child], text) <= 0:
            break
        pool[first + place] = pool[first + child]
        place = child
    pool[first + place] = last


@compiled
def _prune(pool: Any, start: Any, size: Any, came: int, figures: Any, text: Any) -> None:
    """Take equal tops off both heaps of a group: then the top of what came is alive."""
    went = came + 1
    while size[went] > 0 and size[came] > 0 and compare(pool[start[went]], pool[start[came]], text) == 0:
        for heap in (came, went):
            _pop(pool, start[heap], size[heap], text)
            size[heap] -= 1
            figures[_ENTRIES] -= 1


@compiled
def _rebuild(pool: Any, start: Any, size: Any, came: int, figures: Any, text: Any) -> None:
    """Leave only what lives in a group's heaps: pop in order, keep what has not gone, which sorted is a heap again."""
    went, first, last = came + 1, start[came], size[came] - 1
    kept = 0
    while size[came] > 0:
        entry = pool[first]
        gone = size[went] > 0 and compare(pool[start[went]], entry, text) == 0
        _pop(pool, first, size[came], text)
        size[came] -= 1
        if gone:
            _pop(pool, start[went], size[went], text)
            size[went] -= 1
            figures[_ENTRIES] -= 2
        else:
            pool[first + last - kept] = entry  # popping has freed the places at the end
            kept += 1
    for place in range(kept):
        mirror = last - place
        if place < mirror:
            pool[first + place], pool[first + mirror] = pool[first + mirror], pool[first + place]
    size[came] = kept


@compiled
def _fold_heaps(
    group: Any,
    sign: Any,
    entry: Any,
    at: Any,
    who: Any,
    change: int,
    read: int,
    pool: Any,
    start: Any,
    size: Any,
    room: Any,
    figures: Any,
    text: Any,
    out: Any,
) -> tuple[int, int]:
    """Fold from this change and read on. Returns where it stopped: at the end, or where a larger pool is needed."""
    reads = len(at)
    while True:
        while read < reads and at[read] == change:
            came = 2 * who[read]
            if size[came] > 0:
                out[read] = pool[start[came]]
            read += 1
        if change == len(group):
            return change, read
        came = 2 * group[change]
        heap = came if sign[change] > 0 else came + 1
        if size[heap] == room[heap]:
            block = max(_SMALLEST_BLOCK, 2 * room[heap])
            if figures[_USED] + block > len(pool):
                return change, read
            for place in range(size[heap]):
                pool[figures[_USED] + place] = pool[start[heap] + place]
            start[heap], room[heap] = figures[_USED], block
            figures[_USED] += block
        _push(pool, start[heap], size[heap], entry[change], text)
        size[heap] += 1
        figures[_ENTRIES] += 1
        _prune(pool, start, size, came, figures, text)
        if 2 * size[came + 1] > size[came]:
            _rebuild(pool, start, size, came, figures, text)
        change += 1


@compiled
def _lay_out(pool: Any, start: Any, size: Any, room: Any, new_pool: Any) -> int:
    used = 0
    for heap in range(len(start)):
        for place in range(size[heap]):
            new_pool[used + place] = pool[start[heap] + place]
        start[heap], room[heap] = used, size[heap] + (size[heap] + 1) // 2
        used += room[heap]
    return used


def _nothing() -> npt.NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass
class Heaps:
    """The heaps of all groups.

    >>> from streamjoin.kernels.aggregation import Reads
    >>> heaps = Heaps()
    >>> heaps.grow(1)
    >>> signs, reads = np.array([1, 1, 1, -1], np.int8), Reads(np.array([2, 4]), np.array([0, 0]))
    >>> fold_heaps(Steps(np.zeros(4, np.int64), signs, reads), np.array([5, 3, 8, 3]), heaps, None).tolist()
    [3, 5]
    """

    pool: npt.NDArray[np.int64] = field(default_factory=_nothing)
    start: npt.NDArray[np.int64] = field(default_factory=_nothing)
    size: npt.NDArray[np.int64] = field(default_factory=_nothing)
    room: npt.NDArray[np.int64] = field(default_factory=_nothing)
    figures: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, np.int64))

    @property
    def entries(self) -> int:
        """Entries of all heaps: what lives, and what has gone but is still there, twice."""
        return int(self.figures[_ENTRIES])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (self.pool, self.start, self.size, self.room))

    def grow(self, groups: int) -> None:
        """Have room for so many groups."""
        self.start, self.size, self.room = (
            with_room(array, 2 * groups) for array in (self.start, self.size, self.room)
        )

    def renumber(self, old_to_new: Indices) -> None:
        """Move the groups to new codes; those that go are empty."""
        old = np.flatnonzero(old_to_new >= 0)
        heaps = (2 * old_to_new[old][:, None] + np.arange(2)).ravel()
        groups = int(old_to_new.max(initial=-1)) + 1
        for name in ("start", "size", "room"):
            moved = np.zeros(2 * groups, np.int64)
            moved[heaps] = getattr(self, name)[(2 * old[:, None] + np.arange(2)).ravel()]
            setattr(self, name, moved)
        self.lay_out()

    def lay_out(self, wanted: int = 0) -> None:
        """All blocks anew, one after the other, with as much room again behind them, and `wanted` more."""
        blocks = int(self.size.sum() + ((self.size + 1) // 2).sum())
        pool = np.empty(2 * blocks + wanted, np.int64)
        self.figures[_USED] = _lay_out(self.pool, self.start, self.size, self.room, pool)
        self.pool = pool

    def places(self) -> Indices:
        """Where in the pool the entries of all heaps are, heap after heap."""
        ends = np.cumsum(self.size)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - self.size, self.size)
        return np.repeat(self.start, self.size) + within

    def living(self, text: Text | None) -> tuple[Indices, Indices]:
        """Group and entry of everything alive."""
        _rebuild_all(self.pool, self.start, self.size, self.figures, _frozen_text(text))
        groups = np.repeat(np.arange(len(self.size)) // 2, self.size)
        return groups, self.pool[self.places()]


@compiled
def _rebuild_all(pool: Any, start: Any, size: Any, figures: Any, text: Any) -> None:
    for came in range(0, len(size), 2):
        if size[came + 1] > 0:
            _rebuild(pool, start, size, came, figures, text)


def _frozen_text(text: Text | None) -> Text | None:
    return None if text is None else (frozen(text[0]), frozen(text[1]), text[2])


def fold_heaps(steps: Steps, entry: Indices, heaps: Heaps, text: Text | None) -> Indices:
    """The least living entry at each read (0 where there is none), when every change brings its entry or takes it away.

    `heaps` are brought up to date. Within one instant, starts come first.
    """
    reads = steps.reads
    out = np.zeros(len(reads), np.int64)
    changes = tuple(frozen(array) for array in (steps.group, steps.sign, entry, reads.at, reads.who))
    text = _frozen_text(text)
    change, read = 0, 0
    while True:
        state = (heaps.pool, heaps.start, heaps.size, heaps.room, heaps.figures)
        arguments: Any = (*changes, change, read, *state, text, out)
        change, read = _fold_heaps(*arguments)
        if change == len(entry):
            break
        first = 2 * int(steps.group[change])
        # Laying out looks at every group: the room it makes must be worth that.
        heaps.lay_out(2 * int(heaps.size[first : first + 2].sum()) + max(_SMALL_POOL, len(heaps.size)))
    if len(heaps.pool) > _SMALL_POOL + 2 * len(heaps.size) + 8 * heaps.entries:
        heaps.lay_out()
    return out
