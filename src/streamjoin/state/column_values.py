"""Columns as arrays of numbers, and back: what aggregates compute with. NULLs become zeros; `present` tells them apart.

integers        int64; dates, timestamps and durations as what they count, booleans as 0 and 1
decimals        their unscaled value: int64 up to 18 digits, otherwise 128 bits in two halves
order keys      int64 in the order of the values; of doubles, -0.0 is 0.0, and NaN is above everything
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra.interval import Mask
from streamjoin.kernels import order_keys

Integers = npt.NDArray[np.int64]
Halves = tuple[Integers, Integers]

INT64_DIGITS: Final = 18  # decimals of so many digits fit into int64
_SIGN: Final = np.int64(-(2**63))
_NAN_KEY: Final = 2**63 - 1


def present(column: pa.ChunkedArray) -> Mask:
    """Where the column is not NULL.

    >>> present(pa.chunked_array([[1, None]])).tolist()
    [True, False]
    """
    mask: Mask = column.is_valid().to_numpy().astype(np.bool_)
    return mask


def integers(column: pa.ChunkedArray) -> Integers:
    """The values of a column of integers, decimals of up to 18 digits, dates, timestamps, durations or booleans.

    >>> from decimal import Decimal
    >>> integers(pa.chunked_array([[Decimal("1.25"), None]])).tolist()
    [125, 0]
    """
    if pa.types.is_decimal(column.type):
        return halves(column)[0]
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    numbers: Integers = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return numbers


def doubles(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """The values of a column of floats or doubles.

    >>> doubles(pa.chunked_array([[0.5, None]], pa.float32())).tolist()
    [0.5, 0.0]
    """
    numbers: npt.NDArray[np.float64] = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy()
    return numbers


def halves(column: pa.ChunkedArray) -> Halves:
    """The low and the high 64 bits of the unscaled values of decimals."""
    kind = pa.decimal128(column.type.precision, column.type.scale)
    array = pa.concat_arrays(column.cast(kind).chunks) if column.num_chunks else pa.array([], kind)
    if not len(array):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    known = array.is_valid().to_numpy(zero_copy_only=False)
    return np.where(known, words[:, 0], 0), np.where(known, words[:, 1], 0)


def decimals(low: Integers, high: Integers, known: Mask, kind: pa.DataType) -> pa.Array:
    """Decimals of these unscaled values, NULL where not `known`; the inverse of `halves`.

    >>> decimals(np.array([125, 0]), np.array([0, 0]), np.array([True, False]), pa.decimal128(5, 2)).to_pylist()
    [Decimal('1.25'), None]
    """
    words = pa.py_buffer(np.ascontiguousarray(np.stack([low, high], axis=1)))
    bitmap = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, len(low), [bitmap, words])


def keys_of(column: pa.ChunkedArray) -> Integers:
    """Integers in the order of the values; see `values_of`.

    >>> keys_of(pa.chunked_array([[1.0, float("nan"), -0.0]])).argsort().tolist()
    [2, 0, 1]
    """
    if not pa.types.is_floating(column.type):
        return integers(column)
    numbers = doubles(column)
    strange = np.isnan(numbers)
    return np.where(strange, _NAN_KEY, order_keys(np.where(strange, 0.0, numbers)))


def values_of(keys: Integers, known: Mask, kind: pa.DataType) -> pa.Array:
    """The values that have these keys, NULL where not `known`.

    >>> values_of(keys_of(pa.chunked_array([[-1.5, 2.0]])), np.array([True, True]), pa.float64()).to_pylist()
    [-1.5, 2.0]
    """
    if pa.types.is_decimal(kind):
        return decimals(keys, keys >> 63, known, pa.decimal128(kind.precision, kind.scale)).cast(kind)
    if pa.types.is_floating(kind):
        numbers = np.where(keys < 0, ~(keys ^ _SIGN), keys).view(np.float64)
        return pa.array(np.where(keys == _NAN_KEY, np.nan, numbers), mask=~known).cast(kind)
    whole: Any = pa.array(np.where(known, keys, 0), mask=~known)
    return whole.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else whole.cast(kind)


def divided_half_up(low: Integers, high: Integers, factor: int, divisor: Integers) -> Halves:
    """`factor * value / divisor` of 128-bit values, rounded to the nearest integer, halves away from zero.

    Digits of 16 bits, one place of all rows at a time. The factor is below 2**16, the divisors below 2**47.

    >>> low, high = divided_half_up(np.array([5, -5]), np.array([0, -1]), 10, np.array([4, 4]))
    >>> low.tolist(), high.tolist()
    ([13, -13], [0, -1])
    """
    negative = high < 0
    digits = [(np.where(negative, ~half, half) >> shift) & 65535 for half in (low, high) for shift in (0, 16, 32, 48)]
    over = negative.astype(np.int64)  # a negative number's absolute value is its complement, plus one
    for place, digit in enumerate(digits):
        digits[place], over = (digit + over) & 65535, (digit + over) >> 16
    over = np.zeros_like(low)
    for place, digit in enumerate(digits):
        product = digit * factor + over
        digits[place], over = product & 65535, product >> 16
    digits.append(over)
    rest = np.zeros_like(low)
    for place in reversed(range(len(digits))):
        rest = (rest << 16) | digits[place]
        digits[place], rest = rest // divisor, rest % divisor
    over = (2 * rest >= divisor).astype(np.int64)
    for place, digit in enumerate(digits):
        digits[place], over = (digit + over) & 65535, (digit + over) >> 16
    found_low, found_high = (
        digits[first] | (digits[first + 1] << 16) | (digits[first + 2] << 32) | (digits[first + 3] << 48)
        for first in (0, 4)
    )
    return (
        np.where(negative, -found_low, found_low),
        np.where(negative, ~found_high + (found_low == 0), found_high),
    )
