"""From clauses to the relational tree: FROM, set operators and named queries. SELECT lists are in `selecting`.

Each source gets its alias; column `x` of alias `R` is `R.x` in the tree. A query in FROM, or one named by WITH, is
projected to such names. Comma joins become cross joins in the order they are written, left-deep; WHERE stands above
them. The optimiser (`plan.rules`) turns that into joins with predicates.

What it does not do: share the tree of a query that is named once and used twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from streamjoin.algebra import TimeAxis, Validity
from streamjoin.algebra.policy import ToStream
from streamjoin.language.complaint import nearest, refused, unknown, wrong
from streamjoin.language.events import bind_event_join
from streamjoin.language.maps import column_with_map, no_maps
from streamjoin.language.scalar import bind_scalar, rendered
from streamjoin.language.scope import Entry, Scope, Sources, matching
from streamjoin.language.selecting import bind_select, checked_condition
from streamjoin.language.syntax import (
    Body,
    Chain,
    DerivedClause,
    JoinClause,
    Name,
    QueryClause,
    SelectClause,
    SetClause,
    Source,
    StreamClause,
)
from streamjoin.language.windows import bind_window
from streamjoin.plan.column_types import Schemas, column_types, time_axis
from streamjoin.plan.condition import quoted
from streamjoin.plan.expression.sqltypes import from_arrow
from streamjoin.plan.relation import (
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Query,
    Relation,
    Stream,
    Union,
)
from streamjoin.runtime.intake import HIDDEN

_EVENTS_HINT = "only WHERE and a SELECT list can stand around an event join; do the rest on the resulting frame"


@dataclass
class _Named:
    """A query that WITH names, and the queries that it can name itself."""

    query: QueryClause
    known: Mapping[str, _Named]
    used: bool = False


@dataclass(frozen=True)
class Binder:
    """Binds one text. `known` are the queries that WITH has named so far, `events` says that streams need no window
    because they are part of an event join.
    """

    text: str
    schemas: Schemas
    times: Mapping[str, str | None]
    known: Mapping[str, _Named] = field(default_factory=dict)
    events: bool = False

    def statement(self, query: QueryClause) -> Query:
        """The tree of a whole statement."""
        to_stream, body = query.to_stream, query.body
        inner: Body = query
        if to_stream is not None:
            assert isinstance(body, QueryClause)  # the reader saw to it
            inner = body
        select = _only_select(inner)
        if select is not None and select.to_stream is not None:
            if to_stream is not None:
                raise wrong(self.text, select.start, "The result is a stream already", "leave one of the two out")
            to_stream = select.to_stream
            inner = _without_to_stream(inner)
        relation = self.body(inner)
        if is_events(relation) and to_stream is not None:
            raise wrong(
                self.text,
                query.start,
                f"{to_stream.upper()} tells the changes of a relation, but an event join is a stream of rows already",
                f"leave {to_stream.upper()} out",
            )
        return Query(relation, to_stream)

    def body(self, body: Body) -> Relation:
        """The relation of a query."""
        if isinstance(body, SelectClause):
            return self._select(body)
        if isinstance(body, SetClause):
            return self._set_operation(body)
        known = dict(self.known)
        added: list[tuple[Name, _Named]] = []
        for name, query in body.named:
            if any(other.text.lower() == name.text.lower() for other, _ in added):
                raise wrong(self.text, name.start, f"WITH names {name.text!r} twice", "give one another name")
            named = _Named(query, dict(known))
            added.append((name, named))
            known[name.text.lower()] = named
        inside = replace(self, known=known)
        relation = inside.body(body.body)
        for _, named in added:
            if not named.used:  # what is not used is checked all the same
                replace(self, known=named.known).body(named.query)
        return relation

    # SELECT ----------------------------------------------------------------------------------------------------------

    def _select(self, select: SelectClause) -> Relation:
        if select.to_stream is not None:
            raise wrong(
                self.text,
                select.start,
                f"{select.to_stream.upper()} makes a stream of a whole query, and nothing can be done with it inside",
                f"write it around everything: {select.to_stream.upper()} (SELECT ...)",
            )
        sources = self._chain(select.chains[0])
        for chain in select.chains[1:]:
            sources = self._cross(sources, self._chain(chain), _start(chain.source))
        relation = bind_select(self.text, select, sources, self.schemas)
        if is_events(sources.relation):
            plain = not (select.group or select.having or select.distinct) and _is_row_by_row(relation)
            if not plain:
                raise refused(
                    self.text,
                    select.start,
                    "Groups and DISTINCT of rows without a validity are not planned",
                    _EVENTS_HINT,
                )
        return relation

    def _set_operation(self, body: SetClause) -> Relation:
        left, right = self.body(body.left), self.body(body.right)
        if is_events(left) or is_events(right):
            raise refused(
                self.text,
                body.start,
                f"{body.operator.upper()} of rows without a validity is not planned",
                _EVENTS_HINT,
            )
        self._check_axes(left, right, body.start)
        if len(left.columns) != len(right.columns):
            raise wrong(
                self.text,
                body.start,
                f"The left side has {len(left.columns)} columns ({', '.join(left.columns)}), the right side "
                f"{len(right.columns)} ({', '.join(right.columns)})",
                "both sides need as many columns",
            )
        kinds = (column_types(left, self.schemas), column_types(right, self.schemas))
        for one, other in zip(left.columns, right.columns, strict=True):
            if kinds[0][one] != kinds[1][other] and None not in (kinds[0][one], kinds[1][other]):
                raise wrong(
                    self.text,
                    body.start,
                    f"Column {one!r} is {kinds[0][one]} on the left side, {other!r} is {kinds[1][other]} on the right",
                    f"cast one of them: CAST({other} AS {str(kinds[0][one]).upper()})",
                )
        for side in (left, right) if not (body.operator == "union" and body.every) else ():
            with_map = column_with_map(side, self.schemas)
            if with_map is not None:
                raise no_maps(self.text, body.start, with_map, body.operator.upper())
        if body.operator == "union":
            parts = tuple(
                part for side in (left, right) for part in (side.parts if isinstance(side, Union) else (side,))
            )
            return Union(parts) if body.every else Distinct(Union((left, right)))
        if body.operator == "except":
            return Difference(left, right, body.every)
        return Intersection(left, right, body.every)

    # FROM ------------------------------------------------------------------------------------------------------------

    def _chain(self, chain: Chain) -> Sources:
        event_joins = [join for join in chain.joins if join.kind in ("asof", "best match")]
        if len(event_joins) > 1 or (event_joins and len(chain.joins) > 1):
            raise refused(
                self.text, chain.joins[1].start, "An event join has two streams, and no further join", _EVENTS_HINT
            )
        inside = replace(self, events=True) if event_joins else self
        sources = inside._source(chain.source, bool(event_joins))
        for join in chain.joins:
            right = inside._source(join.source, bool(event_joins))
            self._check_aliases(sources, right, _start(join.source))
            sources = self._join(sources, right, join)
        return sources

    def _join(self, left: Sources, right: Sources, join: JoinClause) -> Sources:
        entries = left.entries + right.entries
        if join.kind in ("asof", "best match"):
            types = column_types(left.relation, self.schemas) | column_types(right.relation, self.schemas)
            return Sources(bind_event_join(self.text, left, right, join, types), entries)
        self._check_validity(left, right, join.start)
        theta = None
        if join.on is not None:
            theta = rendered(bind_scalar(join.on, Scope(self.text, entries), aggregates="in ON"))
            # A semi join's condition is about both sides, its result about one.
            both = Join(left.relation, right.relation)
            theta = checked_condition(self.text, join.on, theta, column_types(both, self.schemas))
        relation = Join(left.relation, right.relation, (), theta, join.how)
        return Sources(relation, left.entries if join.how in ("semi", "anti") else entries)

    def _cross(self, left: Sources, right: Sources, at: int) -> Sources:
        self._check_aliases(left, right, at)
        self._check_validity(left, right, at)
        return Sources(Join(left.relation, right.relation), left.entries + right.entries)

    def _check_validity(self, left: Sources, right: Sources, at: int) -> None:
        if is_events(left.relation) or is_events(right.relation):
            raise refused(
                self.text, at, "A join with rows that have no validity (of an event join) is not planned", _EVENTS_HINT
            )
        self._check_axes(left.relation, right.relation, at)

    def _check_axes(self, left: Relation, right: Relation, at: int) -> None:
        axes = dict(_axes(left, self.schemas)) | dict(_axes(right, self.schemas))
        if len(axes) > 1:
            (one, stream), (other, second) = list(axes.items())[:2]
            raise wrong(
                self.text,
                at,
                f"The time of {stream!r} is {one}, that of {second!r} is {other}: no instant is in both",
                "cast the time column of one, so that both are integers, dates, or timestamps of one kind",
            )

    def _check_aliases(self, left: Sources, right: Sources, at: int) -> None:
        aliases = [entry.alias for entry in left.entries]
        for entry in right.entries:
            if matching(entry.alias.lower(), [alias.lower() for alias in aliases]):
                raise wrong(
                    self.text,
                    at,
                    f"There are two sources called {entry.alias!r}",
                    f"give one an alias: {entry.alias} AS {entry.alias}2",
                )
        clash = set(left.relation.columns) & set(right.relation.columns)
        if clash:
            raise wrong(self.text, at, f"{clash.pop()!r} can mean two columns here", "use aliases without dots")

    def _source(self, source: Source, event_join: bool) -> Sources:
        if isinstance(source, DerivedClause):
            if source.alias is None:
                raise wrong(self.text, source.start, "A query in FROM needs a name", "write (SELECT ...) AS q")
            return self._derived(self.body(source.query), source.alias.text, event_join, source.start)
        named = self.known.get(source.name.text.lower())
        if named is not None:
            if source.window is not None:
                raise wrong(
                    self.text,
                    source.window.start,
                    f"{source.name.text!r} is a query, whose rows are valid already: only a stream has a window",
                    "write the window behind the stream, inside of WITH",
                )
            if source.priority is not None:
                raise wrong(
                    self.text,
                    source.priority.start,
                    f"{source.name.text!r} is a query: urgent are the rows of streams, and results of them",
                    "write PRIORITY BY behind the stream, inside of WITH",
                )
            named.used = True
            relation = replace(self, known=named.known).body(named.query)
            return self._derived(relation, (source.alias or source.name).text, event_join, source.name.start)
        return self._stream(source, event_join)

    def _derived(self, relation: Relation, alias: str, event_join: bool, at: int) -> Sources:
        if event_join and not _is_row_by_row(relation):
            raise refused(
                self.text,
                at,
                "An event join takes streams without a window, and such queries of them as only filter and compute",
                "leave windows, joins and groups out of its inputs",
            )
        entry = Entry.of(alias, relation.columns)
        computed = tuple((internal, quoted(name)) for name, internal in entry.columns)
        return Sources(Projection(relation, computed), (entry,))

    def _stream(self, source: StreamClause, event_join: bool) -> Sources:
        found = matching(source.name.text, list(self.schemas))
        if len(found) != 1:
            names = [*self.schemas, *(name for name in self.known)]
            raise unknown(
                self.text,
                source.name.start,
                f"There is no stream called {source.name.text!r}"
                if not found
                else f"{source.name.text!r} can mean several streams",
                nearest(source.name.text, names, "streams"),
            )
        stream = found[0]
        schema = self.schemas[stream]
        shown = [name for name in schema.names if not name.startswith(HIDDEN)]  # others may only be times
        entry = Entry.of((source.alias or source.name).text, shown)
        reads = tuple((internal, name) for name, internal in entry.columns)
        time = self.times.get(stream)
        if source.window is None:
            if not self.events:
                raise wrong(
                    self.text,
                    source.name.start,
                    f"Stream {source.name.text!r} has no window, so it is not said how long its rows are valid",
                    f"write {source.name.text} [RANGE 5 SECONDS], {source.name.text} [ROWS 100] or "
                    f"{source.name.text} [UNBOUNDED]",
                )
            return Sources(Stream(stream, reads, time, None, self._priority(source, shown)), (entry,))
        if self.events:
            raise wrong(
                self.text,
                source.window.start,
                f"{source.name.text!r} is part of an event join (ASOF, BEST MATCH), whose rows have no validity",
                "leave the window out",
            )
        time, window = bind_window(self.text, source, source.window, schema, time)
        return Sources(Stream(stream, reads, time, window, self._priority(source, shown)), (entry,))

    def _priority(self, source: StreamClause, columns: list[str]) -> str | None:
        """How urgent a stream's rows are, over its own columns."""
        if source.priority is None:
            return None
        own = Entry((source.alias or source.name).text, tuple((name, name) for name in columns))
        return rendered(bind_scalar(source.priority, Scope(self.text, (own,)), aggregates="in PRIORITY BY"))


def is_events(relation: Relation) -> bool:
    """Whether the rows of a relation have no validity.

    >>> is_events(Stream("R", (), "ts", None))
    True
    """
    if isinstance(relation, AsOfJoin | BestMatchJoin):
        return True
    if isinstance(relation, Stream):
        return relation.window is None
    return any(is_events(child) for child in relation.children)


def _axes(relation: Relation, schemas: Schemas) -> Iterator[tuple[str, str]]:
    """The kinds of time in a relation, each with a stream that has it."""
    if isinstance(relation, Stream):
        column = relation.window.start if isinstance(relation.window, Validity) else relation.time
        kind = schemas[relation.source].field(str(column)).type
        yield ("integer" if time_axis(kind) is TimeAxis.INTEGER else str(from_arrow(kind))), relation.source
    for child in relation.children:
        yield from _axes(child, schemas)


def _is_row_by_row(relation: Relation) -> bool:
    """Whether a relation only filters and computes over streams of events, or over one event join."""
    if isinstance(relation, Stream):
        return relation.window is None
    if isinstance(relation, AsOfJoin | BestMatchJoin):
        return True
    return (
        len(relation.children) == 1
        and type(relation).__name__ in ("Selection", "Projection")
        and _is_row_by_row(relation.children[0])
    )


def _start(source: Source) -> int:
    return source.start if isinstance(source, DerivedClause) else source.name.start


def _only_select(body: Body) -> SelectClause | None:
    while isinstance(body, QueryClause):
        body = body.body
    return body if isinstance(body, SelectClause) else None


def _without_to_stream(body: Body) -> Body:
    if isinstance(body, QueryClause):
        return replace(body, body=_without_to_stream(body.body))
    assert isinstance(body, SelectClause)
    to_stream: ToStream | None = None
    return replace(body, to_stream=to_stream)
