"""Two selections, one above the other, are one; a condition that is plainly TRUE is none."""

from __future__ import annotations

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import conjunction, conjuncts
from streamjoin.plan.relation import Relation, Selection
from streamjoin.plan.rules.rebuild import bottom_up


def merge_selections(relation: Relation, schemas: Schemas) -> Relation:
    """One selection with the conditions of both, the lower one's first: it was there to guard the upper one's.

    >>> from streamjoin.plan.relation import Stream
    >>> stream = Stream("R", (("R.x", "x"),), "ts", None)
    >>> merge_selections(Selection(Selection(stream, "`R.x` > 1"), "`R.x` < 3 AND TRUE"), {}).condition
    '`R.x` > 1 AND `R.x` < 3'
    """
    return bottom_up(relation, _merged)


def _merged(relation: Relation) -> Relation:
    if not isinstance(relation, Selection):
        return relation
    parts = conjuncts(relation.condition)
    child = relation.child
    if isinstance(child, Selection):
        parts, child = conjuncts(child.condition) + parts, child.child
    parts = tuple(dict.fromkeys(part for part in parts if part.upper() != "TRUE"))
    condition = conjunction(parts)
    return child if condition is None else Selection(child, condition)
