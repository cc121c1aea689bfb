"""`streamjoin bench lanes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from benchmarks.priority_lanes.overload import FULL, QUICK, Effort, measure
from benchmarks.priority_lanes.report import table_of, write_plot
from benchmarks.race import Verdict
from benchmarks.reporting import Outcomes, circumstances, introduce, progress, questions_of, reported


def run_lanes(
    console: Console, *, quick: bool, seconds: float | None, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """Urgent rows under overload on Spark; a plot goes to build/lanes."""
    questions_of(only, ("overload",))
    usual = QUICK if quick else FULL
    effort = replace(usual, seconds=usual.seconds if seconds is None else seconds)
    report = {"command": "lanes", "quick": quick, **asdict(effort), **circumstances([])}
    introduce(console, report, f"{effort.seconds:g} s of overload in each of three runs")
    return reported(console, report, lambda folder: _outcomes(console, effort, quick, folder), json_path)


def _outcomes(console: Console, effort: Effort, quick: bool, folder: Path) -> Outcomes:
    with progress(console) as say:
        outcome = measure(effort, folder, say)
    plot = write_plot(outcome, quick)
    yield "overload", outcome.verdicts, outcome, table_of(outcome)
    console.print(f"plot: {plot}", highlight=False, soft_wrap=True)
