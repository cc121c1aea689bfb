"""The questions of `streamjoin bench spill`: through the operator, on Spark (three of them), restoring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks import spill, spill_restore, spill_spark
from benchmarks.race import Verdict

QUESTIONS: Final = (*spill.QUESTIONS, *spill_spark.QUESTIONS, *spill_restore.QUESTIONS)


def expanded(only: Sequence[str]) -> list[str]:
    """What was asked for, with the three instead of `spark`.

    >>> expanded(["spark", "restore"])
    ['spark-band', 'spark-equality', 'spark-overlap', 'restore']
    """
    return [name for each in only for name in (spill_spark.QUESTIONS if each == spill_spark.ALL else (each,))]


def outcomes(
    progress: AbstractContextManager[spill.Say], asked: Sequence[str], quick: bool, folder: Path
) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """What each question gave, as soon as it is there."""
    with progress as say:
        yield from spill.outcomes(say, [name for name in asked if name in spill.QUESTIONS], quick, folder)
        on_spark = [name for name in asked if name in spill_spark.QUESTIONS]
        yield from spill_spark.outcomes(on_spark, quick, folder, say)
        if any(name in spill_restore.QUESTIONS for name in asked):
            yield from spill_restore.outcomes(quick, folder, say)
