"""Keys as codes: equal keys have equal codes, whatever their type; NULL and NaN equal nothing."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.state.columns import codes_are_exact, group_codes, number_values, time_values

NOON = datetime.datetime(2024, 2, 29, 12)
BIG = Decimal("12345678901234567890.123")

# Arrow type: (whether the code is the key itself, keys that all differ).
TYPES: dict[pa.DataType, tuple[bool, list]] = {
    pa.bool_(): (True, [False, True]),
    pa.int8(): (True, [-128, -1, 0, 127]),
    pa.int16(): (True, [-(2**15), 0, 2**15 - 1]),
    pa.int32(): (True, [-(2**31), 0, 2**31 - 1]),
    pa.int64(): (True, [-(2**63), -1, 0, 1, 2**63 - 1]),
    pa.uint8(): (True, [0, 255]),
    pa.uint32(): (True, [0, 2**32 - 1]),
    pa.float16(): (True, [np.float16(-1.5), np.float16(0.0), np.float16(2.0)]),
    pa.float32(): (True, [-1.5, 0.0, 1.0, math.inf, -math.inf]),
    pa.float64(): (True, [-1.5, 0.0, 1.0, 5e-324, 0.1, 0.1 + 2**-55, math.inf, -math.inf]),
    pa.date32(): (True, [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)]),
    pa.date64(): (True, [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1)]),
    pa.time32("s"): (True, [datetime.time(0, 0), datetime.time(23, 59, 59)]),
    pa.time64("us"): (True, [datetime.time(0, 0), datetime.time(0, 0, 0, 1), datetime.time(23, 59, 59)]),
    pa.timestamp("us"): (True, [NOON, NOON + datetime.timedelta(microseconds=1), datetime.datetime(1, 1, 1)]),
    pa.timestamp("us", "UTC"): (True, [NOON, NOON + datetime.timedelta(microseconds=1)]),
    pa.duration("us"): (True, [datetime.timedelta(0), datetime.timedelta(microseconds=-1), datetime.timedelta(1)]),
    pa.decimal128(9, 2): (True, [Decimal("-0.01"), Decimal("0.00"), Decimal("0.01"), Decimal("9999999.99")]),
    pa.decimal128(18, 0): (True, [Decimal(-(10**18) + 1), Decimal(0), Decimal(10**18 - 1)]),
    pa.decimal128(38, 3): (False, [BIG, -BIG, Decimal(0), BIG + Decimal(2**64) / 1000, BIG - Decimal(2**64) / 1000]),
    pa.decimal128(19, 0): (False, [Decimal(2**63), Decimal(2**63 - 1), Decimal(-(2**63) - 1), Decimal(-1)]),
    pa.string(): (False, ["", " ", "a", "A", "ab", "ba", "ä", "a\0", "x" * 100]),
    pa.large_string(): (False, ["", "a", "ab"]),
    pa.string_view(): (False, ["", "a", "a string too long to be inlined"]),
    pa.binary(): (False, [b"", b"\0", b"\0\0", b"a", b"\xff" * 9]),
    pa.large_binary(): (False, [b"", b"\0", b"a"]),
    pa.binary(2): (False, [b"\0\0", b"ab", b"ba"]),
}


@pytest.mark.parametrize(("kind", "keys"), [(kind, keys) for kind, (_, keys) in TYPES.items()], ids=map(str, TYPES))
def test_equal_keys_have_equal_codes_and_different_ones_do_not(kind: pa.DataType, keys: list) -> None:
    codes, present = group_codes([pa.chunked_array([pa.array(keys + keys[::-1], kind)])], 2 * len(keys))
    assert codes.dtype == np.int64
    assert present.all()
    assert codes[: len(keys)].tolist() == codes[len(keys) :][::-1].tolist()
    assert len(set(codes.tolist())) == len(keys)


@pytest.mark.parametrize(("kind", "keys"), [(kind, keys) for kind, (_, keys) in TYPES.items()], ids=map(str, TYPES))
def test_codes_do_not_depend_on_chunks_slices_or_neighbours(kind: pa.DataType, keys: list) -> None:
    whole, _ = group_codes([pa.chunked_array([pa.array(keys, kind)])], len(keys))
    padded = pa.array([None, keys[0], *keys, None], kind)
    sliced, present = group_codes([pa.chunked_array([padded.slice(2, len(keys))])], len(keys))
    assert sliced.tolist() == whole.tolist()
    assert present.all()
    chunks = pa.chunked_array([padded.slice(2 + place, 1) for place in range(len(keys))])
    assert group_codes([chunks], len(keys))[0].tolist() == whole.tolist()


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_null_is_no_key(kind: pa.DataType) -> None:
    keys = TYPES[kind][1]
    _, present = group_codes([pa.chunked_array([pa.array([keys[0], None, keys[-1]], kind)])], 3)
    assert present.tolist() == [True, False, True]
    _, present = group_codes([pa.chunked_array([pa.nulls(2, kind)])], 2)
    assert present.tolist() == [False, False]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_no_rows_no_codes(kind: pa.DataType) -> None:
    for column in (pa.chunked_array([pa.array([], kind)]), pa.chunked_array([], kind)):
        codes, present = group_codes([column], 0)
        assert (codes.tolist(), present.tolist()) == ([], [])


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_zero_has_no_sign_and_nan_equals_nothing(kind: pa.DataType) -> None:
    values = np.array([0.0, -0.0, math.nan, 1.0], kind.to_pandas_dtype())
    codes, present = group_codes([pa.chunked_array([pa.array(values)])], 4)
    assert codes[0] == codes[1]
    assert present.tolist() == [True, True, False, True]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_which_codes_need_a_proof(kind: pa.DataType) -> None:
    assert codes_are_exact([kind]) == TYPES[kind][0]
    assert not codes_are_exact([kind, kind])
    assert not codes_are_exact([])


def test_several_keys_make_one_code() -> None:
    left, right = ["a", "ab", "a", "b", "", "a"], ["bc", "c", "bc", "a", "", None]
    columns = [pa.chunked_array([left]), pa.chunked_array([right])]
    codes, present = group_codes(columns, 6)
    assert codes[0] == codes[2]
    assert len(set(codes[:5].tolist())) == 4
    assert present.tolist() == [True] * 5 + [False]
    assert group_codes(columns[::-1], 6)[0][0] != codes[0], "the order of keys matters"


def test_several_keys_of_mixed_types_depend_on_each() -> None:
    columns = [
        pa.chunked_array([[1, 1, 2, 1]]),
        pa.chunked_array([[0.5, 1.5, 0.5, 0.5]]),
        pa.chunked_array([["x"] * 4]),
    ]
    codes, _ = group_codes(columns, 4)
    assert codes[0] == codes[3]
    assert len(set(codes.tolist())) == 3


def test_without_keys_all_rows_are_one_group() -> None:
    codes, present = group_codes([], 3)
    assert (codes.tolist(), present.tolist()) == ([0, 0, 0], [True, True, True])


def test_numbers_keep_their_type_and_mark_what_is_missing() -> None:
    floats, present = number_values(pa.chunked_array([[1.5, None, math.nan, -math.inf]]))
    assert (floats.tolist(), floats.dtype) == ([1.5, 0.0, 0.0, -math.inf], np.float64)
    assert present.tolist() == [True, False, False, True]
    whole, present = number_values(pa.chunked_array([pa.array([3, None], pa.int16())]))
    assert (whole.tolist(), whole.dtype, present.tolist()) == ([3, 0], np.int64, [True, False])
    cents, _ = number_values(pa.chunked_array([pa.array([Decimal("-1.25"), Decimal("0.10")], pa.decimal128(18, 2))]))
    assert (cents.tolist(), cents.dtype) == ([-125, 10], np.int64)


def test_times_become_ticks() -> None:
    day, moment = datetime.date(1970, 1, 3), datetime.datetime(1970, 1, 1, 0, 0, 1)
    assert time_values(pa.chunked_array([pa.array([day, None])]))[0].tolist() == [2, 0]
    assert time_values(pa.chunked_array([pa.array([moment], pa.timestamp("us", "UTC"))]))[0].tolist() == [1_000_000]
    assert time_values(pa.chunked_array([pa.array([7, None], pa.int32())]))[1].tolist() == [True, False]
