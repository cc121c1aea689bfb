"""Selections go down, to the side of a join that they belong to, and through whatever does not change their answer.

    Projection, Distinct                              all of it, by the child's own names
    Union, EXCEPT, INTERSECT                          for each child by its own names: conditions on columns whose types
                                                      are known, and the same in all children
    Aggregation                                       conditions on keys alone
    inner Join                                        left, right; conditions on both sides become the join's own
    left outer, semi, anti Join                       conditions on the left side; right outer: on the right side
    as-of, best match                                 conditions on the side that each row finds partners for

So do conditions of a join that are about one side, where the other side's rows do not depend on them:

    inner, semi Join                                  both sides
    left outer, anti Join                             the right side: a left row stays, or is padded, whatever the
                                                      condition says of itself; right outer: the left side; full: none

Never below the side of an outer join that NULLs are supplied for: a padded row would come that was filtered. A
selection stops directly above a stream: see `below_window`.

Why types count: a set operator casts the columns of its children to a common type, and below it a condition would be
asked of another value. As a string an int is '1', and the double that it is cast to '1.0'.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from streamjoin.algebra import Rows
from streamjoin.plan.column_types import Schemas, column_types
from streamjoin.plan.condition import columns, conjunction, conjuncts, quoted, substituted
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from streamjoin.plan.rules.rebuild import for_every, with_children

# Of which kinds of join conditions go to the left, and to the right side.
_Sides = tuple[Collection[str], Collection[str]]
_ABOVE_A_JOIN: Final[_Sides] = (("inner", "left", "semi", "anti"), ("inner", "right"))
_ABOVE_A_CHOICE: Final[_Sides] = (("inner", "left"), ("right",))
_WITHIN_A_JOIN: Final[_Sides] = (("inner", "semi", "right"), ("inner", "semi", "left", "anti"))


@for_every(Selection)
def push_selections(selection: Selection, schemas: Schemas) -> Relation:
    """Every selection one step down, where it may go.

    >>> stream = Stream("R", (("R.x", "x"),), "ts", None)
    >>> pushed = push_selections(Selection(Projection(stream, (("y", "`R.x` + 1"),)), "`y` > 3"), {})
    >>> pushed.child.condition
    '(`R.x` + 1) > 3'
    """
    child, parts = selection.child, conjuncts(selection.condition)
    match child:
        case Projection():
            computed = dict(child.computed)
            return replace(child, child=selected(child.child, [substituted(part, computed) for part in parts]))
        case Distinct():
            return replace(child, child=selected(child.child, parts))
        case Aggregation():
            below, above = _split(parts, child.keys)
            return selected(replace(child, child=selected(child.child, below)), above)
        case Union() | Difference() | Intersection():
            types = column_types(child, schemas)
            below, above = _split(parts, [name for name, kind in types.items() if kind is not None])
            sides = [_by_place(one, child.columns, below) for one in child.children]
            return selected(with_children(child, sides), above)
        case Join():
            left, right, above = _by_side(child, parts, _ABOVE_A_JOIN)
            if child.how != "inner":
                return selected(replace(child, left=left, right=right), above)
            own = () if child.theta is None else conjuncts(child.theta)
            return replace(child, left=left, right=right, theta=conjunction((*own, *above)))
        case AsOfJoin() | BestMatchJoin():
            left, right, above = _by_side(child, parts, _ABOVE_A_CHOICE)
            return selected(replace(child, left=left, right=right), above)
    return selection


@for_every(Join)
def push_join_conditions(join: Join, schemas: Schemas) -> Relation:
    """One-sided conditions moved from ON to the sides.

    >>> r, s = Stream("R", (("R.x", "x"),), "ts", None), Stream("S", (("S.x", "x"),), "ts", None)
    >>> join = push_join_conditions(Join(r, s, (), "`R.x` > 1 AND `S.x` > 2 AND `R.x` < `S.x`", "left"), {})
    >>> join.theta, join.right.condition
    ('`R.x` > 1 AND `R.x` < `S.x`', '`S.x` > 2')
    """
    if join.theta is None:
        return join
    parts = [part for part in conjuncts(join.theta) if part.upper() != "TRUE"]
    left, right, rest = _by_side(join, parts, _WITHIN_A_JOIN)
    return replace(join, left=left, right=right, theta=conjunction(rest))


def below_window(stream: Stream) -> bool:
    """Whether a selection directly above the stream may as well be evaluated below its window.

    The newest n rows are others when rows are left out before: a row window counts them all.

    >>> from streamjoin.algebra import Range
    >>> below_window(Stream("R", (), "ts", Range(5))), below_window(Stream("R", (), "ts", Rows(5)))
    (True, False)
    """
    return not isinstance(stream.window, Rows)


def selected(relation: Relation, parts: Sequence[str]) -> Relation:
    """A selection by all of the conditions, if there are any.

    >>> selected(Stream("R", (), "ts", None), []).columns
    ()
    """
    condition = conjunction(parts)
    return relation if condition is None else Selection(relation, condition)


def _split(parts: Sequence[str], names: Collection[str]) -> tuple[list[str], list[str]]:
    """The conditions that use no other columns than these, and the others."""
    own = [part for part in parts if set(columns(part)) <= set(names)]
    return own, [part for part in parts if part not in own]


def _by_place(relation: Relation, names: Sequence[str], parts: Sequence[str]) -> Relation:
    own = {name: quoted(other) for name, other in zip(names, relation.columns, strict=True)}
    return selected(relation, [substituted(part, own) for part in parts])


def _by_side(join: Any, parts: Sequence[str], sides: _Sides) -> tuple[Relation, Relation, list[str]]:
    """The sides of a join with the conditions that go there, and those that do not."""
    rest, children = list(parts), []
    for child, hows in zip(join.children, sides, strict=True):
        own, rest = _split(rest, child.columns) if join.how in hows else ([], rest)
        children.append(selected(child, own))
    return children[0], children[1], rest
