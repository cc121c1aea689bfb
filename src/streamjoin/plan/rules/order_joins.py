"""The order of comma joins: as written, but a source with a condition to those before it goes before one without.

FROM R, S, T WHERE R.k = T.k        R and T are joined first; R, S would be every R with every S
"""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import columns, conjuncts
from streamjoin.plan.relation import Join, Relation, Selection
from streamjoin.plan.rules.rebuild import columns_only, for_every


@for_every(Selection)
def order_joins(relation: Selection, schemas: Schemas) -> Relation:
    """Cross joins below a selection, ordered by its conditions.

    >>> from streamjoin.plan.relation import Stream
    >>> r, s, t = (Stream(name, ((f"{name}.k", "k"),), "ts", None) for name in "RST")
    >>> ordered = order_joins(Selection(Join(Join(r, s), t), "`R.k` = `T.k`"), {})
    >>> ordered.columns, ordered.child.columns
    (('R.k', 'S.k', 'T.k'), ('R.k', 'T.k', 'S.k'))
    """
    sources = _sources(relation.child)
    if len(sources) < 3:
        return relation
    uses = [frozenset(columns(part)) for part in conjuncts(relation.condition)]
    found, waiting = [sources[0]], sources[1:]
    while waiting:
        known = {name for source in found for name in source.columns}
        following = next((source for source in waiting if _connected(source, known, uses)), waiting[0])
        waiting = [source for source in waiting if source is not following]
        found.append(following)
    if all(one is other for one, other in zip(found, sources, strict=True)):
        return relation
    joined: Relation = found[0]
    for source in found[1:]:
        joined = Join(joined, source)
    # Whoever stands above may go by position.
    return columns_only(Selection(joined, relation.condition), relation.columns)


def _sources(relation: Relation) -> list[Relation]:
    """What a chain of cross joins joins, in order."""
    if isinstance(relation, Join) and relation == Join(relation.left, relation.right):
        return [*_sources(relation.left), relation.right]
    return [relation]


def _connected(source: Relation, known: set[str], uses: Sequence[frozenset[str]]) -> bool:
    own = set(source.columns)
    return any(use & own and use & known and use <= own | known for use in uses)
