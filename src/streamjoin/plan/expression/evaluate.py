"""Evaluate a typed tree over Arrow tables, row by row of aligned inputs, as Spark does in its default (ANSI) mode.

A value is an array, a mask of the rows where it is not NULL, and the rows where computing it failed. Failures travel
with the values instead of being raised at once, because Spark does not compute what it does not need:

    r.n <> 0 AND 10 / r.n > 2       where r.n is 0, the division is never done, and its failure is dropped by the AND

Constants are arrays of length one, which numpy spreads over the rows.

Cost: one pass of numpy (strings: Arrow) per operation over all rows; AND and OR evaluate both sides. Decimals of more
than 18 digits: see `decimals`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import CallError, EvaluationError
from streamjoin.plan.expression import decimals
from streamjoin.plan.expression.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTEGERS,
    INTERVAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    SqlType,
    as_decimal,
    from_arrow,
)
from streamjoin.plan.expression.tree import MICROS_PER_DAY, Call, Field, Literal, Node

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_FINE, _OVERFLOW, _DIVISION_BY_ZERO, _CAST_OVERFLOW = range(4)
_FAILURES = {
    _OVERFLOW: ("arithmetic overflow", "cast an operand to a wider type"),
    _DIVISION_BY_ZERO: ("division by zero", "test the divisor first, as in x <> 0 AND y / x > 1"),
    _CAST_OVERFLOW: ("a value does not fit the type it is cast to", "test the value first, or cast to a wider type"),
}
_NUMPY = {
    VOID: np.bool_,
    BOOLEAN: np.bool_,
    TINYINT: np.int8,
    SMALLINT: np.int16,
    INT: np.int32,
    BIGINT: np.int64,
    FLOAT: np.float32,
    DOUBLE: np.float64,
    DATE: np.int32,
    TIMESTAMP: np.int64,
    TIMESTAMP_NTZ: np.int64,
    INTERVAL: np.int64,
}


@dataclass(frozen=True)
class _Value:
    data: Any  # numpy; strings: Arrow
    valid: Array  # where it is not NULL; the data is anything elsewhere
    failed: Array | None = None  # why it failed, by row; `_FINE` where it did not


def evaluate(tree: Node, text: str, tables: Sequence[pa.Table], rows: int) -> Array:
    """Where the expression is TRUE, one boolean per row; `rows` of them, because a table without columns has no length.

    >>> tree = Call(BOOLEAN, "<", (Field(INT, 0, "a"), Field(INT, 1, "b")))
    >>> left, right = pa.array([1, 2], pa.int32()), pa.array([2, None], pa.int32())
    >>> evaluate(tree, "l.a < r.b", [pa.table({"a": left}), pa.table({"b": right})], 2)
    array([ True, False])
    """
    result = _evaluated(tree, text, tables, rows)
    return np.broadcast_to(result.data & result.valid, (rows,)).copy()


def whole_numbers(tree: Node, text: str, tables: Sequence[pa.Table], rows: int) -> Array:
    """The value of an expression of an integer type, one int64 per row; 0 where it is NULL."""
    result = _evaluated(tree, text, tables, rows)
    return np.broadcast_to(np.where(result.valid, result.data, 0).astype(np.int64), (rows,)).copy()


def _evaluated(tree: Node, text: str, tables: Sequence[pa.Table], rows: int) -> _Value:
    with np.errstate(all="ignore"):  # overflow and division by zero are looked for, not warned of
        result = _value(tree, tables, {})
    if result.failed is not None and (failed := np.broadcast_to(result.failed, (rows,))).any():
        row = int(np.flatnonzero(failed)[0])
        what, hint = _FAILURES[int(failed[row])]
        raise EvaluationError(f"the expression {text!r} has no value in row {row}: {what}", hint=hint)
    return result


def _value(node: Node, tables: Sequence[pa.Table], columns: dict[Field, _Value]) -> _Value:
    if isinstance(node, Literal):
        return _constant(node)
    if isinstance(node, Field):
        if node not in columns:
            columns[node] = _column(node, tables[node.input])
        return columns[node]
    operands = [_value(operand, tables, columns) for operand in node.operands]
    return _OPERATIONS[node.operation](node, operands)


def _constant(node: Literal) -> _Value:
    valid = np.array([node.value is not None])
    if node.type == STRING:
        return _Value(pa.scalar(node.value or ""), valid)
    if node.type.name == "decimal":
        return _Value(decimals.stored(np.array([node.value or 0], dtype=object), node.type), valid)
    return _Value(np.array([node.value or 0], dtype=_NUMPY[node.type]), valid)


def _column(node: Field, table: pa.Table) -> _Value:
    column = table.column(node.column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if node.path:
        column = pc.struct_field(column, list(node.path))
    if (found := from_arrow(column.type)) != node.type:
        name = ".".join((node.column, *node.path))
        raise CallError(
            f"column {name!r} of input {node.input} must be {node.type} as when it was parsed, got {found}",
            hint="parse the expression with the schemas of the tables",
        )
    # A mask of length one is spread by numpy like a constant: most columns have no NULL, and cost no mask.
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else np.ones(1, dtype=bool)
    if node.type == STRING:
        return _Value(column, valid)
    if node.type.name == "decimal":
        return _Value(decimals.from_arrow(column), valid)
    if node.type == VOID or node.type not in _NUMPY:  # a type that can only be tested for NULL has no data
        return _Value(np.zeros(1, dtype=np.bool_), valid)
    if node.type not in (BOOLEAN, *INTEGERS, FLOAT, DOUBLE):
        column = column.view(pa.int32() if node.type == DATE else pa.int64())
    if column.null_count:
        column = column.fill_null(False if node.type == BOOLEAN else 0)
    return _Value(column.to_numpy(zero_copy_only=False), valid)


# Failures ------------------------------------------------------------------------------------------------------------


def _either(first: Array | None, second: Array | None) -> Array | None:
    """The failures of both; where both failed, the first."""
    if first is None or second is None:
        return first if second is None else second
    return np.where(first != _FINE, first, second)


def _only(failed: Array | None, where: Array) -> Array | None:
    return None if failed is None else np.where(where, failed, _FINE)


def _failure(reason: int, where: Array) -> Array | None:
    return np.where(where, np.uint8(reason), np.uint8(_FINE)) if where.any() else None


def _operand_failures(left: _Value, right: _Value) -> Array | None:
    """Spark computes the left operand first, and the right one only if the left is not NULL."""
    return _either(left.failed, _only(right.failed, left.valid))


# Logic ---------------------------------------------------------------------------------------------------------------


def _junction(node: Call, operands: Sequence[_Value]) -> _Value:
    """AND and OR in three-valued logic: one FALSE decides an AND, one TRUE an OR, whatever follows."""
    deciding = node.operation == "OR"
    decided = np.zeros(1, dtype=bool)
    valid = np.ones(1, dtype=bool)
    failed: Array | None = None
    for operand in operands:
        failed = _either(failed, _only(operand.failed, ~decided))
        decided = decided | (operand.valid & (operand.data == deciding))
        valid = valid & operand.valid
    return _Value(decided if deciding else ~decided, valid | decided, failed)


def _not(node: Call, operands: Sequence[_Value]) -> _Value:
    (operand,) = operands
    return _Value(~operand.data, operand.valid, operand.failed)


def _is_null(node: Call, operands: Sequence[_Value]) -> _Value:
    (operand,) = operands
    return _Value(~operand.valid, np.ones(1, dtype=bool), operand.failed)


# Comparison ----------------------------------------------------------------------------------------------------------


def _equal(kind: SqlType, left: Any, right: Any) -> Array:
    if kind == STRING:
        return _to_numpy(pc.equal(left, right))
    equal: Array = left == right  # -0.0 equals 0.0
    if kind in (FLOAT, DOUBLE):
        equal = equal | (np.isnan(left) & np.isnan(right))
    return equal.astype(bool)


def _less(kind: SqlType, left: Any, right: Any) -> Array:
    if kind == STRING:
        return _to_numpy(pc.less(left, right))  # both compare UTF-8 bytes
    less: Array = left < right
    if kind in (FLOAT, DOUBLE):
        less = less | (~np.isnan(left) & np.isnan(right))  # NaN is greater than every other number
    return less.astype(bool)


def _to_numpy(result: Any) -> Array:
    if isinstance(result, pa.Scalar):
        return np.array([result.as_py() is True])
    return np.asarray(result.fill_null(False).to_numpy(zero_copy_only=False))


# The order is total, so two functions are enough.
_COMPARE: dict[str, Callable[[SqlType, Any, Any], Array]] = {
    "=": _equal,
    "<>": lambda kind, left, right: ~_equal(kind, left, right),
    "<": _less,
    ">": lambda kind, left, right: _less(kind, right, left),
    "<=": lambda kind, left, right: ~_less(kind, right, left),
    ">=": lambda kind, left, right: ~_less(kind, left, right),
}


def _compare(node: Call, operands: Sequence[_Value]) -> _Value:
    left, right = operands
    data = _COMPARE[node.operation](node.operands[0].type, left.data, right.data)
    return _Value(data, left.valid & right.valid, _operand_failures(left, right))


def _null_safe_equal(node: Call, operands: Sequence[_Value]) -> _Value:
    left, right = operands
    equal = _equal(node.operands[0].type, left.data, right.data)
    data = np.where(left.valid & right.valid, equal, left.valid == right.valid)
    return _Value(data, np.ones(1, dtype=bool), _either(left.failed, right.failed))


def _in(node: Call, operands: Sequence[_Value]) -> _Value:
    """An OR of equalities: items behind the first that is equal are not computed."""
    value, *items = operands
    equalities = [
        _Value(
            _equal(node.operands[0].type, value.data, item.data),
            value.valid & item.valid,
            _operand_failures(value, item),
        )
        for item in items
    ]
    return _junction(Call(BOOLEAN, "OR", node.operands[1:]), equalities)


def _like(node: Call, operands: Sequence[_Value]) -> _Value:
    value, pattern = operands
    regex = f"(?s){pattern.data.as_py()}"
    return _Value(_to_numpy(pc.match_substring_regex(value.data, regex)), value.valid, value.failed)


# Arithmetic ----------------------------------------------------------------------------------------------------------


def _arithmetic(node: Call, operands: Sequence[_Value]) -> _Value:
    left, right = operands
    valid = left.valid & right.valid
    own: Array | None = None
    failed = _operand_failures(left, right)
    divisor = right.data
    if node.operation in ("/", "%"):
        failed = _operand_failures(right, left)  # Spark computes the divisor first
        zero = np.asarray(divisor == 0, dtype=bool)
        own = _failure(_DIVISION_BY_ZERO, zero & valid)  # for doubles, too
        divisor = np.where(zero, np.ones(1, dtype=divisor.dtype), divisor)
    if node.type.name == "decimal":
        left_kind, right_kind = (operand.type for operand in node.operands)
        data = decimals.arithmetic(node.operation, left.data, left_kind, divisor, right_kind, node.type)
    elif node.operation == "/":
        data = left.data / divisor
    elif node.operation == "%":
        data = np.fmod(left.data, divisor)  # the sign is the dividend's, as in Java
    elif node.type in (FLOAT, DOUBLE):
        data = _FLOATING[node.operation](left.data, divisor)
    else:
        data, overflow = _whole(node.operation, left.data, divisor, np.dtype(_NUMPY[node.type]))
        own = _failure(_OVERFLOW, overflow & valid)
    return _Value(data, valid, _either(failed, own))


_FLOATING: dict[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply}


def _whole(operator: str, left: Array, right: Array, kind: np.dtype[Any]) -> tuple[Array, Array]:
    """+ - * on integers, and where it leaves the type."""
    left, right = left.astype(np.int64), right.astype(np.int64)
    result: Array = _FLOATING[operator](left, right)
    if kind != np.int64:
        return result.astype(kind), (result < np.iinfo(kind).min) | (result > np.iinfo(kind).max)
    if operator == "+":
        return result, ((left ^ result) & (right ^ result)) < 0
    if operator == "-":
        return result, ((left ^ right) & (left ^ result)) < 0
    # A product far below 2**63 in doubles cannot overflow; the few others are computed exactly.
    doubtful = np.abs(left.astype(np.float64) * right.astype(np.float64)) >= 2.0**62
    if doubtful.any():
        left, right = np.broadcast_arrays(left, right)
        exact = left[doubtful].astype(object) * right[doubtful].astype(object)
        doubtful[doubtful] = (exact < -(1 << 63)) | (exact >= 1 << 63)
    return result, doubtful


def _sign(node: Call, operands: Sequence[_Value]) -> _Value:
    """The opposite, or the absolute value. The least integer has no opposite in its type."""
    (operand,) = operands
    data = np.abs(operand.data) if node.operation == "abs" else -operand.data
    own: Array | None = None
    if node.type in (*INTEGERS, INTERVAL):
        own = _failure(_OVERFLOW, operand.valid & (operand.data == np.iinfo(operand.data.dtype).min))
    return _Value(data, operand.valid, _either(operand.failed, own))


def _extreme(node: Call, operands: Sequence[_Value]) -> _Value:
    """The greatest or least of integers, of those that are not NULL."""
    data, valid, failed = np.zeros(1, np.int8), np.zeros(1, np.bool_), None
    for other in operands:
        beats = other.data > data if node.operation == "greatest" else other.data < data
        data = np.where(other.valid & (beats | ~valid), other.data, data)
        valid, failed = valid | other.valid, _either(failed, other.failed)
    return _Value(data, valid, failed)


# Casts ---------------------------------------------------------------------------------------------------------------


def _cast(node: Call, operands: Sequence[_Value]) -> _Value:
    (operand,) = operands
    source, target = node.operands[0].type, node.type
    data = operand.data
    overflow: Array | None = None
    if source == VOID:
        data = _constant(Literal(target, None)).data
    elif source == DATE:  # to timestamp_ntz: midnight
        data = data.astype(np.int64) * MICROS_PER_DAY
    elif target.name == "decimal":
        exact = as_decimal(source)
        wide = decimals.rescale(decimals.stored(data, exact), exact, target)
        overflow = decimals.overflows(wide, target)
        data = decimals.stored(np.where(overflow, 0, wide), target)
    elif source.name == "decimal" and target == DOUBLE:
        data = decimals.to_double(data, source)
    elif target in INTEGERS:
        data, overflow = _to_whole(data, source, np.dtype(_NUMPY[target]))
    else:
        data = data.astype(_NUMPY[target])
    own = None if overflow is None else _failure(_CAST_OVERFLOW, overflow & operand.valid)
    return _Value(data, operand.valid, _either(operand.failed, own))


def _to_whole(data: Array, source: SqlType, kind: np.dtype[Any]) -> tuple[Array, Array]:
    """To an integer type, towards zero, and where it does not fit."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    if source in (FLOAT, DOUBLE):
        data = np.trunc(data.astype(np.float64))
        # Like Spark, which compares doubles: 2**63 passes as a bigint, and becomes the largest one.
        fits = (data <= float(high)) & (data >= float(low))
        clipped = np.where(fits & (data < 2.0**63), data, 0.0).astype(kind)
        return np.where(fits & (data >= 2.0**63), np.array(high, dtype=kind), clipped), ~fits
    if source.name == "decimal":
        data = decimals.truncate(data, source)
    overflow = np.asarray((data < low) | (data > high), dtype=bool)
    return np.where(overflow, 0, data).astype(kind), overflow


_OPERATIONS: dict[str, Callable[[Call, Sequence[_Value]], _Value]] = {
    "AND": _junction,
    "OR": _junction,
    "NOT": _not,
    "IS NULL": _is_null,
    **dict.fromkeys(_COMPARE, _compare),
    "<=>": _null_safe_equal,
    "IN": _in,
    "LIKE": _like,
    **dict.fromkeys("+-*/%", _arithmetic),
    **dict.fromkeys(("negate", "abs"), _sign),
    **dict.fromkeys(("greatest", "least"), _extreme),
    "cast": _cast,
}
