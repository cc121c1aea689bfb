"""`streamjoin reproduce`: the experiments of the documents, run again. They are in the checkout, not here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from streamjoin.cli.checkout import checkout_module


def reproduce(
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: that every experiment runs and its checks hold.")
    ] = False,
    only: Annotated[
        str, typer.Option(help="Some experiments, or documents: SWEEP,LIFE,QJOIN,PRIO,BEST; sweep-pages,...")
    ] = "",
    to: Annotated[Path | None, typer.Option(help="The page; build/reproduce/index.html by default.")] = None,
) -> None:
    """Every experiment of the five documents: what they claim beside what is measured here, on one page."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    running = checkout_module("benchmarks", "reproduce.running", command="reproduce")
    errors = checkout_module("benchmarks", "errors", command="reproduce")
    chosen = [name.strip() for name in only.split(",") if name.strip()]
    try:
        held = running.run(console, quick=quick, only=chosen, to=to)
    except errors.BenchmarkError as error:
        typer.echo(f"streamjoin reproduce: {error}", err=True)
        raise typer.Exit(1) from None
    if not held:
        raise typer.Exit(1)
