"""`streamjoin bench lanes`: urgent rows, in a lane of their own and within a task."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from benchmarks.asking.command import Asked, Command, Described, Question
from benchmarks.priority_lanes import overload, task
from benchmarks.priority_lanes.report import table_of, write_plot
from benchmarks.reporting import Outcomes, progress


def _effort(asked: Asked) -> overload.Effort:
    usual = overload.QUICK if asked.quick else overload.FULL
    return replace(usual, seconds=usual.seconds if asked.seconds is None else asked.seconds)


def _overloaded(asked: Asked) -> Described:
    effort = _effort(asked)
    return Described(f"{effort.seconds:g} s of overload in each of three runs", asdict(effort))


def _lanes(asked: Asked, folder: Path) -> Outcomes:
    if "overload" in asked.names:
        with progress(asked.console) as say:
            outcome = overload.measure(_effort(asked), folder, say)
        plot = write_plot(outcome, asked.quick)
        yield "overload", outcome.verdicts, outcome, table_of(outcome)
        asked.console.print(f"plot: {plot}", highlight=False, soft_wrap=True)
    if "task" in asked.names:
        with progress(asked.console) as say:
            in_task = task.measure(task.QUICK if asked.quick else task.FULL, say)
        yield "task", in_task.verdicts, in_task, task.table_of(in_task)


COMMAND: Final = Command(
    "lanes",
    (
        Question("overload", f"urgent rows at {overload.OVERLOAD:g} times the throughput, in a lane of their own",
                 "one lane, with and without a limit",
                 f"p99 {overload.GAIN:g} times shorter, or {overload.SHARE_OF_MODEL:g} of the model", 12),
        Question("task", "urgent results of three joins in a task", "the same without priorities",
                 f"left by {task.LEFT_BY:.0%} of its CPU time, at most {task.ADDED:g} times as much of it", 2),
    ),
    _lanes, _overloaded,
)  # fmt: skip
