"""`streamjoin bench similar`: similar sets, and boxes in several dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import similar
from benchmarks.asking.command import Asked, Command, Question, repetitions
from benchmarks.asking.shared import FRAMES
from benchmarks.reporting import Outcomes, progress


def _similar(asked: Asked, folder: Path) -> Outcomes:
    yield from similar.outcomes(progress(asked.console), asked.names, asked.quick, asked.repetitions, folder)


COMMAND: Final = Command(
    "similar",
    (
        Question("sets", "similar sets of words, frames on local[2]", f"{FRAMES} of its set functions",
                 f"{similar.TARGET:g} times as fast", 6),
        Question("growth", "similar sets, n doubled", "the size before", "none: shown", 3),
        Question("boxes", "boxes in several dimensions, together", "one dimension after the other",
                 f"{similar.TARGET_BOXES:g} times as fast", 2),
    ),
    _similar, repetitions, repeated=True,
)  # fmt: skip
