"""Queries over frames: from CQL text, or from a call of an operator over lifetimes, to a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from streamjoin.algebra import Arrival, Validity, Window
from streamjoin.errors import CallError, UnknownColumnError, unknown_column
from streamjoin.language import parse_cql
from streamjoin.plan.relation import Query, Relation, Stream, streams_of
from streamjoin.plan.rules import optimise
from streamjoin.plan.types import arrow_schema
from streamjoin.spark.calls.inputs import Input
from streamjoin.spark.calls.options import Options, per_input, per_source
from streamjoin.spark.calls.tree import TreeCall


def run_cql(text: str, frames: Mapping[str, DataFrame], time: Any, options: Options) -> DataFrame:
    """The result of a CQL query over frames by name."""
    inputs = {name: Input(frame, f"stream {name}") for name, frame in frames.items()}
    given = per_source(time, list(inputs), "time", None)
    times = {name: _time_of_stream(part, given[name], isinstance(time, Mapping)) for name, part in inputs.items()}
    schemas = {name: arrow_schema(part.fields) for name, part in inputs.items()}
    query = parse_cql(text, schemas, times=times)
    _check_times_are_read(query.relation, time)
    best = Query(optimise(query.relation, schemas), query.to_stream)
    return TreeCall(inputs, best, query.relation, options).run()


def _time_of_stream(part: Input, given: Any, by_name: bool) -> str | None:
    """The time column of a stream. One that is named for all streams need not be there in each."""
    if given is None:
        return None
    try:
        return _time(part, given)
    except UnknownColumnError:
        if by_name:
            raise
        return None


def _check_times_are_read(relation: Relation, time: Any) -> None:
    """Refuse a time that is no column of a frame where no window reads it: it would be accepted, and mean nothing."""
    leaves = streams_of(relation)
    read = any(leaf.window is not None and leaf.time is not None for leaf in leaves)
    given = [time.get(leaf.source) for leaf in leaves if leaf.window is None] if isinstance(time, Mapping) else []
    given += [time] if not isinstance(time, Mapping) and not read else []
    for each in given:
        if each is not None and not isinstance(each, str):
            raise CallError(
                f"time={each!r} is for windows, and this query has none that could read it",
                hint="an event join names columns, MATCH_CONDITION (R.ts >= S.ts): give the frame one more",
            )


def _time(part: Input, given: Any) -> str:
    return part.stamped() if isinstance(given, Arrival) else part.resolve(given)


class Frames:
    """The frames of an operator over lifetimes, each with its time and window. They have numbers for names."""

    def __init__(self, frames: Any, time: Any, window: Any, what: str) -> None:
        if not isinstance(frames, list | tuple) or not frames:
            raise CallError(f"{what} takes a list of frames, got {frames!r}", hint=f"sj.{what}([a, b], ...)")
        self.what = what
        self.inputs = [Input(frame, f"input {number}") for number, frame in enumerate(frames)]
        self.times, self.windows = (
            per_input(option, len(frames), name) for option, name in ((time, "time"), (window, "window"))
        )

    def run(self, relation: Relation, options: Options) -> DataFrame:
        """The result of a tree over the frames."""
        inputs = {str(number): part for number, part in enumerate(self.inputs)}
        return TreeCall(inputs, Query(relation), relation, options).run()

    def streams(self) -> tuple[Stream, ...]:
        """All frames as relations."""
        return tuple(self.stream(number) for number in range(len(self.inputs)))

    def two(self) -> tuple[Stream, Stream]:
        """Both frames as relations."""
        if len(self.inputs) != 2:
            raise CallError(
                f"{self.what} takes two frames, got {len(self.inputs)}", hint=f"sj.{self.what}([a, b], ...)"
            )
        one, two = self.streams()
        return one, two

    def stream(self, number: int, columns: Sequence[str] | None = None) -> Stream:
        """A frame as a relation: all columns but those that say when a row is valid, or these."""
        part, window, time = self.inputs[number], self.windows[number], self.times[number]
        check_window(window, time)
        if isinstance(window, Validity):
            when = [part.resolve(window.start), part.resolve(window.end)]
            window, time = Validity(*when), None
        else:
            time = _time(part, time)
            part.time_axis(time)
            when = [time]
            window = part.with_groups(window)
        if columns is None:
            columns = [name for name in part.columns if name not in when]
        for name in columns:
            if name not in part.columns:
                raise unknown_column(name, part.columns, "the frame")
        return Stream(str(number), tuple((name, name) for name in columns), time, window)


def check_window(window: Any, time: Any) -> None:
    """Refuse a call that does not say how long rows are valid."""
    if not isinstance(window, Window):
        raise CallError(
            f"a window says how long a row is valid, got window={window!r}",
            hint='window=sj.Range("5 seconds"), sj.Rows(100), or sj.Validity("from", "to")',
        )
    if isinstance(window, Validity) and time is not None:
        raise CallError("a Validity names its own time columns", hint="leave time= out")
    if not isinstance(window, Validity) and time is None:
        raise CallError("a window needs a time column", hint='time="ts"')
