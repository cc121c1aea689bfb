"""The join of many relations as a node of the tree: tuples with one element of each, that match while all are valid.

What holds is said between two of them at a time (`Between`). A predicate for all is one between every two; of an
equality a path through all is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from streamjoin.algebra import How, Predicate
from streamjoin.algebra.policy import Hold
from streamjoin.plan.condition import columns as columns_of
from streamjoin.plan.relation import Relation


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

    def unconnected(self) -> list[list[int]]:
        """The parts in groups that nothing but time joins; one group when all are connected.

        A further condition (`theta`) connects nothing: it is tested on whole tuples.
        """
        groups = [{number} for number in range(len(self.parts))]
        for each in self.between:
            one, two = (next(group for group in groups if end in group) for end in (each.one, each.two))
            if one is not two:
                groups = [group for group in groups if group is not one and group is not two] + [one | two]
        return sorted(sorted(group) for group in groups)


def for_all(inputs: int) -> list[tuple[int, int]]:
    """The pairs of inputs between which a predicate for all of them holds.

    >>> for_all(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(inputs), 2))
