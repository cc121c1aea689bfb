"""A query over frames as it was called: everything that can be wrong with it is found here, before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from streamjoin.algebra import Emit, Grace, InvalidPolicy, LatePolicy, Method, OutputMode, Validity
from streamjoin.algebra.policy import one_of
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.naming import CHANGE
from streamjoin.plan.relation import Query, Relation, Stream, streams_of
from streamjoin.plan.stored import to_stored
from streamjoin.spark.build import default_buckets
from streamjoin.spark.event_query import EventQuery, event_join
from streamjoin.spark.explain import QueryPlan, remember
from streamjoin.spark.frames import InputFrame, arrow_type
from streamjoin.spark.lifetimes_run import QueryRun
from streamjoin.state.holders import MOST_BUCKETS

TIME = "_time"


def arrow_schema(frame: DataFrame, what: str) -> pa.Schema:
    """The schema of a frame as plans see it."""
    if not hasattr(frame, "mapInArrow"):
        raise CallError(f"{what} must be a Spark DataFrame, got {type(frame).__name__}")
    return pa.schema([pa.field(each.name, arrow_type(each.dataType, each.name, what)) for each in frame.schema.fields])


@dataclass(frozen=True)
class QueryCall:
    """A query and its options. `lateness` is a policy, or one per stream by name."""

    frames: Mapping[str, DataFrame]
    query: Query
    written: Relation
    lateness: Any = None
    late: str = "drop"
    invalid: str = "fail"
    emit: str = "eager"
    output: str = "append"
    method: str = "direct"
    validity: tuple[str, str] = ("valid_from", "valid_to")
    buckets: int | None = None

    def run(self) -> DataFrame:
        """The result as a frame, lazily."""
        relation = self.query.relation
        self._check_lateness()
        if event_join(relation) is not None:
            self._check_events()
            options = {"late": self.late, "emit": self.emit, "output": self.output, "buckets": self.buckets}
            frame, name = EventQuery(self.frames, relation, self.lateness, options).run()
        else:
            call = self._call()
            self._check_one_kind(relation)
            slack = {leaf.source: self._slack(leaf) for leaf in streams_of(relation)}
            run = QueryRun(
                self.frames, slack, self._buckets(), one_of(self.late, LatePolicy, "late"),  # type: ignore[arg-type]
                one_of(self.invalid, InvalidPolicy, "invalid"),  # type: ignore[arg-type]
                one_of(self.emit, Emit, "emit") == "ordered", self._method(), call=call,
            )  # fmt: skip
            self._check_modes()
            self._check_names(relation)
            frame = leaving(run, self.query, self.output, self.validity)
            self._check_something_waits(run, frame)
            name = call["name"]
        return remember(frame, QueryPlan(self.query, self.written), name)

    def _call(self) -> dict[str, Any]:
        """What is stored of the query beside its state: enough to end it without the program."""
        used = {leaf.source for leaf in streams_of(self.query.relation)}
        call = {
            "query": to_stored(self.query),
            "schemas": {name: self.frames[name].schema.json() for name in sorted(used)},
            "options": {
                "buckets": self._buckets(), "late": self.late, "invalid": self.invalid,
                "emit": self.emit, "output": self.output, "method": self._method(), "validity": list(self.validity),
            },
        }  # fmt: skip
        return {"name": hashlib.sha256(json.dumps(call).encode()).hexdigest(), **call}

    def _method(self) -> Method:
        """A changelog is what plus and minus tuples say."""
        method = one_of(self.method, Method, "method")
        return "negative" if self.output == "changelog" else method  # type: ignore[return-value]

    def _check_modes(self) -> None:
        if self.late in ("join", "output"):
            raise UnsupportedError(
                f'late="{self.late}" is for joins of two frames: a row of a query may be part of many results',
                hint='use late="drop" (counted in sj.progress) or late="fail"',
            )
        if self.invalid == "output":
            raise UnsupportedError(
                'invalid="output" is for joins of two frames: a query has no column for such rows',
                hint='use invalid="fail" or invalid="drop"',
            )
        if one_of(self.output, OutputMode, "output") == "changelog":
            if self.emit == "ordered":
                raise UnsupportedError(
                    'a changelog leaves as things become known, not with emit="ordered"', hint="order it by _time"
                )
            if self.query.to_stream is not None:
                raise CallError(
                    f"{self.query.to_stream.upper()} gives events, which do not change afterwards",
                    hint='leave out output="changelog"',
                )

    def _check_something_waits(self, run: QueryRun, frame: DataFrame) -> None:
        """Refuse what only an operator with state could do."""
        if run.stages:
            return
        if self.emit == "ordered":
            raise UnsupportedError(
                'emit="ordered" of a query that keeps nothing: its rows pass as they come', hint="sort them afterwards"
            )
        if frame.isStreaming and self.late == "fail":
            raise CallError(
                'late="fail" in a query that keeps nothing: no row is too late for it', hint='leave out late="fail"'
            )

    def _check_events(self) -> None:
        if self.invalid != "fail":
            raise CallError(
                f"invalid={self.invalid!r} is for windows: a row without time takes nobody in a join of events",
                hint="leave it out",
            )
        if one_of(self.method, Method, "method") != "direct":
            raise CallError("a join of events has no lifetimes to manage", hint="leave out method=")

    def _check_names(self, relation: Relation) -> None:
        added = [TIME] if self.query.to_stream is not None else list(self.validity)
        added = [CHANGE, TIME] if self.output == "changelog" else added
        taken = {name.lower() for name in relation.columns}
        for name in added:
            if name.lower() in taken:
                raise CallError(
                    f"the result would have two columns {name!r}: the query's, and the one that says when it holds",
                    hint='rename it with AS, or name the validity with validity=("from", "to")',
                )

    def _check_one_kind(self, relation: Relation) -> None:
        kinds = {leaf.source: bool(self.frames[leaf.source].isStreaming) for leaf in streams_of(relation)}
        if len(set(kinds.values())) > 1:
            table = next(name for name, streaming in kinds.items() if not streaming)
            raise UnsupportedError(
                f"{table} is a static frame beside streaming ones, which queries over several operators cannot do yet",
                hint="join the two with sj.join, which takes a static side, or make it a stream",
            )

    def _check_lateness(self) -> None:
        for name in self.lateness if isinstance(self.lateness, Mapping) else ():
            if name not in self.frames:
                raise CallError(
                    f"lateness names a stream {name!r}, and the query has none of that name",
                    hint=f"there is {', '.join(self.frames)}",
                )

    def _slack(self, stream: Stream) -> int | None:
        """How late the rows of a stream may be; None for a batch."""
        part = InputFrame(0, self.frames[stream.source])
        window = stream.window
        column = part.resolve(window.start if isinstance(window, Validity) else stream.time)
        axis = part.time_axis(column)
        given = self.lateness.get(stream.source) if isinstance(self.lateness, Mapping) else self.lateness
        if given is not None and not isinstance(given, Grace):
            raise CallError(f"lateness must be a policy, got {given!r}", hint='lateness=sj.Grace("5 seconds")')
        resolved = None if given is None else given.resolve(axis)
        if not part.streaming:
            return None
        if resolved is not None:
            assert isinstance(resolved.delay, int)
            return resolved.delay
        delay = part.watermark_delay(column)
        if delay is not None:
            return delay * 1000
        raise CallError(
            f"nothing says how late rows of stream {stream.source} may be, and guessing would lose rows",
            hint=f'give lateness=sj.Grace("10 seconds"), or use withWatermark("{column}", "10 seconds")',
        )

    def _buckets(self) -> int:
        if self.buckets is None:
            return default_buckets(next(iter(self.frames.values())))
        if isinstance(self.buckets, bool) or not isinstance(self.buckets, int) or self.buckets < 1:
            raise CallError(f"buckets must be at least 1, got {self.buckets!r}")
        if self.buckets > MOST_BUCKETS:
            raise UnsupportedError(f"a query has at most {MOST_BUCKETS} buckets, got {self.buckets}")
        return self.buckets


def leaving(run: QueryRun, query: Query, output: str, validity: tuple[str, str]) -> DataFrame:
    """What leaves of a query."""
    if query.to_stream is not None:
        return run.stream_of(query.relation, query.to_stream, TIME)
    if output == "changelog":
        return run.changelog(query.relation, CHANGE, TIME)
    return run.run(query.relation, validity)
