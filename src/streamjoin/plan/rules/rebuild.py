"""Trees from trees: nodes are values, so a rule makes new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TypeVar

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import one_column, quoted
from streamjoin.plan.relation import OfOne, OfTwo, Projection, Relation, Union

Rule = Callable[[Relation, Schemas], Relation]
Kind = TypeVar("Kind", bound=Relation)


def for_every(kind: type[Kind]) -> Callable[[Callable[[Kind, Schemas], Relation]], Rule]:
    """Make a rule of what it does to one node: it is done to all nodes of this kind, children first.

    >>> from streamjoin.plan.relation import Distinct, Stream
    >>> once = for_every(Distinct)(lambda node, schemas: node.child if isinstance(node.child, Distinct) else node)
    >>> once(Distinct(Distinct(Stream("R", (), "ts", None))), {}).child.source
    'R'
    """

    def made(change: Callable[[Kind, Schemas], Relation]) -> Rule:
        @wraps(change)
        def rule(relation: Relation, schemas: Schemas) -> Relation:
            return bottom_up(relation, lambda node: change(node, schemas) if isinstance(node, kind) else node)

        return rule

    return made


def with_children(relation: Relation, children: Sequence[Relation]) -> Relation:
    """The same node over other children.

    >>> from streamjoin.plan.relation import Distinct, Stream
    >>> with_children(Distinct(Stream("R", (), "ts", None)), [Stream("S", (), "ts", None)]).child.source
    'S'
    """
    if tuple(children) == relation.children:
        return relation
    if isinstance(relation, OfOne):
        return replace(relation, child=children[0])
    if isinstance(relation, OfTwo):
        return replace(relation, left=children[0], right=children[1])
    assert isinstance(relation, Union)
    return replace(relation, parts=tuple(children))


def bottom_up(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """Every node changed, children first.

    >>> from streamjoin.plan.relation import Distinct, Stream
    >>> twice = Distinct(Distinct(Stream("R", (), "ts", None)))
    >>> bottom_up(twice, lambda node: node.children[0] if node.children else node).source
    'R'
    """
    return change(with_children(relation, [bottom_up(child, change) for child in relation.children]))


def columns_only(relation: Relation, names: Sequence[str]) -> Relation:
    """The relation with just these of its columns, in this order.

    >>> from streamjoin.plan.relation import Stream
    >>> columns_only(Stream("R", (("a", "a"), ("b", "b")), "ts", None), ["b"]).computed
    (('b', '`b`'),)
    """
    if relation.columns == tuple(names):
        return relation
    return Projection(relation, tuple((name, quoted(name)) for name in names))


def passes_on(projection: Projection) -> bool:
    """Whether a projection only leaves columns out, and renames none.

    >>> from streamjoin.plan.relation import Stream
    >>> passes_on(Projection(Stream("R", (("a", "a"),), "ts", None), (("a", "`a`"),)))
    True
    """
    return all(one_column(text) == name for name, text in projection.computed)
