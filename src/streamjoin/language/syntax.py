"""What the reader finds in a query: its clauses as written, with their places. Names mean nothing yet.

Places are offsets into the text of the query, so that the binder can complain with a caret, and can take expressions
over word by word.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from streamjoin.algebra import How
from streamjoin.algebra.policy import ToStream


@dataclass(frozen=True)
class Name:
    """A name, without its backquotes."""

    text: str
    start: int


@dataclass(frozen=True)
class Scalar:
    """An expression: `text[start:end]`, and sqlglot's tree of it, which knows what in it is a column."""

    start: int
    end: int
    tree: Any = field(repr=False)


@dataclass(frozen=True)
class Star:
    """`*`, or `R.*` with a qualifier."""

    start: int
    qualifier: Name | None = None


@dataclass(frozen=True)
class Item:
    """One entry of a SELECT list."""

    value: Scalar | Star
    alias: Name | None = None


@dataclass(frozen=True)
class Amount:
    """A number with units, or a number alone: `5 SECONDS`, `1 HOUR 30 MINUTES`, `10000`."""

    text: str
    unit: bool
    start: int


WindowKind = Literal["range", "fixed", "rows", "now", "unbounded", "valid"]


@dataclass(frozen=True)
class WindowClause:
    """What stands in brackets after a stream."""

    kind: WindowKind
    start: int
    size: Amount | None = None
    slide: Amount | None = None
    names: tuple[Name, ...] = ()  # of PARTITION BY, or the two of VALID
    drain: bool = False


@dataclass(frozen=True)
class StreamClause:
    """A stream, or a query that WITH has named."""

    name: Name
    alias: Name | None
    window: WindowClause | None
    priority: Scalar | None = None  # of PRIORITY BY


@dataclass(frozen=True)
class DerivedClause:
    """A query in parentheses."""

    query: QueryClause
    alias: Name | None
    start: int


Source = StreamClause | DerivedClause


@dataclass(frozen=True)
class Dimension:
    """`ra 0.01` or `R.ra = S.raj 0.01` after WITHIN: one or two columns, and the largest distance."""

    columns: tuple[Scalar, ...]
    largest: Amount


@dataclass(frozen=True)
class JoinClause:
    """A join with what stands before it. `kind` says which of the conditions it has."""

    kind: Literal["theta", "cross", "asof", "best match"]
    how: How
    source: Source
    start: int
    on: Scalar | None = None
    match: Scalar | None = None
    within: tuple[Dimension, ...] = ()
    tolerance: Amount | None = None


@dataclass(frozen=True)
class Chain:
    """One entry of a FROM list: a source, and what is joined to it."""

    source: Source
    joins: tuple[JoinClause, ...] = ()


@dataclass(frozen=True)
class SelectClause:
    """One SELECT."""

    start: int
    items: tuple[Item, ...]
    chains: tuple[Chain, ...]
    distinct: bool = False
    where: Scalar | None = None
    group: tuple[Scalar, ...] = ()
    having: Scalar | None = None
    to_stream: ToStream | None = None


@dataclass(frozen=True)
class SetClause:
    """Two queries with UNION, EXCEPT or INTERSECT between them."""

    operator: Literal["union", "except", "intersect"]
    every: bool
    left: Body
    right: Body
    start: int


@dataclass(frozen=True)
class QueryClause:
    """A query: what WITH names, then its body. `to_stream` is ISTREAM, DSTREAM or RSTREAM around all of it."""

    body: Body
    named: tuple[tuple[Name, QueryClause], ...] = ()
    to_stream: ToStream | None = None
    start: int = 0


Body = SelectClause | SetClause | QueryClause
