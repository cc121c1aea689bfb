"""What `streamjoin bench` runs: one command, all questions of all commands, and what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.all_questions import list_questions as list_questions
from benchmarks.all_questions import run_all as run_all
from benchmarks.all_questions import show_table as show_table
from benchmarks.asking.command import Asked
from benchmarks.asking.registry import COMMANDS
from benchmarks.race import Verdict
from benchmarks.reporting import check_repetitions, circumstances, introduce, questions_of, reported


def run(
    console: Console, name: str, *, quick: bool, only: Sequence[str], json_path: Path | None, **options: Any
) -> list[Verdict]:
    """`streamjoin bench NAME`: measure, print a table as soon as it is there, and all verdicts at the end."""
    command = COMMANDS[name]
    asked = Asked(console, questions_of(command.expand(only), command.names), quick, **options)
    if command.repeated:
        check_repetitions(asked.repetitions, quick)
    described = command.describe(asked)
    report = {"command": name, "quick": quick, **described.figures, **circumstances(command.peers())}
    introduce(console, report, described.how)
    return reported(console, report, lambda folder: command.outcomes(asked, folder), json_path)
