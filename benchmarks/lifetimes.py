"""Lifetimes, direct against plus and minus tuples: the experiment of Imaki and Nishizawa, and beyond its limits.

| question | what the document found | what is asked of us |
|---|---|---|
| selection, projection, union | 1.4 to 2.0 times up to 10,000 rows, then falling to 1.0 | 1.4 there, never below 1.0 |
| join, time windows | 1.6 to 2 times | 1.4 |
| join, row windows | equal | 1.0 |
| sorting | insertion collapses from 100 tuples on, lazy sorting does not | shown |
| large | 10,000,000 rows are out of memory | they run, in 2 GiB |

Throughput is shown as in the document's Figure 5, relative to a window of 10 rows. The figure does not say whose; here
it is that of plus and minus tuples, so that one plot shows both methods on one scale.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from benchmarks.environments import ROOT
from benchmarks.lifetimes_queries import KINDS, QUERIES, QueryName, WindowKind, sources, window_of_each
from benchmarks.one_shot import ask
from benchmarks.race import Verdict
from benchmarks.worker import ONE_THREAD, WARM_MEMORY

Question = Literal["selection", "projection", "union", "join", "sorting", "large"]
QUESTIONS: Final[tuple[Question, ...]] = (*QUERIES, "sorting", "large")

# Tuples that the windows of a query hold, all inputs together.
SIZES: Final = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES: Final = (10, 100, 1_000)
LARGE: Final = 10_000_000
QUICK_LARGE: Final = 10_000
MOST_MEMORY: Final = 2 << 30
BEARABLE: Final = 100_000  # beyond it a walk through the list takes minutes per repetition
SORTED_TUPLES: Final = 100_000  # of each stream in a repetition about sorting, for the same reason
SMALL: Final = 10_000  # up to here the document's gain is asked for
GAIN: Final = 1.4


def target(query: QueryName, kind: WindowKind, tuples: int) -> float:
    """How many times as fast the direct method is to be.

    >>> target("union", "rows", 10_000), target("union", "rows", 100_000), target("join", "rows", 10)
    (1.4, 1.0, 1.0)
    """
    if query == "join":
        return GAIN if kind == "time" else 1.0
    return GAIN if tuples <= SMALL else 1.0


@dataclass(frozen=True)
class Point:
    """Both methods at one size of the window: tuples per second in each repetition, and memory."""

    query: QueryName
    kind: WindowKind
    tuples: int
    measured: dict[str, Any]

    def throughput(self, method: str) -> float:
        """Tuples per second, by the median."""
        return float(self.measured["tuples"] / statistics.median(self.measured[method]["seconds"]))

    @property
    def ratio(self) -> float:
        """Direct over negative."""
        return self.throughput("direct") / self.throughput("negative")

    @property
    def cpu_ratio(self) -> float:
        """The same by the time that the processor was busy, which others on the machine disturb less."""
        direct, negative = (statistics.median(self.measured[method]["cpu"]) for method in ("direct", "negative"))
        return negative / direct if direct else float("inf")

    @property
    def target(self) -> float:
        return target(self.query, self.kind, self.tuples)

    @property
    def met(self) -> bool:
        return self.ratio >= self.target


@dataclass(frozen=True)
class QueryOutcome:
    """One query over windows of both kinds and all sizes."""

    query: QueryName
    points: list[Point]

    def of(self, kind: WindowKind) -> list[Point]:
        """Those of one kind of window."""
        return [point for point in self.points if point.kind == kind]

    @property
    def base(self) -> float:
        """The throughput that counts as 1: that of plus and minus tuples and the smallest row window."""
        return self.of("rows")[0].throughput("negative")

    @property
    def verdicts(self) -> list[Verdict]:
        """One per kind of window and target: the worst size."""
        found = []
        for kind in KINDS:
            for wanted in sorted({point.target for point in self.of(kind)}, reverse=True):
                points = [point for point in self.of(kind) if point.target == wanted]
                worst = min(points, key=lambda point: point.ratio)
                sizes = f"{points[0].tuples:,} to {points[-1].tuples:,} tuples"
                text = f"{worst.ratio:.2f} times as fast as plus and minus tuples at worst (at {worst.tuples:,} tuples)"
                found.append(Verdict(f"{self.query}, {kind} windows of {sizes}", worst.ratio, wanted, text))
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "points": [
                {**asdict(point), "ratio": point.ratio, "cpu_ratio": point.cpu_ratio, "target": point.target}
                for point in self.points
            ],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
        }


@dataclass(frozen=True)
class SortingOutcome:
    """The direct join of time windows with lists of ends, by size: tuples per second of each way to sort them."""

    throughput: dict[int, dict[str, float]]

    @property
    def verdicts(self) -> list[Verdict]:
        return []

    def to_json(self) -> dict[str, Any]:
        return {"throughput": self.throughput}


@dataclass(frozen=True)
class LargeOutcome:
    """Row windows that were too large for the document's machine: (query, method) and what was measured."""

    tuples: int
    measured: dict[tuple[QueryName, str], dict[str, Any]]

    @property
    def verdicts(self) -> list[Verdict]:
        found = []
        for (query, method), run in self.measured.items():
            if method == "direct":
                text = f"{run['peak'] / 2**20:,.0f} MiB at most, {run['nbytes'] / 2**20:,.0f} of them state"
                question = f"{query}, a row window of {self.tuples:,} rows, MiB"
                found.append(Verdict(question, run["peak"] / 2**20, MOST_MEMORY / 2**20, text, at_most=True))
        return found

    def to_json(self) -> dict[str, Any]:
        runs = [{"query": query, "method": method, **run} for (query, method), run in self.measured.items()]
        return {"tuples": self.tuples, "runs": runs, "verdicts": [verdict.to_json() for verdict in self.verdicts]}


@dataclass(frozen=True)
class Track:
    """Where a measurement runs, and with how much effort; `say` tells what is going on."""

    effort: dict[str, int]
    folder: Path
    say: Callable[[str], None]

    def ask(self, **request: Any) -> dict[str, Any]:
        """One process, with one thread. It keeps the memory it has, unless memory is what is asked for."""
        module = "benchmarks.contenders.lifetimes"
        environment = ONE_THREAD if request["job"] == "large" else {**ONE_THREAD, **WARM_MEMORY}
        return ask(sys.executable, module, ROOT, {"effort": self.effort, **request}, self.folder, **environment)[0]


def measure_query(track: Track, query: QueryName, sizes: Sequence[int]) -> QueryOutcome:
    """Both methods, both kinds of windows, all sizes; a process for each kind."""
    points = []
    for kind in KINDS:
        track.say(f"{query}, {kind} windows of {sizes[0]:,} to {sizes[-1]:,} tuples: both methods in turn ...")
        each = [window_of_each(query, size) for size in sizes]
        answered = track.ask(job="race", query=query, kind=kind, sizes=each)["sizes"]
        points += [Point(query, kind, *pair) for pair in zip(sizes, answered, strict=True)]
    return QueryOutcome(query, points)


def measure_sorting(track: Track, sizes: Sequence[int]) -> SortingOutcome:
    """Lazy sorting against insertion, as far as insertion can be waited for."""
    found = {}
    track = replace(track, effort={**track.effort, "tuples": min(track.effort["tuples"], SORTED_TUPLES)})
    for size in sizes:
        track.say(f"join of time windows of {size:,} tuples: sorted lazily and by insertion ...")
        sortings = ["none", "lazy", "halving", *(["walking"] if size <= BEARABLE else [])]
        answered = track.ask(job="sorting", size=window_of_each("join", size), sortings=sortings)
        found[size] = {name: answered["tuples"] / statistics.median(answered[name]) for name in sortings}
    return SortingOutcome(found)


def measure_large(track: Track, tuples: int, methods: Sequence[str]) -> LargeOutcome:
    """Row windows of so many rows, a process for each."""
    measured = {}
    for query in QUERIES:
        for method in methods:
            track.say(f"{query}, a row window of {tuples:,} rows, {method} ...")
            size = tuples // len(sources(query))
            measured[query, method] = track.ask(job="large", query=query, method=method, size=size)
    return LargeOutcome(tuples, measured)
