"""The typed tree of an expression, and the functions that build it: Spark's typing rules, with every cast written out.

    l.speed > 25      Call(boolean, ">", (l.speed, Call(double, "cast", (25,))))       where l.speed is a double

A tree holds plain values only, so that it can be pickled to the workers, hashed and compared. Whatever Spark allows and
the evaluation does not do (or not surely as Spark does) raises `Outside`: refused with a reason, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

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
    VOID,
    SqlType,
    as_decimal,
    common,
    decimal_result,
    is_comparable,
    is_numeric,
)

MICROS_PER_DAY = 86_400_000_000


@dataclass(frozen=True)
class Literal:
    """A constant: decimals as unscaled integers, dates as days, timestamps and intervals as microseconds since 1970."""

    type: SqlType
    value: bool | int | float | str | None


@dataclass(frozen=True)
class Field:
    """A column of an input, or a field inside it."""

    type: SqlType
    input: int
    column: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """An operation on operands that already have the types it wants."""

    type: SqlType
    operation: str
    operands: tuple[Node, ...]


Node: TypeAlias = Literal | Field | Call


class Outside(Exception):  # noqa: N818  (not an error: it is how the builder says that Spark must do it)
    """A construct outside the declared subset: `what` names it, with the reason if not plain; `at` is its offset."""

    def __init__(self, what: str, at: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.at = at


def cast(node: Node, kind: SqlType) -> Node:
    """The operand in another type, as the user or Spark's own rules ask for it.

    >>> cast(Literal(INT, 1), DOUBLE)
    Call(type=SqlType(name='double', digits=0, scale=0), operation='cast', operands=(Literal(type=SqlType(name='int',
    digits=0, scale=0), value=1),))
    """
    if node.type == kind:
        return node
    numbers = is_numeric(node.type) and is_numeric(kind)
    # From decimal to float Spark rounds twice, and from float or double to decimal it goes by way of a string. From int
    # to float it rounds, or does not: its optimizer drops the cast when the float then becomes a double.
    inexact = (
        {node.type.name, kind.name} == {"decimal", "float"}
        or (node.type == DOUBLE and kind.name == "decimal")
        or (node.type in (INT, BIGINT) and kind == FLOAT)
    )
    allowed = node.type == VOID or (node.type, kind) == (DATE, TIMESTAMP_NTZ) or (numbers and not inexact)
    if not allowed:
        raise Outside(f"the cast from {node.type} to {kind}")
    return Call(kind, "cast", (node,))


def explicit_cast(node: Node, kind: SqlType) -> Node:
    """A cast that is written. An integer that is cast to its own type is no literal to Spark any more, which counts the
    digits of literals.

    >>> arithmetic("/", Literal(SqlType("decimal", 4, 2), 1000), explicit_cast(Literal(INT, 3), INT)).type.scale
    13
    """
    if isinstance(node, Literal) and node.type == kind and kind in INTEGERS:
        return Call(kind, "cast", (node,))
    return cast(node, kind)


def compare(operator: str, left: Node, right: Node) -> Node:
    """A comparison, in the type that Spark compares the two in. `operator` is one of = <=> <> < <= > >=.

    >>> compare(">=", Literal(INT, 1), Literal(INT, 2)).operation
    '>='
    >>> compare("=", Literal(STRING, "1"), Literal(INT, 1))
    Traceback (most recent call last):
    ...
    streamjoin.plan.expression.tree.Outside: comparing string with int, for which Spark casts the string
    """
    kind = _common(left.type, right.type)
    if operator in ("<", "<=", ">", ">=") and (_beyond_long(left, right) or _beyond_long(right, left)):
        # There Spark answers at once, without a look at the row: TRUE or FALSE even where the integer is NULL.
        raise Outside(f"{left.type} {operator} {right.type} with a number that no bigint reaches")
    return Call(BOOLEAN, operator, (cast(left, kind), cast(right, kind)))


def arithmetic(operator: str, left: Node, right: Node) -> Node:
    """One of + - * / %, on numbers, or on a timestamp and an interval.

    >>> str(arithmetic("/", Literal(INT, 1), Literal(INT, 2)).type)
    'double'
    >>> str(arithmetic("+", Literal(SqlType("decimal", 2, 1), 15), Literal(INT, 2)).type)
    'decimal(3,1)'
    """
    if not (is_numeric(left.type) and is_numeric(right.type)):
        return _time_arithmetic(operator, left, right)
    kinds = {left.type, right.type}
    if kinds & {FLOAT, DOUBLE} or (operator == "/" and kinds <= set(INTEGERS)):
        kind = FLOAT if kinds == {FLOAT} and operator != "/" else DOUBLE
    elif kinds <= set(INTEGERS):
        kind = max(kinds, key=INTEGERS.index)
    else:
        left, right = _to_decimal(left), _to_decimal(right)
        result = decimal_result(operator, left.type, right.type)
        if result is None:
            raise Outside(f"{left.type} {operator} {right.type}, which has more than 38 digits, so that Spark rounds")
        return Call(result, operator, (left, right))
    return Call(kind, operator, (cast(left, kind), cast(right, kind)))


def sign(operator: str, operand: Node) -> Node:
    """Unary minus, unary plus, or "abs".

    >>> sign("-", Literal(INT, 1)).operation, sign("+", Literal(INT, 1))
    ('negate', Literal(type=SqlType(name='int', digits=0, scale=0), value=1))
    """
    if not (is_numeric(operand.type) or (operator == "-" and operand.type == INTERVAL)):
        raise Outside(f"{operator} of {operand.type}")
    if operator == "+":
        return operand
    return Call(operand.type, "abs" if operator == "abs" else "negate", (operand,))


def extreme(operator: str, operands: Sequence[Node]) -> Node:
    """The "greatest" or "least" of integers.

    >>> str(extreme("greatest", [Literal(INT, 1), Literal(BIGINT, 2)]).type)
    'bigint'
    """
    kinds = {each.type for each in operands}
    if len(operands) < 2 or not kinds <= set(INTEGERS):
        raise Outside(f"{operator}() of {', '.join(str(each.type) for each in operands)}")
    kind = max(kinds, key=INTEGERS.index)
    return Call(kind, operator, tuple(cast(each, kind) for each in operands))


def logical(operator: str, *operands: Node) -> Node:
    """AND, OR or NOT. Chains become one flat operation: they would be too deep a tree otherwise.

    >>> a, b, c = (Literal(BOOLEAN, True) for _ in range(3))
    >>> len(logical("AND", logical("AND", a, b), c).operands)
    3
    """
    flat: list[Node] = []
    for operand in operands:
        if isinstance(operand, Call) and operand.operation == operator != "NOT":
            flat.extend(operand.operands)
        elif operand.type in (BOOLEAN, VOID):
            flat.append(cast(operand, BOOLEAN))
        else:
            raise Outside(f"{operator} of {operand.type}, where Spark wants a boolean")
    return Call(BOOLEAN, operator, tuple(flat))


def member(value: Node, items: Sequence[Node]) -> Node:
    """`value IN (items)`: all of them in one common type, as Spark does it.

    >>> str(member(Literal(INT, 1), [Literal(DOUBLE, 1.0)]).operands[0].type)
    'double'
    """
    kind = value.type
    for item in items:
        kind = _common(kind, item.type)
    return Call(BOOLEAN, "IN", (cast(value, kind), *(cast(item, kind) for item in items)))


def is_null(operand: Node) -> Node:
    """`operand IS NULL`, of any type.

    >>> is_null(Literal(VOID, None)).operation
    'IS NULL'
    """
    return Call(BOOLEAN, "IS NULL", (operand,))


def like(operand: Node, pattern: Node, escape: str) -> Node:
    """`operand LIKE pattern`, the pattern a literal: it is kept as a regular expression.

    >>> like(Literal(STRING, "abc"), Literal(STRING, "a_%"), "\\\\").operands[1].value
    '\\\\Aa..*\\\\z'
    """
    if operand.type not in (STRING, VOID):
        raise Outside(f"LIKE on {operand.type}")
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise Outside("LIKE with a pattern that is not a string literal")
    if len(escape) != 1 or escape in "%_":
        raise Outside(f"LIKE with the escape {escape!r}")
    regex = []
    characters = iter(pattern.value)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if character not in ("%", "_", escape):
                raise Outside(f"the LIKE pattern {pattern.value!r}, whose escape stands before none of % _ {escape}")
            regex.append(_quote(character))
        else:
            regex.append({"%": ".*", "_": "."}.get(character) or _quote(character))
    return Call(BOOLEAN, "LIKE", (cast(operand, STRING), Literal(STRING, rf"\A{''.join(regex)}\z")))


def _quote(character: str) -> str:
    # Every other character by its number: then none can mean anything to RE2.
    return character if character.isascii() and character.isalnum() else rf"\x{{{ord(character):x}}}"


def _common(left: SqlType, right: SqlType) -> SqlType:
    kind = common(left, right)
    if kind is not None:
        return kind
    for one, other in ((left, right), (right, left)):
        if not is_comparable(one):
            raise Outside(f"comparing values of type {one}")
        if one == STRING:
            raise Outside(f"comparing {left} with {right}, for which Spark casts the string")
        if one == TIMESTAMP and other in (DATE, TIMESTAMP_NTZ):
            raise Outside(f"comparing {left} with {right}, which depends on the session time zone")
    if is_numeric(left) and is_numeric(right):
        raise Outside(f"comparing {left} with {right}, which takes more than 38 digits")
    raise Outside(f"comparing {left} with {right}")


def _beyond_long(number: Node, other: Node) -> bool:
    if other.type not in INTEGERS or number.type.name != "decimal" or not isinstance(number, Literal):
        return False
    assert isinstance(number.value, int)  # as every decimal literal
    one = 10**number.type.scale
    return not -(1 << 63) * one <= number.value <= ((1 << 63) - 1) * one


def _to_decimal(node: Node) -> Node:
    # Spark gives an integer literal beside a decimal just the digits it has (but a tinyint literal those of its type).
    if isinstance(node, Literal) and node.type in (SMALLINT, INT, BIGINT) and isinstance(node.value, int):
        return Literal(SqlType("decimal", len(str(abs(node.value)))), node.value)
    return cast(node, as_decimal(node.type))


def _time_arithmetic(operator: str, left: Node, right: Node) -> Node:
    kinds = (left.type, right.type)
    if operator == "-" and kinds == (TIMESTAMP_NTZ, TIMESTAMP_NTZ):
        return Call(INTERVAL, "-", (left, right))
    if operator == "-" and kinds == (TIMESTAMP, TIMESTAMP):
        raise Outside(
            "timestamp - timestamp, which depends on the session time zone (write r.ts > l.ts - INTERVAL ...)"
        )
    if operator == "+" and left.type == INTERVAL:
        left, right = right, left
    if operator not in ("+", "-") or right.type != INTERVAL or left.type not in (TIMESTAMP, TIMESTAMP_NTZ):
        raise Outside(f"{kinds[0]} {operator} {kinds[1]}")
    if left.type == TIMESTAMP:
        # Spark adds whole days by the calendar of the session's time zone, where a day may have 23 or 25 hours.
        micros = _constant(right)
        if micros is None or abs(micros) >= MICROS_PER_DAY:
            raise Outside(f"timestamp {operator} an interval of a day or more, which depends on the session time zone")
    return Call(left.type, operator, (left, right))


def _constant(interval: Node) -> int | None:
    if isinstance(interval, Literal) and isinstance(interval.value, int):
        return interval.value
    if isinstance(interval, Call) and interval.operation == "negate":
        inner = _constant(interval.operands[0])
        return None if inner is None else -inner
    return None
