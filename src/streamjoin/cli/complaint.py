"""Errors on the command line: what streamjoin says about a wrong call, without the way Python got there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer

from streamjoin import StreamjoinError

# What hints say in Python, as options. The first ones for every job, the others for those that are no Python.
_OF_ALL: Final = (
    (r"start with a new checkpoint, or restore the old call", "restore the old job, or give a new --checkpoint, --out"),
    (r"go on with as many: buckets=sj\.checkpoint\(path\)\.buckets", "leave buckets= out: the query keeps its own"),
    (r"start with a new checkpoint", "give a new --checkpoint and a new --out"),
    (r"with trigger\(availableNow=True\)", "with --available-now"),
)
_OF_QUERIES: Final = (
    (r", or use withWatermark\([^)]*\)", ""),
    (r'lateness=sj\.Grace\(("?)([^")]*)\1\)', r"--lateness \1\2\1"),
    (r'\btime=("?)(\w+)\1', r"--time \2"),
    (r"name its time column when you give the stream to the query", "name its time column with --time"),
    (r"\bbuckets=(\d+)", r"--buckets \1"),
    (r', or choose invalid="drop" or invalid="output"', ", or let a job in Python call sj.cql with invalid="),
    (r", or sj\.deprioritise\(frame\) before", ""),
    (r"\bmemory='([^']*)'", r'--memory "\1"'),
    (r"\bmemory= ", "--memory "),
    (r", or name the validity with validity=\([^)]*\)", ""),
)


@contextmanager
def complaints(job: Path | None = None) -> Iterator[None]:
    """Turn streamjoin's own errors into one line on the error stream and exit code 1. Other errors keep their trace."""
    try:
        yield
    except StreamjoinError as error:
        text = in_options(str(error), query=job is not None and job.suffix == ".cql")
        typer.secho(f"error: {text}", err=True, fg="red")
        raise typer.Exit(1) from None


def in_options(text: str, *, query: bool) -> str:
    """An error whose hint speaks of Python, for somebody who writes commands.

    >>> in_options('Hint: give lateness=sj.Grace("10 seconds"), or use withWatermark("ts", "10 seconds").', query=True)
    'Hint: give --lateness "10 seconds".'
    """
    for pattern, said in (*_OF_ALL, *(_OF_QUERIES if query else ())):
        text = re.sub(pattern, said, text)
    return text
