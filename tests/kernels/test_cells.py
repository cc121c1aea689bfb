"""Counting by class and cell against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import count_cells, count_pairs, hash_integers


@pytest.mark.parametrize(("bits", "width"), [(0, 1), (3, 7), (10, 250)])
def test_rows_are_counted_where_they_belong(bits: int, width: int) -> None:
    rng = np.random.default_rng(bits)
    group, ts = rng.integers(-(2**62), 2**62, 3000), rng.integers(-4000, 4000, 3000)
    first, span = -4000 // width, 3999 // width - -4000 // width + 1
    table = count_cells(group, ts, width, first, (span, 1 << bits))
    expected = np.zeros_like(table)
    np.add.at(expected, (ts // width - first, hash_integers(group) & ((1 << bits) - 1)), 1)
    assert np.array_equal(table, expected)


@pytest.mark.parametrize("width", [1, 10])
def test_pairs_are_those_of_each_with_each(width: int) -> None:
    rng = np.random.default_rng(width)
    number = np.unique(rng.integers(0, 5 * 60, 80))
    cls, cells, rows = number // 60, number % 60, rng.integers(1, 9, len(number))
    own = np.sort(rng.integers(1, 7, 90))  # some classes are only here, some only there
    low = np.concatenate([np.sort(rng.integers(-200, 800, (own == each).sum())) for each in range(7)]) / 2
    high, weight = low + rng.choice([-3.0, 17.5, 40.0]), rng.integers(1, 5, len(own))
    begin, end = cells * width, (cells + 1) * width
    inside = np.minimum(high[:, None], end) - np.maximum(low[:, None], begin)
    share = np.where(own[:, None] == cls, np.maximum(inside, 0.0), 0.0) / width
    found = count_pairs((own, weight), (low, high), (cls, cells, rows), width)
    assert found == pytest.approx(float((weight[:, None] * share * rows).sum()))
