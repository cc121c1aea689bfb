"""Joins as nodes of a plan: what they share, whatever kind of join it is.

A join of two inputs joins the stage of a child wherever that child's rows meet by the join's keys already. The other
input is then placed by the same hash of the same columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamjoin.errors import CallError, UnsupportedError
from streamjoin.operators import NegativeJoin
from streamjoin.operators.verdict import Verdict
from streamjoin.plan.lowering.choosing_joins import LOWERINGS
from streamjoin.plan.lowering.closing import Closing
from streamjoin.plan.lowering.feeds import Draft, Lowered, SourceFeed, StageFeed, sharing
from streamjoin.plan.lowering.joining import JoinParts, Setting
from streamjoin.plan.lowering.merging import check_merging, in_generations
from streamjoin.plan.lowering.multi_joins import ManySides, lower_multi_join
from streamjoin.plan.lowering.options import Leaving, SourceInfo
from streamjoin.plan.lowering.predicates import Sides
from streamjoin.plan.lowering.recall import bound_to
from streamjoin.plan.lowering.streams import Streams, TimeLine
from streamjoin.plan.multi_join import MultiJoin, as_many, cascade_of
from streamjoin.plan.relation import EVENT_JOINS, IntervalJoin, Join, Relation, Stream, event_times, operator_of
from streamjoin.plan.types import Fields, Typing, names_of, type_of
from streamjoin.runtime.fragment import Entry, Inner, Node
from streamjoin.runtime.placing import MatrixPartitioning, Partitioning
from streamjoin.runtime.token_placing import TokenPartitioning
from streamjoin.state.holders import MOST_PRODUCERS


@dataclass
class JoinLowering(ABC):
    """The part of a lowering that makes joins, and what all of it shares."""

    sources: Mapping[str, SourceInfo]
    typing: Typing
    leaving: Leaving
    time: TimeLine = field(default_factory=TimeLine)
    producers: int = 0
    top: Relation | None = None  # the topmost operator of the tree

    def __post_init__(self) -> None:
        self.streams = Streams(self.sources, self.time, self.typing)
        self.closing = Closing(self.leaving, self.time)

    @abstractmethod
    def lower(self, relation: Relation, needed: frozenset[str]) -> Lowered:
        """The elements of a relation, with at least these columns."""

    @abstractmethod
    def rows(self, relation: Relation, needed: frozenset[str]) -> Lowered:
        """The same, but for the window of a stream, if that is all there is below."""

    @property
    def negative(self) -> bool:
        """Whether lifetimes are managed by plus and minus tuples."""
        return self.leaving.method == "negative"

    def lower_multi_join(self, join: MultiJoin, needed: frozenset[str]) -> Lowered:
        """The tuples of a join of many."""
        if self.negative and join.merge is None:  # plus and minus tuples are joined two by two
            return self.lower(cascade_of(join), needed)
        asked = needed | join.decides_by
        children = [self.lower(child, asked & frozenset(child.columns)) for child in join.children]
        sides = ManySides(children, self.typing)
        parts = lower_multi_join(join, sides, needed, self._setting(join, children))
        joined = self._joined(parts, sides.parts)
        return joined if join.theta is None else joined.selected(join.theta)

    def lower_join(self, join: Any, needed: frozenset[str]) -> Lowered:
        """The pairs of a join, whatever kind it is."""
        if isinstance(join, Join) and join.merge is not None:
            check_merging(join)
            many = as_many(join)
            self.top = many if join is self.top else self.top
            return self.lower_multi_join(many, needed)
        wanted = [(needed | join.decides_by) & frozenset(child.columns) for child in join.children]
        times = (None, None) if isinstance(join, Join) else event_times(join) or (None, None)
        left, right = (
            self.lower(child, mine) if isinstance(join, Join) else self._events(child, mine, time, join)
            for child, mine, time in zip(join.children, wanted, times, strict=True)
        )
        setting = self._setting(join, (left, right))
        sides = Sides([left, right], self.typing)
        parts = LOWERINGS[type(join)](join, sides, needed, setting)
        if self.negative and isinstance(join, Join):
            if isinstance(parts.partitioning, MatrixPartitioning | TokenPartitioning) or any(parts.followed):
                # Plus and minus tuples must meet wherever their place is by content.
                sides = Sides([left, right], self.typing)
                parts = LOWERINGS[type(join)](join, sides, needed, replace(setting, buckets=1))
            parts = replace(parts, config=NegativeJoin(parts.config.matching, parts.config.schemas, join.how))
        elif self.leaving.memory is not None and not any(info.streaming for info in self.sources.values()):
            parts = replace(parts, config=in_generations(parts.config, prioritised=setting.prioritised))
        joined = self._joined(parts, bound_to(join, parts, sides.parts))
        theta = getattr(join, "theta", None)  # of an inner join Spark evaluates it, on the pairs
        return joined if theta is None or join.how != "inner" else joined.selected(theta)

    def _events(self, child: Relation, needed: frozenset[str], time: str | None, join: Any) -> Lowered:
        """Events, and the column that says when they are. Unless the join declares it they are only ordered by it."""
        below = operator_of(child)
        if isinstance(below, EVENT_JOINS):
            return self._events_of_join(child, needed, time)
        if not isinstance(below, Stream):
            raise UnsupportedError(
                f"{type(below).__name__} cannot stand beside a join of events", hint="give every stream a window"
            )
        (feed,) = self.rows(child, needed).feeds
        assert isinstance(feed, SourceFeed)
        reading = replace(feed.reading, timeless=not isinstance(join, IntervalJoin))
        if time is not None and join.times is not None:
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

    def _setting(self, join: Relation, children: Sequence[Lowered]) -> Setting:
        late = tuple("join" if _joins_late(child) else "drop" for child in children)
        last = join is self.top
        plain = all(isinstance(feed, SourceFeed) for child in children for feed in child.feeds)
        emit = self.leaving.emit if last and plain and not self.negative else "eager"
        if self.leaving.emit != emit and last and getattr(join, "hold", "auto") == "inputs":
            # Results wait in the outlet then, and what was asked for would not happen.
            raise CallError(
                'hold="inputs" over row windows or other operators, whose ends become known later',
                hint='an end may be told while its row still waits: use hold="outputs"',
            )
        self.closing.ordered_already = emit == "ordered"
        streaming = any(not child.complete for child in children)
        changelog = self.leaving.change and streaming and last and isinstance(join, EVENT_JOINS)
        return Setting(
            emit, late, changelog, self.leaving.buckets, self.time.axis, not plain,  # type: ignore[arg-type]
            self.streams.prioritised, self.leaving.new_priority if last else None,
        )  # fmt: skip

    def _joined(self, parts: JoinParts, children: Sequence[Lowered]) -> Lowered:
        """A join as a node of a draft: that of a child, where their rows meet already."""
        left_only = parts.how in ("semi", "anti")
        fields = parts.payload[0] if left_only else tuple(each for payload in parts.payload for each in payload)
        names = names_of(fields)
        producer = self._producer()
        draft = Draft(parts.partitioning.buckets)
        hashed = type(parts.partitioning) is Partitioning
        shared, keys = sharing(children, parts.keys, draft.buckets) if hashed else ({}, parts.keys)
        nodes = {number: feed.node + draft.absorb(feed.draft) for number, feed in shared.items()}
        feeds: list[Entry | Inner] = []
        for number, child in enumerate(children):
            time, behind = _read_by(child)
            binding = replace(parts.bindings[number], placed_by=tuple(key[number] for key in keys), time=time)
            if number in nodes:
                feeds.append(Inner(nodes[number], replace(binding, placed_by=()), behind))
                continue
            follow, judged_by = parts.followed[number], parts.judged_by[number]
            given = self.closing.attached(child.feeds, binding, parts.partitioning, number, follow, judged_by)
            feeds.append(Entry(draft.add_input(given)))
        if any(parts.followed):
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
            Verdict(number, parts.config.schemas, parts.how, parts.config.outer, parts.config.new_priority)
            for number in (0, 1)
            if parts.followed[number]
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


def _placed_by(
    parts: JoinParts, keys: Sequence[tuple[str, ...]], names: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    """By which columns of the result its rows are where they are. Padded rows have none of the other side's."""
    if not keys or type(parts.partitioning) is not Partitioning:
        return ()
    every = tuple(range(len(parts.payload)))
    sides = {"inner": every, "left": (0,), "semi": (0,), "anti": (0,), "right": (1,), "full": ()}[parts.how]
    tuples = (tuple(key[number] for key in keys) for number in sides)
    return tuple(each for each in tuples if set(each) <= set(names))


def _read_by(child: Lowered) -> tuple[str | None, int]:
    feed = child.feeds[0]
    return (None, 0) if isinstance(feed, SourceFeed) or feed.read_by is None else feed.read_by


def _joins_late(child: Lowered) -> bool:
    return any(isinstance(feed, SourceFeed) and feed.info.late == "join" for feed in child.feeds)
