"""`streamjoin bench spill`: state in files under a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import spill, spill_questions, spill_restore, spill_spark
from benchmarks.asking.command import Asked, Command, Question, said
from benchmarks.reporting import Outcomes, progress


def _spill(asked: Asked, folder: Path) -> Outcomes:
    yield from spill_questions.outcomes(progress(asked.console), asked.names, asked.quick, folder)


def _spill_goal(slowest: float, over: int, above: str) -> str:
    return f"{slowest:g} of the rows per second, at most {over >> 20} MB above {above}, no longer micro-batch"


_SPILL_GOAL: Final = _spill_goal(spill.SLOWEST, spill.OVER, "start and budget")


_SPARK_SPILL_GOAL: Final = _spill_goal(
    spill_spark.SLOWEST, spill_spark.OVER, "a worker that hands rows back, the budget and the rows that arrive"
)


COMMAND: Final = Command(
    "spill",
    (
        *(Question(name, f"{name}: state in files under {spill.MEMORY >> 20} MB, through the operator",
                   "the same with all of it in memory", _SPILL_GOAL, 3) for name in spill.QUESTIONS),
        *(Question(name, f"{name.removeprefix(spill_spark.PREFIX)}: the same in two workers of Spark",
                   "the same with all of it in memory", _SPARK_SPILL_GOAL, 12) for name in spill_spark.QUESTIONS),
        *(Question(name, "restoring state that is in files", "reading its bytes",
                   f"at most {spill_restore.MOST_SECONDS:g} s beyond that", 4) for name in spill_restore.QUESTIONS),
    ),
    _spill, said("one run each; in this process one thread, on Spark two workers"), expand=spill_questions.expanded,
)  # fmt: skip
