"""All questions of `streamjoin bench recall`: data sets, what must hold beside them, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks import recall
from benchmarks.race import Verdict
from benchmarks.recall_checks import CHECKS, Say
from benchmarks.recall_figures import FIGURES, FOLDER, Drawn, write
from benchmarks.recall_foresight import NAME as FORESIGHT
from benchmarks.recall_foresight import foresight

ALL_CHECKS: Final = {**CHECKS, FORESIGHT: foresight}
QUESTIONS: Final = (*recall.DATA, *ALL_CHECKS, *FIGURES)


def folder_of(quick: bool) -> Path:
    """Where plots and pages go."""
    return FOLDER / "quick" if quick else FOLDER


def outcomes(asked: Sequence[str], quick: bool, say: Say) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """One after another; plots and pages are written."""
    for name in asked:
        if name in ALL_CHECKS:
            checked = ALL_CHECKS[name](recall.SEED, quick, say)
            if checked.plot is not None:
                write(Drawn(name, checked.table, {name: checked.plot}), folder_of(quick))
            yield name, checked.verdicts, checked, checked.table
        elif name in FIGURES:
            drawn = FIGURES[name](recall.SEED, quick, say)
            write(drawn, folder_of(quick))
            yield name, drawn.verdicts, drawn, drawn.table
        elif not recall.DATA[name].there:
            say(f"{name}: its file is not there")
        else:
            outcome = recall.measure(name, quick, say)
            yield name, outcome.verdicts, outcome, recall.table_of(outcome)
