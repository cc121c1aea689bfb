"""`streamjoin bench enough`: what fixed graces and recall targets keep, and miss."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import enough
from benchmarks.asking.command import Asked, Command, Question, said
from benchmarks.reporting import Outcomes, progress


def _enough(asked: Asked, folder: Path) -> Outcomes:
    with progress(asked.console) as say:
        for name in asked.names:
            outcome = enough.measure(name, asked.quick, say)
            if name == enough.PLOTTED and not asked.quick:
                enough.write_plot(outcome)
            yield name, [], outcome, enough.table_of(outcome)


COMMAND: Final = Command(
    "enough",
    tuple(
        Question(
            name, f"{name}: what is kept and missed", "fixed graces, the largest delay", "none: shown", 1, timed=False
        )
        for name in enough.QUESTIONS
    ),
    _enough,
    said("replays in micro-batches, nothing is timed"),
)
