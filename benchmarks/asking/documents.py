"""Experiments of the documents, and beyond them: lifetimes, recall, sweep, priority, enough."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from benchmarks import (
    enough,
    lifetimes,
    lifetimes_report,
    recall,
    recall_checks,
    recall_figures,
    recall_questions,
    sweep,
)
from benchmarks.asking.command import Asked, Command, Described, Question, said
from benchmarks.lifetimes_queries import KINDS, QueryName
from benchmarks.lifetimes_run import QUICK, Effort
from benchmarks.priority_room import questions as priority
from benchmarks.reporting import Outcomes, progress


def _one_thread(asked: Asked) -> Described:
    return Described(
        f"{asked.repetitions} repetitions in turn, medians, one thread", {"repetitions": asked.repetitions}
    )


def _lifetimes(asked: Asked, folder: Path) -> Outcomes:
    quick = asked.quick
    sizes = lifetimes.QUICK_SIZES if quick else lifetimes.SIZES
    effort = replace(QUICK if quick else Effort(), repetitions=asked.repetitions)
    plots = lifetimes_report.FOLDER / "quick" if quick else lifetimes_report.FOLDER
    with progress(asked.console) as say:
        track = lifetimes.Track(asdict(effort), folder, say)
        for query in lifetimes.QUERIES:
            if query in asked.names:
                raced = lifetimes.measure_query(track, query, sizes)
                lifetimes_report.write_plot(query, lifetimes_report.query_plot(raced), plots)
                yield query, raced.verdicts, raced, lifetimes_report.query_table(raced)
        if "sorting" in asked.names:
            sorting = lifetimes.measure_sorting(track, sizes)
            lifetimes_report.write_plot("sorting", lifetimes_report.sorting_plot(sorting), plots)
            yield "sorting", sorting.verdicts, sorting, lifetimes_report.sorting_table(sorting)
        if "large" in asked.names:
            methods = ("direct",) if quick else ("direct", "negative")
            large = lifetimes.measure_large(track, lifetimes.QUICK_LARGE if quick else lifetimes.LARGE, methods)
            yield "large", large.verdicts, large, lifetimes_report.large_table(large)
    _plots(asked, plots / "index.html")


def _recall(asked: Asked, folder: Path) -> Outcomes:
    with progress(asked.console) as say:
        yield from recall_questions.outcomes(asked.names, asked.quick, say)
    _plots(asked, recall_questions.folder_of(asked.quick) / "index.html")


def _sweep(asked: Asked, folder: Path) -> Outcomes:
    with progress(asked.console) as say:
        yield from sweep.outcomes(asked.names, asked.quick, say)
    _plots(asked, sweep.folder_of(asked.quick))


def _priority(asked: Asked, folder: Path) -> Outcomes:
    with progress(asked.console) as say:
        yield from priority.outcomes(asked.names, asked.quick, say)
    _plots(asked, priority.folder_of(asked.quick) / "index.html")


def _enough(asked: Asked, folder: Path) -> Outcomes:
    with progress(asked.console) as say:
        for name in asked.names:
            outcome = enough.measure(name, asked.quick, say)
            if name == enough.PLOTTED and not asked.quick:
                enough.write_plot(outcome)
            yield name, [], outcome, enough.table_of(outcome)


def _plots(asked: Asked, where: Path) -> None:
    asked.console.print(f"plots: {where}", highlight=False, soft_wrap=True)


def _gain(query: QueryName) -> str:
    """The goals of a query: by kind of window, small and large."""
    goals = {
        kind: [f"{lifetimes.target(query, kind, size):g}" for size in (lifetimes.SIZES[0], lifetimes.SIZES[-1])]
        for kind in KINDS
    }
    return ", ".join(f"{kind} windows {' to '.join(dict.fromkeys(goal))} times" for kind, goal in goals.items())


LIFETIMES: Final = Command(
    "lifetimes",
    (
        *(Question(query, f"{query} over row and time windows of 10 to 1,000,000 tuples", "plus and minus tuples",
                   _gain(query), 2) for query in lifetimes.QUERIES),
        Question("sorting", "ends sorted lazily, in the areas of a join", "insertion", "none: shown", 5),
        Question("large", "row windows of 10,000,000 rows", "the document, which ran out of memory",
                 f"at most {lifetimes.MOST_MEMORY >> 30} GiB", 4),
    ),
    _lifetimes, _one_thread, repeated=True,
)  # fmt: skip

_ASKED_OF_DATA: Final = (
    f"recall reached, prediction at most {recall.NEAR:g} off, {recall.PERIODS:.0%} of periods, at most "
    f"{recall.MEAN_KEPT:g} times the best fixed slacks on average"
)
_RECALL: Final = {
    "ends": ("targets of 1 and 0", "the exact join, the bare window", "nothing lost; at most 1.01 times the rows"),
    "calm-burst-calm": ("slack in a burst", "the burst", "up within two periods, and down again"),
    "unequal": ("windows of unequal length", "the best fixed slacks", "recall reached, at most 1.5 times the rows"),
    "cost": ("what adapting costs", "the exact join", f"at most {recall_checks.CHEAP:.0%} of the run"),
    "sweep": ("P, L and g", "L of 1 s", "a shorter L keeps no more"),
    "rivals": (
        "latency and memory", "MP-K-slack",
        f"{recall_figures.LESS_LATENCY[0]:.0%} less latency, {recall_figures.LESS_MEMORY[0]:.0%} less memory",
    ),
    "comparison": ("the document's formulas", "the truth", f"ours at most {recall.NEAR:g} off"),
}  # fmt: skip

RECALL: Final = Command(
    "recall",
    tuple(
        Question(name, *_RECALL[name], 2)
        if name in _RECALL
        else Question(
            name,
            f"{name}: targets of 0.80 to 0.99",
            "best fixed slacks, MP-K-slack, the bare window",
            _ASKED_OF_DATA,
            2,
        )
        for name in recall_questions.QUESTIONS
    ),
    _recall,
    said("replays in micro-batches; only `cost` is timed, in seconds of the process"),
)

SWEEP: Final = Command(
    "sweep",
    (
        Question("pages", "page accesses, four inputs at once", "a cascade of joins of two, the document's counts",
                 f"the document's count within {sweep.OFF:.0%}, "
                 f"{' and '.join(f'{fewer:g}' for fewer in sweep.FEWER.values())} times fewer than the cascade, "
                 f"at most {sweep.SPARED:,} when spared", 3),
        Question("adaptivity", "sources that alternate between 1 and 10 ms", "MaxFanIn, Greedy",
                 "fewer accesses than Greedy, less delay than MaxFanIn", 3),
        Question("traversal", "merges in postorder", "level order",
                 f"{sweep.EARLIER:.0%} of all results more have left, at three points on average", 2),
        Question("pmj", "two finite inputs larger than memory", "the join in memory",
                 f"{sweep.PMJ_SPEED:g} of its speed, within its budget of memory", 2),
    ),
    _sweep, said("by a simulated clock; only `pmj` is timed, in seconds of the process"),
)  # fmt: skip

_PRIORITY: Final = {
    "claims": (
        "every scheduler with every kind of buffer, at four loads", "the best unprioritised scheduler",
        f"{priority.HIGHEST_PRIORITY_GAIN:,} and {priority.PROPOSAL_GAIN:,} times less latency at load 1.2", 8.0,
    ),
    "formula": ("the gain of a join, section 3.1.3", "the formula", f"waiting within {priority.WAITING_TERM:.0%}", 1.0),
    "alarms": ("alarms among status messages, load 1.2", "no priorities", "none: shown", 1.0),
}  # fmt: skip
PRIORITY: Final = Command(
    "priority",
    tuple(
        Question(name, *_PRIORITY[name])
        if name in _PRIORITY
        else Question(name, f"{name} changed, load 1.2", "schedulers and buffers", "none: shown", 2)
        for name in priority.QUESTIONS
    ),
    _priority,
    said("virtual time, nothing is timed"),
)

ENOUGH: Final = Command(
    "enough",
    tuple(
        Question(name, f"{name}: what is kept and missed", "fixed graces, the largest delay", "none: shown", 1)
        for name in enough.QUESTIONS
    ),
    _enough,
    said("replays in micro-batches, nothing is timed"),
)
