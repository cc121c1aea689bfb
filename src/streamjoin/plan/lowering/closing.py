"""Closing: a draft becomes a stage when its reader is known, and a source when it is known where its rows go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa

from streamjoin.algebra import Rows
from streamjoin.errors import CallError
from streamjoin.operators.contract import CLAIMANT
from streamjoin.operators.judging import Judging
from streamjoin.operators.verdict import Verdict
from streamjoin.plan.column_types import time_axis
from streamjoin.plan.lowering.feeds import Draft, Feed, Lowered, SourceFeed, StageFeed, channel_of
from streamjoin.plan.lowering.joining import JoinParts
from streamjoin.plan.lowering.options import Leaving, SourceInfo
from streamjoin.plan.lowering.streams import TimeLine
from streamjoin.plan.physical import Edge, PhysicalPlan, Sink, Source
from streamjoin.plan.types import Field, Fields, arrow_schema, check_name, names_of, plain_type, struct_type, type_of
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.fragment import Entry, Node
from streamjoin.runtime.intake import ARRIVAL, WHOLE, Channel, StageInput
from streamjoin.runtime.naming import CHANGE, FLAGS, TIME, Mark, MarkedColumn, OutputColumn, Shape
from streamjoin.runtime.outlet import Leaves, Outlet, ToCourt, ToFrame, ToStage, ToUser
from streamjoin.runtime.placing import Partitioning
from streamjoin.runtime.stage import Stage
from streamjoin.runtime.target import Target, Testimony


@dataclass
class Closing:
    """The parts of a plan that are closed: sources, stages and edges."""

    leaving: Leaving
    time: TimeLine
    sources: list[Source] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    infos: list[tuple[int, SourceInfo]] = field(default_factory=list)  # of the sources, by channel
    channels: int = 0
    ordered_already: bool = False  # an operator holds results for order, so the outlet need not
    prioritised: bool = False  # some stream of the tree has urgent rows

    def _channel(self) -> int:
        self.channels += 1
        return self.channels - 1

    # -- who reads whom ------------------------------------------------------------------------------------------------

    def attached(
        self,
        feeds: Sequence[Feed],
        binding: RowBinding,
        partitioning: Partitioning,
        number: int = 0,
        follow: bool = False,
        judged_by: tuple[str, ...] = (),
    ) -> StageInput:
        """An input of a stage that reads these feeds: each becomes a channel."""
        channels = []
        for feed in feeds:
            channel = self._channel()
            target = Target(channel, binding, partitioning, number, follow, judged_by)
            channels.append(channel_of(feed, channel))
            if isinstance(feed, SourceFeed) and feed.info.whole:
                target = replace(target, binding=replace(binding, payload=(*binding.payload, WHOLE)))
            self._close(feed, channel, target, Outlet(ToStage(target)))
            if isinstance(feed, SourceFeed):
                self._share_ordered(feed, binding)
        return StageInput(tuple(channels), partitioning, number)

    def _close(self, feed: Feed, channel: int, target: Target | None, outlet: Outlet) -> None:
        """Whatever feeds a channel; without a target it leaves the query. The outlet is that of a stage after which
        Spark computes nothing.
        """
        if isinstance(feed, SourceFeed):
            self._source(feed, channel, target)
            if target is None:
                self.edges.append(Edge(channel, feed.fields, (), feed.fields, None, self.prioritised))
        elif feed.steps:
            self._stage(feed.draft, replace(outlet, way=ToFrame(channel, arrow_schema(feed.raw), self.prioritised)))
            self.edges.append(Edge(channel, feed.raw, feed.steps, feed.fields, target, self.prioritised))
        else:
            self._stage(feed.draft, outlet)

    def _source(self, feed: SourceFeed, channel: int, target: Target | None) -> None:
        info = feed.info
        self.infos.append((channel, info))
        stamped = isinstance(feed.reading.window, Rows) and info.streaming and not self.prioritised
        hidden = (*feed.hidden, Field(ARRIVAL, plain_type(pa.int64()))) if stamped else feed.hidden
        self.sources.append(
            Source(
                info.name, channel, feed.reads, feed.steps, feed.fields, hidden,
                replace(feed.reading, shown=_shown(feed)), info.lateness, target, stamped, info.made_by,
                feed.groups, info.derived, self.prioritised and target is None,
            )
        )  # fmt: skip

    def _share_ordered(self, feed: SourceFeed, binding: RowBinding) -> None:
        """Rows that are ordered by a value count their progress in it: on a time axis, if it has one."""
        if binding.ordered:
            kind = type_of(feed.fields, str(binding.predicates[0].columns(binding.number)[0]))
            if time_axis(kind.arrow) is not None:
                self.time.share(feed.info, kind)

    def _stage(self, draft: Draft, outlet: Outlet) -> Stage:
        stage = Stage(
            len(self.stages), draft.buckets, tuple(draft.inputs), tuple(draft.nodes), outlet, self.leaving.idle_after,
            self.leaving.memory, self.prioritised,
        )  # fmt: skip
        self.stages.append(stage)
        return stage

    def judged(
        self, draft: Draft, verdicts: tuple[Verdict, ...], fields: Fields, producer: int, parts: JoinParts
    ) -> StageFeed:
        """A second stage, which decides about rows that have copies in several buckets of the first one."""
        results, buckets, complete = self._channel(), draft.buckets, draft.complete
        testimony = tuple(
            Testimony(self._channel(), name, verdict.number, buckets)
            for verdict in verdicts
            for name in (CLAIMANT, "witness")
        )
        self._stage(draft, Outlet(ToCourt(results, buckets), testimony=testimony))
        court, hashed = Draft(buckets), Partitioning(buckets)
        entries = tuple(
            Entry(
                court.add_input(
                    StageInput((Channel(number, buckets=buckets, complete=complete, follows=True),), hashed)
                )
            )
            for number in (results, *(each.channel for each in testimony))
        )
        ordered = parts.config.emit == "ordered"
        node = court.add_node(Node(Judging(verdicts, ordered), entries, names_of(fields), producer))
        return StageFeed(court, node, fields, times=parts.times)

    # -- what leaves ---------------------------------------------------------------------------------------------------

    def plan(self, lowered: Lowered) -> PhysicalPlan:
        """The plan of a tree whose elements leave."""
        shape, fields = self._shape(lowered)
        leaves: Leaves = "told" if self.leaving.change and self.leaving.method == "negative" else "settled"
        ordered = self.leaving.emit == "ordered" and not self.ordered_already
        channels = [self._channel() for _ in lowered.feeds]
        for feed, channel in zip(lowered.feeds, channels, strict=True):
            self._close(feed, channel, None, Outlet(ToUser(channel, shape), leaves, ordered))
        kind = self.time.type
        return PhysicalPlan(
            tuple(self.sources), tuple(self.stages), tuple(self.edges), Sink(shape, fields, tuple(channels)),
            self.time.axis, None if kind is None else kind.arrow, self.leaving.timers,
        )  # fmt: skip

    def _shape(self, lowered: Lowered) -> tuple[Shape, Fields]:
        """The columns that leave, and Spark's types for them."""
        leaving, time = self.leaving, self.time.type
        columns = leaving.columns
        if columns is None:
            columns = tuple(OutputColumn(each.name, (each.name,), each.type.arrow) for each in lowered.fields)
        fields = [Field(each.name, type_of(lowered.fields, each.sources[0])) for each in columns]
        validity, when = leaving.validity, None
        if leaving.to_stream is not None or (leaving.change and leaving.method == "negative"):
            validity, when = None, TIME
        infos = self._infos(lowered)
        marks = {mark for _, source in infos for mark in _marks(source)}
        flags = tuple(FLAGS[mark] for mark in ("invalid", "late") if mark in marks) if leaving.flagged else ()
        marked = () if leaving.flagged else tuple(_marked(infos))
        kind = None if time is None else time.arrow
        priority = (leaving.priority or "priority") if self.prioritised else None
        shape = Shape(columns, validity, when, kind, flags, marked, leaving.change, priority)
        boolean, text = plain_type(pa.bool_()), plain_type(pa.string())
        if validity is not None:
            assert time is not None
            fields += [Field(name, time) for name in validity]
        fields += [] if priority is None else [Field(priority, plain_type(pa.int64()))]
        fields += [Field(flag, boolean) for flag in flags]
        rows = dict(infos)
        fields += [Field(each.name, struct_type(rows[each.channels[0]].shown)) for each in marked]
        fields += [Field(CHANGE, text)] * leaving.change
        if when is not None:
            assert time is not None
            fields.append(Field(when, time))
        _check_once(fields, priority)
        return shape, tuple(fields)

    def _infos(self, lowered: Lowered) -> list[tuple[int, SourceInfo]]:
        """All sources by channel; those that no stage reads get the next ones (see `plan`)."""
        passing = [feed.info for feed in lowered.feeds if isinstance(feed, SourceFeed)]
        return [*self.infos, *enumerate(passing, self.channels)]


def _marks(info: SourceInfo) -> list[str]:
    return [mark for mark, policy in (("late", info.late), ("invalid", info.invalid)) if policy == "output"]


def _marked(infos: Sequence[tuple[int, SourceInfo]]) -> Iterator[MarkedColumn]:
    """A column for late, and one for invalid rows of each source that shows them."""
    channels: dict[tuple[str, str], list[int]] = {}
    for channel, info in infos:
        for mark in _marks(info):
            channels.setdefault((mark, info.name), []).append(channel)
    known = dict(infos)
    for (mark, name), mine in channels.items():
        kind = struct_type(known[mine[0]].shown).arrow
        yield MarkedColumn(f"_{mark}_{name}", cast(Mark, mark), tuple(mine), kind)


def _shown(feed: SourceFeed) -> tuple[tuple[str, str], ...]:
    """The columns that errors show of a row: those that are the frame's own."""
    return tuple((each.name, feed.origin[each.name]) for each in feed.fields if each.name in feed.origin)


def _check_once(fields: Sequence[Field], priority: str | None) -> None:
    taken: set[str] = set()
    for each in fields:
        check_name(each.name)
        if each.name.lower() in taken and priority is not None and each.name.lower() == priority.lower():
            raise CallError(
                f"the result would have two columns {each.name!r}: an input's, and the one that says how urgent it is",
                hint='name it with priority_as="urgency", or rename the other',
            )
        if each.name.lower() in taken:
            raise CallError(
                f"the result would have two columns {each.name!r}: the query's, and the one that says when it holds",
                hint='rename it with AS, or name the validity with validity=("from", "to")',
            )
        taken.add(each.name.lower())
