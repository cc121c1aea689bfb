"""Nothing is read that nobody needs: columns are left out, down to the streams.

Set operators and DISTINCT compare whole rows, joins decide by some columns (an as-of join by all of its right ones), an
aggregation has its keys: those stay. A window's own columns (time, PARTITION BY, the ends of VALID) are the stream's:
they need not be read for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from streamjoin.plan.column_types import Schemas
from streamjoin.plan.condition import columns
from streamjoin.plan.relation import Aggregation, Join, OfPairs, Projection, Relation, Selection, Stream, Union
from streamjoin.plan.rules.rebuild import columns_only, passes_on, with_children


def prune_columns(relation: Relation, schemas: Schemas) -> Relation:
    """The same columns, from children that have no more than it takes.

    >>> stream = Stream("R", (("R.x", "x"), ("R.y", "y")), "ts", None)
    >>> prune_columns(Projection(stream, (("y", "`R.y`"),)), {}).child.reads
    (('R.y', 'y'),)
    """
    return _just(relation, relation.columns)


def _pruned(relation: Relation, needed: set[str]) -> Relation:
    """The relation with the columns that are needed, and perhaps some more."""
    if isinstance(relation, Stream):
        return replace(relation, reads=tuple(read for read in relation.reads if read[0] in needed))
    if isinstance(relation, Selection):
        return replace(relation, child=_pruned(relation.child, needed | set(columns(relation.condition))))
    if isinstance(relation, Projection):
        computed = tuple(one for one in relation.computed if one[0] in needed)
        return Projection(_pruned(relation.child, {name for _, text in computed for name in columns(text)}), computed)
    if isinstance(relation, Union):
        places = [place for place, name in enumerate(relation.columns) if name in needed]
        return replace(
            relation, parts=tuple(_just(part, [part.columns[at] for at in places]) for part in relation.parts)
        )
    if isinstance(relation, Aggregation):
        aggregates = tuple(one for one in relation.aggregates if one.name in needed)
        used = {*relation.keys, *(one.column for one in aggregates if one.column is not None)}
        return replace(relation, child=_narrow(relation.child, used), aggregates=aggregates)
    if isinstance(relation, OfPairs):
        used = needed | relation.decides_by
        return with_children(relation, [_joined(child, used) for child in relation.children])
    # Whole rows count: all columns of the children are needed.
    return with_children(relation, [_just(child, child.columns) for child in relation.children])


def _just(relation: Relation, names: Iterable[str]) -> Relation:
    names = tuple(names)
    return columns_only(_pruned(relation, set(names)), names)


def _narrow(relation: Relation, used: set[str]) -> Relation:
    """Without the columns that only a selection needed: what is kept in state should be small."""
    needed = used & set(relation.columns)
    found = _pruned(relation, needed)
    if isinstance(found, Selection):
        return columns_only(found, [name for name in found.columns if name in needed])
    return found


def _joined(relation: Relation, used: set[str]) -> Relation:
    """A child of a join. Joins directly above joins can be carried out as one, so nothing stands between them."""
    if isinstance(relation, Projection) and isinstance(relation.child, Join) and passes_on(relation):
        return _pruned(relation.child, used & set(relation.columns))
    return _narrow(relation, used)
