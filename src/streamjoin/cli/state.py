"""`streamjoin state`: what a query keeps, read from its checkpoint."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from streamjoin import CallError
from streamjoin.algebra import FOREVER
from streamjoin.api import StoredInput, stored_state, stored_trees
from streamjoin.cli.complaint import complaints
from streamjoin.cli.failure import readable_failures
from streamjoin.cli.local_spark import local_spark
from streamjoin.cli.merge_tree import drawn
from streamjoin.cli.state_times import shown

COLUMNS: Final = ("join", "bucket", "input", "rows", "bytes", "runs", "from", "to", "progress")
RIGHT: Final = ("bucket", "rows", "bytes", "runs")
PIPE_WIDTH: Final = 140


def state(
    checkpoint: Annotated[Path, typer.Argument(help="The checkpoint of a query, which may be running.")],
    json: Annotated[bool, typer.Option("--json", help="For machines: one object, times in ticks.")] = False,
    tree: Annotated[bool, typer.Option("--tree", help='Draw the merge trees of joins with algorithm="tpmj".')] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="When Spark fails, show all that it says.")] = False,
) -> None:
    """Show what a query keeps: rows, bytes and their times, per join, bucket and input."""
    with complaints(), readable_failures(verbose=verbose):
        check_checkpoint(checkpoint)
        if tree:
            trees = stored_trees(local_spark(), str(checkpoint.resolve()))
            if json:
                typer.echo(json_text.dumps([{**asdict(one), "axis": one.axis.value} for one in trees], indent=2))
                return
            for one in trees:
                Console(width=None if Console().is_terminal else PIPE_WIDTH).print(drawn(one))
            return
        stored = stored_state(local_spark(), str(checkpoint.resolve()))
        if json:
            typer.echo(json_text.dumps(as_json(stored), indent=2))
            return
        console = Console()
        if not console.is_terminal:
            console.width = PIPE_WIDTH
        console.print(as_table(stored, f"State of {checkpoint}"))


def check_checkpoint(path: Path) -> None:
    """Refuse a path that is no checkpoint, before Spark starts."""
    if not path.is_dir():
        raise CallError(f"there is no folder {path}")
    missing = [name for name in ("metadata", "offsets", "commits") if not (path / name).exists()]
    if missing:
        raise CallError(
            f"{path} is not the checkpoint of a streaming query: it has no {missing[0]!r}",
            hint="give the folder that was the query's --checkpoint, or its checkpointLocation",
        )


def as_json(stored: list[StoredInput]) -> dict[str, Any]:
    """Everything, for machines. Times are ticks of the axis; null for an end that never comes."""
    parts = [{**asdict(one), "axis": one.axis.value, "last": _bounded(one.last)} for one in stored]
    return {"total": totals(stored), "inputs": parts}


def totals(stored: Iterable[StoredInput]) -> dict[str, int]:
    """Rows, bytes and runs of several inputs together."""
    parts = list(stored)
    return {name: sum(getattr(part, name) for part in parts) for name in ("rows", "bytes", "runs")}


def _bounded(time: int | None) -> int | None:
    return None if time == FOREVER else time


def as_table(stored: list[StoredInput], title: str) -> Table:
    """Everything, for the screen: joins below each other, each with its totals."""
    table = Table(title=title, title_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in RIGHT else "left", no_wrap=True)
    joins = [(name, list(parts)) for name, parts in groupby(stored, key=join_name)]
    for name, parts in joins:
        for part in parts:
            times = (shown(time, part.axis) for time in (part.first, part.last, part.progress))
            who = "results" if part.input is None else str(part.input)
            table.add_row(name, str(part.bucket), who, *amounts([part]), *times)
        table.add_section()
        if len(joins) > 1:
            table.add_row(name, "all", "", *amounts(parts), style="bold")
            table.add_section()
    table.add_row("total", "", "", *amounts(stored), style="bold")
    return table


def join_name(part: StoredInput) -> str:
    """How a stateful operator is called: a join's second stage, the verdict, is one of its own."""
    return str(part.operator) if part.stage == "join" else f"{part.operator} ({part.stage})"


def amounts(stored: Iterable[StoredInput]) -> tuple[str, str, str]:
    """Rows, bytes and runs in a reader's units."""
    sums = totals(stored)
    return f"{sums['rows']:,}", decimal(sums["bytes"]), f"{sums['runs']:,}"
