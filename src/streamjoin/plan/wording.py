"""What a physical plan calls its columns, windows and steps, in words that people use.

Inside a plan columns have names that are unique in it: the number of a source before the user's own name, or one that
was made up for a cast. None of these shall be seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from streamjoin.algebra import Rows, Validity
from streamjoin.plan.condition import column_places, one_column, quoted, readable, substituted
from streamjoin.plan.expression.lexer import tokens
from streamjoin.plan.physical import Collate, Compute, Computed, Edge, Fold, PhysicalPlan, Rank, Source, Step
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.fragment import Inner, Node
from streamjoin.runtime.intake import HIDDEN
from streamjoin.runtime.reading import Reading
from streamjoin.runtime.stage import Stage
from streamjoin.runtime.target import Target

_UNITS: Final = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)
_ADDED: Final = re.compile(re.escape(HIDDEN) + r"c(\d+)")  # a column that a call has added to a frame


@dataclass(frozen=True)
class Part:
    """An operator in its place: what describes it asks here what its inputs are, and what their columns are called."""

    plan: PhysicalPlan
    stage: Stage
    node: Node

    def channels(self, number: int) -> frozenset[int]:
        """The channels that feed an input of the operator from outside."""
        feed = self.node.feeds[number]
        if isinstance(feed, Inner):
            return frozenset()
        return frozenset(channel.number for channel in self.stage.inputs[feed.input].channels)

    def feeders(self, number: int) -> list[Source | Edge]:
        """What feeds an input of the operator from outside, if it is a source, or Spark computes something."""
        return feeders(self.plan, self.channels(number))

    def binding(self, number: int) -> RowBinding:
        """How an input is read."""
        feed = self.node.feeds[number]
        if isinstance(feed, Inner):
            return feed.binding
        target = target_of(self.plan, self.stage.inputs[feed.input].channels[0].number)
        return RowBinding(()) if target is None else target.binding

    def called(self, number: int, name: str) -> str:
        """What people call a column of an input."""
        return called(self.plan, self.channels(number), name)

    def called_all(self, number: int, names: Sequence[Any]) -> str:
        """Several columns of an input."""
        return ", ".join(self.called(number, str(name)) for name in names)

    def kind(self, number: int, name: str) -> pa.DataType | None:
        """The type of a column of an input."""
        feeders = [*self.feeders(number), *self.plan.sources, *self.plan.edges]  # names are unique in a tree
        fields = [each.fields if isinstance(each, Source) else each.result for each in feeders]
        return next((each.type.arrow for some in fields for each in some if each.name == name), None)

    def in_time(self, ticks: Any) -> str:
        """A distance in time."""
        return in_units(ticks, self.plan.time_type)

    def equal_keys(self, *, both: bool = False) -> str:
        """The equality keys; those of both inputs where they have other names."""
        one, two = (self.called_all(number, self.binding(number).keys) for number in (0, 1))
        return f"equal {one} = {two}" if both and one != two else f"equal {one}" if one else ""


def target_of(plan: PhysicalPlan, channel: int) -> Target | None:
    """Where the elements of a channel go, as whoever feeds it sees it."""
    return next((target for target in plan.targets if target.channel == channel), None)


def feeders(plan: PhysicalPlan, channels: Collection[int]) -> list[Source | Edge]:
    """The sources and edges among these channels."""
    every: list[Source | Edge] = [*plan.sources, *plan.edges]
    return [each for each in every if each.channel in channels]


# -- names and units ---------------------------------------------------------------------------------------------------


def called(plan: PhysicalPlan, channels: Collection[int], name: str) -> str:
    """What people call a column that comes by these channels: without the number of its source, and not by the name of
    a cast of it.
    """
    for feeder in feeders(plan, channels):
        for column in (each for step in feeder.steps if isinstance(step, Compute) for each in step.columns):
            if column.name == name and name.startswith(HIDDEN):
                name = one_column(column.text) or name
        if isinstance(feeder, Source):
            name = computed_from(feeder, name)
    return bare_name(plan, name)


def prefixes(plan: PhysicalPlan) -> list[str]:
    """What the columns of numbered sources begin with, in the order of the numbers."""
    channels = (channel for stage in plan.stages for each in stage.inputs for channel in each.channels)
    return sorted({channel.prefix for channel in channels if channel.prefix})


def bare_name(plan: PhysicalPlan, name: str) -> str:
    """A column's name without the number of its source."""
    return next((name.removeprefix(each) for each in prefixes(plan) if name.startswith(each)), name)


def computed_from(source: Source, name: str) -> str:
    """What a hidden column of a source is in the frame, or what the call has computed it from; others as they are."""
    column = dict(source.reads).get(name, name)
    written = written_as(source.derived, column)
    return written if written != column or name.startswith(HIDDEN) else name


def written_as(derived: Sequence[str], column: str) -> str:
    """A column of a frame for people: one that the call has added is what it is computed from.

    >>> written_as(["Column<'v > 2'>"], "__sjh_c0"), written_as(["Column<'v > 2'>"], "v")
    ('v > 2', 'v')
    """
    added = _ADDED.fullmatch(column)
    if added is None or int(added[1]) >= len(derived):
        return column
    return derived[int(added[1])].removeprefix("Column<'").removesuffix("'>")


def as_written(plan: PhysicalPlan, text: str) -> str:
    """A condition as the user wrote it: columns of two numbered sources are those of l and r."""
    numbered = prefixes(plan)
    pieces, written, at = tokens(text), [], 0
    for piece in (pieces[place] for place in column_places(pieces)):
        name = piece.name or ""
        side = next((side for side, each in enumerate(numbered) if name.startswith(each)), None)
        if side is not None:
            own = readable(bare_name(plan, name))
            written += [text[at : piece.start], f"{'lr'[side]}.{own}" if len(numbered) == 2 else own]
            at = piece.end
    return "".join([*written, text[at:]])


def in_units(ticks: Any, kind: pa.DataType | None) -> str:
    """A number of ticks as a reader counts: a duration, a decimal, or the number itself.

    >>> in_units(600_000_000, pa.timestamp("us")), in_units(150, pa.decimal128(5, 2)), in_units(3, pa.int64())
    ('10 min', '1.5', '3')
    """
    if kind is not None and pa.types.is_timestamp(kind):
        unit, size = next((unit, size) for unit, size in _UNITS if ticks % size == 0) if ticks else ("s", 1)
        return f"{ticks // size} {unit}"
    if kind is not None and pa.types.is_date(kind):
        return f"{ticks} d"
    if kind is not None and pa.types.is_decimal(kind):
        return f"{Decimal(ticks).scaleb(-kind.scale).normalize():f}"
    return str(ticks)


def describe_window(reading: Reading, groups: Sequence[str], kind: pa.DataType | None) -> str:
    """The window of a source, in ticks that a reader can count."""
    window = reading.window
    if isinstance(window, Validity):
        return f"Validity({', '.join(reading.called)})"
    if isinstance(window, Rows):
        by = f", by {', '.join(groups)}" if groups else ""
        return f"Rows({window.size}{by}{', drained' if window.drain else ''})"
    sizes = {name: getattr(window, name, None) for name in ("size", "slide")}
    shown = [in_units(ticks, kind) for ticks in sizes.values() if ticks is not None]
    return f"{type(window).__name__}({', slide='.join(shown)})"


def describe_priority(source: Source) -> str | None:
    """What says how urgent a source's rows are, over the frame's columns; None where none is."""
    if source.reading.priority is None:
        return None
    computed = next((step.text for step in source.steps if isinstance(step, Rank)), quoted(source.reading.priority))
    return substituted(computed, {name: quoted(column) for name, column in source.reads}).replace("`", "")


def describe_step(plan: PhysicalPlan, step: Step, *, casts: bool = True) -> str:
    """What Spark computes in one step; nothing where columns only go on as they are. `casts`: also those to a common
    type.
    """
    if isinstance(step, Compute):
        changed = [each for each in step.columns if one_column(each.text) != each.name]
        return ", ".join(_computed(plan, each) for each in changed if casts or not each.name.startswith(HIDDEN))
    if isinstance(step, Fold):
        return "whole rows, to be shown"
    if isinstance(step, Rank):
        return ""  # it is said of the source, see `describe_priority`
    if isinstance(step, Collate):
        return ", ".join(f"{column} as a collation key" for _, column in step.columns)
    return f"where {as_written(plan, step.condition)}"


def _computed(plan: PhysicalPlan, column: Computed) -> str:
    text = as_written(plan, column.text)
    if column.cast is not None or column.collation_key:
        return f"{text} as {'a collation key' if column.cast is None else column.cast.text}"
    return f"{bare_name(plan, column.name)} = {text}"


def in_bytes(size: int) -> str:
    """A number of bytes in the largest unit in which it is whole.

    >>> in_bytes(256 << 20), in_bytes(1500), in_bytes(2 << 10)
    ('256 MB', '1500 B', '2 KB')
    """
    units = ["B", "KB", "MB", "GB", "TB"]
    while size and size % 1024 == 0 and len(units) > 1:
        size //= 1024
        units.pop(0)
    return f"{size} {units[0]}"
