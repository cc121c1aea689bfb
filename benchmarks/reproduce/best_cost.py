"""BEST: what the exact result costs, beside nested loops, beside ours, and beside a method that is not exact."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from benchmarks import workloads
from benchmarks.best_match import CANDIDATES
from benchmarks.contenders.best_match_operator import DIMENSIONS
from benchmarks.plots import COLOURS
from benchmarks.reproduce.best_inputs import Answer, by_our_operator, own_cell_only
from benchmarks.reproduce.documents import BEST
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, beside, compared
from benchmarks.window_algorithm import Joined, Table, WindowAlgorithm, nested_loops
from streamjoin.reporting.charts import Line, Plot

SIZES: Final = (1_000, 2_000, 4_000, 8_000, 16_000)
QUICK_SIZES: Final = (125, 250)
NESTED, WINDOW, OURS, APPROXIMATE = "nested loops", "window algorithm, corrected", "ours", "own cell only"
Ways = dict[str, Callable[[Table, Table, tuple[float, ...]], Joined | Answer]]


def _by_window(left: Table, right: Table, epsilons: tuple[float, ...]) -> Joined:
    return WindowAlgorithm(left, right, epsilons).run()


WAYS: Final[Ways] = {
    NESTED: nested_loops, WINDOW: _by_window, OURS: by_our_operator, APPROXIMATE: own_cell_only,
}  # fmt: skip


def measure(effort: Effort) -> Findings:
    """Each way at growing sizes: pairs tested, seconds, and what it found."""
    sizes = QUICK_SIZES if effort.quick else SIZES
    figures: dict[int, dict[str, dict[str, float]]] = {}
    exact = True
    for rows in sizes:
        left, right, epsilons = tables(rows)
        answers: dict[str, Answer] = {}
        figures[rows] = {}
        for name, join in WAYS.items():
            effort.say(f"best match, {rows:,} rows a side: {name} ...")
            start = time.process_time()
            found = join(left, right, epsilons)
            figures[rows][name] = {"seconds": time.process_time() - start}
            if isinstance(found, Joined):
                figures[rows][name] |= {
                    "tested": found.tested, "buffered": found.most_buffered, "pushed_out": found.pushed_out,
                }  # fmt: skip
            answers[name] = Answer.of(found) if isinstance(found, Joined) else found
        exact &= answers[WINDOW] == answers[NESTED] == answers[OURS]
        figures[rows][APPROXIMATE] |= _quality(answers[NESTED], answers[APPROXIMATE])
    return Findings(
        lines=_lines(figures),
        plots=[_plot(figures, "tested", "pairs tested"), _plot(figures, "seconds", "seconds of the process")],
        checks=[Check("window algorithm, nested loops and ours give the same at every size", exact)],
        figures={f"{rows}": each for rows, each in figures.items()},
    )


def tables(rows: int) -> tuple[Table, Table, tuple[float, ...]]:
    """Both sides of the benchmark of best matches, sorted: three dimensions, five candidates per row at every size."""
    work = workloads.make("best", rows, CANDIDATES)
    sides = [np.column_stack([side[name] for name in DIMENSIONS]) for side in (work.left, work.right)]
    left, right = (side[np.argsort(side[:, 0], kind="stable")] for side in sides)
    return left, right, (float(work.bounds["epsilon"]),) * len(DIMENSIONS)


def _quality(truth: Answer, found: Answer) -> dict[str, float]:
    right = (truth.pairs & found.pairs).total()
    return {"found": right / truth.pairs.total(), "false": 1 - right / max(1, found.pairs.total())}


def _growth(figures: dict[int, dict[str, dict[str, float]]], name: str, what: str) -> float:
    """The exponent: by what power of the rows it grows."""
    sizes = list(figures)
    first, last = (figures[size][name][what] for size in (sizes[0], sizes[-1]))
    return float(np.log(last / max(first, 1e-9)) / np.log(sizes[-1] / sizes[0]))


def _lines(figures: dict[int, dict[str, Any]]) -> list[Finding]:
    rows = max(figures)
    most = figures[rows]
    beside_ours = [most[name]["seconds"] / most[OURS]["seconds"] for name in (WINDOW, NESTED)]
    share = most[WINDOW]["tested"] / most[NESTED]["tested"]
    approximate = most[APPROXIMATE]
    slower = most[WINDOW]["seconds"] / most[NESTED]["seconds"]
    return [
        beside(
            "pairs tested, beside nested loops",
            f"{rows:,} rows a side: {most[WINDOW]['tested']:,} pairs tested, {share:.1%} of the nested loops', "
            f"growing as rows^{_growth(figures, WINDOW, 'tested'):.2f} beside rows^2",
            "The windows are joined, not the tables." if share < 1 else "The windows are as wide as the tables.",
        ),
        beside(
            "seconds of both",
            f"{most[WINDOW]['seconds']:.2f} s, nested loops {most[NESTED]['seconds']:.2f} s",
            "The reference is written to be read: its windows move row by row in Python, while a nested loop is one "
            "array operation for each left row."
            if slower > 1
            else "",
        ),
        beside(
            "our operator, the same result",
            f"{most[OURS]['seconds']:.3f} s, {beside_ours[0]:,.1f} times as fast as the reference and "
            f"{beside_ours[1]:,.1f} times as nested loops",
            "Batches instead of rows, compiled, and a grid over two more dimensions beside the sorted one."
            if min(beside_ours) > 1
            else "It is planned as any call is, and compiled on its first one.",
        ),
        compared(
            "pairs have to wait in a buffer, because better ones might be generated at a later stage",
            f"{most[WINDOW]['pushed_out']:,.0f} pairs went out of the buffer for a better one that came later, at most "
            f"{most[WINDOW]['buffered']:,.0f} waited at a time ({rows:,} rows a side)",
            most[WINDOW]["pushed_out"] > 0,
            "No pair that waited was bettered: each could have left at once.",
        ),
        compared(
            "approximate methods do not find all results, and find false ones",
            f"partners of the own cell only: {approximate['found']:.1%} of the results found, "
            f"{approximate['false']:.1%} of what it gives is false, in {approximate['seconds']:.2f} s",
            approximate["found"] < 1 and approximate["false"] > 0,
            "No row here has a partner across the border of its cell.",
        ),
    ]  # fmt: skip


def _plot(figures: dict[int, dict[str, Any]], what: str, y: str) -> Plot:
    lines = [
        Line(name, [(rows, max(each[name][what], 1e-4)) for rows, each in figures.items()], colour)
        for name, colour in zip(WAYS, COLOURS, strict=False)
        if all(what in each[name] for each in figures.values())
    ]
    words = [f"Three dimensions, {CANDIDATES} candidates per row at every size; one run each."]
    return Plot(f"Best match: {y}", "rows a side", y, lines, words)


EXPERIMENT: Final = Experiment(
    "best-cost",
    BEST,
    "the algorithm",
    "Its cost beside nested loops, ours and an approximate method",
    measure,
    minutes=2,
)
