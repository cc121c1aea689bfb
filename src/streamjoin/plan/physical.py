"""The physical plan: how a call runs, as a value.

    Source   what reads a frame: columns, what Spark computes of them, time and window, lateness, where its rows go
    Stage    a fragment of operators that share one placing (see `runtime.stage`)
    Edge     what Spark computes between a stage and the next one, or the user; where it computes nothing there is none
    Sink     what leaves: the columns, and when

Frozen values: a plan is compared, stored beside the state of a query, checked when the query goes on, and explained.
Who runs it (Spark over batches, Spark over streams, the end of a query, a test) is nothing that it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from streamjoin.algebra import Rows, TimeAxis
from streamjoin.algebra.policy import ADDED
from streamjoin.plan.condition import one_column
from streamjoin.plan.types import Fields, Type, arrow_schema
from streamjoin.runtime.elements import hidden_schema
from streamjoin.runtime.intake import ARRIVAL
from streamjoin.runtime.lateness import Complete, Lateness
from streamjoin.runtime.naming import Shape
from streamjoin.runtime.outlet import ToStage
from streamjoin.runtime.reading import Reading
from streamjoin.runtime.stage import Stage
from streamjoin.runtime.target import Target


@dataclass(frozen=True)
class Computed:
    """A column that Spark computes: an expression, cast to a type where one is given.

    `collation_key`: bytes that are equal where the collation of the column says that the strings are.
    """

    name: str
    text: str
    cast: Type | None = None
    collation_key: bool = False

    @property
    def column(self) -> str | None:
        """The column that it is, perhaps under another name, if nothing is computed."""
        return None if self.cast is not None or self.collation_key else one_column(self.text)


@dataclass(frozen=True)
class Compute:
    """The columns that go on. Hidden ones pass by."""

    columns: tuple[Computed, ...]


@dataclass(frozen=True)
class Filter:
    """Rows for which the condition is not true go no further."""

    condition: str


@dataclass(frozen=True)
class Mark:
    """Rows for which the condition is not true are marked: they still say how far a source is, or count in a window.

    Of rows that are marked nothing is computed any more.
    """

    condition: str


@dataclass(frozen=True)
class Fold:
    """The whole row of a source in one column, to be shown if it is late or invalid; by the names there and here."""

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Rank:
    """How urgent rows of a source are, in one column; computed from columns that go no further."""

    text: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Collate:
    """Hidden columns become bytes that are equal where the collation of the column says that the strings are; by their
    names here and in the frame.
    """

    columns: tuple[tuple[str, str], ...]


Step = Compute | Filter | Mark | Fold | Rank | Collate


@dataclass(frozen=True)
class Source:
    """What reads a frame. `reads` has the columns' names here and in the frame; `steps` is what Spark computes of them.

    `fields` are the columns after that, and `hidden` those that are read here and go no further: times, what makes
    groups of a row window, who came first, whether the row goes on (`runtime.fragment.KEEP`). `stamped`: on a stream
    rows get a number in the order in which they come. Without a target they leave as elements.
    """

    name: str
    channel: int
    reads: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    fields: Fields
    hidden: Fields
    reading: Reading
    lateness: Lateness
    target: Target | None
    stamped: bool = False
    made_by: str | None = None  # the streaming call whose result the frame is
    groups: tuple[str, ...] = ()  # of a row window: the frame's columns that make a group
    derived: tuple[str, ...] = ()  # what columns of the frame that were added for this call are computed from
    prioritised: bool = field(default=False, metadata=ADDED)  # its elements leave with priorities

    @property
    def handed_over(self) -> Fields:
        """The columns that Spark hands over: arrival is stamped by whoever reads them."""
        return (*self.fields, *(each for each in self.hidden if each.name != ARRIVAL))

    @property
    def complete(self) -> bool:
        """Whether it is there from the start."""
        return isinstance(self.lateness, Complete)

    @property
    def reports(self) -> bool:
        """Whether every bucket hears of its times: on a stream, and where a window ends with the last row of all."""
        window = self.reading.window
        return not self.complete or (isinstance(window, Rows) and window.drain)


@dataclass(frozen=True)
class Edge:
    """What Spark computes of a channel's elements. Without a target they leave the query."""

    channel: int
    fields: Fields
    steps: tuple[Step, ...]
    result: Fields
    target: Target | None
    prioritised: bool = field(default=False, metadata=ADDED)

    @property
    def hidden(self) -> pa.Schema:
        """The hidden columns of its elements."""
        return hidden_schema(prioritised=self.prioritised)

    @property
    def rows_after(self) -> pa.Schema:
        """The rows of elements that Spark hands over."""
        return pa.schema([*arrow_schema(self.result), *self.hidden])


@dataclass(frozen=True)
class Sink:
    """What leaves: its shape, the types that Spark has for it, and the channels that it comes by."""

    shape: Shape
    fields: Fields
    channels: tuple[int, ...]


@dataclass(frozen=True)
class PhysicalPlan:
    """How a call runs. Stages are in topological order: whoever is read comes first."""

    sources: tuple[Source, ...]
    stages: tuple[Stage, ...]
    edges: tuple[Edge, ...]
    sink: Sink
    axis: TimeAxis | None = None
    time_type: pa.DataType | None = None
    timers: bool = False

    @property
    def streaming(self) -> bool:
        """Whether any source is a stream."""
        return not all(source.complete for source in self.sources)

    def edge_of(self, channel: int) -> Edge | None:
        """What Spark computes of a channel's elements; None when it is nothing."""
        return next((edge for edge in self.edges if edge.channel == channel), None)

    @property
    def targets(self) -> Iterator[Target]:
        """Where sources, edges and stages send what stages read, as each of them sees it."""
        parts: list[Source | Edge] = [*self.sources, *self.edges]
        yield from (part.target for part in parts if part.target is not None)
        ways = (stage.outlet.way for stage in self.stages)
        yield from (way.target for way in ways if isinstance(way, ToStage))

    def feeders(self, stage: Stage) -> Iterator[int]:
        """The channels that a stage reads."""
        return (channel.number for each in stage.inputs for channel in each.channels)
