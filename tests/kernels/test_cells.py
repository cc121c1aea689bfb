"""Counting by class and cell against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import count_cells, hash_integers


@pytest.mark.parametrize(("bits", "width"), [(0, 1), (3, 7), (10, 250)])
def test_rows_are_counted_where_they_belong(bits: int, width: int) -> None:
    rng = np.random.default_rng(bits)
    group, ts = rng.integers(-(2**62), 2**62, 3000), rng.integers(-4000, 4000, 3000)
    first, span = -4000 // width, 3999 // width - -4000 // width + 1
    table = count_cells(group, ts, width, first, (1 << bits, span))
    expected = np.zeros_like(table)
    np.add.at(expected, (hash_integers(group) & ((1 << bits) - 1), ts // width - first), 1)
    assert np.array_equal(table, expected)
