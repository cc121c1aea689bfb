"""Conditions of a join that are about one side filter that side, where the other side's rows do not depend on it.

inner, semi    both sides
left, anti     the right side: a left row stays, or is padded, whatever the condition says of itself
right          the left side
full           none
"""

from __future__ import annotations

from dataclasses import replace

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import columns, conjunction, conjuncts
from streamjoin.plan.relation import Join, Relation
from streamjoin.plan.rules.push_selections import selected
from streamjoin.plan.rules.rebuild import bottom_up

_LEFT = ("inner", "semi", "right")
_RIGHT = ("inner", "semi", "left", "anti")


def push_join_conditions(relation: Relation, schemas: Schemas) -> Relation:
    """One-sided conditions moved from ON to the sides.

    >>> from streamjoin.plan.relation import Stream
    >>> r, s = Stream("R", (("R.x", "x"),), "ts", None), Stream("S", (("S.x", "x"),), "ts", None)
    >>> join = push_join_conditions(Join(r, s, (), "`R.x` > 1 AND `S.x` > 2 AND `R.x` < `S.x`", "left"), {})
    >>> join.theta, join.right.condition
    ('`R.x` > 1 AND `R.x` < `S.x`', '`S.x` > 2')
    """
    return bottom_up(relation, lambda node: _pushed(node) if isinstance(node, Join) else node)


def _pushed(join: Join) -> Join:
    if join.theta is None:
        return join
    left, right, rest = [], [], []
    for part in conjuncts(join.theta):
        used = set(columns(part))
        if part.upper() == "TRUE":
            continue
        if join.how in _LEFT and used <= set(join.left.columns):
            left.append(part)
        elif join.how in _RIGHT and used <= set(join.right.columns):
            right.append(part)
        else:
            rest.append(part)
    return replace(join, left=selected(join.left, left), right=selected(join.right, right), theta=conjunction(rest))
