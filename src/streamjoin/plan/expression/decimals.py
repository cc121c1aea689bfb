"""Spark's decimal arithmetic on whole columns. A decimal is an unscaled integer: decimal(10,2) holds 1.50 as 150.

Up to 18 digits fit int64, and cost what integers cost. Beyond, the arrays hold Python's own integers: exact, but some
25 times slower (0.1 us a value). A bigint beside a decimal already needs 20 digits. Division always goes that way, and
takes 0.8 us a value.

What it does not do: results of more than 38 digits, where Spark gives up decimal places. The typing refuses those, so
nothing here can overflow but a cast.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from streamjoin.plan.expression.sqltypes import SqlType

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

NARROW_DIGITS = 18  # every integer of so many digits fits int64
_EXACT_IN_DOUBLE = 1 << 53
_EXACT_POWER = 22  # 10**22 is the largest power of ten that is a double
_SPARK_DIVISION_SCALE = 39  # Spark divides to so many places, then rounds to the result's: two roundings


def from_arrow(column: pa.Array) -> Array:
    """The unscaled integers of an Arrow decimal128 column; anything at all where it is null.

    >>> from decimal import Decimal
    >>> from_arrow(pa.array([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(10, 2)))
    array([150,  -1])
    """
    words = np.frombuffer(column.buffers()[1], dtype="<i8") if len(column) else np.empty(0, dtype=np.int64)
    halves = words.reshape(-1, 2)[column.offset : column.offset + len(column)]
    if column.type.precision <= NARROW_DIGITS:
        return halves[:, 0].copy()
    wide: Array = halves[:, 1].astype(object) * (1 << 64) + halves[:, 0].view(np.uint64).astype(object)
    return wide


def stored(data: Array, kind: SqlType) -> Array:
    """The values in the array type that holds decimals of this type.

    >>> stored(np.array([1], dtype=object), SqlType("decimal", 3, 0)).dtype
    dtype('int64')
    """
    return data.astype(np.int64 if kind.digits <= NARROW_DIGITS else object)


def rescale(data: Array, kind: SqlType, to: SqlType) -> Array:
    """The same values, or the nearest (half away from zero), in the scale of another type; overflow is not checked.

    >>> rescale(np.array([125, -125]), SqlType("decimal", 3, 2), SqlType("decimal", 2, 1)).tolist()
    [13, -13]
    """
    shift = to.scale - kind.scale
    digits = kind.digits + max(shift, 0)
    if digits > NARROW_DIGITS:
        data = data.astype(object)
    return data * 10**shift if shift >= 0 else _divide_half_up(data, 10**-shift)


def arithmetic(
    operator: str, left: Array, left_kind: SqlType, right: Array, right_kind: SqlType, kind: SqlType
) -> Array:
    """One of + - * / %, in the type that `decimal_result` gave; a zero divisor must have been replaced.

    >>> third = SqlType("decimal", 8, 6)
    >>> arithmetic("/", np.array([2]), SqlType("decimal", 1), np.array([3]), SqlType("decimal", 1), third).tolist()
    [666667]
    """
    if operator == "/":
        places = _SPARK_DIVISION_SCALE + right_kind.scale - left_kind.scale
        quotient = _divide_half_up(left.astype(object) * 10**places, right.astype(object))
        return stored(_divide_half_up(quotient, 10 ** (_SPARK_DIVISION_SCALE - kind.scale)), kind)
    if operator == "*":
        return stored(left, kind) * stored(right, kind)
    scale = max(left_kind.scale, right_kind.scale)
    whole = max(left_kind.digits - left_kind.scale, right_kind.digits - right_kind.scale)
    wide = SqlType("decimal", whole + scale + 1, scale)
    left, right = (stored(rescale(data, old, wide), wide) for data, old in ((left, left_kind), (right, right_kind)))
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    magnitude = np.abs(left) % np.abs(right)  # the sign is the dividend's
    return stored(np.where(left < 0, -magnitude, magnitude), kind)


def to_double(data: Array, kind: SqlType) -> Array:
    """The nearest doubles.

    >>> to_double(np.array([15, -1]), SqlType("decimal", 2, 1)).tolist()
    [1.5, -0.1]
    """
    power = 10**kind.scale
    if data.dtype == np.int64 and kind.scale <= _EXACT_POWER and np.all(np.abs(data) <= _EXACT_IN_DOUBLE):
        return data / float(power)  # one division of two exact doubles: rounded once
    return np.array([int(value) / power for value in data], dtype=np.float64)  # Python's is rounded once, too


def truncate(data: Array, kind: SqlType) -> Array:
    """The whole parts, towards zero.

    >>> truncate(np.array([15, -15]), SqlType("decimal", 2, 1)).tolist()
    [1, -1]
    """
    magnitude: Array = np.abs(data) // 10**kind.scale
    return np.where(data < 0, -magnitude, magnitude)


def overflows(data: Array, kind: SqlType) -> Array:
    """Where a value has more digits than its type.

    >>> overflows(np.array([99, -100]), SqlType("decimal", 2, 1)).tolist()
    [False, True]
    """
    return np.asarray(np.abs(data) >= 10**kind.digits, dtype=bool)


def _divide_half_up(dividend: Array, divisor: Any) -> Array:
    magnitude: Array = (2 * np.abs(dividend) + np.abs(divisor)) // (2 * np.abs(divisor))
    return np.where((dividend < 0) ^ (divisor < 0), -magnitude, magnitude)
