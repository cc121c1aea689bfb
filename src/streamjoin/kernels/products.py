"""Joins of n inputs at once: products of those who share a point, and products of lists of candidates.

`sweep_products` joins whole inputs in one sweep. Within a group that all inputs have (leapfrog over the groups), rows
are taken in the order of their low ends. Whoever is alive in the other inputs then contains that point, so the results
of a row are the product of the alive; where an input has nobody alive, nothing is enumerated.

    input 0   |-----------)  |---)
    input 1       |---------------------)        at x: 1 of input 0, 1 of input 1
    input 2                x-------)

    needs    every input sorted by (group, lo), intervals that are not empty
    cost     O(rows + results) where no second interval is tested. The alive are looked through from the shortest list
             on, unless the largest end in one of the lists says that nobody there is

`expand_lists` is for a micro-batch against areas: tuples that grow by one member at a time, from lists of candidates.
It carries the intersection of the members' intervals, so a tuple that has become empty grows no further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.pairs import (
    PAIRS_PER_CHUNK,
    Indices,
    Pairs,
    compiled,
    end_of_group,
    first_not_below,
    frozen,
    in_chunks,
)

_BETWEEN, _SWEEPING, _PRODUCT, _ENTER = 0, 1, 2, 3
_ALIVE_AT_FIRST: Final = 1024

# One of the inputs of a sweep: group, lo, hi, ts, te.
Side = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]


@compiled
def _tidy(active: Any, count: Any, hi: Any, j: int, at: Any) -> int:
    """Only those of list `j` stay that are alive at `at`; how many."""
    alive = 0
    for q in range(count[j]):
        y = active[j, q]
        if hi[y] > at:
            active[j, alive] = y
            alive += 1
    count[j] = alive
    return alive


@compiled
def _sweep(
    group: Any, lo: Any, hi: Any, ts: Any, te: Any, timed: bool, offsets: Any,
    heads: Any, ends: Any, active: Any, count: Any, reach: Any, others: Any, pick: Any, chosen: Any, low: Any,
    high: Any, state: Any, out: Any,
) -> tuple[int, bool]:  # fmt: skip
    """Go on from `state` until `out` is full, a list of the alive is (then the caller makes them larger), or all is
    done. `state`: what is being done, which input's row is swept, and how deep its product is. `reach`: the largest
    high end in each list, so that a list of nobody but the dead is known without being looked through.
    """
    n, limit, found = len(heads), out.shape[1], 0
    while True:
        if state[0] == _BETWEEN:
            top = group[0]
            for j in range(n):
                if heads[j] >= offsets[j + 1]:
                    return found, True
                top = group[heads[j]] if j == 0 else max(top, group[heads[j]])
            same = True
            for j in range(n):
                if group[heads[j]] < top:
                    heads[j] = first_not_below(group, top, heads[j], offsets[j + 1])
                    same = False
            if not same:
                continue
            for j in range(n):
                ends[j] = end_of_group(group, heads[j], offsets[j + 1])
                count[j] = 0
            state[0] = _SWEEPING
        if state[0] == _SWEEPING:
            jx = -1
            for j in range(n):
                if heads[j] < ends[j] and (jx < 0 or lo[heads[j]] < lo[heads[jx]]):
                    jx = j
            if jx < 0:
                state[0] = _BETWEEN
                continue
            x, known, product = heads[jx], 0, 1.0
            for j in range(n):
                if j != jx and (count[j] == 0 or reach[j] <= lo[x]):
                    count[j] = 0
                    product = 0.0
            if product > 0:
                for j in range(n):  # the others, the shortest list first
                    if j != jx:
                        place = known
                        while place > 0 and count[others[place - 1]] > count[j]:
                            others[place] = others[place - 1]
                            place -= 1
                        others[place] = j
                        known += 1
                for q in range(known):
                    product *= _tidy(active, count, hi, others[q], lo[x])
            state[0], state[1] = _ENTER, jx
            if product > 0 and not timed and found + product <= limit:
                results, inner = int(product), 1
                for j in range(n - 1, -1, -1):
                    place = found
                    if j == jx:
                        for _ in range(results):
                            out[j, place] = x
                            place += 1
                        continue
                    alive = count[j]
                    for _ in range(results // (inner * alive)):
                        for q in range(alive):
                            y = active[j, q]
                            for _ in range(inner):
                                out[j, place] = y
                                place += 1
                    inner *= alive
                found += results
            elif product > 0:
                state[0], state[2] = _PRODUCT, 0
                pick[0], low[0], high[0] = 0, ts[x], te[x]
        if state[0] == _PRODUCT:
            jx, level = state[1], state[2]
            x = heads[jx]
            while level >= 0:
                if found == limit:
                    state[2] = level
                    return found, False
                j = others[level]
                if pick[level] == count[j]:
                    level -= 1
                    continue
                y = active[j, pick[level]]
                pick[level] += 1
                start, end = max(low[level], ts[y]), min(high[level], te[y])
                if timed and start >= end:
                    continue
                chosen[level] = y
                if level < n - 2:
                    level += 1
                    pick[level], low[level], high[level] = 0, start, end
                    continue
                for q in range(n - 1):
                    out[others[q], found] = chosen[q]
                out[jx, found] = x
                found += 1
            state[0] = _ENTER
        if state[0] == _ENTER:
            jx = state[1]
            x = heads[jx]
            if count[jx] == active.shape[1] and _tidy(active, count, hi, jx, lo[x]) == active.shape[1]:
                return found, False
            active[jx, count[jx]] = x
            reach[jx] = hi[x] if count[jx] == 0 else max(reach[jx], hi[x])
            count[jx] += 1
            heads[jx] += 1
            state[0] = _SWEEPING


def sweep_products(sides: Sequence[Side], *, timed: bool, limit: int = PAIRS_PER_CHUNK) -> Iterator[list[Indices]]:
    """Positions in each of several sides `(group, lo, hi, ts, te)`, of those who share a group and a point of
    `[lo, hi)`; with `timed` also an instant of their validities. At most `limit` results at a time.

    >>> zero, lo, hi = np.zeros(2, np.int64), np.array([0, 5]), np.array([6, 9])
    >>> side = (zero, lo, hi, lo, hi)
    >>> [[each.tolist() for each in found] for found in sweep_products([side, side], timed=False)]
    [[[0, 1, 0, 1], [0, 0, 1, 1]]]
    """
    if any(len(side[0]) == 0 for side in sides):
        return
    n = len(sides)
    # Without validities the last two are not looked at, so any array will do for them.
    group, lo, hi, *times = (
        frozen(np.concatenate([side[column] for side in sides])) for column in range(5 if timed else 3)
    )
    ts, te = times or (group, group)
    offsets = np.cumsum([0, *(len(side[0]) for side in sides)])
    heads, active, out = offsets[:-1].copy(), np.empty((n, _ALIVE_AT_FIRST), np.int64), np.empty((n, limit), np.int64)
    ends, count, others, pick, chosen, low, high = (np.zeros(n, np.int64) for _ in range(7))
    reach, state, done = np.zeros(n, hi.dtype), np.zeros(3, np.int64), False
    while not done:
        found, done = _sweep(
            group, lo, hi, ts, te, timed, offsets, heads, ends, active, count, reach, others, pick, chosen, low, high,
            state, out,
        )  # fmt: skip
        if found:
            yield [out[number, :found] - offsets[number] for number in range(n)]
        if (count == active.shape[1]).any():
            active = np.concatenate([active, np.empty_like(active)], axis=1)


@compiled
def _lists(finder: Any, start: Any, order: Any) -> None:
    for place in range(len(finder)):
        start[finder[place] + 1] += 1
    for row in range(len(start) - 1):
        start[row + 1] += start[row]
    fill = start[:-1].copy()
    for place in range(len(finder)):
        order[fill[finder[place]]] = place
        fill[finder[place]] += 1


def lists_of(finder: Indices, rows: int) -> tuple[Indices, Indices]:
    """What each of so many rows has found: where its list begins, and the order that puts the findings into lists.

    >>> [each.tolist() for each in lists_of(np.array([1, 0, 1]), 3)]
    [[0, 1, 3, 3], [1, 0, 2]]
    """
    start, order = np.zeros(rows + 1, np.int64), np.empty(len(finder), np.int64)
    _lists(frozen(finder), start, order)
    return start, order


@compiled
def _expand(
    key: Any, low: Any, high: Any, ts: Any, te: Any, start: Any, lo: Any, hi: Any, begin: Any, end: Any,
    bounded: bool, timed: bool, i: int, limit: int, out_a: Any, out_b: Any,
) -> tuple[int, bool, int]:  # fmt: skip
    found = 0
    while i < len(key) and found < limit:
        for k in range(start[key[i]], start[key[i] + 1]):
            if bounded and max(low[i], lo[k]) >= min(high[i], hi[k]):
                continue
            if timed and max(ts[i], begin[k]) >= min(te[i], end[k]):
                continue
            if out_a is not None:
                out_a[found] = i
                out_b[found] = k
            found += 1
        i += 1
    return found, i >= len(key), i


def expand_lists(
    tuples: tuple[Any, Any, Any, Any, Any],
    lists: tuple[Any, Any, Any, Any, Any],
    *,
    bounded: bool,
    timed: bool,
    limit: int = PAIRS_PER_CHUNK,
) -> Iterator[Pairs]:
    """Tuples `(list, lo, hi, ts, te)` that grow by a member of their list: pairs of a tuple and a place in the lists
    `(start, lo, hi, ts, te)`. `bounded`: value intervals must share a point; `timed`: validities an instant.

    >>> one, zero, two = np.ones(1, np.int64), np.zeros(1, np.int64), np.full(3, 2)
    >>> tuples, lists = (one, zero, one, zero, two[:1]), (np.array([0, 1, 3]), 0 * two, two, np.arange(3), two)
    >>> [[i.tolist(), k.tolist()] for i, k in expand_lists(tuples, lists, bounded=True, timed=True)]
    [[[0], [1]]]
    """
    return in_chunks(_expand, (*tuples, *lists, bounded, timed), (0,), limit)
