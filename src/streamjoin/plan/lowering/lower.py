"""The lowering: from a tree of relations to a physical plan, children first.

| node | operator | rows that meet |
|---|---|---|
| Stream | none; a row window is one | of one group, or all of them |
| Selection, Projection | none: Spark computes them, at the source wherever that is directly below | |
| Union | none: its reader has as many channels | |
| joins | one each (see `matching_joins`, `choosing_joins`) | by keys, by a grid over values, by a matrix |
| Distinct, Difference, Intersection | a set operator over multiplicities | of one payload |
| Aggregation | pieces between the starts and ends of a group's elements | of one group, or all of them |

Where an operator's rows meet already where its child has them, and Spark computes nothing between, both are one
fragment in one stage: nothing crosses an exchange. With one bucket that is so for all but set operators of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from streamjoin.algebra import Rows
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators import Aggregating, Multiplicity, NegativeJoin, NegativeWindow, RowWindow, StreamOf
from streamjoin.operators.multiplicity import SetOperator
from streamjoin.operators.verdict import Verdict
from streamjoin.plan.condition import columns as columns_of
from streamjoin.plan.lowering.choosing_joins import lower_asof, lower_best_match, lower_nearest
from streamjoin.plan.lowering.closing import Closing
from streamjoin.plan.lowering.feeds import Draft, Lowered, SourceFeed, StageFeed
from streamjoin.plan.lowering.joining import JoinParts, Setting
from streamjoin.plan.lowering.matching_joins import lower_interval, lower_join
from streamjoin.plan.lowering.options import Leaving, SourceInfo
from streamjoin.plan.lowering.predicates import Sides
from streamjoin.plan.lowering.streams import ARRIVAL, Streams, TimeLine
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    EVENT_JOINS,
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    IntervalJoin,
    Join,
    NearestJoin,
    Projection,
    Relation,
    Selection,
    Union,
)
from streamjoin.plan.types import Field, Fields, Type, Typing, arrow_schema, names_of, plain_type, type_of
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.fragment import KEEP, Entry, Inner, Node
from streamjoin.runtime.intake import HIDDEN
from streamjoin.runtime.placing import MatrixPartitioning, Partitioning
from streamjoin.state.holders import MOST_PRODUCERS

# One lowering for each join of events, all of one form.
EVENT_LOWERINGS: Final[dict[type, Callable[[Any, Sides, frozenset[str], Setting], JoinParts]]] = {
    IntervalJoin: lower_interval,
    AsOfJoin: lower_asof,
    NearestJoin: lower_nearest,
    BestMatchJoin: lower_best_match,
}


def lower(
    relation: Relation, sources: Mapping[str, SourceInfo], typing: Typing, leaving: Leaving | None = None
) -> PhysicalPlan:
    """How a tree over these sources runs."""
    return Lowering(sources, typing, leaving or Leaving()).plan(relation)


@dataclass
class Lowering:
    """Makes the parts of a plan, children first."""

    sources: Mapping[str, SourceInfo]
    typing: Typing
    leaving: Leaving
    time: TimeLine = field(default_factory=TimeLine)
    producers: int = 0
    top: Relation | None = None

    def __post_init__(self) -> None:
        self.streams = Streams(self.sources, self.typing, self.time)
        self.closing = Closing(self.leaving, self.time)

    def plan(self, relation: Relation) -> PhysicalPlan:
        """The whole plan."""
        self.top = relation
        while isinstance(self.top, Selection | Projection):
            self.top = self.top.children[0]
        lowered = self.lower(relation, frozenset(relation.columns))
        if self.leaving.to_stream is not None:
            lowered = self._to_stream(lowered)
        return self.closing.plan(lowered)

    @property
    def negative(self) -> bool:
        """Whether lifetimes are managed by plus and minus tuples."""
        return self.leaving.method == "negative"

    def lower(self, relation: Relation, needed: frozenset[str]) -> Lowered:
        """The elements of a relation, with at least these columns."""
        feed = self.streams.feed(relation, needed)
        if feed is not None:
            return self._windowed(feed)
        match relation:
            case Selection():
                child = self.lower(relation.child, needed | set(columns_of(relation.condition)))
                self.typing.check(child.fields, relation.condition)
                return child.selected(relation.condition)
            case Projection():
                wanted = [each for each in relation.computed if each[0] in needed]
                below = frozenset(name for _, text in wanted for name in columns_of(text))
                return self.lower(relation.child, below).computed(wanted, self.typing)
            case Union():
                parts = self._alike(relation, "UNION")
                return Lowered(tuple(feed for part in parts for feed in part.feeds))
            case Aggregation():
                return self._aggregation(relation)
            case Distinct():
                return self._set("distinct", relation)
            case Difference():
                return self._set("except all" if relation.every else "except", relation)
            case Intersection():
                return self._set("intersect all" if relation.every else "intersect", relation)
            case Join():
                return self._join(relation, needed)
            case IntervalJoin() | AsOfJoin() | NearestJoin() | BestMatchJoin():
                return self._event_join(relation, needed)
        raise UnsupportedError(f"{type(relation).__name__} is no relation that can be run")

    # -- windows -------------------------------------------------------------------------------------------------------

    def _windowed(self, feed: SourceFeed) -> Lowered:
        """The elements of a source: its window gives them ends, or an operator does."""
        window = feed.reading.window
        if isinstance(window, Rows):
            return self._row_window(feed, window)
        if not self.negative or feed.stream.window is None:
            return Lowered((feed,))
        config = NegativeWindow(arrow_schema(feed.fields))
        names = names_of(feed.fields)
        return self._unary(config, Lowered((feed,)), RowBinding(names), names, feed.fields, by_group=False)

    def _row_window(self, feed: SourceFeed, window: Rows) -> Lowered:
        groups = tuple(each.name for each in feed.hidden if each.name.startswith(HIDDEN + "by"))
        ties = tuple(each.name for each in feed.hidden if each.name.startswith(HIDDEN + "tie"))
        ties = (ARRIVAL,) if feed.info.streaming else ties
        fields = (*feed.fields, Field(KEEP, plain_type(pa.bool_()))) if feed.kept else feed.fields
        names = names_of(fields)
        by = arrow_schema(tuple(each for each in feed.hidden if each.name in groups))
        config: RowWindow | NegativeWindow = RowWindow(window.size, by, window.drain)
        if self.negative:
            config = NegativeWindow(arrow_schema(fields), window.size, by, window.drain)
        binding = RowBinding(names, groups=groups, ties=ties, placed_by=groups)
        draft = Draft(self.leaving.buckets if groups else 1)
        partitioning = Partitioning(draft.buckets)
        number = draft.add_input(self.closing.attached((feed,), binding, partitioning))
        entry = Entry(number, len(groups))
        node = draft.add_node(Node(config, (entry,), names, self._producer(), kept=feed.kept))
        own = {column: name for name, column in feed.origin.items() if name in names_of(feed.fields)}
        placed = (tuple(own[column] for column in feed.groups),) if all(c in own for c in feed.groups) else ()
        return Lowered((StageFeed(draft, node, feed.fields, placed if groups else ()),))

    # -- operators of one relation -------------------------------------------------------------------------------------

    def _aggregation(self, relation: Aggregation) -> Lowered:
        read = {each.column for each in relation.aggregates if each.column is not None}
        child = self.lower(relation.child, frozenset(relation.keys) | read)
        self._check_groups(child.fields, relation.keys, "GROUP BY")
        config = Aggregating(relation.keys, relation.aggregates, arrow_schema(child.fields), method=self.leaving.method)
        results = list(config.result_schema)[len(relation.keys) :]
        fields = [Field(key, type_of(child.fields, key)) for key in relation.keys]
        for each, result in zip(relation.aggregates, results, strict=True):
            same = each.function in ("min", "max") and each.column is not None
            kind = type_of(child.fields, str(each.column)) if same else aggregate_type(result.type)
            fields.append(Field(each.name, kind))
        binding = RowBinding(child.names, placed_by=relation.keys)
        return self._unary(config, child, binding, relation.keys, tuple(fields))

    def _set(self, operator: SetOperator, relation: Relation) -> Lowered:
        parts = self._alike(relation, operator.upper())
        fields, names = parts[0].fields, parts[0].names
        self._check_groups(fields, names, operator.upper())
        config = Multiplicity(operator, arrow_schema(fields), method=self.leaving.method)
        binding = RowBinding(names, placed_by=names)
        if len(parts) == 1:
            return self._unary(config, parts[0], binding, names, fields)
        draft = Draft(self.leaving.buckets)
        entries = tuple(
            Entry(draft.add_input(self.closing.attached(part.feeds, binding, Partitioning(draft.buckets), number=0)))
            for part in parts
        )
        node = draft.add_node(Node(config, entries, names, self._producer()))
        return Lowered((StageFeed(draft, node, fields, (names,)),))

    def _to_stream(self, child: Lowered) -> Lowered:
        kind = self.leaving.to_stream
        assert kind is not None
        config = StreamOf(kind, arrow_schema(child.fields))
        names = () if kind == "rstream" else child.names
        return self._unary(config, child, RowBinding(child.names, placed_by=names), names, child.fields)

    def _unary(
        self,
        config: Any,
        child: Lowered,
        binding: RowBinding,
        by: tuple[str, ...],
        fields: Fields,
        *,
        by_group: bool = True,
    ) -> Lowered:
        """An operator of one input whose rows meet where they are equal in the columns `by`; without, in one bucket."""
        buckets = self.leaving.buckets if by else 1
        feed = child.feeds[0]
        placed_by = (by,) if by and set(by) <= set(names_of(fields)) else ()
        if len(child.feeds) == 1 and isinstance(feed, StageFeed) and _meet_already(feed, by, buckets):
            inner = Inner(feed.node, replace(binding, placed_by=()))
            node = feed.draft.add_node(Node(config, (inner,), names_of(fields), self._producer()))
            still = tuple(names for names in feed.placed_by if set(names) <= set(names_of(fields)))
            return Lowered((StageFeed(feed.draft, node, fields, still),))
        draft = Draft(buckets)
        binding = binding if by_group else replace(binding, placed_by=by)
        number = draft.add_input(self.closing.attached(child.feeds, binding, Partitioning(buckets)))
        node = draft.add_node(Node(config, (Entry(number),), names_of(fields), self._producer()))
        return Lowered((StageFeed(draft, node, fields, placed_by),))

    def _alike(self, relation: Relation, what: str) -> list[Lowered]:
        """The parts of a set operator: as many columns each, in common types, under the names of the first."""
        parts = [self.lower(child, frozenset(child.columns)) for child in relation.children]
        widths = [len(part.fields) for part in parts]
        if len(set(widths)) > 1:
            raise CallError(
                f"{what} needs parts with as many columns each, got {' and '.join(map(str, widths))}",
                hint="select the same columns on both sides",
            )
        fields = list(parts[0].fields)
        for part in parts[1:]:
            for number, mine in enumerate(part.fields):
                fields[number] = Field(fields[number].name, self._common(fields[number], mine, what))
        return [part.cast_to(tuple(fields)) for part in parts]

    def _common(self, one: Field, two: Field, what: str) -> Type:
        kind = one.type if one.type == two.type else self.typing.common(one.type, two.type)
        if kind is None:
            sides = f"{one.name!r} ({one.type.text}) and {two.name!r} ({two.type.text})"
            raise CallError(f"{what} compares {sides}, which have no common type", hint="cast one of them")
        return kind

    def _check_groups(self, fields: Fields, names: Sequence[str], what: str) -> None:
        for name in names:
            kind = type_of(fields, name)
            if kind.collated:
                raise UnsupportedError(
                    f"{what} over {name!r}, which is {kind.text}: rows are told apart by their bytes here, and the "
                    "collation takes some of them for equal",
                    hint="make it plain text, lower(...) where case does not matter, and cast(... AS STRING COLLATE "
                    "UTF8_BINARY)",
                )

    # -- joins ---------------------------------------------------------------------------------------------------------

    def _join(self, join: Join, needed: frozenset[str]) -> Lowered:
        asked = needed | join.decides_by
        left, right = (self.lower(child, asked & frozenset(child.columns)) for child in join.children)
        setting = self._setting(join, (left, right))
        sides = Sides([left, right], self.typing)
        parts = lower_join(join, sides, needed, setting)
        scattered = isinstance(parts.partitioning, MatrixPartitioning) or any(parts.followed)
        if self.negative and scattered:  # plus and minus tuples must meet wherever their place is by content
            sides = Sides([left, right], self.typing)
            parts = lower_join(join, sides, needed, replace(setting, buckets=1))
        if self.negative:
            config = NegativeJoin(parts.config.matching, parts.config.schemas, join.how)
            parts = replace(parts, config=config)
        return self._filtered(join, self._joined(parts, sides.parts))

    def _event_join(self, join: Any, needed: frozenset[str]) -> Lowered:
        times = _times(join)
        asked = needed | join.decides_by
        timeless = not isinstance(join, IntervalJoin)
        left, right = (
            self._events(child, asked & frozenset(child.columns), time, timeless, declared=join.times is not None)
            for child, time in zip(join.children, times, strict=True)
        )
        setting = self._setting(join, (left, right))
        sides = Sides([left, right], self.typing)
        parts = EVENT_LOWERINGS[type(join)](join, sides, needed, setting)
        return self._filtered(join, self._joined(parts, sides.parts))

    def _filtered(self, join: Any, joined: Lowered) -> Lowered:
        """The pairs of an inner join for which its further condition is true."""
        theta = getattr(join, "theta", None)
        return joined if theta is None or join.how != "inner" else joined.selected(theta)

    def _events(
        self, child: Relation, needed: frozenset[str], time: str | None, timeless: bool, *, declared: bool
    ) -> Lowered:
        """Events, and the column that says when they are. Unless it is `declared` they are only ordered by it."""
        feed = self.streams.feed(child, needed)
        if feed is None:
            if not isinstance(_below(child), EVENT_JOINS):
                raise UnsupportedError(
                    f"{type(_below(child)).__name__} cannot stand beside a join of events",
                    hint="give every stream a window",
                )
            return self._events_of_join(child, needed, time)
        reading = replace(feed.reading, timeless=timeless)
        if time is not None and declared:
            self.time.share(feed.info, type_of(feed.fields, time))
            reading = replace(reading, time=time, called=(time.removeprefix(feed.info.prefix),))
        return Lowered((replace(feed, reading=reading),))

    def _events_of_join(self, child: Relation, needed: frozenset[str], time: str | None) -> Lowered:
        """Results of a join, read by one of its time columns. That of a stream must follow the join's progress."""
        lowered = self.lower(child, needed)
        (feed,) = lowered.feeds
        assert isinstance(feed, StageFeed)
        if time is None:
            return lowered
        behind = dict(feed.times)
        if time not in behind and not lowered.complete:
            raise UnsupportedError(
                f"{time} does not follow the progress of the join that it comes from",
                hint="join by the time of its left input",
            )
        return Lowered((replace(feed, read_by=(time, behind.get(time, 0))),))

    def _setting(self, join: Relation, children: tuple[Lowered, Lowered]) -> Setting:
        late = tuple("join" if _joins_late(child) else "drop" for child in children)
        last = join is self.top
        plain = all(isinstance(feed, SourceFeed) for child in children for feed in child.feeds)
        emit = self.leaving.emit if last and plain and not self.negative else "eager"
        self.closing.ordered_already = emit == "ordered"
        streaming = any(not child.complete for child in children)
        changelog = self.leaving.change and streaming and last and isinstance(join, EVENT_JOINS)
        return Setting(emit, late, changelog, self.leaving.buckets, self.time.axis)  # type: ignore[arg-type]

    def _joined(self, parts: JoinParts, children: Sequence[Lowered]) -> Lowered:
        """A join of two inputs as a node of a draft: that of a child, where their rows meet already."""
        left_only = parts.how in ("semi", "anti")
        fields = parts.payload[0] if left_only else (*parts.payload[0], *parts.payload[1])
        names = names_of(fields)
        producer = self._producer()
        draft = Draft(parts.partitioning.buckets)
        fused, keys = _fused(parts, children)
        for number in fused:
            other = children[number].feeds[0]
            assert isinstance(other, StageFeed)
            fused[number] = other.node + draft.absorb(other.draft)
        replicated = getattr(parts.config, "replicated", (False, False))
        feeds: list[Entry | Inner] = []
        for number, child in enumerate(children):
            time, behind = _read_by(child)
            binding = replace(parts.bindings[number], placed_by=tuple(key[number] for key in keys), time=time)
            if number in fused:
                feeds.append(Inner(fused[number], replace(binding, placed_by=()), behind))
                continue
            follow, judged_by = replicated[number], parts.judged_by[number]
            given = self.closing.attached(child.feeds, binding, parts.partitioning, number, follow, judged_by)
            feeds.append(Entry(draft.add_input(given)))
        if any(replicated):
            return Lowered((self._judged(parts, draft, tuple(feeds), fields, producer),))
        node = draft.add_node(Node(parts.config, tuple(feeds), names, producer, parts.partitioning))
        return Lowered((StageFeed(draft, node, fields, _placed_by(parts, keys, names), times=parts.times),))

    def _judged(
        self, parts: JoinParts, draft: Draft, feeds: tuple[Entry | Inner, ...], fields: Fields, producer: int
    ) -> StageFeed:
        """A join whose rows have copies, and a second stage that decides which of them met nobody."""
        raw = tuple(f"{n}.{each.name}" for n, payload in enumerate(parts.payload) for each in payload)
        raw = raw if len(raw) == len(fields) else raw[: len(fields)]
        draft.add_node(Node(parts.config, feeds, raw, producer, parts.partitioning))
        verdicts = tuple(
            Verdict(number, parts.config.schemas, parts.how, parts.config.outer)
            for number in (0, 1)
            if parts.config.replicated[number]
        )
        return self.closing.judged(draft, verdicts, fields, self._producer(), parts)

    def _producer(self) -> int:
        self.producers += 1
        if self.producers > MOST_PRODUCERS:
            raise UnsupportedError(
                f"a query may have {MOST_PRODUCERS} windows and operators, and this one has more",
                hint="cut it into several queries",
            )
        return self.producers - 1


def _meet_already(feed: StageFeed, by: tuple[str, ...], buckets: int) -> bool:
    """Whether rows that are equal in the columns `by` are in one bucket."""
    if feed.steps or feed.node != len(feed.draft.nodes) - 1:
        return False
    if feed.draft.buckets == 1:
        return buckets == 1
    return bool(by) and any(set(names) <= set(by) for names in feed.placed_by)


def _fused(parts: JoinParts, children: Sequence[Lowered]) -> tuple[dict[int, int], tuple[tuple[str, str], ...]]:
    """The children that the join can share a stage with, and the keys by which the others must be placed."""
    keys, buckets = parts.keys, parts.partitioning.buckets
    drafts = {
        number: child.feeds[0]
        for number, child in enumerate(children)
        if len(child.feeds) == 1 and isinstance(child.feeds[0], StageFeed) and not child.feeds[0].steps
        and child.feeds[0].draft.buckets == buckets
    }  # fmt: skip
    if buckets == 1:
        return dict.fromkeys(drafts, 0), keys
    if not keys or type(parts.partitioning) is not Partitioning:
        return {}, keys
    orders: dict[tuple[int, ...], list[int]] = {}
    for number, feed in drafts.items():
        own = [key[number] for key in keys]
        for names in feed.placed_by:
            if names and all(name in own for name in names):
                orders.setdefault(tuple(own.index(name) for name in names), []).append(number)
    if not orders:
        return {}, keys
    order, numbers = max(orders.items(), key=lambda each: len(each[1]))
    return dict.fromkeys(sorted(set(numbers)), 0), tuple(keys[at] for at in order)


def _placed_by(
    parts: JoinParts, keys: Sequence[tuple[str, str]], names: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    """By which columns of the result its rows are where they are. Padded rows have none of the other side's."""
    if not keys or type(parts.partitioning) is not Partitioning:
        return ()
    sides = {"inner": (0, 1), "left": (0,), "semi": (0,), "anti": (0,), "right": (1,), "full": ()}[parts.how]
    tuples = (tuple(key[number] for key in keys) for number in sides)
    return tuple(each for each in tuples if set(each) <= set(names))


def _times(join: Any) -> tuple[str | None, str | None]:
    """The columns of a join's children by which it follows their progress."""
    if join.times is None and isinstance(join, BestMatchJoin):
        one, two, _ = join.dimensions[0]
        return one, two
    return (None, None) if join.times is None else join.times


def _read_by(child: Lowered) -> tuple[str | None, int]:
    feed = child.feeds[0]
    return (None, 0) if isinstance(feed, SourceFeed) or feed.read_by is None else feed.read_by


def _joins_late(child: Lowered) -> bool:
    return any(isinstance(feed, SourceFeed) and feed.info.late == "join" for feed in child.feeds)


def _below(relation: Relation) -> Relation:
    while isinstance(relation, Selection | Projection):
        relation = relation.children[0]
    return relation


def aggregate_type(arrow: pa.DataType) -> Type:
    """The type of an aggregate's result."""
    if pa.types.is_decimal(arrow):
        text = f"decimal({arrow.precision},{arrow.scale})"
        return Type(arrow, text, f'"{text}"')
    return plain_type(arrow)
