"""The options of a command that takes a job: those of `run`, and of `explain`, which tries them out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from streamjoin import CallError

Format = Literal["parquet", "csv", "json"]

JobFile = Annotated[
    Path,
    typer.Argument(
        help="A Python file with a function that takes frames and returns one, or a .cql file with a query."
    ),
]
STREAM = typer.Option(
    metavar="NAME=PATH",
    help="A stream: the parameter's name, and a folder to which files of Parquet, CSV or JSON are added.",
)
Tables = Annotated[
    list[str] | None, typer.Option(metavar="NAME=PATH", help="An input that is complete: a file or a folder.")
]
OUT = typer.Option(help="The folder that results are written to.")
CHECKPOINT = typer.Option(help="The folder in which the query remembers where it is.")
Lanes = Annotated[
    list[str] | None,
    typer.Option(
        "--lane",
        metavar="STREAM:LANE=PATH",
        help="A lane of a stream, the most urgent first. Its rows get a column priority; all but the last are urgent.",
    ),
]
BatchSeconds = Annotated[
    float | None,
    typer.Option(help="How long micro-batches shall take: measures how much they may take of the last lanes."),
]
AvailableNow = Annotated[
    bool, typer.Option("--available-now", help="Stop when everything that is there has been read.")
]
Finish = Annotated[
    bool, typer.Option("--finish", help="Then also write what is still held. The query is over after that.")
]
OutputFormat = Annotated[
    Format | None,
    typer.Option("--format", help="The format of the results; by default the one the query began with, or parquet."),
]
FilesPerBatch = Annotated[
    int | None, typer.Option(min=1, help="At most so many new files of each stream in a micro-batch.")
]
Trigger = Annotated[
    str | None, typer.Option(help='How often to look for new files: "5 seconds". Without it: all the time.')
]
Arrival = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Replay the files in the order in which their rows arrived: the column of all streams that says when.",
    ),
]
ArrivalInterval = Annotated[
    str | None,
    typer.Option(
        metavar="LENGTH",
        help='With --arrival: how much arrival makes a micro-batch, of all streams: "1 s", or a number.',
    ),
]
Times = Annotated[
    list[str] | None,
    typer.Option(metavar="[NAME=]COLUMN", help="Of a CQL query: the time column of its streams, or of one; else ts."),
]
Lateness = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]LENGTH",
        help='Of a CQL query: how late rows of its streams, or of one, may be: "10 seconds", or a number.',
    ),
]
Schemas = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COLUMNS", help='The columns of an input, R="k string, v int"; else what its files look like.'
    ),
]
BadRows = Annotated[
    Path | None,
    typer.Option(help="The folder that rows go to which do not fit their columns. Without it they end the query."),
]
Master = Annotated[str | None, typer.Option(help="Spark's master; by default all cores of this machine.")]
Buckets = Annotated[
    int | None,
    typer.Option(min=1, help="Into how many buckets a new query cuts its work; by default one for each core."),
]
Memory = Annotated[
    str | None,
    typer.Option(help='How much memory state may use in each Python process, "256 MB"; the rest goes to files.'),
]
Report = Annotated[
    Path | None,
    typer.Option(
        help="The HTML file that a report is written to at the end, also after an error; it needs no network."
    ),
]
Live = Annotated[
    bool, typer.Option("--live", help="While it runs, show the report on a page that only this machine can see.")
]
LivePort = Annotated[
    int | None, typer.Option(min=1, max=65535, help="The port of the live page; by default a free one.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="When Spark fails, show all that it says.")]


def by_name(options: Iterable[str] | None, option: str, example: str) -> dict[str, str]:
    """The values by name.

    >>> by_name(["R=k string, v int"], "--schema", 'R="k string"')
    {'R': 'k string, v int'}
    """
    values: dict[str, str] = {}
    for text in options or ():
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or not value.strip():
            raise CallError(f"{option} is written NAME=..., got {text!r}", hint=f"for example {option} {example}")
        if name in values:
            raise CallError(f"{option} was given twice for {name!r}")
        values[name] = value
    return values


def for_all_or_by_name(options: Iterable[str] | None, option: str) -> tuple[str | None, dict[str, str]]:
    """A value for all streams, where one is given, and values by name.

    >>> for_all_or_by_name(["10 seconds", "R=1 minute"], "--lateness")
    ('10 seconds', {'R': '1 minute'})
    """
    given = list(options or ())
    for_all = [text for text in given if "=" not in text]
    if len(for_all) > 1:
        raise CallError(
            f"{option} was given twice for all streams: {' and '.join(for_all)}",
            hint=f"{option} NAME=... is for the stream of that name",
        )
    return next(iter(for_all), None), by_name((text for text in given if "=" in text), option, "R=...")
