"""Selections go down, to the side of a join that they belong to, and through whatever does not change their answer.

    Projection, Distinct                              all of it, by the child's own names
    Union, EXCEPT, INTERSECT                          for each child by its own names: conditions on columns whose types
                                                      are known, and the same in all children
    Aggregation                                       conditions on keys alone
    inner Join                                        left, right; conditions on both sides become the join's own
    left outer, semi, anti Join                       conditions on the left side; right outer: on the right side
    as-of, best match                                 conditions on the side that each row finds partners for

Never below the side of an outer join that NULLs are supplied for: a padded row would come that was filtered. A
selection stops directly above a stream: see `below_window`.

Why types count: a set operator casts the columns of its children to a common type, and below it a condition would be
asked of another value. As a string an int is '1', and the double that it is cast to '1.0'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
from streamjoin.plan.rules.rebuild import bottom_up, with_children

_KEEPS_LEFT = ("inner", "left", "semi", "anti")  # every row of the left side stays, or stays when it has partners
_KEEPS_RIGHT = ("inner", "right")


def push_selections(relation: Relation, schemas: Schemas) -> Relation:
    """Every selection one step down, where it may go.

    >>> stream = Stream("R", (("R.x", "x"),), "ts", None)
    >>> pushed = push_selections(Selection(Projection(stream, (("y", "`R.x` + 1"),)), "`y` > 3"), {})
    >>> pushed.child.condition
    '(`R.x` + 1) > 3'
    """
    return bottom_up(relation, lambda node: _pushed(node, schemas) if isinstance(node, Selection) else node)


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


def _pushed(selection: Selection, schemas: Schemas) -> Relation:
    child, parts = selection.child, conjuncts(selection.condition)
    if isinstance(child, Projection):
        computed = dict(child.computed)
        return replace(child, child=selected(child.child, [substituted(part, computed) for part in parts]))
    if isinstance(child, Distinct):
        return replace(child, child=selected(child.child, parts))
    if isinstance(child, Union | Difference | Intersection):
        types = column_types(child, schemas)
        below = [part for part in parts if all(types.get(name) is not None for name in columns(part))]
        above = [part for part in parts if part not in below]
        return selected(with_children(child, [_by_place(one, child.columns, below) for one in child.children]), above)
    if isinstance(child, Aggregation):
        below = [part for part in parts if set(columns(part)) <= set(child.keys)]
        above = [part for part in parts if part not in below]
        return selected(replace(child, child=selected(child.child, below)), above)
    if isinstance(child, Join):
        return _through_join(child, parts)
    if isinstance(child, AsOfJoin | BestMatchJoin):
        side = {"inner": 0, "left": 0, "right": 1}.get(child.how)
        if side is None:
            return selection
        below = [part for part in parts if set(columns(part)) <= set(child.children[side].columns)]
        above = [part for part in parts if part not in below]
        sides = [selected(one, below) if number == side else one for number, one in enumerate(child.children)]
        return selected(with_children(child, sides), above)
    return selection


def _by_place(relation: Relation, names: Sequence[str], parts: Sequence[str]) -> Relation:
    own = {name: quoted(other) for name, other in zip(names, relation.columns, strict=True)}
    return selected(relation, [substituted(part, own) for part in parts])


def _through_join(join: Join, parts: Sequence[str]) -> Relation:
    left, right, both, above = [], [], [], []
    for part in parts:
        used = set(columns(part))
        if join.how in _KEEPS_LEFT and used <= set(join.left.columns):
            left.append(part)
        elif join.how in _KEEPS_RIGHT and used <= set(join.right.columns):
            right.append(part)
        elif join.how == "inner":
            both.append(part)
        else:
            above.append(part)
    own = () if join.theta is None else conjuncts(join.theta)
    found = replace(
        join,
        left=selected(join.left, left),
        right=selected(join.right, right),
        theta=conjunction((*own, *both)),
    )
    return selected(found, above)
