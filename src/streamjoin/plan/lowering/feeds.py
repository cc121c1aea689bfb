"""Feeds: elements on their way up a tree, before it is decided who reads them and where.

A source and what Spark computes of its columns; or a stage that is not closed yet, because its reader may join it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from streamjoin.algebra import LatePolicy, TimeAxis, Validity
from streamjoin.plan.column_types import time_axis
from streamjoin.plan.condition import quoted
from streamjoin.plan.lowering.options import SourceInfo
from streamjoin.plan.physical import Compute, Computed, Filter, Mark, Step
from streamjoin.plan.relation import Stream
from streamjoin.plan.rules.pushing import below_window
from streamjoin.plan.types import Field, Fields, Typing, names_of, plain_type
from streamjoin.runtime.fragment import Entry, Node
from streamjoin.runtime.intake import KEEP, Channel, StageInput
from streamjoin.runtime.reading import Reading

_BOOLEAN = plain_type(pa.bool_())


@dataclass(frozen=True)
class SourceFeed:
    """Rows of a source. `hidden` columns pass by whatever is computed. `origin`: which of the columns are the frame's
    own, and which; `groups`: the frame's columns that make groups of a row window.
    """

    info: SourceInfo
    stream: Stream
    reads: tuple[tuple[str, str], ...]
    fields: Fields
    hidden: Fields
    reading: Reading
    origin: Mapping[str, str]
    groups: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all rows are there."""
        return not self.info.streaming

    @property
    def kept(self) -> bool:
        """Whether a column says which rows go on."""
        return any(each.name == KEEP for each in self.hidden)

    def selected(self, condition: str) -> SourceFeed:
        """The rows for which a condition is true.

        Of a table others are left out before anything else, where its window lets them. Otherwise they are marked: they
        also say how far a stream is, and count in a row window.
        """
        if self.complete and below_window(self.stream):
            return replace(self, steps=(*self.steps, Filter(condition)))
        hidden = self.hidden if self.kept else (*self.hidden, Field(KEEP, _BOOLEAN))
        return replace(self, hidden=hidden, steps=(*self.steps, Mark(condition)))

    def computed(self, columns: Sequence[Computed], fields: Fields) -> SourceFeed:
        """Other columns, computed from those that are there."""
        if [(each.name, each.column) for each in columns] == [(name, name) for name in names_of(self.fields)]:
            return self
        return replace(self, fields=fields, steps=(*self.steps, Compute(tuple(columns))))


@dataclass
class Draft:
    """A stage that is not closed yet."""

    buckets: int
    inputs: list[StageInput] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether all that it reads has ended before it begins."""
        return all(channel.ended for each in self.inputs for channel in each.channels)

    def add_input(self, given: StageInput) -> int:
        """One more input; its number."""
        self.inputs.append(given)
        return len(self.inputs) - 1

    def add_node(self, node: Node) -> int:
        """One more operator; its number."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def absorb(self, other: Draft) -> int:
        """Take over the inputs and operators of another draft; how much its operators' numbers grow."""
        inputs, nodes = len(self.inputs), len(self.nodes)
        self.inputs += other.inputs
        for node in other.nodes:
            feeds = tuple(
                replace(feed, input=feed.input + inputs)
                if isinstance(feed, Entry)
                else replace(feed, node=feed.node + nodes)
                for feed in node.feeds
            )
            self.nodes.append(replace(node, feeds=feeds))
        return nodes


@dataclass(frozen=True)
class StageFeed:
    """What leaves node `node` of a draft. `placed_by`: rows equal in any of these columns are in one bucket, by the one
    hash of them. `steps`: what Spark computes afterwards.
    """

    draft: Draft
    node: int
    fields: Fields
    placed_by: tuple[tuple[str, ...], ...] = ()
    steps: tuple[Step, ...] = ()
    raw: Fields = ()  # before the steps
    times: tuple[tuple[str, int], ...] = ()  # of events: columns that follow its progress, and how far behind
    read_by: tuple[str, int] | None = None  # the one of them that its reader takes for the time

    @property
    def complete(self) -> bool:
        """Whether all rows are there."""
        return self.draft.complete

    def selected(self, condition: str) -> StageFeed:
        """The elements for which a condition is true."""
        return replace(self, steps=(*self.steps, Filter(condition)), raw=self.raw or self.fields)

    def computed(self, columns: Sequence[Computed], fields: Fields) -> StageFeed:
        """Other columns. Those that are there under other names need no Spark."""
        called = {each.column: each.name for each in columns if each.column is not None}
        placed = tuple(
            tuple(called[name] for name in names) for names in self.placed_by if all(name in called for name in names)
        )
        times = tuple((called[name], behind) for name, behind in self.times if name in called)
        after = replace(self, fields=fields, placed_by=placed, times=times)
        if self.steps or any(each.column is None for each in columns):
            return replace(after, steps=(*self.steps, Compute(tuple(columns))), raw=self.raw or self.fields)
        pick = tuple((each.name, str(each.column)) for each in columns)
        node = self.draft.nodes[self.node]
        if node.pick is not None:
            before = dict(node.pick)
            pick = tuple((new, before[old]) for new, old in pick)
        self.draft.nodes[self.node] = replace(node, pick=pick)
        return after


Feed = SourceFeed | StageFeed


@dataclass(frozen=True)
class Lowered:
    """A relation on its way: all that feeds it, with the same columns each."""

    feeds: tuple[Feed, ...]

    @property
    def fields(self) -> Fields:
        """Its columns."""
        return self.feeds[0].fields

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return names_of(self.fields)

    @property
    def complete(self) -> bool:
        """Whether all rows are there."""
        return all(feed.complete for feed in self.feeds)

    def selected(self, condition: str) -> Lowered:
        """The elements for which a condition is true."""
        return Lowered(tuple(feed.selected(condition) for feed in self.feeds))

    def computed(self, columns: Sequence[tuple[str, str]], typing: Typing) -> Lowered:
        """Columns that Spark computes, by name and text."""
        fields = typing.computed(self.fields, columns)
        steps = [Computed(name, text) for name, text in columns]
        feeds = [feed.computed(steps, fields) for feed in self.feeds]
        if len(feeds) == 1 and isinstance(feeds[0], SourceFeed):  # parts of a union keep to their own names
            own = {each.name: feeds[0].origin.get(each.column or "") for each in steps}
            feeds = [replace(feeds[0], origin={name: column for name, column in own.items() if column is not None})]
        return Lowered(tuple(feeds))

    def with_column(self, column: Computed, field_: Field) -> Lowered:
        """One more column."""
        columns = [*(Computed(name, quoted(name)) for name in self.names), column]
        return Lowered(tuple(feed.computed(columns, (*self.fields, field_)) for feed in self.feeds))

    def cast_to(self, fields: Fields) -> Lowered:
        """The same columns by position, under these names and with these types."""
        if fields == self.fields:
            return self
        columns = [
            Computed(new.name, quoted(old.name), None if new.type == old.type else new.type)
            for old, new in zip(self.fields, fields, strict=True)
        ]
        return Lowered(tuple(feed.computed(columns, fields) for feed in self.feeds))


def sharing(
    children: Sequence[Lowered], keys: Sequence[tuple[str, ...]], buckets: int
) -> tuple[dict[int, StageFeed], tuple[tuple[str, ...], ...]]:
    """The children that an operator can share a stage with, because their rows meet there by its keys already, and the
    keys by which the other children must be placed then. A key has a column of each child.
    """
    ready = {
        number: feed
        for number, (feed, *others) in enumerate(child.feeds for child in children)
        if not others and isinstance(feed, StageFeed) and not feed.steps and feed.draft.buckets == buckets
    }
    if buckets == 1:
        return ready, tuple(keys)
    orders: dict[tuple[int, ...], list[int]] = {}
    for number, feed in ready.items():
        own = [key[number] for key in keys]
        for names in feed.placed_by:
            if names and set(names) <= set(own):
                orders.setdefault(tuple(own.index(name) for name in names), []).append(number)
    if not orders:
        return {}, tuple(keys)
    order, numbers = max(orders.items(), key=lambda each: len(each[1]))
    return {number: ready[number] for number in sorted(set(numbers))}, tuple(keys[at] for at in order)


def channel_of(feed: Feed, number: int) -> Channel:
    """The channel that a feed becomes."""
    if isinstance(feed, SourceFeed):
        info = feed.info
        window, columns = feed.reading.window, (*feed.fields, *feed.hidden)
        time = window.start if isinstance(window, Validity) else feed.reading.time
        axis = next((time_axis(each.type.arrow) for each in columns if each.name == time), None) or TimeAxis.INTEGER
        return Channel(
            number, info.lateness, late=info.late, label=info.label, prefix=info.prefix, whole=info.whole, axis=axis
        )
    behind = 0 if feed.read_by is None else feed.read_by[1]
    below = [channel for each in feed.draft.inputs for channel in each.channels]
    policies: tuple[LatePolicy, ...] = ("fail", "output", "join", "drop")
    late = next(each for each in policies if each in {"drop", *(channel.late for channel in below)})
    label = " and ".join(dict.fromkeys(channel.label for channel in below if channel.label))
    return Channel(number, None, feed.draft.buckets, feed.complete, late, label, behind=behind)
