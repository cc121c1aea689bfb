"""`streamjoin bench lifetimes`: ends known or held against plus and minus tuples."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from benchmarks import lifetimes, lifetimes_report
from benchmarks.asking.command import Asked, Command, Described, Question, say_plots
from benchmarks.lifetimes_queries import KINDS, QueryName
from benchmarks.lifetimes_run import QUICK, Effort
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
    say_plots(asked, plots / "index.html")


def _gain(query: QueryName) -> str:
    """The goals of a query: by kind of window, small and large."""
    goals = {
        kind: [f"{lifetimes.target(query, kind, size):g}" for size in (lifetimes.SIZES[0], lifetimes.SIZES[-1])]
        for kind in KINDS
    }
    return ", ".join(f"{kind} windows {' to '.join(dict.fromkeys(goal))} times" for kind, goal in goals.items())


COMMAND: Final = Command(
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
