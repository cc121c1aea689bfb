"""The sweep of a merge: rows of n inputs come by in the order of (group, value), and whoever comes finds who is alive.

A portion of the rows at a time: those of earlier portions that are still alive stand before the new ones. So the sweep
can stop between any two portions, and goes on from who is alive.

    alive     overlap: whose high end is above the value of the row that comes
              band:    whose distance to it is within the reach of its input
    a result  is found once, by the member that comes last. With overlaps everyone alive contains the point, so nothing
              more is asked of the values; with bands every two members that a link joins are tested by difference
    validity  the result begins at `s` or later and before `e`, and is not empty

    needs     rows sorted by (group, value); those before `first` are alive in `active`
    cost      O(rows x alive): each row looks through the alive of the other inputs, the shortest list first
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.pairs import Indices, compiled, difference, frozen

RESULTS_PER_CHUNK: Final = 1 << 16


@dataclass(frozen=True)
class Bounds:
    """Bands between inputs: of inputs i < j the difference value_j - value_i lies in [low, high] where they are linked.

    `reach`: how far above an element of an input a later one may lie, so that they can still be in one result.
    """

    linked: npt.NDArray[np.bool_]
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    low_closed: npt.NDArray[np.bool_]
    high_closed: npt.NDArray[np.bool_]
    reach: npt.NDArray[Any]

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """As the kernel takes them."""
        return self.linked, self.low, self.high, self.low_closed, self.high_closed, self.reach


@compiled
def _in_band(
    linked: Any, low: Any, high: Any, low_closed: Any, high_closed: Any, i: int, a: Any, j: int, b: Any
) -> bool:
    """Whether value `a` of input i and `b` of input j may be in one result."""
    if i > j:
        i, j, a, b = j, i, b, a
    if not linked[i, j]:
        return True
    gap = difference(b, a)
    if gap < low[i, j] or gap > high[i, j]:
        return False
    return bool((low_closed[i, j] or gap != low[i, j]) and (high_closed[i, j] or gap != high[i, j]))


@compiled
def _still_alive(
    active: Any, start: int, count: int, group: Any, lo: Any, hi: Any, banded: bool, reach: Any, x: int
) -> int:
    """Only those of a list stay that are alive when `x` comes; how many."""
    alive = start
    for q in range(start, start + count):
        y = active[q]
        if group[y] != group[x]:
            continue
        if (difference(lo[x], lo[y]) <= reach) if banded else (hi[y] > lo[x]):
            active[alive] = y
            alive += 1
    return alive - start


@compiled
def _sweep_on(
    group: Any, lo: Any, hi: Any, ts: Any, te: Any, member: Any, banded: bool, linked: Any, low: Any, high: Any,
    low_closed: Any, high_closed: Any, reach: Any, s: int, e: int, start: Any, count: Any, active: Any, others: Any,
    pick: Any, chosen: Any, begin: Any, end: Any, state: Any, out: Any,
) -> int:  # fmt: skip
    """Go on from `state` (the row that comes, and how deep in its product; -1: not yet) until `out` is full or all rows
    have come; how many results were found.
    """
    n, limit, found = len(count), out.shape[1], 0
    while state[0] < len(lo):
        x = state[0]
        mine = member[x]
        if ts[x] >= e or te[x] <= s:
            state[0] = x + 1
            continue
        depth = state[1]
        if depth < 0:
            known, somebody = 0, True
            for j in range(n):
                if j != mine:
                    somebody = somebody and count[j] > 0
                    place = known
                    while place > 0 and count[others[place - 1]] > count[j]:
                        others[place] = others[place - 1]
                        place -= 1
                    others[place] = j
                    known += 1
            if somebody:
                for q in range(known):
                    j = others[q]
                    count[j] = _still_alive(active, start[j], count[j], group, lo, hi, banded, reach[j], x)
                    if count[j] == 0:
                        somebody = False
                        break
            if somebody:
                depth = 0
                pick[0], begin[0], end[0] = 0, ts[x], te[x]
        while depth >= 0:
            if found == limit:
                state[1] = depth
                return found
            j = others[depth]
            if pick[depth] == count[j]:
                depth -= 1
                continue
            y = active[start[j] + pick[depth]]
            pick[depth] += 1
            first, last = max(begin[depth], ts[y]), min(end[depth], te[y])
            if first >= last or first >= e or last <= s:
                continue
            if banded:
                fits = _in_band(linked, low, high, low_closed, high_closed, mine, lo[x], j, lo[y])
                for q in range(depth):
                    if not fits:
                        break
                    other = others[q]
                    fits = _in_band(linked, low, high, low_closed, high_closed, other, lo[chosen[q]], j, lo[y])
                if not fits:
                    continue
            chosen[depth] = y
            if depth < n - 2:
                depth += 1
                pick[depth], begin[depth], end[depth] = 0, first, last
                continue
            if first >= s:
                for q in range(n - 1):
                    out[others[q], found] = chosen[q]
                out[mine, found] = x
                found += 1
        active[start[mine] + count[mine]] = x
        count[mine] += 1
        state[0], state[1] = x + 1, -1
    return found


# The rows of an input: group, low end or value, high end (the value again in a band), ts, te.
Rows = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]


def sweep_on(
    alive: Sequence[Rows], come: Rows, member: Indices, bounds: Bounds | None, within: tuple[int, int],
    limit: int = RESULTS_PER_CHUNK,
) -> Iterator[list[Indices]]:  # fmt: skip
    """Results of rows that come with each other and with those alive, as places: those alive are numbered first, input
    by input, then those that come. `member`: whose rows come. `within`: results begin here or later, and before there.

    >>> one = (np.zeros(1, np.int64), np.array([1.0]), np.array([4.0]), np.array([0]), np.array([9]))
    >>> two = (np.zeros(2, np.int64), np.array([3.0, 4.0]), np.array([5.0, 6.0]), np.array([2, 2]), np.array([5, 5]))
    >>> none = tuple(column[:0] for column in one)
    >>> [[each.tolist() for each in some] for some in sweep_on([one, none], two, np.array([1, 1]), None, (0, 9))]
    [[[0], [1]]]
    """
    n = len(alive)
    old = [len(rows[0]) for rows in alive]
    new = np.bincount(member, minlength=n)
    group, lo, hi, ts, te = (
        frozen(np.concatenate([*(rows[column] for rows in alive), come[column]])) for column in range(5)
    )
    start = np.concatenate([[0], np.cumsum([a + b for a, b in zip(old, new.tolist(), strict=True)])]).astype(np.int64)
    active = np.empty(len(group), np.int64)
    first = np.cumsum([0, *old])
    for j in range(n):
        active[start[j] : start[j] + old[j]] = np.arange(first[j], first[j + 1])
    members = frozen(np.concatenate([np.zeros(int(first[-1]), np.int64), member]))
    if bounds is None:
        square, flags = np.zeros((0, 0), lo.dtype), np.zeros((0, 0), np.bool_)
        arrays: tuple[npt.NDArray[Any], ...] = (flags, square, square, flags, flags, np.zeros(n, lo.dtype))
    else:
        arrays = bounds.arrays
    count, (others, pick, chosen, begin, end) = np.array(old, np.int64), (np.zeros(n, np.int64) for _ in range(5))
    state, out = np.array([first[-1], -1], np.int64), np.empty((n, limit), np.int64)
    if lo.dtype == np.float64:  # one kernel less
        arrays = tuple(each if each.dtype == np.bool_ else each.astype(np.float64) for each in arrays)
    linked, low, high, low_closed, high_closed, reach = (frozen(each) for each in arrays)
    s, e = within
    while state[0] < len(group):
        found = _sweep_on(
            group, lo, hi, ts, te, members, bounds is not None, linked, low, high, low_closed, high_closed, reach, s, e,
            start, count, active, others, pick, chosen, begin, end, state, out,
        )  # fmt: skip
        if found:
            yield [out[j, :found].copy() for j in range(n)]


@compiled
def _behind(a: Any, b: Any, c: Any, d: Any, i: int, ka: Any, kb: Any, kc: Any, kd: Any, equal: bool) -> bool:
    """Whether row i lies behind a key, or (unless `equal` rows are let through) at it."""
    if a[i] != ka:
        return bool(a[i] > ka)
    if b[i] != kb:
        return bool(b[i] > kb)
    if c[i] != kc:
        return bool(c[i] > kc)
    if d[i] != kd:
        return bool(d[i] > kd)
    return not equal


@compiled
def _place(a: Any, b: Any, c: Any, d: Any, start: int, ka: Any, kb: Any, kc: Any, kd: Any, equal: bool) -> int:
    low, high = start, len(a)
    while low < high:
        middle = (low + high) // 2
        if _behind(a, b, c, d, middle, ka, kb, kc, kd, equal):
            high = middle
        else:
            low = middle + 1
    return low


def place_of_key(columns: Sequence[npt.NDArray[Any]], start: int, key: Sequence[Any], *, equal: bool) -> int:
    """The first place from `start` on, in rows sorted by four columns, that lies behind a key; with `equal` rows at the
    key are before it, otherwise behind.

    >>> zero, value = np.zeros(4, np.int64), np.array([1.0, 2.0, 2.0, 3.0])
    >>> [place_of_key([zero, value, zero, zero], 0, (0, 2.0, 0, 0), equal=equal) for equal in (False, True)]
    [1, 3]
    """
    a, b, c, d = (frozen(column) for column in columns)
    ka, kb, kc, kd = key
    return int(_place(a, b, c, d, start, ka, kb, kc, kd, equal))
