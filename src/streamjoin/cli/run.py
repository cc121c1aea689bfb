"""`streamjoin run`: a job over streams of files, once over all that is there or for ever."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.console import Console
from rich.filesize import decimal

import streamjoin as sj
from streamjoin.algebra import TimeAxis
from streamjoin.api import EndedBatches, made_by, uses_timers, was_finished
from streamjoin.cli.complaint import complaints
from streamjoin.cli.failure import readable_failures
from streamjoin.cli.interrupts import Interrupts
from streamjoin.cli.job import JobFile, QueryOptions, TimeOption, check_names, load_job, run_job
from streamjoin.cli.local_spark import local_spark
from streamjoin.cli.output import check_places, check_unwritten, start_query, write_held
from streamjoin.cli.screen import Screen, Totals
from streamjoin.cli.tables import format_of, named_paths, read_stream, read_table

POLL_SECONDS: Final = 0.2

Format = Literal["parquet", "csv", "json"]


def run(
    job: JobFile,
    stream: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=PATH",
            help="A stream: the parameter's name, and a folder to which files of Parquet, CSV or JSON are added.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder that results are written to.")],
    checkpoint: Annotated[Path, typer.Option(help="The folder in which the query remembers where it is.")],
    table: Annotated[
        list[str] | None, typer.Option(metavar="NAME=PATH", help="An input that is complete: a file or a folder.")
    ] = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Stop when everything that is there has been read.")
    ] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="Then also write what is still held. The query is over after that.")
    ] = False,
    kind: Annotated[Format, typer.Option("--format", help="The format of the results.")] = "parquet",
    files_per_batch: Annotated[
        int | None, typer.Option(min=1, help="At most so many new files of each stream in a micro-batch.")
    ] = None,
    trigger: Annotated[
        str | None, typer.Option(help='How often to look for new files: "5 seconds". Without it: all the time.')
    ] = None,
    time: TimeOption = "ts",
    lateness: Annotated[
        str | None,
        typer.Option(help='Of a CQL query: how late rows may be, "10 seconds", or a number.'),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="When Spark fails, show all that it says.")] = False,
) -> None:
    """Run a job over streams of files. Ctrl-C stops it after the micro-batch that is running."""
    with complaints(), readable_failures(verbose=verbose):
        # Everything that can be wrong without Spark is found before it starts.
        ending = Ending(available_now, finish, trigger)
        streams, tables = named_paths([*stream, *(table or [])]), set(named_paths(table or []))
        for path in streams.values():
            format_of(path)
        check_places(out, checkpoint)
        function = load_job(job, QueryOptions(time, lateness))
        check_names(function, streams)
        spark = local_spark()
        frames = {
            name: read_table(spark, path) if name in tables else read_stream(spark, path, files_per_batch)
            for name, path in streams.items()
        }
        frame = run_job(function, spark, frames)
        ending.check(frame, function.__name__)
        # A command that was stopped while it wrote what was held goes on there; the query itself is over.
        over = was_finished(spark, str(checkpoint.resolve()))
        if over:
            check_unwritten(out, checkpoint, finish=ending.finish)
        with Interrupts() as interrupts, Screen(Console()) as screen:
            if not over:
                query = start_query(frame, out, kind, checkpoint, ending.trigger_of_spark)
                watch(query, screen, interrupts)
            held = None
            if ending.finish and not interrupts.count:
                screen.now("writing what is still held")
                held = write_held(spark, sj.finish(str(checkpoint.resolve()), spark), out, kind)
        for line in summary(screen.totals, out, kind, checkpoint, held):
            screen.print(line)
        if ending.finish and held is None:
            screen.print("Stopped before its end, and so not finished: the same command goes on.")


@dataclass(frozen=True)
class Ending:
    """When a query looks for rows, and when it ends."""

    available_now: bool
    finish: bool
    trigger: str | None

    def __post_init__(self) -> None:
        if self.finish and not self.available_now:
            raise sj.CallError(
                "--finish is for a query that comes to an end, and this one would run for ever",
                hint="add --available-now",
            )
        if self.trigger is not None and self.available_now:
            raise sj.CallError(
                "--trigger says how often a query looks for files, and with --available-now it looks once",
                hint="leave one of the two out",
            )
        if self.trigger is not None and TimeAxis.TIMESTAMP.ticks(self.trigger, "--trigger") < 0:
            raise sj.CallError(f"--trigger must not be negative, got {self.trigger!r}")

    @property
    def trigger_of_spark(self) -> dict[str, Any]:
        """The same for `DataStreamWriter.trigger`; empty for Spark's default, without a pause."""
        if self.available_now:
            return {"availableNow": True}
        if self.trigger is None:
            return {}
        return {"processingTime": f"{TimeAxis.TIMESTAMP.ticks(self.trigger, '--trigger')} microseconds"}

    def check(self, frame: Any, job: str) -> None:
        """Refuse a frame that cannot end like this."""
        if not frame.isStreaming:
            raise sj.CallError(
                f"{job} returned a frame that is no stream, so there is nothing to keep running",
                hint="use its --stream inputs, or write the frame as a batch",
            )
        if self.available_now and uses_timers(frame):
            raise sj.CallError(
                f"the join of {job} has timers=True, and a query with timers never ends by itself",
                hint="leave out --available-now and stop it with Ctrl-C, or leave out timers",
            )
        if self.finish and made_by(frame) is None:
            raise sj.CallError(
                f"--finish writes rows as the call holds them, and {job} changes them afterwards",
                hint="return the joined frame itself, or call sj.finish(checkpoint) and do the same to what it returns",
            )


def watch(query: Any, screen: Screen, interrupts: Interrupts) -> None:
    """Show a query's micro-batches until it ends, or an interrupt ends it between two of them."""
    batches = EndedBatches(query)
    while True:
        over = query.awaitTermination(POLL_SECONDS)  # an error of the query is raised here
        before = batches.last
        for figures in batches.new():
            screen.show(figures)
        if over:
            return
        status = query.status
        screen.now("stopping after this micro-batch" if interrupts.count else status["message"])
        # Spark may have begun the next micro-batch when we learn that one has ended. It is then done again at the
        # next start, from the same files; nothing of it has left.
        between = batches.last != before or not status["isTriggerActive"]
        if interrupts.count > 1 or (interrupts.count and between):
            query.stop()


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
