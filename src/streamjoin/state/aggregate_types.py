"""The types of aggregates, as Spark has them; what is not carried out is refused.

| | integers | float, double | decimal(p, s) | dates, times, booleans, strings, binary | anything else |
|---|---|---|---|---|---|
| count | int64 | int64 | int64 | int64 | int64 |
| sum | int64 | double | decimal(p + 10, s) | | |
| avg | double | double | decimal(p + 4, s + 4) | | |
| stddev | double | double | double | | |
| min, max | the same | the same | the same | the same | |

Decimals of more than 18 digits can be counted and compared, not summed.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from streamjoin.algebra import Aggregate
from streamjoin.errors import UnsupportedError, unknown_column
from streamjoin.state.column_values import INT64_DIGITS

_MOST_DIGITS: Final = 38


def result_type(aggregate: Aggregate, schema: pa.Schema) -> pa.DataType:
    """The type of an aggregate over columns of this schema; refuses what cannot be computed.

    >>> result_type(Aggregate("sum", "price", "total"), pa.schema({"price": pa.decimal128(10, 2)}))
    Decimal128Type(decimal128(20, 2))
    """
    if aggregate.column is None:
        return pa.int64()
    if aggregate.column not in schema.names:
        raise unknown_column(aggregate.column, schema.names, f"the input of {aggregate.function}")
    kind = schema.field(aggregate.column).type
    if aggregate.function == "count":
        return pa.int64()
    if aggregate.function in ("min", "max"):
        if not has_order(kind):
            raise _refused(aggregate, kind, "compare a number, a date, a time, a boolean, text or binary inside it")
        return kind
    if pa.types.is_decimal(kind):
        return _of_decimals(aggregate, kind)
    if not (is_whole(kind) or is_real(kind)):
        raise _refused(aggregate, kind, "cast the column to a number first")
    return pa.int64() if aggregate.function == "sum" and is_whole(kind) else pa.float64()


def is_whole(kind: pa.DataType) -> bool:
    """Integers that fit into int64."""
    return bool(pa.types.is_integer(kind)) and not pa.types.is_uint64(kind)


def is_real(kind: pa.DataType) -> bool:
    """Floats and doubles."""
    return bool(pa.types.is_floating(kind)) and not pa.types.is_float16(kind)


def is_bytes(kind: pa.DataType) -> bool:
    """Values that are compared byte by byte: text, binary, and (in another shape) long decimals."""
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    return bool(text) or is_long_decimal(kind)


def is_long_decimal(kind: pa.DataType) -> bool:
    """Decimals whose unscaled value may not fit into int64."""
    return bool(pa.types.is_decimal(kind)) and INT64_DIGITS < kind.precision <= _MOST_DIGITS


def has_order(kind: pa.DataType) -> bool:
    """Types of which there is a least and a greatest value, and of which it can be found."""
    types = pa.types
    counted = types.is_date32(kind) or types.is_timestamp(kind) or types.is_duration(kind) or types.is_boolean(kind)
    short_decimal = types.is_decimal(kind) and kind.precision <= INT64_DIGITS
    return bool(counted or short_decimal) or is_whole(kind) or is_real(kind) or is_bytes(kind)


def _of_decimals(aggregate: Aggregate, kind: pa.DataType) -> pa.DataType:
    if kind.precision > INT64_DIGITS:
        raise _refused(aggregate, kind, f"cast the column to a decimal of at most {INT64_DIGITS} digits, or to double")
    if aggregate.function == "sum":
        return pa.decimal128(min(_MOST_DIGITS, kind.precision + 10), kind.scale)
    if aggregate.function == "avg":
        return pa.decimal128(min(_MOST_DIGITS, kind.precision + 4), min(_MOST_DIGITS, kind.scale + 4))
    return pa.float64()


def _refused(aggregate: Aggregate, kind: pa.DataType, hint: str) -> UnsupportedError:
    return UnsupportedError(f"{aggregate.function} of column {aggregate.column!r}, which is {kind}", hint=hint)
