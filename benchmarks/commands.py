"""What `streamjoin bench` runs: one command, and what is told of it. All of them: `benchmarks.all_questions`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.asking.command import Asked, Command
from benchmarks.race import Verdict
from benchmarks.reporting import check_repetitions, circumstances, introduce, questions_of, reported


def command_of(name: str) -> Command:
    """A command of the registry, without loading the others: an answer to it shall not depend on their code."""
    command: Command = import_module(f"benchmarks.asking.{name}").COMMAND
    return command


def run(
    console: Console, name: str, *, quick: bool, only: Sequence[str], json_path: Path | None, **options: Any
) -> list[Verdict]:
    """`streamjoin bench NAME`: measure, print a table as soon as it is there, and all verdicts at the end."""
    command = command_of(name)
    asked = Asked(console, questions_of(command.expand(only), command.names), quick, **options)
    if command.repeated:
        check_repetitions(asked.repetitions, quick)
    described = command.describe(asked)
    report = {"command": name, "quick": quick, **described.figures, **circumstances(command.peers())}
    introduce(console, report, described.how)
    return reported(console, report, lambda folder: command.outcomes(asked, folder), json_path)
