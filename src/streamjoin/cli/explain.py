"""`streamjoin explain`: what a job's join will do, without doing it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import streamjoin as sj
from streamjoin.cli import arguments
from streamjoin.cli.complaint import complaints
from streamjoin.cli.failure import readable_failures
from streamjoin.cli.preparing import Asked, prepare
from streamjoin.cli.reported import check_report


def explain(
    job: arguments.JobFile,
    stream: Annotated[list[str] | None, arguments.STREAM] = None,
    table: arguments.Tables = None,
    lane: arguments.Lanes = None,
    batch_seconds: arguments.BatchSeconds = None,
    out: Annotated[Path | None, arguments.OUT] = None,
    checkpoint: Annotated[Path | None, arguments.CHECKPOINT] = None,
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
    """Show the plan of a job's join: operator, order, buckets, and how long rows are kept.

    Takes what `run` takes, and refuses what `run` would refuse, also a job that cannot go on from its checkpoint.
    Nothing is written, and no page is shown.
    """
    with complaints(job), readable_failures(verbose=verbose):
        asked = Asked.of(
            job, stream, table, out, checkpoint, kind, available_now, finish, files_per_batch, trigger, arrival,
            arrival_interval, time, lateness, schema, bad_rows, master, buckets, memory, lane, batch_seconds,
        )  # fmt: skip
        check_report(report, live=live, port=live_port, starts=False)
        ready = prepare(asked, starts=False)
        typer.echo(sj.explain(ready.frame))
        if stream or lane:
            typer.echo(f"output: {out or 'wherever --out says'}  ({ready.kind})")
