"""Orders: the radix sort and the merge against Python's stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import merge_order, sort_order
from streamjoin.kernels.sorting import _SMALL, sortable_bits
from tests.kernels import twins
from tests.kernels.drawing import POOLS


@pytest.mark.parametrize("pool", POOLS)
def test_sortable_bits_keep_order_and_ties(pool: str) -> None:
    values = POOLS[pool]
    bits = sortable_bits(values)
    assert bits.dtype == np.uint64
    for one, a in zip(values, bits, strict=True):
        for two, b in zip(values, bits, strict=True):
            assert (one < two, one == two) == (a < b, a == b), (one, two)


@pytest.mark.parametrize("rows", [0, 1, 2, 100, _SMALL - 1, _SMALL, _SMALL + 1, 3_000])
@pytest.mark.parametrize("pool", POOLS)
def test_differential_sorting_by_one_column(rows: int, pool: str) -> None:
    values = np.random.default_rng(rows).choice(POOLS[pool], rows)
    order = sort_order([values])
    assert order.dtype == np.int64
    assert order.tolist() == twins.sort_order([values])


@pytest.mark.parametrize("rows", [30, 2_500])
@pytest.mark.parametrize("seed", range(6))
def test_differential_sorting_by_three_columns(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pools = [POOLS[name] for name in rng.choice(["small", "extreme"], 2)] + [POOLS[str(rng.choice([*POOLS]))]]
    columns = [rng.choice(pool, rows) for pool in pools]
    assert sort_order(columns).tolist() == twins.sort_order(columns), f"seed {seed}"


@pytest.mark.parametrize("seed", range(3))
def test_differential_sorting_of_full_64_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    integers = rng.integers(-(2**63), 2**63 - 1, 2_500, endpoint=True)
    floats = rng.normal(size=2_500) * 10.0 ** rng.integers(-300, 300, 2_500)
    for column in (integers, floats):
        assert sort_order([column]).tolist() == np.argsort(column, kind="stable").tolist(), f"seed {seed}"


def test_columns_without_differences_leave_the_order_alone() -> None:
    same = np.full(3_000, 7)
    assert sort_order([same, same]).tolist() == list(range(3_000))
    assert sort_order([same, -np.arange(3_000)]).tolist() == list(range(2_999, -1, -1))


@pytest.mark.parametrize("runs", [1, 2, 3, 7, 16, 17, 300])
@pytest.mark.parametrize("seed", range(10))
def test_differential_merging_equals_sorting_everything_anew(runs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pool = POOLS[list(POOLS)[seed % len(POOLS)]]
    parts = []
    for _ in range(runs):
        rows = int(rng.integers(0, 12))  # empty runs too
        columns = [rng.choice(POOLS["small"], rows), rng.integers(0, 2, rows), rng.choice(pool, rows)]
        order = twins.sort_order(columns)
        parts.append([column[order] for column in columns])
    group, cell, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    offsets = np.cumsum([0] + [len(part[0]) for part in parts])
    assert merge_order(group, cell, value, offsets).tolist() == twins.merge_order(group, cell, value), f"seed {seed}"


def test_merging_takes_equal_rows_from_the_older_run_first() -> None:
    zero = np.zeros(4, np.int64)
    assert merge_order(zero, zero, np.array([5, 5, 5, 5]), np.array([0, 2, 4])).tolist() == [0, 1, 2, 3]
