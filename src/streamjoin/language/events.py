"""Event joins: as-of and best match. Their streams have no window, and their rows no validity.

    R ASOF JOIN S MATCH_CONDITION (R.ts >= S.ts) ON R.k = S.k       the last S up to each R; without one, R is left out
    R LEFT ASOF JOIN S MATCH_CONDITION (R.ts < S.ts)                the first S behind each R; or NULLs
    R LEFT BEST MATCH JOIN S ON R.k = S.k WITHIN ra 0.01, dec 0.01  those S that no other S near R dominates

ON has equalities of an expression of the one stream and one of the other; what is no column becomes one of its stream.
As in Spark, >= and > look backward, <= and < forward, and the ones with = take equal times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from streamjoin.algebra import Direction, TimeAxis
from streamjoin.language.complaint import refused, wrong
from streamjoin.language.scalar import bind_scalar, rendered
from streamjoin.language.scope import Scope, Sources
from streamjoin.language.syntax import Amount, Dimension, JoinClause, Name, Scalar
from streamjoin.language.windows import duration
from streamjoin.plan.column_types import Types
from streamjoin.plan.condition import comparison, conjuncts, one_column
from streamjoin.plan.expression.sqltypes import DATE, INTEGERS, TIMESTAMP, TIMESTAMP_NTZ, SqlType, common, is_numeric
from streamjoin.plan.relation import AsOfJoin, BestMatchJoin, Join, Relation
from streamjoin.plan.rules.operands import LEFT, RIGHT, Operands

Keys: TypeAlias = tuple[tuple[str, str], ...]

_FLIPPED = {">=": "<=", ">": "<", "<=": ">=", "<": ">", "=": "="}
_MATCH_HINT = "write MATCH_CONDITION (R.ts >= S.ts), with >=, >, <= or <"


def bind_event_join(text: str, left: Sources, right: Sources, join: JoinClause, types: Types) -> Relation:
    """The relation of an event join; `types` are those of the columns of both sides."""
    scope = Scope(text, left.entries + right.entries)
    keys, sides = _keys(scope, left.relation, right.relation, join.on)
    if join.kind == "best match":
        dimensions = tuple(_dimension(text, left, right, one, types) for one in join.within)
        return BestMatchJoin(*sides, dimensions, keys, join.how)
    assert join.match is not None  # the reader saw to it
    names, operator = _time_columns(scope, left.relation, right.relation, join.match)
    axis = _common_axis(types.get(names[0]), types.get(names[1]))
    if axis is None:
        raise wrong(
            text,
            join.match.start,
            f"{names[0]} is {types.get(names[0])} and {names[1]} is {types.get(names[1])}: no times to compare",
            "use two timestamps of one kind, two dates or two integers",
        )
    tolerance = None if join.tolerance is None else duration(text, join.tolerance, axis, names[0])
    direction: Direction = "backward" if operator[0] == ">" else "forward"
    return AsOfJoin(*sides, names, keys, direction, operator[-1] == "=", tolerance, join.how)


def _keys(scope: Scope, left: Relation, right: Relation, on: Scalar | None) -> tuple[Keys, tuple[Relation, Relation]]:
    """ON as pairs of columns, and the two sides with those that are computed.

    Other conditions are refused: what is kept of a key is what can still be taken, whatever pairs it would be part of.
    """
    if on is None:
        return (), (left, right)
    operands = Operands(Join(left, right), {})
    found = []
    for part in conjuncts(rendered(bind_scalar(on, scope, aggregates="in ON"))):
        one, equals, other = comparison(part) or ("", "", "")
        if equals != "=" or {operands.side(one), operands.side(other)} != {LEFT, RIGHT}:
            raise refused(
                scope.text,
                on.start,
                f"ON of an event join has equalities of the one stream and the other only, not {part.replace('`', '')}",
                "write ON R.k = S.k; filter the streams in subqueries, or the result in WHERE",
            )
        mine, yours = (one, other) if operands.side(one) == LEFT else (other, one)
        found.append((operands.column(mine), operands.column(yours)))
    return tuple(found), operands.sides()


def _time_columns(scope: Scope, left: Relation, right: Relation, match: Scalar) -> tuple[tuple[str, str], str]:
    pair = _pair(left, right, rendered(bind_scalar(match, scope, aggregates="in MATCH_CONDITION")))
    if pair is None or pair[1] == "=":
        raise wrong(
            scope.text, match.start, "This must compare a time of the one stream with a time of the other", _MATCH_HINT
        )
    return pair


def _pair(left: Relation, right: Relation, text: str) -> tuple[tuple[str, str], str] | None:
    """The left and the right column of a comparison, and the operator between them in that order."""
    parts = comparison(text)
    if parts is None:
        return None
    one, other = one_column(parts[0]), one_column(parts[2])
    if one in left.columns and other in right.columns:
        return (str(one), str(other)), parts[1]
    if one in right.columns and other in left.columns:
        return (str(other), str(one)), _FLIPPED[parts[1]]
    return None


def _dimension(
    text: str, left: Sources, right: Sources, dimension: Dimension, types: Types
) -> tuple[str, str, float | str]:
    if len(dimension.columns) == 1:
        both = tuple(_column(Scope(text, side.entries), side.relation, dimension.columns[0]) for side in (left, right))
    else:
        scope = Scope(text, left.entries + right.entries)
        names = [rendered(bind_scalar(column, scope, aggregates="in WITHIN")) for column in dimension.columns]
        pair = _pair(left.relation, right.relation, " = ".join(names))
        if pair is None:
            raise wrong(
                text,
                dimension.columns[0].start,
                "A dimension is a column of the one stream and a column of the other",
                "write WITHIN R.ra = S.raj 0.01",
            )
        both = pair[0]
    kinds = [types.get(name) for name in both]
    return (both[0], both[1], _largest(text, dimension.largest, both, kinds))


def _column(scope: Scope, side: Relation, column: Scalar) -> str:
    parts = [Name(part.name, part.meta.get("start", column.start)) for part in column.tree.parts]
    found = one_column(rendered(bind_scalar(column, scope))) if len(parts) == 1 else None
    if found is None or found not in side.columns:
        raise wrong(
            scope.text,
            column.start,
            "A dimension of one name is a column that both streams have",
            "write WITHIN ra 0.01, or WITHIN R.ra = S.raj 0.01 for two names",
        )
    return found


def _largest(text: str, amount: Amount, names: Sequence[str], kinds: Sequence[SqlType | None]) -> float | str:
    axis = _common_axis(*kinds)
    if axis in (TimeAxis.TIMESTAMP, TimeAxis.DATE):
        return duration(text, amount, axis, names[0])
    numbers = all(kind is not None and is_numeric(kind) for kind in kinds)
    if not numbers or amount.unit:
        shown = " and ".join(f"{name} is {kind}" for name, kind in zip(names, kinds, strict=True))
        reason = "which have no distance" if not numbers else f"on which {amount.text!r} has no meaning"
        raise wrong(text, amount.start, f"{shown}, {reason}", "use numbers with a number, or times with a unit")
    return int(amount.text) if amount.text.isdecimal() else float(amount.text)


def _common_axis(left: SqlType | None, right: SqlType | None) -> TimeAxis | None:
    if left is None or right is None:
        return None
    if left in INTEGERS and right in INTEGERS:
        return TimeAxis.INTEGER
    if left == right and common(left, right) is not None:
        return {TIMESTAMP: TimeAxis.TIMESTAMP, TIMESTAMP_NTZ: TimeAxis.TIMESTAMP, DATE: TimeAxis.DATE}.get(left)
    return None
