"""`streamjoin run`: a job over streams of files, once over all that is there or for ever."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any, Final

from rich.console import Console
from rich.filesize import decimal

import streamjoin as sj
from streamjoin import CallError
from streamjoin.api import EndedBatches
from streamjoin.cli import arguments
from streamjoin.cli.bad_rows import start_bad_rows
from streamjoin.cli.complaint import complaints
from streamjoin.cli.failure import readable_failures
from streamjoin.cli.interrupts import Interrupts
from streamjoin.cli.kept import keep_shapes
from streamjoin.cli.lanes import Measuring
from streamjoin.cli.output import fill_log, start_query, write_held
from streamjoin.cli.preparing import Asked, prepare
from streamjoin.cli.reported import Reported, check_report
from streamjoin.cli.screen import Screen, Totals

POLL_SECONDS: Final = 0.2


def run(
    job: arguments.JobFile,
    out: Annotated[Path, arguments.OUT],
    checkpoint: Annotated[Path, arguments.CHECKPOINT],
    stream: Annotated[list[str] | None, arguments.STREAM] = None,
    table: arguments.Tables = None,
    lane: arguments.Lanes = None,
    batch_seconds: arguments.BatchSeconds = None,
    available_now: arguments.AvailableNow = False,
    finish: arguments.Finish = False,
    kind: arguments.OutputFormat = None,
    files_per_batch: arguments.FilesPerBatch = None,
    trigger: arguments.Trigger = None,
    arrival: arguments.Arrival = None,
    arrival_interval: arguments.ArrivalInterval = None,
    time: arguments.Times = None,
    lateness: arguments.Lateness = None,
    schema: arguments.Schemas = None,
    bad_rows: arguments.BadRows = None,
    master: arguments.Master = None,
    buckets: arguments.Buckets = None,
    memory: arguments.Memory = None,
    report: arguments.Report = None,
    live: arguments.Live = False,
    live_port: arguments.LivePort = None,
    verbose: arguments.Verbose = False,
) -> None:
    """Run a job over streams of files. Ctrl-C stops it after the micro-batch that is running."""
    with complaints(job), readable_failures(verbose=verbose):
        asked = Asked.of(
            job, stream, table, out, checkpoint, kind, available_now, finish, files_per_batch, trigger, arrival,
            arrival_interval, time, lateness, schema, bad_rows, master, buckets, memory, lane, batch_seconds,
        )  # fmt: skip
        if not asked.streams and not asked.lanes:
            raise CallError(
                "run reads at least one stream", hint="--stream R=PATH, or lanes of it: --lane R:urgent=PATH"
            )
        check_report(report, live=live, port=live_port)
        ready = prepare(asked, starts=True)
        spark, ending = ready.spark, asked.ending
        measuring = Measuring.of(batch_seconds, checkpoint, spark, asked.lanes, asked.inputs, ready.shapes)
        with (
            Interrupts() as interrupts,
            Screen(Console()) as screen,
            Reported(report, live, live_port, settings_of(asked), screen.print) as reported,
        ):
            if not ready.over:
                keep_shapes(checkpoint, ready.shapes, ready.kind)
                fill_log(out, checkpoint)
                if measuring is not None:
                    screen.print(measuring.describe())
                    ready = prepare(asked, starts=True, bytes_per_batch=measuring.limit)
                query = start_query(ready.frame, out, ready.kind, checkpoint, ending.trigger_of_spark)
                reported.follow(query, spark)
                beside = None
                if bad_rows is not None:
                    beside = start_bad_rows(ready.streams, bad_rows, checkpoint, ending.trigger_of_spark)
                while not watch(query, screen, interrupts, beside, measuring) and measuring is not None:
                    screen.print(measuring.describe())
                    ready = prepare(asked, starts=True, bytes_per_batch=measuring.limit)
                    query = start_query(ready.frame, out, ready.kind, checkpoint, ending.trigger_of_spark)
                    reported.follow(query, spark)
            held = None
            if ending.finish and not interrupts.count:
                screen.now("writing what is still held")
                held = write_held(spark, sj.finish(str(checkpoint.resolve()), spark), out, ready.kind)
                reported.finished(held)
        for line in summary(screen.totals, out, ready.kind, checkpoint, held):
            screen.print(line)
        if bad_rows is not None:
            screen.print(f"bad rows so far: {count_rows(spark, bad_rows):,}  ({bad_rows})")
        if ending.finish and held is None:
            screen.print("Stopped before its end, and so not finished: the same command goes on.")


def settings_of(asked: Asked) -> dict[str, str]:
    """What a command says of a query, for its report."""
    said = {
        "job": str(asked.job),
        "streams": ", ".join(f"{name}={path}" for name, path in asked.inputs.items()),
        "output": str(asked.out),
        "checkpoint": str(asked.checkpoint),
        "trigger": asked.ending.trigger or ("all that is there, once" if asked.ending.available_now else "at once"),
    }
    if asked.files_per_batch is not None:
        said["files per micro-batch"] = str(asked.files_per_batch)
    return said


def count_rows(spark: Any, folder: Path) -> int:
    """How many rows of JSON a folder has, as Spark's log of it says."""
    return int(spark.read.schema("row string").json(str(folder.resolve())).count()) if folder.is_dir() else 0


def watch(
    query: Any, screen: Screen, interrupts: Interrupts, beside: Any = None, measuring: Measuring | None = None
) -> bool:
    """Show a query's micro-batches until it ends, or an interrupt ends it between two of them; whether it was that.

    A query `beside` it ends with it: by itself when all has been read, or now, to go on at the next start. If enough is
    `measuring` for another limit of a lane, it is stopped between two micro-batches, to go on with that.
    """
    try:
        over = _watch(query, screen, interrupts, beside, measuring)
        if beside is not None and not interrupts.count:
            beside.awaitTermination()
        return over
    finally:
        for each in (query, beside):
            if each is not None and each.isActive:
                each.stop()


def _watch(query: Any, screen: Screen, interrupts: Interrupts, beside: Any, measuring: Measuring | None) -> bool:
    batches = EndedBatches(query)
    while True:
        if beside is not None and beside.exception() is not None:
            beside.awaitTermination()  # raises it
        over = query.awaitTermination(POLL_SECONDS)  # an error of the query is raised here
        before = batches.last
        for figures in batches.new():
            screen.show(figures)
        if batches.last != before:
            screen.warn(warnings_of(query))
        if over:
            return True
        if measuring is not None and batches.last != before:
            enough = measuring.enough(query.recentProgress)
            screen.tell(measuring.warning)
            if enough:
                return False
        status = query.status
        screen.now("stopping after this micro-batch" if interrupts.count else status["message"])
        # Spark may have begun the next micro-batch when we learn that one has ended. It is then done again at the
        # next start, from the same files; nothing of it has left.
        between = batches.last != before or not status["isTriggerActive"]
        if interrupts.count > 1 or (interrupts.count and between):
            query.stop()


def warnings_of(query: Any) -> list[str]:
    """What `sj.progress` warns of: rows that starve behind urgent ones."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sj.progress(query)
    return [str(each.message) for each in caught if each.category is UserWarning]


def summary(totals: Totals, out: Path, kind: str, checkpoint: Path, held: int | None) -> list[str]:
    """What a run has done, in a few lines; `held` is how many rows finishing it has written."""
    if not totals.batches and held is None:
        return ["No micro-batch: there was nothing new to read."]
    rows_out = totals.rows_out + (held or 0)
    lines = [
        f"{totals.batches:,} micro-batch{'' if totals.batches == 1 else 'es'}, {totals.seconds:.1f} s: "
        f"{totals.rows_in:,} rows in, {rows_out:,} rows out, {totals.late:,} late"
    ]
    if held is not None:
        lines.append(f"finished: {held:,} of them had still been held; the query is over")
    else:
        lines.append(
            f"kept: {totals.state_rows:,} rows, {decimal(totals.state_bytes)}  (streamjoin state {checkpoint})"
        )
    return [*lines, f"output: {out}  ({kind})"]
