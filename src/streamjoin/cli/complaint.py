"""Errors on the command line: what streamjoin says about a wrong call, without the way Python got there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from streamjoin import StreamjoinError


@contextmanager
def complaints() -> Iterator[None]:
    """Turn streamjoin's own errors into one line on the error stream and exit code 1. Other errors keep their trace."""
    try:
        yield
    except StreamjoinError as error:
        typer.secho(f"error: {error}", err=True, fg="red")
        raise typer.Exit(1) from None
