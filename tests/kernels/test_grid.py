"""The grid over values: cells, their buckets, and the buckets of a box of cells."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from streamjoin.kernels import NO_CELL_LIMIT, bucket_of_cells, cells_of, spread_over_buckets
from tests.kernels import twins
from tests.kernels.drawing import POOLS


def placed(low: np.ndarray, high: np.ndarray, buckets: int) -> Counter[tuple[int, int]]:
    rows, where = spread_over_buckets(low, high, buckets)
    return Counter(zip(rows.tolist(), where.tolist(), strict=True))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("width", [1e-300, 0.1, 0.3, 1.0, 7.0, 1e300])
def test_differential_cells(pool: str, width: float) -> None:
    values = POOLS[pool]
    with np.errstate(over="raise"):
        cells = cells_of(values, width)
    assert cells.dtype == np.int64
    assert cells.tolist() == [twins.cell_of(float(value), width) for value in values]


def test_cells_are_half_open_and_clipped() -> None:
    values = np.array([-np.inf, -1e300, -1.0, -0.5, 0.0, 0.5, 1.0, 1e300, np.inf])
    limit = NO_CELL_LIMIT
    assert cells_of(values, 0.5).tolist() == [-limit, -limit, -2, -1, 0, 1, 2, limit, limit]


def test_cells_keep_the_order_of_values() -> None:
    rng = np.random.default_rng(0)
    values = np.sort(rng.normal(size=1_000) * 10.0 ** rng.integers(-20, 20, 1_000))
    assert (np.diff(cells_of(values, 0.1)) >= 0).all()


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("buckets", [1, 2, 7])
def test_differential_buckets_of_cells(axes: int, buckets: int) -> None:
    cells = np.array(list(itertools.product([-(2**40), -2, -1, 0, 1, 2**40], repeat=axes)))
    expected = [twins.bucket_of_cell(cell, buckets) for cell in cells.tolist()]
    assert bucket_of_cells(cells, buckets).tolist() == expected


def test_cells_spread_over_all_buckets() -> None:
    cells = np.array(list(itertools.product(range(40), repeat=2)))
    counts = np.bincount(bucket_of_cells(cells, 8), minlength=8)
    assert counts.min() > 100, counts


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("buckets", [1, 2, 3, 16])
@pytest.mark.parametrize("seed", range(4))
def test_differential_spreading_boxes(axes: int, buckets: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.integers(-6, 6, (25, axes))
    high = low + rng.integers(0, 4, (25, axes))
    high[0] = low[0]
    found = placed(low, high, buckets)
    assert found == twins.spread_over_buckets(low, high, buckets), f"seed {seed}"
    assert max(found.values()) == 1, f"seed {seed}"
    assert {row for row, _ in found} == set(range(25)), f"seed {seed}"


@pytest.mark.parametrize("seed", range(3))
def test_a_box_reaches_the_home_of_everything_inside(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.integers(-10, 10, (10, 2))
    high = low + rng.integers(0, 5, (10, 2))
    inside = low + (rng.random((10, 2)) * (high - low + 1)).astype(np.int64)
    found = placed(low, high, 5)
    homes = bucket_of_cells(inside, 5).tolist()
    assert all((row, home) in found for row, home in enumerate(homes)), f"seed {seed}"


def test_a_box_of_very_many_cells_goes_everywhere_without_counting_them() -> None:
    low, high = np.full((2, 3), -NO_CELL_LIMIT), np.full((2, 3), NO_CELL_LIMIT)
    high[1] = low[1]
    found = placed(low, high, 4)
    assert sorted(bucket for row, bucket in found if row == 0) == [0, 1, 2, 3]
    assert len([bucket for row, bucket in found if row == 1]) == 1


def test_a_box_of_many_cells_stops_when_all_buckets_are_reached() -> None:
    found = placed(np.array([[0]]), np.array([[40]]), 3)
    assert found == {(0, 0): 1, (0, 1): 1, (0, 2): 1}


def test_no_rows_no_buckets() -> None:
    assert placed(np.empty((0, 2), np.int64), np.empty((0, 2), np.int64), 3) == {}
