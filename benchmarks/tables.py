"""What is printed of every question: a table, and one line per verdict."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from benchmarks.race import Verdict


def new_table(title: str, first: str, *numbers: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def print_verdicts(console: Console, verdicts: Iterable[Verdict], quick: bool) -> None:
    """One line each. A quick run shows that everything works; it has nothing to say about speed."""
    for verdict in verdicts:
        bound = "at most" if verdict.at_most else "at least"
        if quick:
            word = "[yellow]quick run, not a measurement[/]"
        else:
            word = "[green]met[/]" if verdict.met else "[red]missed[/]"
        console.print(
            f"{verdict.question}: {verdict.text}; target {bound} {verdict.target:g}: {word}",
            soft_wrap=True,
            highlight=False,
        )
