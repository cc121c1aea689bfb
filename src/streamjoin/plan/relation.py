"""The relational algebra over lifetimes: what a query means, as a tree of relations.

A *relation* is a multiset of elements: columns, and a validity `[ts, te)`. Every node here is snapshot-reducible: its
snapshot at `t` is the ordinary relational operator, applied to its children's snapshots at `t`.

    Stream        a stream seen through a window
    Selection     the elements for which a condition is true
    Projection    columns computed from columns
    Union         UNION ALL; multiplicities add up
    Distinct      each payload at most once
    Difference    EXCEPT, or EXCEPT ALL with `every`
    Intersection  INTERSECT, or INTERSECT ALL with `every`
    Join          pairs that match while both are valid; outer joins by snapshot
    Aggregation   one element per group, cut at every start and end of one of the group's elements

Outer, semi and anti joins by row (`outer="row"`) are not, nor are joins of *events*: these take streams without a
window, and give rows without a validity. Only selections and projections may stand above and below them.

    IntervalJoin   pairs whose times are so far apart
    AsOfJoin       each left row with the nearest right row in time
    NearestJoin    each left row with the nearest right rows around it
    BestMatchJoin  each left row with the best of the right rows near it

Conditions and computed columns are Spark SQL, over the child's column names in backquotes: `` `R.x` > 3 ``. Names are
unique within a relation; set operators go by position and take the first child's names. Nodes are frozen values: rules
turn trees into trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from streamjoin.algebra import (
    Aggregate,
    BestOf,
    Direction,
    How,
    MergeStrategy,
    NearestOf,
    Outer,
    Predicate,
    Window,
    Within,
)
from streamjoin.algebra.best_match import Compare
from streamjoin.algebra.policy import Hold, ToStream
from streamjoin.algebra.predicate import Closed
from streamjoin.plan.condition import columns as columns_of


@dataclass(frozen=True)
class Relation:
    """A node of the tree."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[Relation, ...]:
        """What it reads."""
        return ()

    @property
    def decides_by(self) -> frozenset[str]:
        """The children's columns that it looks at, whether or not they are part of its result."""
        return frozenset()


@dataclass(frozen=True)
class OfOne(Relation):
    """A relation made of one other: its columns are the child's, unless it says otherwise."""

    child: Relation

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.child,)


@dataclass(frozen=True)
class OfTwo(Relation):
    """A relation made of two others: its columns are the left child's, unless it says otherwise."""

    left: Relation
    right: Relation

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns

    @property
    def children(self) -> tuple[Relation, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class OfPairs(OfTwo):
    """A join: the columns of both children, or of the left one alone."""

    @property
    def left_alone(self) -> bool:
        """Whether rows of the left child leave by themselves."""
        return getattr(self, "how", "inner") in ("semi", "anti")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns if self.left_alone else self.left.columns + self.right.columns


@dataclass(frozen=True)
class Stream(Relation):
    """The stream `source` through a window. `reads` has, for each column, its name here and in the stream.

    `time` is the stream's time column; None where the window is a `Validity`, which names its own. Without a window it
    is a stream of events. `priority` says how urgent its rows are: SQL over the stream's own columns, in backquotes.

    >>> from streamjoin.algebra import Range
    >>> Stream("R", (("R.x", "x"),), "ts", Range(5)).columns
    ('R.x',)
    """

    source: str
    reads: tuple[tuple[str, str], ...]
    time: str | None
    window: Window | None
    priority: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.reads)


@dataclass(frozen=True)
class Selection(OfOne):
    """The elements for which the condition is true (neither false nor NULL)."""

    condition: str


@dataclass(frozen=True)
class Projection(OfOne):
    """Columns computed from the child's: for each its name, and the expression."""

    computed: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.computed)


@dataclass(frozen=True)
class Union(Relation):
    """The elements of all children."""

    parts: tuple[Relation, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.parts[0].columns

    @property
    def children(self) -> tuple[Relation, ...]:
        return self.parts


@dataclass(frozen=True)
class Distinct(OfOne):
    """At each instant every payload at most once. NULLs are equal here, and so are NaNs."""


@dataclass(frozen=True)
class Difference(OfTwo):
    """At each instant the payloads of the left child that the right one has not; `every`: max(0, m - n) times."""

    every: bool = False


@dataclass(frozen=True)
class Intersection(OfTwo):
    """At each instant the payloads that both children have; `every`: min(m, n) times."""

    every: bool = False


@dataclass(frozen=True)
class Join(OfPairs):
    """Pairs of elements that match while both are valid.

    `predicates` are `Equals`, `Band`, `Overlaps` and `Within` over column names, the left child's first; `theta` is any
    further condition over the columns of both. The two children have no column name in common. `outer` says what outer,
    semi and anti joins mean. With `timed=False` rows have no time, and match by value alone. `hold`, `cell` and `merge`
    are how to run it: what ordered emission holds back, the size of the cells of a grid, and whether state is kept in
    sorted runs (TPMJ), which are merged by this strategy.
    """

    predicates: tuple[Predicate, ...] = ()
    theta: str | None = None
    how: How = "inner"
    outer: Outer = "snapshot"
    timed: bool = True
    hold: Hold | Literal["auto"] = "auto"
    cell: float | None = None
    merge: MergeStrategy | None = None

    @property
    def decides_by(self) -> frozenset[str]:
        return _read_by(self.predicates) | set(columns_of(self.theta or ""))


@dataclass(frozen=True)
class Aggregation(OfOne):
    """For each group, between two neighbouring instants at which one of its elements starts or ends, one element. No
    element where the group is empty. Without keys everything is one group. NULL keys are a group.
    """

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.keys + tuple(aggregate.name for aggregate in self.aggregates)


@dataclass(frozen=True)
class IntervalJoin(OfPairs):
    """Pairs of events with `lower <= right time - left time <= upper`, in ticks, that match by the other conditions.

    `times` are columns of the two children; everything else as for `Join`, by row.
    """

    times: tuple[str, str]
    lower: int
    upper: int
    closed: Closed = "both"
    predicates: tuple[Predicate, ...] = ()
    theta: str | None = None
    how: How = "inner"
    hold: Hold | Literal["auto"] = "auto"
    cell: float | None = None

    @property
    def decides_by(self) -> frozenset[str]:
        return _read_by(self.predicates) | set(columns_of(self.theta or "")) | set(self.times)


@dataclass(frozen=True)
class AsOfJoin(OfPairs):
    """Each left row with the nearest right row of its keys in one direction; `times` and `keys` are pairs of columns.

    `tolerance` is a number, or text such as "5 seconds". `how` is left or inner. `tie_break` are columns of the right
    child: the greatest by them is taken among rows of one time.
    """

    times: tuple[str, str]
    keys: tuple[tuple[str, str], ...] = ()
    direction: Direction = "backward"
    exact: bool = True
    tolerance: int | str | None = None
    how: How = "left"
    tie_break: tuple[str, ...] = ()

    @property
    def decides_by(self) -> frozenset[str]:
        # Ties are broken by content: by all that there is of the right child.
        return frozenset((*self.times, *(name for key in self.keys for name in key), *self.right.columns))


@dataclass(frozen=True)
class BestMatchJoin(OfPairs):
    """Each left row with the right rows near it that no other one dominates.

    `dimensions` has, for each, the left column, the right column and the largest distance: a number, or text such as
    "5 seconds". The first is the one that streams are ordered by. `how` is left, inner, right or full. `compare` has,
    by number, functions that give the distance in other dimensions. `times`: columns that count the ordered dimension
    in steps, where it has no ticks of its own, and `choice.reach` says how many of them candidates can be apart.
    """

    dimensions: tuple[tuple[str, str, float | str], ...]
    keys: tuple[tuple[str, str], ...] = ()
    how: How = "left"
    choice: BestOf = field(default_factory=BestOf)
    compare: tuple[tuple[int, Compare], ...] = ()
    times: tuple[str, str] | None = None
    cell: float | None = None

    @property
    def decides_by(self) -> frozenset[str]:
        pairs = (*self.keys, *(each[:2] for each in self.dimensions), self.times or ())
        return frozenset(name for pair in pairs for name in pair)


@dataclass(frozen=True)
class NearestJoin(OfPairs):
    """Each left row with the right rows of its keys that are nearest to it, within a radius; `how` is left or inner.

    With `times`, columns of the two children, only rows count whose times are at most the tolerance apart.
    """

    within: Within
    choice: NearestOf = field(default_factory=NearestOf)
    times: tuple[str, str] | None = None
    keys: tuple[tuple[str, str], ...] = ()
    how: How = "left"
    cell: float | None = None

    @property
    def decides_by(self) -> frozenset[str]:
        pairs = (*self.keys, self.times or ())
        return _read_by((self.within,)) | {name for pair in pairs for name in pair} | set(self.right.columns)


EVENT_JOINS = (IntervalJoin, AsOfJoin, NearestJoin, BestMatchJoin)


@dataclass(frozen=True)
class Query:
    """A relation, and what leaves of it: its elements, or with `to_stream` its changes.

    `istream`: what appears, when it appears. `dstream`: what disappears. `rstream`: the whole snapshot, at each instant
    at which it has changed.
    """

    relation: Relation
    to_stream: ToStream | None = None


def relations_of(relation: Relation) -> Iterator[Relation]:
    """All nodes of a tree."""
    yield relation
    for child in relation.children:
        yield from relations_of(child)


def streams_of(relation: Relation) -> list[Stream]:
    """The leaves of a tree."""
    if isinstance(relation, Stream):
        return [relation]
    return [leaf for child in relation.children for leaf in streams_of(child)]


def _read_by(predicates: tuple[Predicate, ...]) -> frozenset[str]:
    return frozenset(str(name) for each in predicates for number in (0, 1) for name in each.columns(number))


def operator_of(relation: Relation) -> Relation:
    """The operator whose results a relation has: selections and projections add none, and change no times."""
    while isinstance(relation, Selection | Projection):
        relation = relation.child
    return relation


def event_times(join: Any) -> tuple[str, str] | None:
    """The columns of a join's children by which it follows their progress; None where rows have no time."""
    if join.times is None and isinstance(join, BestMatchJoin):
        one, two, _ = join.dimensions[0]
        return one, two
    times: tuple[str, str] | None = join.times
    return times
