"""`streamjoin bench recall`: recall targets on streams out of order."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import recall, recall_checks, recall_figures, recall_questions
from benchmarks.asking.command import Asked, Command, Question, said, say_plots
from benchmarks.reporting import Outcomes, progress


def _recall(asked: Asked, folder: Path) -> Outcomes:
    with progress(asked.console) as say:
        yield from recall_questions.outcomes(asked.names, asked.quick, say)
    say_plots(asked, recall_questions.folder_of(asked.quick) / "index.html")


_ASKED_OF_DATA: Final = (
    f"recall reached, prediction at most {recall.NEAR:g} off, {recall.PERIODS:.0%} of periods, at most "
    f"{recall.MEAN_KEPT:g} times the best fixed slacks on average"
)


_RECALL: Final = {
    "ends": ("targets of 1 and 0", "the exact join, the bare window", "nothing lost; at most 1.01 times the rows"),
    "calm-burst-calm": ("slack in a burst", "the burst", "up within two periods, and down again"),
    "unequal": ("windows of unequal length", "the best fixed slacks", "recall reached, at most 1.5 times the rows"),
    "cost": ("what adapting costs", "the exact join", f"at most {recall_checks.CHEAP:.0%} of the run"),
    "foresight": ("phone: fixed slacks chosen by other runs", "the best in hindsight", "none: shown"),
    "sweep": ("P, L and g", "L of 1 s", "a shorter L keeps no more"),
    "rivals": (
        "latency and memory", "MP-K-slack",
        f"{recall_figures.LESS_LATENCY[0]:.0%} less latency, {recall_figures.LESS_MEMORY[0]:.0%} less memory",
    ),
    "comparison": ("the document's formulas", "the truth", f"ours at most {recall.NEAR:g} off"),
}  # fmt: skip


COMMAND: Final = Command(
    "recall",
    tuple(
        Question(name, *_RECALL[name], 2, timed=name == "cost")
        if name in _RECALL
        else Question(
            name,
            f"{name}: targets of 0.80 to 0.99",
            "best fixed slacks, MP-K-slack, the bare window",
            _ASKED_OF_DATA,
            2,
            timed=False,
        )
        for name in recall_questions.QUESTIONS
    ),
    _recall,
    said("replays in micro-batches; only `cost` is timed, in seconds of the process"),
)
