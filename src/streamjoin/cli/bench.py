"""`streamjoin bench`: measure, beside what users would pick instead. The benchmarks are in the checkout, not here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from streamjoin.cli.checkout import checkout_module

app = typer.Typer(help="Measure, beside what users would pick instead.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    # With a callback, typer keeps the name of a command that is the only one.
    pass


@app.command()
def kernels(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a smoke test, not a measurement.")] = False,
    repetitions: Annotated[int, typer.Option(help="Of every contender, in turn; at least 5 unless quick.", min=1)] = 5,
    only: Annotated[str, typer.Option(help="Some of overlap,band,within,spark,growth.")] = "",
    json: Annotated[Path | None, typer.Option(help="Write everything that was measured to this file.")] = None,
) -> None:
    """Pairs from arrays against DuckDB, Polars, ncls and scipy; frames against Spark's nested loop; growth with n."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    commands, errors = _benchmarks("commands"), _benchmarks("errors")
    chosen = [name.strip() for name in only.split(",") if name.strip()]
    try:
        commands.run_kernels(console, quick=quick, repetitions=repetitions, only=chosen, json_path=json)
    except errors.BenchmarkError as error:
        typer.echo(f"streamjoin bench: {error}", err=True)
        raise typer.Exit(1) from None


def _benchmarks(module: str) -> Any:
    return checkout_module("benchmarks", module, command="bench")
