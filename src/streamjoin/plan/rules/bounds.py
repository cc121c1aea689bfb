"""Bounds on a difference: what a comparison says about `right - left`, where one operand is of each side.

    abs(R.a - S.b) <= 5                      -5 <= S.b - R.a <= 5
    R.a BETWEEN S.b - 1 AND S.b + 2          -2 <= S.b - R.a <= 1
    R.ts >= S.ts - INTERVAL 5 SECONDS        S.ts - R.ts <= 5 seconds

Only where the difference is exactly what Spark compares. Numbers: any, but decimals of more than 18 digits, and the
difference of two floats, which Spark rounds to a float. On doubles a bound that is added to one side is tested on the
difference, as every bound in streamjoin is: `a <= b + 0.1` rounds, `a - b <= 0.1` is meant. Times: two timestamps of
one kind, or two dates. The difference of two timestamps with a zone, and days added to one, depend on the session's
time zone in Spark: those stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from streamjoin.plan.condition import call, comparison, terms
from streamjoin.plan.expression import grammar
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.expression.literals import UNITS
from streamjoin.plan.expression.sqltypes import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGERS,
    INTERVAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
    common,
    is_numeric,
)
from streamjoin.plan.expression.tree import MICROS_PER_DAY, Call, Literal, Node, Outside
from streamjoin.plan.rules.operands import LEFT, Operands

_FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}
EXACT_DIGITS = 18


@dataclass(frozen=True)
class Bound:
    """`right - left` is at most (`upper`) or at least `value`."""

    left: str
    right: str
    value: Any  # a number; of times, microseconds
    closed: bool
    upper: bool
    time: bool = False


@dataclass(frozen=True)
class _Constant:
    value: Any
    type: SqlType


def bounds(text: str, operands: Operands) -> tuple[Bound, ...]:
    """The bounds that a comparison is, together; none if it is anything else. A BETWEEN is two comparisons."""
    compared = comparison(text)
    if compared is None or compared[1] == "=":
        return ()
    left, operator, right = compared
    for one, other, sign in ((left, right, operator), (right, left, _FLIPPED[operator])):
        whole = call(one)
        if whole is not None and whole[0] == "abs" and len(whole[1]) == 1:
            return _absolute(whole[1][0], sign, other, operands)
    found = _linear(left, operator, right, operands)
    return () if found is None else (found,)


def _absolute(inner: str, operator: str, limit: str, operands: Operands) -> tuple[Bound, ...]:
    constant = _constant(limit)
    if operator not in ("<", "<=") or constant is None or constant.value < 0:
        return ()
    high = _linear(inner, operator, limit, operands)
    low = _linear(inner, _FLIPPED[operator], f"-({limit})", operands)
    return (high, low) if high is not None and low is not None else ()


def _linear(left: str, operator: str, right: str, operands: Operands) -> Bound | None:
    """Everything on one side: one term of each side with opposite signs, and a constant."""
    sums = (terms(left), terms(right))
    if sums[0] is None or sums[1] is None:
        return None
    found: list[tuple[int, str, int] | None] = [None, None]  # of each side: sign, term, where it stands
    constants: list[tuple[int, _Constant]] = []
    for place, part in enumerate(sums):
        assert part is not None
        for sign, term in part:
            sign, term = _signed(sign if place == 0 else -sign, term)
            side = operands.side(term)
            if side is None:
                constant = _constant(term)
                if constant is None:
                    return None
                constants.append((sign, constant))
            elif found[side] is None:
                found[side] = (sign, term, place)
            else:
                return None
    one, other = found
    if one is None or other is None or one[0] == other[0]:
        return None
    kinds = (operands.type(one[1]), operands.type(other[1]))
    value = _value(kinds, constants, difference=one[2] == other[2])
    if value is None:
        return None
    # With D = right - left and c the constants: D + c <= 0, or -D + c <= 0.
    if other[0] < 0:
        operator = _FLIPPED[operator]
    else:
        value = -value
    time = kinds[LEFT] in (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return Bound(one[1], other[1], value, "=" in operator, operator[0] == "<", time)


def _value(
    kinds: tuple[SqlType | None, SqlType | None], constants: list[tuple[int, _Constant]], *, difference: bool
) -> Any:
    """The sum of the constants, in numbers or microseconds; None where it would not be what Spark compares."""
    left, right = kinds
    if left is None or right is None:
        return None
    if is_numeric(left) and is_numeric(right):
        kind = common(left, right)
        if kind is None or (kind.name == "decimal" and kind.digits > EXACT_DIGITS):
            return None
        if difference and left == right == FLOAT:
            return None
        if not all(is_numeric(constant.type) for _, constant in constants):
            return None
        rounded = any(constant.type == DOUBLE for _, constant in constants)
        exact = kind not in (FLOAT, DOUBLE)
        if rounded and (len(constants) > 1 or (exact and not difference)):
            return None
        total = sum(sign * constant.value for sign, constant in constants)
        return float(total) if isinstance(total, Decimal) and not exact else total
    if left != right or left not in (DATE, TIMESTAMP, TIMESTAMP_NTZ) or (left == TIMESTAMP and difference):
        return None
    micros = [(sign, _micros(constant, left, difference)) for sign, constant in constants]
    return None if any(length is None for _, length in micros) else sum(sign * (length or 0) for sign, length in micros)


def _micros(constant: _Constant, kind: SqlType, difference: bool) -> int | None:
    """The length of time that is added to a time of this type."""
    if kind == DATE and constant.type in INTEGERS and not difference:
        return int(constant.value) * MICROS_PER_DAY
    if constant.type != INTERVAL:
        return None
    if kind == DATE and constant.value % MICROS_PER_DAY:
        return None
    return None if kind == TIMESTAMP and abs(constant.value) >= MICROS_PER_DAY else int(constant.value)


def _signed(sign: int, term: str) -> tuple[int, str]:
    """A term without a minus before it."""
    while term.startswith("-"):
        sign, term = -sign, term[1:].lstrip()
        inner = terms(term)
        if inner is None or len(inner) != 1:
            break
        term = inner[0][1]
    return sign, term


def _constant(text: str) -> _Constant | None:
    try:
        return _literal(grammar.read(tokens(text), {}))
    except Outside:
        return None


def _literal(node: Node) -> _Constant | None:
    if isinstance(node, Call) and node.operation == "negate":
        inner = _literal(node.operands[0])
        return None if inner is None else _Constant(-inner.value, inner.type)
    if isinstance(node, Call) and node.operation == "cast" and node.operands[0].type == node.type:
        return _literal(node.operands[0])
    if not isinstance(node, Literal) or node.value is None or isinstance(node.value, str | bool):
        return None
    if node.type.name == "decimal":
        return _Constant(Decimal(node.value).scaleb(-node.type.scale), node.type)
    return _Constant(node.value, node.type)


def number(text: str) -> int | float | Decimal | None:
    """The number that a text is, exactly as written.

    >>> number("5"), number("-0.50"), number("1.5D"), number("`x`")
    (5, Decimal('-0.50'), 1.5, None)
    """
    constant = _constant(text)
    if constant is None or not is_numeric(constant.type):
        return None
    found: int | float | Decimal = constant.value
    return found


def as_duration(micros: int) -> str:
    """A length of time in its largest whole unit.

    >>> as_duration(90_000_000), as_duration(-1_500), as_duration(0)
    ('90 seconds', '-1500 microseconds', '0 seconds')
    """
    if micros == 0:
        return "0 seconds"
    unit, size = next(each for each in reversed(UNITS.items()) if each[0] != "WEEK" and micros % each[1] == 0)
    return f"{micros // size} {unit.lower()}s"
