"""Spark's SQL types, and how they combine under ANSI rules: what the evaluation must agree with.

    tinyint < smallint < int < bigint          the wider of two
    float                                      with float only; with anything else it becomes double
    decimal(p,s)                               takes an integer as decimal(3|5|10|20, 0); with float or double: double
    date < timestamp_ntz                       a date is its midnight

What it does not do: strings against other types (Spark casts the string), and anything that needs the session time
zone (`timestamp` against date or timestamp_ntz). Decimals stop where Spark would begin to round: at 38 digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

MAX_DIGITS = 38


@dataclass(frozen=True)
class SqlType:
    """A Spark SQL type. A type that is not evaluated keeps Arrow's name: it can only be tested for NULL.

    >>> str(SqlType("decimal", 10, 2)), str(INT)
    ('decimal(10,2)', 'int')
    """

    name: str
    digits: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.digits},{self.scale})" if self.name == "decimal" else self.name


VOID = SqlType("void")
BOOLEAN = SqlType("boolean")
TINYINT, SMALLINT, INT, BIGINT = SqlType("tinyint"), SqlType("smallint"), SqlType("int"), SqlType("bigint")
FLOAT, DOUBLE = SqlType("float"), SqlType("double")
STRING = SqlType("string")
DATE = SqlType("date")
TIMESTAMP, TIMESTAMP_NTZ = SqlType("timestamp"), SqlType("timestamp_ntz")
INTERVAL = SqlType("interval")  # day-time: microseconds

INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)  # from narrow to wide
_INTEGER_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_COMPARABLE = frozenset(
    {VOID, BOOLEAN, *INTEGERS, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ, INTERVAL},
)
_FROM_ARROW = {
    pa.null(): VOID,
    pa.bool_(): BOOLEAN,
    pa.int8(): TINYINT,
    pa.int16(): SMALLINT,
    pa.int32(): INT,
    pa.int64(): BIGINT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.date32(): DATE,
    pa.timestamp("us"): TIMESTAMP_NTZ,
    pa.duration("us"): INTERVAL,
}


def from_arrow(kind: pa.DataType) -> SqlType:
    """The Spark type of an Arrow column as Spark sends it.

    >>> str(from_arrow(pa.decimal128(10, 2))), str(from_arrow(pa.timestamp("us", "UTC")))
    ('decimal(10,2)', 'timestamp')
    """
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return SqlType("decimal", kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None:
        return TIMESTAMP
    return _FROM_ARROW.get(kind, SqlType(str(kind)))


def is_numeric(kind: SqlType) -> bool:
    """Whether arithmetic takes it.

    >>> is_numeric(SqlType("decimal", 3, 1)), is_numeric(DATE)
    (True, False)
    """
    return kind in INTEGERS or kind in (FLOAT, DOUBLE) or kind.name == "decimal"


def is_comparable(kind: SqlType) -> bool:
    """Whether it is a type that this package compares at all.

    >>> is_comparable(STRING), is_comparable(SqlType("binary"))
    (True, False)
    """
    return kind in _COMPARABLE or kind.name == "decimal"


def as_decimal(kind: SqlType) -> SqlType:
    """The decimal that holds every value of an integer type.

    >>> str(as_decimal(BIGINT))
    'decimal(20,0)'
    """
    return kind if kind.name == "decimal" else SqlType("decimal", _INTEGER_DIGITS[kind])


def common(left: SqlType, right: SqlType) -> SqlType | None:
    """The type in which Spark compares two; nothing where it does not, or where this package leaves it to Spark.

    >>> str(common(INT, FLOAT)), str(common(INT, SqlType("decimal", 2, 1))), common(STRING, INT)
    ('double', 'decimal(11,1)', None)
    """
    if not (is_comparable(left) and is_comparable(right)):
        return None
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if is_numeric(left) and is_numeric(right):
        if left in INTEGERS and right in INTEGERS:
            return max(left, right, key=INTEGERS.index)
        if {left, right} & {FLOAT, DOUBLE}:
            return DOUBLE
        left, right = as_decimal(left), as_decimal(right)
        scale = max(left.scale, right.scale)
        digits = max(left.digits - left.scale, right.digits - right.scale) + scale
        return SqlType("decimal", digits, scale) if digits <= MAX_DIGITS else None
    return TIMESTAMP_NTZ if {left, right} == {DATE, TIMESTAMP_NTZ} else None


def decimal_result(operator: str, left: SqlType, right: SqlType) -> SqlType | None:
    """The type of arithmetic on two decimals; nothing where it has more than 38 digits and Spark would round.

    >>> str(decimal_result("/", SqlType("decimal", 3, 2), SqlType("decimal", 10, 0)))
    'decimal(14,13)'
    """
    whole = max(left.digits - left.scale, right.digits - right.scale)
    scale = max(left.scale, right.scale)
    if operator in ("+", "-"):
        result = SqlType("decimal", whole + scale + 1, scale)
    elif operator == "*":
        result = SqlType("decimal", left.digits + right.digits + 1, left.scale + right.scale)
    elif operator == "/":
        scale = max(6, left.scale + right.digits + 1)
        result = SqlType("decimal", left.digits - left.scale + right.scale + scale, scale)
    elif whole + scale > MAX_DIGITS:  # Spark's remainder gives up when the quotient has too many digits
        return None
    else:
        result = SqlType("decimal", min(left.digits - left.scale, right.digits - right.scale) + scale, scale)
    return result if result.digits <= MAX_DIGITS else None
