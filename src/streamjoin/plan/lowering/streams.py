"""Streams and what stands directly above them: a source, and what Spark computes of its rows before they are packed.

Selections and projections above a stream depend on one row alone. So Spark computes them where it reads the rows, below
the window: no row crosses to Python twice for them. What a selection leaves out is only marked where it still counts:
on a running stream it says how far the stream is, and in a row window it pushes others out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Rows, TimeAxis, Validity, Window
from streamjoin.errors import CallError, unknown_column
from streamjoin.plan.column_types import time_axis
from streamjoin.plan.condition import columns as columns_of
from streamjoin.plan.condition import one_column
from streamjoin.plan.lowering.feeds import SourceFeed
from streamjoin.plan.lowering.options import SourceInfo
from streamjoin.plan.physical import Computed, Fold, Step
from streamjoin.plan.relation import Projection, Relation, Selection, Stream
from streamjoin.plan.types import Field, Fields, Type, Typing, plain_type, struct_type, type_of
from streamjoin.runtime.intake import ARRIVAL, HIDDEN, WHOLE
from streamjoin.runtime.reading import Reading


@dataclass
class TimeLine:
    """The time axis that all streams of a call share; known when the first one has been seen."""

    axis: TimeAxis | None = None
    type: Type | None = None

    def share(self, info: SourceInfo, kind: Type) -> TimeAxis:
        """A stream's time is on the axis of the others."""
        axis = axis_of(kind, info)
        kind = plain_type(pa.int64()) if axis is TimeAxis.INTEGER else kind
        if self.type is not None and self.type != kind:
            raise CallError(
                f"the inputs' times have different types: that of {info.label} is {kind.text}, and another one's is "
                f"{self.type.text}",
                hint="cast one of them: they must count the same thing",
            )
        self.axis, self.type = axis, kind
        return axis


def axis_of(kind: Type, info: SourceInfo) -> TimeAxis:
    """The axis that a time column counts on."""
    axis = time_axis(kind.arrow)
    if axis is not None:
        return axis
    raise CallError(
        f"a time column of {info.label} has type {kind.text}, which is no time axis",
        hint="use a timestamp (with or without zone), a date or an integer column; to_timestamp(...) makes one",
    )


@dataclass
class Streams:
    """Makes feeds of streams and of what stands directly above them."""

    sources: Mapping[str, SourceInfo]
    typing: Typing
    time: TimeLine

    def feed(self, relation: Relation, needed: frozenset[str]) -> SourceFeed | None:
        """The rows of a stream with what is computed of them; None where something else than a stream is below."""
        if isinstance(relation, Stream):
            return self._stream(relation, needed)
        if isinstance(relation, Selection):
            feed = self.feed(relation.child, needed | set(columns_of(relation.condition)))
            if feed is None:
                return None
            self.typing.check(feed.fields, relation.condition)
            return feed.selected(relation.condition)
        if isinstance(relation, Projection):
            wanted = [each for each in relation.computed if each[0] in needed]
            below = frozenset(name for _, text in wanted for name in columns_of(text))
            feed = self.feed(relation.child, below)
            if feed is None:
                return None
            fields = self.typing.computed(feed.fields, wanted)
            done = feed.computed([Computed(name, text) for name, text in wanted], fields)
            origin = {name: feed.origin.get(one_column(text) or "") for name, text in wanted}
            return replace(done, origin={name: column for name, column in origin.items() if column is not None})
        return None

    def _stream(self, stream: Stream, needed: frozenset[str]) -> SourceFeed:
        info = self.sources[stream.source]
        reads = [(name, column) for name, column in stream.reads if name in needed]
        for _, column in reads:
            _check_there(info, column)
        fields = tuple(Field(name, type_of(info.fields, column)) for name, column in reads)
        window, times = self._times(stream, info)
        hidden: list[tuple[str, str]] = [(f"{HIDDEN}t{number}", column) for number, column in enumerate(times)]
        by = _groups(window, info)
        hidden += [(f"{HIDDEN}by{number}", column) for number, column in enumerate(by)]
        if isinstance(window, Rows) and not info.streaming:
            # Who came first among equal time stamps is known on a stream; in a batch the order is by all columns.
            others = [each.name for each in info.fields if each.name not in times]
            hidden += [(f"{HIDDEN}tie{number}", column) for number, column in enumerate(others)]
        fold: tuple[Step, ...] = ()
        if info.whole:
            whole = [(column, f"{HIDDEN}w{number}") for number, column in enumerate(each.name for each in info.shown)]
            hidden += [(name, column) for column, name in whole]
            fold = (Fold(tuple(whole)),)
        if isinstance(window, Validity):
            window = Validity(f"{HIDDEN}t0", f"{HIDDEN}t1")
        time = f"{HIDDEN}t0" if len(times) == 1 else None
        reading = Reading(
            info.label, tuple((name, column) for name, column in reads), tuple(times), time, window, info.invalid
        )
        return SourceFeed(
            info,
            stream,
            (*reads, *hidden),
            fields,
            tuple(_hidden(info, hidden)),
            reading=reading,
            origin=dict(reads),
            groups=tuple(by),
            steps=fold,
        )

    def _times(self, stream: Stream, info: SourceInfo) -> tuple[Window | None, list[str]]:
        """The window in ticks, and the frame's columns that it reads."""
        window = stream.window
        if isinstance(window, Validity):
            times = [str(window.start), str(window.end)]
        else:
            times = [] if stream.time is None or window is None else [stream.time]
        for column in times:
            _check_there(info, column)
        kinds = [type_of(info.fields, column) for column in times]
        if len({kind.text for kind in kinds}) > 1 and any(not pa.types.is_integer(kind.arrow) for kind in kinds):
            raise CallError(
                f"the two ends of a validity must have one type, got {' and '.join(kind.text for kind in kinds)}",
                hint="cast one of them",
            )
        if window is None or not kinds:
            return None, times
        return window.resolve(self.time.share(info, kinds[0])), times


def _hidden(info: SourceInfo, hidden: list[tuple[str, str]]) -> Iterator[Field]:
    for name, column in hidden:
        if not name.startswith(HIDDEN + "w"):
            yield Field(name, type_of(info.fields, column))
    if info.whole:
        yield Field(WHOLE, struct_type(info.shown))


def _groups(window: Window | None, info: SourceInfo) -> list[str]:
    if not isinstance(window, Rows) or window.by is None:
        return []
    names: Any = [window.by] if isinstance(window.by, str) else window.by
    for name in names:
        _check_there(info, name)
    return list(names)


def _check_there(info: SourceInfo, column: str) -> None:
    names = [each.name for each in info.fields]
    if column not in names:
        raise unknown_column(column, names, info.label)


def with_arrival(hidden: Fields) -> Fields:
    """The columns that are read of a running stream's row window: also the order in which rows came."""
    return (*hidden, Field(ARRIVAL, plain_type(pa.int64())))
