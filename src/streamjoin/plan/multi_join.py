"""The join of many relations as a node of the tree: tuples with one element of each, that match while all are valid.

What holds is said between two of them at a time (`Between`). A predicate for all is one between every two; of an
equality a path through all is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import pyarrow as pa

from streamjoin.algebra import Band, Equals, How, MergeStrategy, Overlaps, Predicate, Similar
from streamjoin.algebra.policy import Hold
from streamjoin.errors import CallError
from streamjoin.plan.condition import columns as columns_of
from streamjoin.plan.condition import conjunction, conjuncts
from streamjoin.plan.relation import Join, Relation
from streamjoin.plan.rules.rebuild import bottom_up


@dataclass(frozen=True)
class Between:
    """A predicate over columns of two of the relations, by number; the first is its left side."""

    one: int
    two: int
    predicate: Predicate


@dataclass(frozen=True)
class MultiJoin(Relation):
    """Tuples of elements, one of each part, that match while all are valid; with `timed=False` by value alone.

    `theta` is any further condition over the columns of all. The parts have no column name in common. Everything else
    as for `Join`.

    >>> from streamjoin.plan.relation import Stream
    >>> r, s, t = (Stream(name, ((f"{name}.k", "k"),), "ts", None) for name in "RST")
    >>> MultiJoin((r, s, t)).columns
    ('R.k', 'S.k', 'T.k')
    """

    parts: tuple[Relation, ...]
    between: tuple[Between, ...] = ()
    theta: str | None = None
    timed: bool = True
    hold: Hold | Literal["auto"] = "auto"
    cell: float | None = None
    merge: MergeStrategy | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.columns)

    @property
    def children(self) -> tuple[Relation, ...]:
        return self.parts

    @property
    def how(self) -> How:
        """Every result has an element of each part."""
        return "inner"

    @property
    def decides_by(self) -> frozenset[str]:
        read = {str(name) for each in self.between for side in (0, 1) for name in each.predicate.columns(side)}
        return frozenset(read) | set(columns_of(self.theta or ""))

    def unconnected(self, *, by_theta: bool = False) -> list[list[int]]:
        """The parts in groups that nothing but time joins; one group when all are connected.

        A further condition (`theta`) is tested on whole tuples, and helps nobody to find the others. It connects only
        `by_theta`: then each of its conjuncts connects the parts whose columns it has.
        """
        groups = [{number} for number in range(len(self.parts))]
        connected = [{each.one, each.two} for each in self.between]
        for text in conjuncts(self.theta) if by_theta and self.theta is not None else ():
            connected.append({_owner(self.parts, name) for name in columns_of(text)})
        for ends in connected:
            touched = [group for group in groups if group & ends]
            groups = [group for group in groups if group not in touched] + ([set().union(*touched)] if touched else [])
        return sorted(sorted(group) for group in groups)


def for_all(inputs: int) -> list[tuple[int, int]]:
    """The pairs of inputs between which a predicate for all of them holds.

    >>> for_all(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(inputs), 2))


_MIRRORED = {"both": "both", "neither": "neither", "left": "right", "right": "left"}


def mirrored(predicate: Any) -> Any:
    """The same predicate seen from its right side.

    >>> mirrored(Band("a", "b", below=1, above=2, closed="left"))
    Band(left='b', right='a', below=2, above=1, closed='right')
    """
    sides = {"left": predicate.right, "right": predicate.left}
    if isinstance(predicate, Band):
        sides |= {"below": predicate.above, "above": predicate.below, "closed": _MIRRORED[predicate.closed]}
    return replace(predicate, **sides)


def cascade_of(join: MultiJoin) -> Relation:
    """The same as a cascade of joins of two, in the order of the parts.

    >>> from streamjoin.plan.relation import Stream
    >>> r, s, t = (Stream(name, ((f"{name}.k", "k"),), "ts", None) for name in "RST")
    >>> cascade_of(MultiJoin((r, s, t))) == Join(Join(r, s), t)
    True
    """
    last = len(join.parts) - 1
    whole = join.parts[0]
    levels: list[list[Predicate]] = [[] for _ in join.parts]
    for each in join.between:
        number = max(each.one, each.two)
        levels[number].append(each.predicate if each.two == number else mirrored(each.predicate))
    gridded = [_has_grid(predicates, join) for predicates in levels[1:]]
    if join.cell is not None and not any(gridded):
        raise CallError(
            "cell is the size of the cells of a grid, and no grid lies over what this cascade compares",
            hint="leave out cell=",
        )
    for number in range(1, last + 1):
        theta = join.theta if number == last else None
        hold: Any = join.hold if number == last else "auto"
        whole = Join(
            whole, join.parts[number], tuple(levels[number]), theta, outer="snapshot" if join.timed else "row",
            timed=join.timed, hold=hold, cell=join.cell if gridded[number - 1] else None,
        )  # fmt: skip
    return whole


def as_many(join: Join) -> MultiJoin:
    """An inner join of two as one of many."""
    between = tuple(Between(0, 1, predicate) for predicate in join.predicates)
    return MultiJoin((join.left, join.right), between, join.theta, join.timed, join.hold, join.cell, join.merge)


def _has_grid(predicates: Sequence[Predicate], join: MultiJoin) -> bool:
    """Whether a join of two by these predicates has cells of the kind whose size the call gives: over values, if any
    predicate is over values, else over time.
    """
    over_values = [each for each in predicates if not isinstance(each, Equals | Similar)]
    if any(isinstance(each, Equals) for each in predicates):
        return False  # rows meet by key
    if any(not isinstance(each.predicate, Equals | Similar) for each in join.between):
        return bool(over_values)
    return join.timed


def joins_at_once(relation: Relation, worth: Callable[[MultiJoin], bool] | None = None) -> Relation:
    """The tree with every chain of inner joins that is `worth` it as one join of many: nothing between need be kept.

    Without `worth`, every one that can be: also by a similarity, or by a further condition alone.

    >>> from streamjoin.plan.relation import Stream
    >>> r, s, t = (Stream(name, ((f"{name}.k", "k"),), "ts", None) for name in "RST")
    >>> joins_at_once(Join(Join(r, s), t)) == MultiJoin((r, s, t))
    True
    """
    return bottom_up(relation, lambda each: _flattened(each, worth))


def meet_in_one_place(join: MultiJoin, types: Mapping[str, pa.DataType]) -> bool:
    """Whether rows of all parts can be placed together without copies in many buckets: by a key that all have, in one
    type, or by one value of each. `types` has those of the columns that are known.

    By different keys a cascade moves every row once to where it is needed; at once, each would have to be copied.

    >>> from streamjoin.algebra import Equals
    >>> from streamjoin.plan.relation import Stream
    >>> r, s, t = (Stream(name, ((f"{name}.k", "k"), (f"{name}.j", "j")), "ts", None) for name in "RST")
    >>> types = dict.fromkeys(["R.k", "S.k", "S.j", "T.k", "T.j"], pa.int64())
    >>> first, same, other = (Between(*at, Equals(*on)) for at, on in [
    ...     ((0, 1), ("R.k", "S.k")), ((1, 2), ("S.k", "T.k")), ((1, 2), ("S.j", "T.j"))])
    >>> meet_in_one_place(MultiJoin((r, s, t), (first, same)), types)
    True
    >>> meet_in_one_place(MultiJoin((r, s, t), (first, other)), types)
    False
    """
    everyone = set(range(len(join.parts)))
    equalities = [each for each in join.between if isinstance(each.predicate, Equals)]
    if equalities:
        classes = equality_classes(join.between)
        return any(
            {number for number, _ in members} == everyone and len({types.get(name) for _, name in members}) == 1
            for members in classes
            if all(name in types for _, name in members)
        )
    ends = [
        (end, each.predicate.columns(side)) for each in join.between for side, end in enumerate((each.one, each.two))
    ]
    if len(set(ends)) > len({end for end, _ in ends}) or len({type(each.predicate) for each in join.between}) > 1:
        return False  # several values of one part, or several kinds of predicates
    pairs = {frozenset((each.one, each.two)) for each in join.between}
    if any(isinstance(each.predicate, Overlaps) for each in join.between):
        return len(pairs) == len(for_all(len(join.parts)))  # then all share a point
    return not join.between or len(join.unconnected()) == 1


def equality_classes(between: Iterable[Between]) -> list[set[tuple[int, str]]]:
    """Columns, each with its part, that equalities make equal."""
    classes: list[set[tuple[int, str]]] = []
    for each in between:
        if isinstance(each.predicate, Equals):
            ends = {(each.one, str(each.predicate.left)), (each.two, str(each.predicate.right))}
            for known in [one for one in classes if one & ends]:
                classes.remove(known)
                ends |= known
            classes.append(ends)
    return classes


def left_in_a_chain(relation: Relation) -> list[Join]:
    """The inner joins of a tree that stand on another one, and were not made one with it."""
    own = [relation] if isinstance(relation, Join) and relation.how == "inner" else []
    on_another = [
        join
        for join in own
        if any(isinstance(each, Join | MultiJoin) and each.how == "inner" for each in join.children)
    ]
    return on_another + [join for child in relation.children for join in left_in_a_chain(child)]


def has_many(relation: Relation) -> bool:
    """Whether a tree has a join of many relations."""
    return isinstance(relation, MultiJoin) or any(map(has_many, relation.children))


def _flattened(relation: Relation, worth: Callable[[MultiJoin], bool] | None) -> Relation:
    every = worth is None
    if not _is_plain(relation, every=every):
        return relation
    assert isinstance(relation, Join)
    sides = [_as_many(child, every=every) for child in relation.children]
    parts = tuple(part for side in sides for part in side.parts)
    if len(parts) < 3:
        return relation
    first = len(sides[0].parts)
    between = [
        *sides[0].between,
        *(Between(each.one + first, each.two + first, each.predicate) for each in sides[1].between),
    ]
    for predicate in relation.predicates:
        ends = [{_owner(parts, str(name)) for name in predicate.columns(side)} for side in (0, 1)]
        if any(len(end) != 1 for end in ends):
            return relation  # a distance with axes of several streams: only their join has both
        between.append(Between(ends[0].pop(), ends[1].pop(), predicate))
    thetas = (*(side.theta for side in sides), relation.theta)
    theta = conjunction(part for text in thetas if text is not None for part in conjuncts(text))
    whole = MultiJoin(parts, tuple(between), theta)
    return whole if worth is None or worth(whole) else relation


def _is_plain(relation: Relation, *, every: bool) -> bool:
    """Whether it is an inner join that nobody has said anything else of than what it joins.

    Unless `every` one is asked for, those are left alone that are better first: by a similarity, which places rows by
    their tokens, and by a further condition alone, because of many all combinations of rows would be tried.
    """
    if not isinstance(relation, Join):
        return False
    alike = any(isinstance(each, Similar) for each in relation.predicates)
    first = alike or (relation.theta is not None and not relation.predicates)
    return (every or not first) and relation == Join(
        relation.left, relation.right, relation.predicates, relation.theta, outer=relation.outer
    )


def _as_many(relation: Relation, *, every: bool) -> MultiJoin:
    """A join as parts and what is between them; anything else as one part."""
    if isinstance(relation, MultiJoin):
        return relation
    if _is_plain(relation, every=every):
        assert isinstance(relation, Join)
        between = tuple(Between(0, 1, predicate) for predicate in relation.predicates)
        return MultiJoin(relation.children, between, relation.theta)
    return MultiJoin((relation,))


def _owner(parts: tuple[Relation, ...], name: str) -> int:
    return next(number for number, part in enumerate(parts) if name in part.columns)
