"""What is left of CQL's own functions, in Spark's words: Spark knows neither `distance` nor `overlaps` nor `similar`.

distance(a, b, c, d)      the root of the sum of squares; of c - a and d - b
overlaps(a, b, c, d)      a < b AND c < d AND a < d AND c < b
similar(a, b)             the number of elements that both arrays have by that of all; NULL is no element
"""

from __future__ import annotations

from dataclasses import replace

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import calls
from streamjoin.plan.relation import Join, Projection, Relation, Selection
from streamjoin.plan.rules.rebuild import for_every

FUNCTIONS = ("distance", "overlaps", "similar")


@for_every(Relation)
def expand_functions(relation: Relation, schemas: Schemas) -> Relation:
    """Every expression in Spark SQL alone.

    >>> from streamjoin.plan.relation import Stream
    >>> stream = Stream("R", (("R.a", "a"), ("R.b", "b")), "ts", None)
    >>> expand_functions(Selection(stream, "distance(`R.a`, `R.b`) < 3"), {}).condition
    'sqrt(power(CAST(`R.b` AS DOUBLE) - CAST(`R.a` AS DOUBLE), 2)) < 3'
    """
    if isinstance(relation, Selection):
        return replace(relation, condition=expanded(relation.condition))
    if isinstance(relation, Projection):
        return replace(relation, computed=tuple((name, expanded(text)) for name, text in relation.computed))
    if isinstance(relation, Join) and relation.theta is not None:
        return replace(relation, theta=expanded(relation.theta))
    return relation


def expanded(text: str) -> str:
    """An expression without CQL's own functions.

    >>> expanded("NOT overlaps(`a`, `b`, `c`, `d`)")
    'NOT (`a` < `b` AND `c` < `d` AND `a` < `d` AND `c` < `b`)'
    """
    written, at = [], 0
    for start, end, name, arguments in calls(text, FUNCTIONS):
        inner = [expanded(argument) for argument in arguments]
        written += [text[at:start], _WRITTEN[name](inner)]
        at = end
    return "".join([*written, text[at:]])


def _distance(axes: list[str]) -> str:
    half = len(axes) // 2
    squares = [
        f"power(CAST({there} AS DOUBLE) - CAST({here} AS DOUBLE), 2)"
        for here, there in zip(axes[:half], axes[half:], strict=True)
    ]
    return f"sqrt({' + '.join(squares)})"


def _overlaps(ends: list[str]) -> str:
    start, end, other_start, other_end = (f"({text})" if " " in text and text[0] != "`" else text for text in ends)
    return f"({start} < {end} AND {other_start} < {other_end} AND {start} < {other_end} AND {other_start} < {end})"


def _similar(sets: list[str]) -> str:
    both = ", ".join(f"array_compact({text})" for text in sets)
    return f"(array_size(array_intersect({both})) / nullif(array_size(array_union({both})), 0))"


_WRITTEN = {"distance": _distance, "overlaps": _overlaps, "similar": _similar}
