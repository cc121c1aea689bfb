"""Everything that comes before a job's query starts: `run` goes on from here, `explain` stops here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamjoin as sj
from streamjoin import CallError
from streamjoin.api import (
    buckets_by_default,
    buckets_of,
    check_goes_on,
    check_memory_is_used,
    memory_by_default,
    memory_differs,
    was_finished,
)
from streamjoin.cli.arguments import Format, by_name, for_all_or_by_name
from streamjoin.cli.bad_rows import check_bad_rows, good_part
from streamjoin.cli.ending import Ending
from streamjoin.cli.job import QueryOptions, check_names, load_job, run_job
from streamjoin.cli.kept import kept_format, kept_shapes
from streamjoin.cli.lanes import as_input, lanes_by_stream, last, shapes_of_empty
from streamjoin.cli.local_spark import local_spark
from streamjoin.cli.output import check_places, check_unwritten
from streamjoin.cli.replay import Replay, check_no_replay
from streamjoin.cli.tables import UNKNOWN, Shape, kind_of, named_paths, read_stream, read_strictly, read_table


@dataclass(frozen=True)
class Asked:
    """A command, read and checked as far as that goes without Spark."""

    job: Path
    streams: Mapping[str, Path]
    tables: Mapping[str, Path]
    out: Path | None
    checkpoint: Path | None
    kind: Format | None
    ending: Ending
    files_per_batch: int | None
    replay: Replay | None
    query: QueryOptions
    schemas: Mapping[str, str]
    bad_rows: Path | None
    master: str | None
    buckets: int | None
    memory: str | None = None
    lanes: Mapping[str, Mapping[str, Path]] = field(default_factory=dict)

    @staticmethod
    def of(
        job: Path,
        stream: list[str] | None,
        table: list[str] | None,
        out: Path | None,
        checkpoint: Path | None,
        kind: Format | None,
        available_now: bool,
        finish: bool,
        files_per_batch: int | None,
        trigger: str | None,
        arrival: str | None,
        arrival_interval: str | None,
        time: list[str] | None,
        lateness: list[str] | None,
        schema: list[str] | None,
        bad_rows: Path | None,
        master: str | None,
        buckets: int | None,
        memory: str | None = None,
        lane: list[str] | None = None,
        batch_seconds: float | None = None,
    ) -> Asked:
        """From the options as they were typed."""
        lanes = lanes_by_stream(lane)
        check_lanes(lanes, batch_seconds, arrival=arrival, bad_rows=bad_rows, files_per_batch=files_per_batch)
        inputs, tables = named_paths([*(stream or []), *(table or [])]), named_paths(table or [])
        if twice := inputs.keys() & lanes.keys():
            raise CallError(f"the input {min(twice)!r} was given twice, with lanes and without", hint="leave one out")
        schemas = by_name(schema, "--schema", 'R="k string, v int"')
        for name in schemas:
            if name not in inputs and name not in lanes:
                raise CallError(f"--schema names an input {name!r}, which was not given", hint=f"add {name}=PATH")
        replay = Replay.of(
            arrival, arrival_interval, files_per_batch=files_per_batch, trigger=trigger, bad_rows=bad_rows
        )
        return Asked(
            job,
            {name: path for name, path in inputs.items() if name not in tables},
            tables,
            out,
            checkpoint,
            kind,
            Ending(available_now or replay is not None, finish, trigger),  # a replay ends with its files
            files_per_batch,
            replay,
            QueryOptions(for_all_or_by_name(time, "--time"), for_all_or_by_name(lateness, "--lateness")),
            schemas,
            bad_rows,
            master,
            buckets,
            memory,
            lanes,
        )

    @property
    def inputs(self) -> dict[str, Path]:
        """All inputs by name; lanes as inputs of their own."""
        lanes = {as_input(name, lane): path for name, own in self.lanes.items() for lane, path in own.items()}
        return {**self.streams, **self.tables, **lanes}

    @property
    def names(self) -> list[str]:
        """The names of all inputs as the job knows them."""
        return [*self.streams, *self.tables, *self.lanes]


@dataclass(frozen=True)
class Ready:
    """A job's frame, and what it is made from: streams with the rows that do not fit, and the shapes of all inputs."""

    spark: Any
    frame: Any
    streams: Mapping[str, Any]
    shapes: Mapping[str, Shape]
    kind: str  # the format of the results
    over: bool  # the query of the checkpoint was finished


def prepare(asked: Asked, *, starts: bool, bytes_per_batch: int | None = None) -> Ready:
    """Read the inputs, call the job, and see that its frame can go on from the checkpoint.

    `starts`: the query starts afterwards, so what it needs is made; otherwise nothing is written. `bytes_per_batch`:
    what a micro-batch may take of the last lanes.
    """
    # Everything that can be wrong without Spark is found before it starts.
    known = known_shapes(asked)
    kinds = {name: kind_of(path, known.get(name, UNKNOWN)) for name, path in asked.inputs.items()}
    check_bad_rows(asked.bad_rows, {name: kinds[name] for name in asked.streams})
    kind = output_format(asked)
    if asked.out is not None and asked.checkpoint is not None:
        check_places(asked.out, asked.checkpoint)
    function = load_job(asked.job, asked.query)
    check_names(function, asked.names)
    spark = local_spark(asked.master, asked.buckets)
    check_master(spark, asked.master)
    place = None if asked.checkpoint is None else str(asked.checkpoint.resolve())
    over = place is not None and was_finished(spark, place)
    if over and asked.out is not None and asked.checkpoint is not None:
        # A command that was stopped while it wrote what was held goes on there; the query itself is over.
        check_unwritten(asked.out, asked.checkpoint, finish=asked.ending.finish)
    begun = sj.checkpoint(place, spark) if place is not None and not over else None
    buckets = None if begun is None else begun.buckets
    check_buckets(asked, buckets)
    streams = read_streams(spark, asked, known, starts=starts)
    frames = {name: good_part(frame) for name, frame in streams.items()}
    frames |= {name: read_table(spark, path, known.get(name, UNKNOWN)) for name, path in asked.tables.items()}
    parts = read_lanes(spark, asked, known, bytes_per_batch)
    frames |= {name: sj.lanes(**own) for name, own in parts.items()}
    with buckets_by_default(spark, asked.buckets or buckets), memory_by_default(spark, asked.memory):
        frame = run_job(function, spark, frames)
    if asked.buckets is not None and buckets_of(frame) not in (None, asked.buckets):
        raise CallError(
            f"--buckets {asked.buckets} is for a job that does not say it, and {function.__name__} has "
            f"buckets={buckets_of(frame)}",
            hint="leave one of the two out",
        )
    if asked.memory is not None and memory_differs(frame, asked.memory):
        raise CallError(
            f"--memory {asked.memory!r} is for a job that does not say it, and {function.__name__} has another memory=",
            hint="leave one of the two out",
        )
    if asked.memory is not None:
        check_memory_is_used(frame)
    if asked.streams or asked.lanes:
        asked.ending.check(frame, function.__name__)
    if begun is not None:
        check_goes_on(frame, begun)
    read = {name: frame for name, frame in frames.items() if name not in parts}
    read |= {as_input(name, lane): frame for name, own in parts.items() for lane, frame in own.items()}
    shapes = {name: Shape(kinds[name], each.schema) for name, each in read.items()}
    return Ready(spark, frame, streams, shapes, kind, over)


def output_format(asked: Asked) -> str:
    """The format of the results, which a query keeps: no reader could read a folder of two."""
    begun = kept_format(asked.checkpoint)
    if asked.kind is not None and begun is not None and asked.kind != begun:
        raise CallError(
            f"--format is {asked.kind}, and the query of {asked.checkpoint} writes {begun}",
            hint="leave --format out: a query keeps its own; or begin anew, with another --checkpoint and --out",
        )
    return asked.kind or begun or "parquet"


def read_streams(spark: Any, asked: Asked, known: Mapping[str, Shape], *, starts: bool) -> dict[str, Any]:
    """The streams, from files as they come, or cut by arrival."""
    if asked.replay is None:
        check_no_replay(asked.checkpoint)
    elif starts and asked.checkpoint is not None:
        whole = {name: read_strictly(spark, path, known.get(name, UNKNOWN)) for name, path in asked.streams.items()}
        return asked.replay.streams(spark, whole, asked.streams, asked.checkpoint, asked.schemas)
    streams = {
        name: read_stream(spark, path, asked.files_per_batch, known.get(name, UNKNOWN), bad_rows=bool(asked.bad_rows))
        for name, path in asked.streams.items()
    }
    if asked.replay is not None:
        asked.replay.ticks(streams)
    return streams


def read_lanes(
    spark: Any, asked: Asked, known: Mapping[str, Shape], bytes_per_batch: int | None
) -> dict[str, dict[str, Any]]:
    """Of each stream with lanes, its lanes; only the last is limited."""
    found: dict[str, dict[str, Any]] = {}
    for name, paths in asked.lanes.items():
        for lane, path in paths.items():
            shape = known.get(as_input(name, lane), UNKNOWN)
            if lane == last(paths):
                files = asked.files_per_batch
                frame = read_stream(spark, path, files, shape, bytes_per_batch=bytes_per_batch)
            else:
                frame = read_stream(spark, path, None, shape)
            found.setdefault(name, {})[lane] = frame
    return found


def check_lanes(lanes: Mapping[str, Any], batch_seconds: float | None, **others: Any) -> None:
    """Refuse what lanes cannot be combined with."""
    if batch_seconds is not None and not lanes:
        raise CallError(
            "--batch-seconds says how much is taken of a normal lane, and there are no lanes",
            hint="--lane R:urgent=PATH --lane R:normal=PATH",
        )
    if batch_seconds is not None and others["files_per_batch"] is not None:
        raise CallError("--batch-seconds and --files-per-batch both limit a lane", hint="leave one of them out")
    for option, why in (
        ("arrival", "a replay is cut by arrival before it starts, and lanes are for what waits while a query runs"),
        ("bad_rows", "rows that do not fit are put aside by a query of its own, which reads whole streams, not lanes"),
    ):
        if lanes and others[option] is not None:
            raise CallError(f"--{option.replace('_', '-')} beside --lane: {why}", hint="leave one of the two out")


def known_shapes(asked: Asked) -> dict[str, Shape]:
    """What is known of the inputs: what the query has begun with, and before that what the command says."""
    known = kept_shapes(asked.checkpoint)
    for name, columns in asked.schemas.items():
        for each in [as_input(name, lane) for lane in asked.lanes.get(name, ())] or [name]:
            known[each] = Shape(known.get(each, UNKNOWN).kind, columns)
    for stream, lanes in asked.lanes.items():
        known |= shapes_of_empty(stream, lanes, known)
    return known


def check_master(spark: Any, master: str | None) -> None:
    """Refuse a session that runs elsewhere."""
    running = getattr(spark, "sparkContext", None)
    if master is not None and running is not None and running.master != master:
        raise CallError(f"--master is {master}, and there is a session already, on {running.master}")


def check_buckets(asked: Asked, begun: int | None) -> None:
    """Refuse another number of buckets than a query was begun with."""
    if None not in (asked.buckets, begun) and asked.buckets != begun:
        raise CallError(
            f"--buckets is {asked.buckets}, and the query of {asked.checkpoint} was begun with {begun}, into which its "
            "state is cut",
            hint="leave --buckets out: a query keeps its own",
        )
