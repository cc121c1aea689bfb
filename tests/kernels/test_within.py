"""Distances: the swept grid against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import METRICS, within_pairs
from tests.kernels import drawing, twins


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("radius", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("seed", range(6))
def test_differential_within_against_all_pairs(metric: str, axes: int, radius: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool, grouped, timed = ["small", "tenths", "infinite"][seed % 3], seed % 2 == 0, seed < 3
    a, b = (drawing.points(rng, rows, axes, radius, pool, grouped) for rows in drawing.sizes(rng))
    expected = twins.within(a, b, radius, metric, timed)
    for limit in drawing.LIMITS:
        chunks = list(within_pairs(a, b, radius=radius, metric=metric, timed=timed, limit=limit))
        assert twins.counted(chunks) == expected, f"seed {seed}, limit {limit}"
        assert all(len(i) >= limit for i, _ in chunks[:-1]), f"seed {seed}, limit {limit}"
        longest = max(len(a[0]), len(b[0]))
        assert all(len(i) < limit + longest for i, _ in chunks), f"seed {seed}, limit {limit}"


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(4))
def test_differential_points_in_general_position(metric: str, seed: int) -> None:
    """Many cells, few ties, negative coordinates."""
    rng = np.random.default_rng(seed)
    sides = []
    for rows in (30, 300):
        axes = rng.uniform(-10, 10, (rows, 2))
        cell = np.floor(axes[:, 1] / 1.001).astype(np.int64)
        order = np.lexsort((axes[:, 0], cell))
        zero = np.zeros(rows, np.int64)
        sides.append((zero, cell[order], axes[order], zero, zero))
    for a, b in (sides, sides[::-1]):
        found = twins.counted(within_pairs(a, b, radius=1.0, metric=metric, timed=False, limit=7))
        assert found == twins.within(a, b, 1.0, metric, False), f"seed {seed}"
        assert len(found) > 20, "the example itself is wrong: hardly a pair"


def test_the_radius_itself_is_inside() -> None:
    zero, radius = np.zeros(1, np.int64), 5.0
    a, b = (zero, zero, np.array([[0.0, 0.0]]), zero, zero), (zero, zero, np.array([[3.0, 4.0]]), zero, zero)
    found = {metric: twins.counted(within_pairs(a, b, radius=radius, metric=metric, timed=False)) for metric in METRICS}
    assert found == {"euclidean": {(0, 0): 1}, "manhattan": {}, "chebyshev": {(0, 0): 1}}


def test_partners_lie_in_the_row_itself_and_its_neighbours() -> None:
    radius, width = 1.0, 1.001
    y = np.array([-1.0, 0.0, 1.0, 2.0])
    rows = np.floor(y / width).astype(np.int64)
    zeros, zero = np.zeros(4, np.int64), np.zeros(1, np.int64)
    many = (zeros, rows, np.column_stack([np.zeros(4), y]), zeros, zeros)
    one = (zero, zero, np.array([[0.0, 0.5]]), zero, zero)
    assert twins.counted(within_pairs(one, many, radius=radius, metric="euclidean", timed=False)) == {
        (0, 1): 1,
        (0, 2): 1,
    }
