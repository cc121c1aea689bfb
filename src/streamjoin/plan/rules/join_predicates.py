"""Conditions over both sides of a join, recognised as predicates that can be found without testing all pairs:

    R.k = S.k, R.a + 1 = S.b                            Equals
    abs(R.a - S.b) <= 5, and two bounds of a difference Band     (see `bounds`)
    overlaps(R.lo, R.hi, S.lo, S.hi)                    Overlaps
    R.lo < S.hi AND S.lo < R.hi                         Overlaps, where R.lo < R.hi and S.lo < S.hi are conditions, too
    distance(R.x, R.y, S.x, S.y) <= 5                   Within
    similar(R.t, S.t) >= 0.8, levenshtein(R.a, S.b) < 3 Similar  (see `likeness`)

The rest stays as `theta`. NULL makes every one of these conditions NULL, and matches nothing as a predicate: the same
pairs. NaN matches nothing as a predicate, also where Spark says NaN = NaN: that is the law of streamjoin's joins.

Why overlaps ask for more: without it, an interval whose end is before its start can satisfy both comparisons, and a
predicate would not find it. `R.x < S.x AND S.y < R.y` is such a question, and is about no interval at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from streamjoin.algebra import Band, Equals, Overlaps, Predicate, Within
from streamjoin.algebra.predicate import Closed
from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import call, comparison, conjunction, conjuncts, halves, in_order, one_column, quoted
from streamjoin.plan.expression.sqltypes import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGERS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    common,
    is_numeric,
)
from streamjoin.plan.relation import Join, Projection, Relation, Selection
from streamjoin.plan.rules.bounds import EXACT_DIGITS, Bound, as_duration, bounds, number
from streamjoin.plan.rules.likeness import likeness
from streamjoin.plan.rules.operands import LEFT, RIGHT, Operands
from streamjoin.plan.rules.rebuild import columns_only, for_every

_CLOSED: Final[dict[tuple[bool, bool], Closed]] = {
    (True, True): "both",
    (True, False): "left",
    (False, True): "right",
    (False, False): "neither",
}


@for_every(Join)
def join_predicates(join: Join, schemas: Schemas) -> Relation:
    """Predicates out of the conditions of joins.

    >>> import pyarrow as pa
    >>> from streamjoin.plan.relation import Stream
    >>> r, s = Stream("R", (("R.a", "a"),), "ts", None), Stream("S", (("S.b", "b"),), "ts", None)
    >>> schemas = {"R": pa.schema({"a": pa.int32()}), "S": pa.schema({"b": pa.int64()})}
    >>> join_predicates(Join(r, s, (), "abs(`R.a` - `S.b`) <= 5"), schemas).predicates
    (Band(left='R.a', right='S.b', below=5, above=5, closed='both'),)
    """
    if join.theta is None:
        return join
    operands = Operands(join, schemas)
    found: list[Predicate] = []
    rest: list[str] = []
    for part in conjuncts(join.theta):
        predicate: Predicate | None = _equality(part, operands) or _within(part, operands)
        predicate = predicate or _overlap_call(part, operands) or likeness(part, operands)
        if predicate is None:
            rest.append(part)
        else:
            found.append(predicate)
    bands, rest = _bands(rest, operands)
    overlaps, rest = _overlap_pairs(rest, operands)
    found += [*bands, *overlaps]
    if not found:
        return join
    left, right = operands.sides()
    made = replace(
        join,
        left=left,
        right=right,
        predicates=tuple(dict.fromkeys((*join.predicates, *found))),
        theta=conjunction(rest),
    )
    return columns_only(made, join.columns)


def _equality(text: str, operands: Operands) -> Equals | None:
    parts = comparison(text)
    if parts is None or parts[1] != "=":
        return None
    ordered = _two_sides((parts[0], parts[2]), operands)
    if ordered is None:
        return None
    (left,), (right,) = ordered
    kinds = operands.type(left), operands.type(right)
    if kinds[0] is None or kinds[1] is None or VOID in kinds or common(kinds[0], kinds[1]) is None:
        return None
    return Equals(operands.column(left), operands.column(right))


def _within(text: str, operands: Operands) -> Within | None:
    ordered = in_order(text)
    if ordered is None or ordered[1] != "<=":
        return None
    measured, radius = call(ordered[0]), number(ordered[2])
    if measured is None or measured[0] != "distance" or radius is None or radius < 0:
        return None
    axes = _two_sides(measured[1], operands)
    kinds = [operands.type(axis) for axis in measured[1]]
    if axes is None or not all(kind is not None and is_numeric(kind) for kind in kinds):
        return None
    left, right = (tuple(operands.column(axis) for axis in side) for side in axes)
    return Within(left, right, float(radius) if isinstance(radius, Decimal) else radius)


def _two_sides(texts: Sequence[str], operands: Operands) -> tuple[Sequence[str], Sequence[str]] | None:
    """Half of the texts of the left side, then half of the right; in that order or the other."""
    half = len(texts) // 2
    first, second = texts[:half], texts[half:]
    sides = ({operands.side(text) for text in first}, {operands.side(text) for text in second})
    if sides == ({LEFT}, {RIGHT}):
        return first, second
    return (second, first) if sides == ({RIGHT}, {LEFT}) else None


def _overlap_call(text: str, operands: Operands) -> Overlaps | None:
    called = call(text)
    if called is None or called[0] != "overlaps" or len(called[1]) != 4:
        return None
    ends = _two_sides(called[1], operands)
    if ends is None or not _comparable(called[1], operands):
        return None
    left, right = ([operands.column(end) for end in side] for side in ends)
    return Overlaps((left[0], left[1]), (right[0], right[1]))


def _comparable(texts: Iterable[str], operands: Operands) -> bool:
    """Whether values are of one type that has an order and no surprises: all numbers, or all times of one kind."""
    kinds = {operands.type(text) for text in texts}
    numbers = all(kind is not None and is_numeric(kind) for kind in kinds)
    return numbers or (len(kinds) == 1 and kinds <= {DATE, TIMESTAMP, TIMESTAMP_NTZ})


def _compared_exactly(kinds: Sequence[SqlType | None]) -> bool:
    """Whether an overlap of such values is exactly what the comparisons say: there is one type for all four."""
    if any(kind in (FLOAT, DOUBLE) for kind in kinds):
        return all(kind is not None and is_numeric(kind) for kind in kinds)
    if all(kind in INTEGERS for kind in kinds):
        return True
    first = kinds[0]
    if first is None or any(kind != first for kind in kinds):
        return False
    return first in (DATE, TIMESTAMP, TIMESTAMP_NTZ) or (first.name == "decimal" and first.digits <= EXACT_DIGITS)


def _bands(parts: Sequence[str], operands: Operands) -> tuple[list[Band], list[str]]:
    """A lower and an upper bound of the same difference are a band."""
    comparisons = [(part, half, bounds(half, operands)) for part in parts for half in halves(part)]
    found: list[Band] = []
    used: set[int] = set()
    for at, (_, _, own) in enumerate(comparisons):
        for high in own:
            if at in used or not high.upper:
                continue
            for other, (_, _, others) in enumerate(comparisons):
                low = next((bound for bound in others if not bound.upper), None)
                if low is None or other in used or (low.left, low.right) != (high.left, high.right):
                    continue
                # Both bounds of an abs() belong together; and a band that is empty is no band.
                if (len(own) == len(others) == 1 or at == other) and low.value <= high.value:
                    found.append(_band(low, high, operands))
                    used |= {at, other}
                    break
    rest: dict[str, None] = {}
    for part in parts:
        own_halves = [(at, half) for at, (origin, half, _) in enumerate(comparisons) if origin == part]
        if all(at not in used for at, _ in own_halves):
            rest[part] = None
        else:
            rest.update({half: None for at, half in own_halves if at not in used})
    return found, list(rest)


def _band(low: Bound, high: Bound, operands: Operands) -> Band:
    below, above = -low.value, high.value
    if high.time:
        below, above = as_duration(below), as_duration(above)
    closed = _CLOSED[low.closed, high.closed]
    return Band(operands.column(high.left), operands.column(high.right), below, above, closed)


def _overlap_pairs(parts: Sequence[str], operands: Operands) -> tuple[list[Overlaps], list[str]]:
    """`left < right` and `right < left`, of intervals that are known not to be empty."""
    ends: list[tuple[str, bool, str, str]] = []  # the part, whether the left side has the smaller one, and both columns
    for part in parts:
        ordered = in_order(part)
        if ordered is None or ordered[1] != "<":
            continue
        small, _, large = ordered
        sides = (operands.side(small), operands.side(large))
        if None not in sides and sides[0] != sides[1] and one_column(small) and one_column(large):
            ends.append((part, sides[0] == LEFT, one_column(small) or "", one_column(large) or ""))
    found: list[Overlaps] = []
    used: set[str] = set()
    for part, of_left, left_start, right_end in ends:
        if not of_left or part in used:
            continue
        for other, other_of_left, right_start, left_end in ends:
            if other_of_left or {part, other} & used:
                continue
            columns = (left_start, left_end, right_start, right_end)
            exactly = _compared_exactly([operands.type(quoted(column)) for column in columns])
            left, right = operands.children
            if exactly and _is_below(left, left_start, left_end) and _is_below(right, right_start, right_end):
                found.append(Overlaps((left_start, left_end), (right_start, right_end)))
                used |= {part, other}
    return found, [part for part in parts if part not in used]


def _is_below(relation: Relation, low: str, high: str) -> bool:
    """Whether a selection has seen to it that one column is less than another."""
    if isinstance(relation, Selection):
        orders = filter(None, map(in_order, conjuncts(relation.condition)))
        if any(sign == "<" and (one_column(one), one_column(two)) == (low, high) for one, sign, two in orders):
            return True
        return _is_below(relation.child, low, high)
    if isinstance(relation, Projection):
        texts = dict(relation.computed)
        one, other = one_column(texts[low]), one_column(texts[high])
        return one is not None and other is not None and _is_below(relation.child, one, other)
    if isinstance(relation, Join) and relation.how == "inner":
        return any({low, high} <= set(child.columns) and _is_below(child, low, high) for child in relation.children)
    return False
