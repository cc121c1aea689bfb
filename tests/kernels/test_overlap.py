"""Overlap of half-open intervals: the forward scan against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import overlap_pairs
from tests.kernels import drawing, twins


@pytest.mark.parametrize("pool", drawing.POOLS)
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_differential_overlap_against_all_pairs(pool: str, timed: bool, grouped: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (drawing.intervals(rng, rows, pool, grouped) for rows in drawing.sizes(rng))
    expected = twins.overlap(a, b, timed)
    for limit in drawing.LIMITS:
        chunks = list(overlap_pairs(a, b, timed=timed, limit=limit))
        assert twins.counted(chunks) == expected, f"seed {seed}, limit {limit}"
        assert all(len(i) >= limit for i, _ in chunks[:-1]), f"seed {seed}, limit {limit}"
        longest = max(len(a[0]), len(b[0]))
        assert all(len(i) < limit + longest for i, _ in chunks), f"seed {seed}, limit {limit}"


def test_a_limit_cuts_the_result_into_chunks() -> None:
    zero, one = np.zeros(10, np.int64), np.ones(10, np.int64)
    side = (zero, zero, one, zero, one)
    assert [len(i) for i, _ in overlap_pairs(side, side, timed=True, limit=1)] == [10] * 10
    assert [len(i) for i, _ in overlap_pairs(side, side, timed=True, limit=25)] == [30, 30, 30, 10]
    assert [len(i) for i, _ in overlap_pairs(side, side, timed=True, limit=100)] == [100]


def test_intervals_that_touch_do_not_overlap() -> None:
    zero = np.zeros(1, np.int64)
    a, b = (zero, np.array([0.0]), np.array([1.0]), zero, zero), (zero, np.array([1.0]), np.array([2.0]), zero, zero)
    assert list(overlap_pairs(a, b, timed=False)) == []
    assert list(overlap_pairs(b, a, timed=False)) == []


def test_both_sides_scan() -> None:
    """A long interval on either side meets the short ones of the other."""
    zero = np.zeros(1, np.int64)
    long = (zero, np.array([0]), np.array([100]), zero, zero)
    short = tuple(np.repeat(column, 3) for column in (zero, zero, zero, zero, zero))
    short = (short[0], np.array([1, 50, 99]), np.array([2, 51, 101]), short[3], short[4])
    assert twins.counted(overlap_pairs(long, short, timed=False)) == {(0, 0): 1, (0, 1): 1, (0, 2): 1}
    assert twins.counted(overlap_pairs(short, long, timed=False)) == {(0, 0): 1, (1, 0): 1, (2, 0): 1}
