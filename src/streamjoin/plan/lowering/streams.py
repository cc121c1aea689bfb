"""Streams: which columns of a frame are read, by which times and through which window, on one axis for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from streamjoin.algebra import Rows, TimeAxis, Validity, Window
from streamjoin.errors import CallError, unknown_column
from streamjoin.plan.column_types import time_axis
from streamjoin.plan.lowering.comparing import check_told_apart
from streamjoin.plan.lowering.feeds import SourceFeed
from streamjoin.plan.lowering.options import SourceInfo
from streamjoin.plan.lowering.priorities import ranking_of
from streamjoin.plan.physical import Collate, Fold, Step
from streamjoin.plan.relation import Stream
from streamjoin.plan.types import Field, Type, Typing, plain_type, struct_type, type_of
from streamjoin.runtime.intake import HIDDEN, PRIORITY, WHOLE
from streamjoin.runtime.reading import Reading

_BYTES: Final = plain_type(pa.binary())


@dataclass
class TimeLine:
    """The time axis that all streams of a call share; known when the first one has been seen."""

    axis: TimeAxis | None = None
    type: Type | None = None

    def share(self, info: SourceInfo, kind: Type) -> TimeAxis:
        """A stream's time is on the axis of the others."""
        axis = time_axis(kind.arrow)
        if axis is None:
            raise CallError(
                f"a time column of {info.label} has type {kind.text}, which is no time axis",
                hint="use a timestamp (with or without zone), a date or an integer column; to_timestamp(...) makes one",
            )
        kind = plain_type(pa.int64()) if axis is TimeAxis.INTEGER else kind
        if self.type is not None and self.type != kind:
            raise CallError(
                f"the inputs' times have different types: that of {info.label} is {kind.text}, and another one's is "
                f"{self.type.text}",
                hint="cast one of them: they must count the same thing",
            )
        self.axis, self.type = axis, kind
        return axis


@dataclass
class Streams:
    """Makes feeds of streams."""

    sources: Mapping[str, SourceInfo]
    time: TimeLine
    typing: Typing
    prioritised: bool = False  # some stream of the tree has urgent rows

    def feed(self, stream: Stream, needed: frozenset[str]) -> SourceFeed:
        """The rows of a stream."""
        info = self.sources[stream.source]
        reads = [(name, column) for name, column in stream.reads if name in needed]
        for _, column in reads:
            _check_there(info, column)
        fields = tuple(Field(name, type_of(info.fields, column)) for name, column in reads)
        window, times = self._times(stream, info)
        hidden: list[tuple[str, str]] = [(f"{HIDDEN}t{number}", column) for number, column in enumerate(times)]
        by = _groups(window, info)
        hidden += [(f"{HIDDEN}by{number}", column) for number, column in enumerate(by)]
        collated = _collated(info, by)
        ranking = ranking_of(stream, info, self.typing)
        if isinstance(window, Rows) and (not info.streaming or self.prioritised):
            # Who came first among equal time stamps is known on a stream; in a batch the order is by all columns. So it
            # is beside priorities: a lane changes who comes first, and must not change results.
            others = [each.name for each in info.fields if each.name not in times]
            hidden += [(f"{HIDDEN}tie{number}", column) for number, column in enumerate(others)]
        fold: tuple[Step, ...] = (Collate(collated),) if collated else ()
        if info.whole:
            whole = [(column, f"{HIDDEN}w{number}") for number, column in enumerate(each.name for each in info.shown)]
            hidden += [(name, column) for column, name in whole]
            fold += (Fold(tuple(whole)),)
        own = [Field(each.name, _BYTES) if each.name in dict(collated) else each for each in _hidden(info, hidden)]
        if ranking is not None:
            hidden += ranking.reads
            fold += ranking.steps
            own.append(ranking.field)
        if isinstance(window, Validity):
            window = Validity(f"{HIDDEN}t0", f"{HIDDEN}t1")
        time = f"{HIDDEN}t0" if len(times) == 1 else None
        priority = None if ranking is None else PRIORITY
        reading = Reading(
            info.label, tuple(reads), tuple(times), time, window, info.invalid, priority=priority
        )  # fmt: skip
        return SourceFeed(
            info,
            stream,
            (*reads, *hidden),
            fields,
            tuple(own),
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


def _collated(info: SourceInfo, groups: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The hidden columns of groups that are told apart by keys of their collation, and the frame's."""
    fields = info.fields
    within = [column for column in groups if not pa.types.is_string(type_of(fields, column).arrow)]
    check_told_apart(fields, within, "a row window's groups")  # there are keys of strings only, not of those in others
    return tuple((f"{HIDDEN}by{at}", each) for at, each in enumerate(groups) if type_of(fields, each).collated)


def _check_there(info: SourceInfo, column: str) -> None:
    names = [each.name for each in info.fields]
    if column not in names:
        raise unknown_column(column, names, info.label)
