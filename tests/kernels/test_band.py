"""Bands: the merging kernel against all pairs, with every combination of open and closed bounds."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import band_pairs
from tests.kernels import drawing, twins

INFINITY = np.inf
MOST = 2**63 - 1
BOUNDS = {
    "small": [(0, 0), (-1, 1), (-3, -1), (1, 4), (-MOST, MOST)],
    "extreme": [(0, 0), (-1, 1), (-(2**62), 2**62), (2**62, MOST - 1), (-MOST + 1, 0)],
    "tenths": [(0.0, 0.0), (-0.3, 0.3), (0.1, 0.7), (-0.7, -0.1), (-INFINITY, 0.3)],
    "infinite": [(0.0, 0.0), (-1.0, 1.0), (-INFINITY, 0.0), (0.0, INFINITY), (-INFINITY, INFINITY)],
}


@pytest.mark.parametrize(("pool", "bounds"), [(pool, bounds) for pool, all_ in BOUNDS.items() for bounds in all_])
@pytest.mark.parametrize("low_closed", [False, True])
@pytest.mark.parametrize("high_closed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_differential_band_against_all_pairs(
    pool: str, bounds: tuple, low_closed: bool, high_closed: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    grouped, timed = seed % 2 == 0, seed % 4 < 2
    a, b = (drawing.valued(rng, rows, pool, grouped) for rows in drawing.sizes(rng))
    closed = {"low_closed": low_closed, "high_closed": high_closed}
    expected = twins.band(a, b, *bounds, timed=timed, **closed)
    for limit in drawing.LIMITS:
        chunks = list(band_pairs(a, b, low=bounds[0], high=bounds[1], timed=timed, limit=limit, **closed))
        assert twins.counted(chunks) == expected, f"seed {seed}, limit {limit}"
        assert all(len(i) >= limit for i, _ in chunks[:-1]), f"seed {seed}, limit {limit}"
        longest = max(len(a[0]), len(b[0]))
        assert all(len(i) < limit + longest for i, _ in chunks), f"seed {seed}, limit {limit}"


@pytest.mark.parametrize("seed", range(5))
def test_differential_swapping_the_sides_mirrors_the_pairs(seed: int) -> None:
    """The smaller side is walked, whichever it is: the bounds turn around with it."""
    rng = np.random.default_rng(seed)
    small, large = drawing.valued(rng, 4, "tenths", False), drawing.valued(rng, 200, "tenths", False)
    bounds = {"low": -0.1, "high": 0.3, "low_closed": True, "high_closed": False}
    mirrored = {"low": -0.3, "high": 0.1, "low_closed": False, "high_closed": True}
    forward = twins.counted(band_pairs(small, large, timed=True, **bounds))
    backward = twins.counted(band_pairs(large, small, timed=True, **mirrored))
    assert forward == {(i, j): count for (j, i), count in backward.items()}, f"seed {seed}"
    assert forward == twins.band(small, large, *bounds.values(), timed=True), f"seed {seed}"


def test_the_lower_edge_is_found_by_galloping() -> None:
    zero, zeros = np.zeros(1, np.int64), np.zeros(5_000, np.int64)
    a, b = (zero, np.array([4_000]), zero, zero), (zeros, np.arange(5_000), zeros, zeros)
    assert twins.counted(band_pairs(a, b, low=-1, high=1, timed=False)) == {(0, j): 1 for j in (3_999, 4_000, 4_001)}


def test_infinity_less_infinity_is_in_no_band_but_hides_nothing() -> None:
    zero, zeros = np.zeros(1, np.int64), np.zeros(3, np.int64)
    a = (zero, np.array([-INFINITY]), zero, zero)
    b = (zeros, np.array([-INFINITY, 5.0, INFINITY]), zeros, zeros)
    assert twins.counted(band_pairs(a, b, low=-INFINITY, high=INFINITY, timed=False)) == {(0, 1): 1, (0, 2): 1}
    assert twins.counted(band_pairs(b, a, low=-INFINITY, high=INFINITY, timed=False)) == {(1, 0): 1, (2, 0): 1}


def test_a_bound_at_the_end_of_int64_is_no_bound() -> None:
    zero, zeros = np.zeros(1, np.int64), np.zeros(2, np.int64)
    a, b = (zero, np.array([2**62]), zero, zero), (zeros, np.array([-(2**63), -(2**62)]), zeros, zeros)
    assert twins.counted(band_pairs(a, b, low=-MOST, high=0, timed=False)) == {(0, 0): 1, (0, 1): 1}
    assert twins.counted(band_pairs(b, a, low=0, high=MOST, timed=False)) == {(0, 0): 1, (1, 0): 1}
