"""`streamjoin chaos`: kill streaming joins and queries, and see that nothing is lost and nothing repeated.

The harness is in the checkout, not here.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from streamjoin.cli.checkout import checkout_module


def chaos(
    kills: Annotated[int, typer.Option(min=1, help="How many kills, dealt out to all of them.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Draws data and moments; a new one each time unless given.")] = None,
    joins: Annotated[str, typer.Option(help="Some of the joins and queries by name, with commas; else all.")] = "",
    minutes: Annotated[float | None, typer.Option(help="Begin no further query after so many minutes.")] = None,
    executors: Annotated[bool, typer.Option("--executors", help="Kill executors instead of drivers.")] = False,
) -> None:
    """Kill streaming joins and queries in the middle of their work, and compare what they deliver with the batch."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    commands = checkout_module("chaos", "commands", command="chaos")
    errors = checkout_module("chaos", "errors", command="chaos")
    chosen = [name.strip() for name in joins.split(",") if name.strip()]
    try:
        done = commands.run_chaos(console, kills=kills, seed=seed, joins=chosen, minutes=minutes, executors=executors)
    except errors.ChaosError as error:
        typer.echo(f"streamjoin chaos: {error}", err=True)
        raise typer.Exit(1) from None
    if not done.good:
        raise typer.Exit(1)
