"""Two projections, one above the other, are one; a projection that changes nothing is none.

An expression is moved up only if it is used once: it would be computed twice otherwise.
"""

from __future__ import annotations

from collections import Counter

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import column_places, one_column, substituted
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.relation import Projection, Relation
from streamjoin.plan.rules.rebuild import bottom_up, passes_on


def merge_projections(relation: Relation, schemas: Schemas) -> Relation:
    """Projections of projections, as one.

    >>> from streamjoin.plan.relation import Stream
    >>> inner = Projection(Stream("R", (("R.x", "x"),), "ts", None), (("q.y", "`R.x` + 1"),))
    >>> merge_projections(Projection(inner, (("y", "`q.y` * 2"),)), {}).computed
    (('y', '(`R.x` + 1) * 2'),)
    """
    return bottom_up(relation, lambda node: _merged(node) if isinstance(node, Projection) else node)


def _merged(projection: Projection) -> Relation:
    child = projection.child
    if projection.columns == child.columns and passes_on(projection):
        return child
    if not isinstance(child, Projection):
        return projection
    below = dict(child.computed)
    used: Counter[str] = Counter()
    for _, text in projection.computed:
        pieces = tokens(text)
        used.update(pieces[at].name or "" for at in column_places(pieces))
    if any(used[name] > 1 and one_column(text) is None for name, text in below.items()):
        return projection
    return Projection(child.child, tuple((name, substituted(text, below)) for name, text in projection.computed))
