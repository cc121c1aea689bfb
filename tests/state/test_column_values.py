"""Columns as numbers: sliced and chunked ones too; and division of decimals, against fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.state.column_values import decimals, divided_half_up, halves, integers, keys_of, present, values_of

WORD = 2**64 - 1


def test_a_sliced_column_in_chunks_is_read_from_where_it_begins() -> None:
    values = [Decimal(f"{number}.5") for number in range(6)]
    column = pa.chunked_array([values[:3], [*values[3:], None]], pa.decimal128(9, 1))
    assert integers(column.slice(2, 3)).tolist() == [25, 35, 45]
    assert present(column.slice(4)).tolist() == [True, True, False]
    low, high = halves(column.slice(5))
    assert decimals(low, high, np.array([True, False]), column.type).to_pylist() == [Decimal("5.5"), None]


def test_no_rows_are_no_values() -> None:
    for kind in (pa.int8(), pa.float32(), pa.decimal128(9, 2), pa.date32(), pa.bool_()):
        nothing = pa.chunked_array([], kind)
        assert len(values_of(keys_of(nothing), present(nothing), kind)) == 0


def test_keys_are_in_order_and_lead_back() -> None:
    values = [-math.inf, -1e300, -1.5, -5e-324, 0.0, 5e-324, 2.0, math.inf, math.nan]
    keys = keys_of(pa.chunked_array([values]))
    assert keys.tolist() == sorted(set(keys.tolist()))
    back = values_of(keys, np.ones(len(keys), np.bool_), pa.float64()).to_pylist()
    assert back[:-1] == values[:-1]
    assert math.isnan(back[-1])
    assert keys_of(pa.chunked_array([[-0.0]])).tolist() == keys_of(pa.chunked_array([[0.0]])).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_oracle_division_rounds_half_away_from_zero(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 112, 200).tolist()
    values = [int(rng.integers(-(2**62), 2**62)) << max(0, size - 62) >> max(0, 62 - size) for size in sizes]
    values += [-1, 0, 1, 2**64, -(2**64), 2**63, -(2**63)]
    divisor = rng.integers(1, 2 ** int(rng.integers(1, 46)), len(values))
    low = np.array([value & WORD for value in values], np.uint64).view(np.int64)
    high = np.array([value >> 64 for value in values], np.int64)
    found = divided_half_up(low, high, 10_000, divisor)
    for value, by, got_low, got_high in zip(values, divisor.tolist(), *(half.tolist() for half in found), strict=True):
        expected = math.floor(Fraction(abs(value) * 10_000, by) + Fraction(1, 2)) * (1 if value >= 0 else -1)
        assert (got_high << 64) + (got_low & WORD) == expected, f"seed {seed}"
