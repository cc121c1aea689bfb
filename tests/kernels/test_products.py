"""Products of n inputs: the sweep, and the expansion of lists, against all tuples."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from streamjoin.kernels import expand_lists, lists_of, sweep_products
from tests.kernels import drawing


def not_empty(side: tuple) -> tuple:
    """A side without empty intervals, which the sweep does not take."""
    keep = side[1] < side[2]
    return tuple(column[keep] for column in side)


def all_tuples(sides: list[tuple], timed: bool) -> Counter:
    """Every tuple of one group with a common point, and with `timed` a common instant."""
    found: Counter = Counter()
    for rows in itertools.product(*(range(len(side[0])) for side in sides)):
        group, lo, hi, ts, te = ([side[c][row] for side, row in zip(sides, rows, strict=True)] for c in range(5))
        if len(set(group)) == 1 and max(lo) < min(hi) and (not timed or max(ts) < min(te)):
            found[rows] += 1
    return found


@pytest.mark.parametrize("pool", drawing.POOLS)
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("inputs", [2, 3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_differential_sweep_against_all_tuples(pool: str, timed: bool, inputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    most = {2: 40, 3: 16, 4: 9}[inputs]
    sides = [not_empty(drawing.intervals(rng, int(rng.integers(0, most)), pool, seed % 2 == 0)) for _ in range(inputs)]
    expected = all_tuples(sides, timed)
    for limit in (1, 7, 10**4):
        chunks = list(sweep_products(sides, timed=timed, limit=limit))
        found = Counter(rows for chunk in chunks for rows in zip(*(each.tolist() for each in chunk), strict=True))
        assert found == expected, f"limit {limit}"
        assert all(len(chunk[0]) <= limit for chunk in chunks)


def test_the_alive_may_be_many() -> None:
    """More than there is room for at first, on several inputs, and one row that meets all of them."""
    rows = 3000
    zero, lo = np.zeros(rows, np.int64), np.arange(rows)
    many = (zero, lo, np.full(rows, 10**6), zero, zero + 1)
    one = tuple(np.array([value]) for value in (0, rows, rows + 1, 0, 1))
    found = list(sweep_products([many, one, one], timed=False, limit=1000))
    assert sorted(np.concatenate([chunk[0] for chunk in found]).tolist()) == list(range(rows))
    assert [len(chunk[0]) for chunk in found] == [1000, 1000, 1000]


@pytest.mark.parametrize("seed", range(20))
def test_differential_lists_against_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists, entries, tuples = 4, int(rng.integers(0, 30)), int(rng.integers(0, 12))
    finder = rng.integers(0, lists, entries)
    start, order = lists_of(finder, lists)
    assert (finder[order] == np.repeat(np.arange(lists), np.diff(start))).all()
    low, ts = (rng.integers(0, 5, tuples) for _ in range(2))
    lo, begin = (rng.integers(0, 5, entries) for _ in range(2))
    high, te, hi, end = (each + 2 for each in (low, ts, lo, begin))
    key = rng.integers(0, lists, tuples)
    for bounded, timed, limit in itertools.product([False, True], [False, True], [1, 100]):
        expected = Counter(
            (i, k)
            for i in range(tuples)
            for k in range(start[key[i]], start[key[i] + 1])
            if (not bounded or max(low[i], lo[k]) < min(high[i], hi[k]))
            and (not timed or max(ts[i], begin[k]) < min(te[i], end[k]))
        )
        grown = expand_lists(
            (key, low, high, ts, te), (start, lo, hi, begin, end), bounded=bounded, timed=timed, limit=limit
        )
        assert Counter(pair for i, k in grown for pair in zip(i.tolist(), k.tolist(), strict=True)) == expected
