"""Two selections, one above the other, are one, and so are two projections; one that changes nothing is none."""

from __future__ import annotations

from collections import Counter

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import column_places, conjuncts, one_column, substituted
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.relation import Projection, Relation, Selection
from streamjoin.plan.rules.pushing import selected
from streamjoin.plan.rules.rebuild import for_every, passes_on


@for_every(Selection)
def merge_selections(selection: Selection, schemas: Schemas) -> Relation:
    """One selection with the conditions of both, the lower one's first: it was there to guard the upper one's.

    >>> from streamjoin.plan.relation import Stream
    >>> stream = Stream("R", (("R.x", "x"),), "ts", None)
    >>> merge_selections(Selection(Selection(stream, "`R.x` > 1"), "`R.x` < 3 AND TRUE"), {}).condition
    '`R.x` > 1 AND `R.x` < 3'
    """
    child, parts = selection.child, conjuncts(selection.condition)
    if isinstance(child, Selection):
        parts, child = conjuncts(child.condition) + parts, child.child
    return selected(child, list(dict.fromkeys(part for part in parts if part.upper() != "TRUE")))


@for_every(Projection)
def merge_projections(projection: Projection, schemas: Schemas) -> Relation:
    """Projections of projections, as one. An expression is moved up only if it is used once: it would be computed twice
    otherwise.

    >>> from streamjoin.plan.relation import Stream
    >>> inner = Projection(Stream("R", (("R.x", "x"),), "ts", None), (("q.y", "`R.x` + 1"),))
    >>> merge_projections(Projection(inner, (("y", "`q.y` * 2"),)), {}).computed
    (('y', '(`R.x` + 1) * 2'),)
    """
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
