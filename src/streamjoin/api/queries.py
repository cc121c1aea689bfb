"""Queries over frames: from CQL text, or from a call of an operator over lifetimes, to a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from streamjoin.algebra import Validity, Window
from streamjoin.algebra.policy import Nway, one_of
from streamjoin.errors import CallError, UnknownColumnError, UnsupportedError
from streamjoin.language import parse_cql
from streamjoin.plan.multi_join import has_many, joins_at_once, left_in_a_chain, meet_in_one_place
from streamjoin.plan.picture import describe_predicate
from streamjoin.plan.relation import Query, Relation, Stream, streams_of
from streamjoin.plan.rules import optimise
from streamjoin.plan.types import arrow_schema
from streamjoin.spark.calls.inputs import Input, inputs_of
from streamjoin.spark.calls.options import Options, per_input, per_source
from streamjoin.spark.calls.pairs import two_frames
from streamjoin.spark.calls.tree import TreeCall


def run_cql(text: str, frames: Mapping[str, DataFrame], time: Any, args: Any, nway: str, options: Options) -> DataFrame:
    """The result of a CQL query over frames by name."""
    way = one_of(nway, Nway, "nway")
    inputs = inputs_of(frames, options, "stream")
    given = per_source(time, list(inputs), "time", None)
    times = {name: _time_of_stream(part, given[name], isinstance(time, Mapping)) for name, part in inputs.items()}
    schemas = {name: arrow_schema(part.fields) for name, part in inputs.items()}
    query = parse_cql(text, schemas, times=times, args=args)
    _check_times_are_read(query.relation, time, {name for name, part in inputs.items() if times[name] in part.hidden})
    relation = optimise(query.relation, schemas)
    if way == "at once":
        relation = _every_chain_at_once(relation, options)
    elif way == "auto":
        relation = chains_at_once(relation, schemas)
    best = Query(relation, query.to_stream)
    return TreeCall(inputs, best, query.relation, options).run()


def chains_at_once(relation: Relation, schemas: Mapping[str, pa.Schema]) -> Relation:
    """The tree with those chains of inner joins as one join of many whose rows can meet without many copies."""
    types = {
        name: schemas[leaf.source].field(column).type for leaf in streams_of(relation) for name, column in leaf.reads
    }
    return joins_at_once(relation, lambda join: meet_in_one_place(join, types))


def _every_chain_at_once(relation: Relation, options: Options) -> Relation:
    """The same with all chains, wherever their rows meet; it is refused where it cannot be."""
    if options.method == "negative" or options.output == "changelog":
        raise UnsupportedError(
            'nway="at once" of plus and minus tuples: these are joined two by two',
            hint='leave out nway, or method="negative" and output="changelog"',
        )
    whole = joins_at_once(relation)
    left = left_in_a_chain(whole)
    if left:
        apart = " and ".join(map(describe_predicate, left[0].predicates))
        raise UnsupportedError(
            f'nway="at once", and {apart} compares columns of several streams with another: only their join has them',
            hint='leave out nway, or nway="cascade"',
        )
    if not has_many(whole):
        raise CallError(
            'nway="at once" says how a chain of inner joins of three streams or more runs, and this query has none',
            hint="leave out nway",
        )
    return whole


def refuse_sorted_runs(streams: Mapping[str, Any]) -> None:
    """Options of a join that a query does not take would be streams; say why it does not."""
    for name in ("algorithm", "merge"):
        if name in streams and not hasattr(streams[name], "mapInArrow"):
            raise UnsupportedError(
                f"{name}={streams[name]!r} in a query: joins in sorted runs leave their results when runs are merged, "
                "nobody knows when, and operators above them would wait for it",
                hint="use sj.join; or memory=, with which every join of a query keeps what does not fit in files",
            )


def _time_of_stream(part: Input, given: Any, by_name: bool) -> str | None:
    """The time column of a stream. One that is named for all streams need not be there in each."""
    if given is None:
        return None
    try:
        return part.time_column(given)
    except UnknownColumnError:
        if by_name:
            raise
        return None


def _check_times_are_read(relation: Relation, time: Any, computed: set[str]) -> None:
    """Refuse a time that is no column of a frame where no window reads it: it would be accepted, and mean nothing."""
    leaves = streams_of(relation)
    read = {leaf.source for leaf in leaves if leaf.window is not None and leaf.time is not None}
    unread = (computed & {leaf.source for leaf in leaves}) - read
    if not unread or (read and not isinstance(time, Mapping)):
        return
    given = time[min(unread)] if isinstance(time, Mapping) else time
    raise CallError(
        f"time={given!r} is for windows, and this query has none that could read it",
        hint="an event join names columns, MATCH_CONDITION (R.ts >= S.ts): give the frame one more",
    )


class Frames:
    """The frames of an operator over lifetimes, each with its time and window. They have numbers for names."""

    def __init__(self, frames: Any, time: Any, window: Any, options: Options, what: str) -> None:
        frames = two_frames(frames)
        if not frames:
            raise CallError(f"{what} takes frames, got none", hint=f"sj.{what}(a, b, ...)")
        self.what, self.options = what, options
        self.by_name = inputs_of({str(number): frame for number, frame in enumerate(frames)}, options, "input")
        self.inputs = list(self.by_name.values())
        self.times, self.windows = (
            per_input(option, len(frames), name) for option, name in ((time, "time"), (window, "window"))
        )

    def run(self, relation: Relation, *, reordered: bool = False) -> DataFrame:
        """The result of a tree over the frames."""
        return TreeCall(self.by_name, Query(relation), relation, self.options, reordered=reordered).run()

    def streams(self) -> tuple[Stream, ...]:
        """All frames as relations."""
        return tuple(self.stream(number) for number in range(len(self.inputs)))

    def two(self) -> tuple[Stream, Stream]:
        """Both frames as relations."""
        if len(self.inputs) != 2:
            raise CallError(f"{self.what} takes two frames, got {len(self.inputs)}", hint=f"sj.{self.what}(a, b, ...)")
        one, two = self.streams()
        return one, two

    def stream(self, number: int, reads: Mapping[str, str] | None = None) -> Stream:
        """A frame as a relation: all columns but those that say when a row is valid, or these under their names."""
        part, window, time = self.inputs[number], self.windows[number], self.times[number]
        check_window(window, time)
        if isinstance(window, Validity):
            when = [part.resolve(window.start), part.resolve(window.end)]
            window, time = Validity(*when), None
        else:
            time = part.time_column(time)
            part.time_axis(time)
            when = [time]
            window = part.with_groups(window)
        if reads is None:
            reads = {name: name for name in part.columns if name not in when}
        return Stream(str(number), tuple(reads.items()), time, window)


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
