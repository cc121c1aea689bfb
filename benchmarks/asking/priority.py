"""`streamjoin bench priority`: schedulers and buffers on a virtual clock."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.asking.command import Asked, Command, Question, said, say_plots
from benchmarks.priority_room import questions as priority
from benchmarks.reporting import Outcomes, progress


def _priority(asked: Asked, folder: Path) -> Outcomes:
    with progress(asked.console) as say:
        yield from priority.outcomes(asked.names, asked.quick, say)
    say_plots(asked, priority.folder_of(asked.quick) / "index.html")


_PRIORITY: Final = {
    "claims": (
        "every scheduler with every kind of buffer, at four loads", "the best unprioritised scheduler",
        f"{priority.HIGHEST_PRIORITY_GAIN:,} and {priority.PROPOSAL_GAIN:,} times less latency at load 1.2", 8.0,
    ),
    "formula": ("the gain of a join, section 3.1.3", "the formula", f"waiting within {priority.WAITING_TERM:.0%}", 1.0),
    "alarms": ("alarms among status messages, load 1.2", "no priorities", "none: shown", 1.0),
}  # fmt: skip


COMMAND: Final = Command(
    "priority",
    tuple(
        Question(name, *_PRIORITY[name], timed=False)
        if name in _PRIORITY
        else Question(name, f"{name} changed, load 1.2", "schedulers and buffers", "none: shown", 2, timed=False)
        for name in priority.QUESTIONS
    ),
    _priority,
    said("virtual time, nothing is timed"),
)
