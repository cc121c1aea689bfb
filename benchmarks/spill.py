"""What does a join cost whose state does not fit into memory, beside the same join with all of it there?

Two streams through the operator, micro-batch by micro-batch, rows of about 70 bytes that are kept for a window, each
with about one partner. Everyone in a process of its own: once without a limit, once with a budget. Equal results, or
there is no verdict.

band       values that are near
equality   keys that are equal
overlap    value intervals that overlap
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.errors import ContenderError
from benchmarks.race import Verdict
from benchmarks.worker import ONE_THREAD

QUESTIONS: Final = ("band", "equality", "overlap")
MEMORY: Final = 64 << 20
ROWS, WINDOW, BATCHES = 250_000, 20, 44  # about 0.7 GB of state
QUICK: Final = (5_000, 4, 12, 2 << 20)
SLOWEST: Final = 0.6  # of the rows that the join takes that has everything in memory
OVER: Final = 64 << 20  # bytes above start and budget

Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """Rows of each input in a micro-batch, micro-batches in a window, micro-batches, and bytes of the budget."""

    rows: int
    window: int
    batches: int
    memory: int


@dataclass(frozen=True)
class SpillOutcome:
    """What was measured of one question: without a limit, and with the budget."""

    question: str
    size: Size
    within: dict[str, Any]
    spilled: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def outcomes(
    say: Say, asked: Sequence[str], quick: bool, folder: Path
) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """What each question gave, as soon as it is there."""
    size = Size(*QUICK) if quick else Size(ROWS, WINDOW, BATCHES, MEMORY)
    for question in asked:
        say(f"{question}, without a limit and with {size.memory >> 20} MB ...")
        found = SpillOutcome(question, size, run(question, size, 0, folder), run(question, size, size.memory, folder))
        yield question, verdicts(found), found, table(found)


def run(question: str, size: Size, memory: int, folder: Path) -> dict[str, Any]:
    """One join, in a process of its own."""
    place = folder / question
    place.mkdir(exist_ok=True)
    sizes = [str(each) for each in (size.rows, size.window, size.batches, memory)]
    command = [sys.executable, "-m", "benchmarks.contenders.spilled_join", question, *sizes, str(place)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **ONE_THREAD}
    )
    if done.returncode:
        raise ContenderError(f"the join of {question} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def verdicts(found: SpillOutcome) -> list[Verdict]:
    """Rows per second of the processor, memory, and the longest micro-batch, each beside its limit."""
    within, spilled, name = found.within, found.spilled, found.question
    if within["digest"] != spilled["digest"]:
        raise ContenderError(f"{name}: the results differ: {within['count']:,} and {spilled['count']:,} pairs")
    speed = spilled["rows_per_cpu_second"] / within["rows_per_cpu_second"]
    limit = found.size.memory + OVER
    longest = spilled["longest"] / within["longest"]
    return [
        Verdict(f"{name}, rows per second", speed, SLOWEST, f"{speed:.2f} of those without a limit"),
        Verdict(
            f"{name}, memory", spilled["anonymous"], limit,
            f"{spilled['anonymous'] / 1e6:,.0f} MB above the start, {within['anonymous'] / 1e6:,.0f} without a limit",
            at_most=True,
        ),
        Verdict(
            f"{name}, longest micro-batch", longest, 1.0, f"{longest:.2f} of the longest without a limit", at_most=True
        ),
    ]  # fmt: skip


def table(found: SpillOutcome) -> Table:
    """Both side by side."""
    size = found.size
    title = f"{found.question}: 2 x {size.rows:,} rows a micro-batch, kept for {size.window} of them"
    shown = Table(
        "", "rows / CPU s", "longest batch", "memory above start", "state", "in files", "results", title=title
    )
    for name, each in (("no limit", found.within), (f"{size.memory >> 20} MB", found.spilled)):
        shown.add_row(
            name, f"{each['rows_per_cpu_second']:,.0f}", f"{each['longest']:.2f} s",
            *(f"{each[figure] / 1e6:,.0f} MB" for figure in ("anonymous", "state", "spilled")), f"{each['count']:,}",
        )  # fmt: skip
    return shown
