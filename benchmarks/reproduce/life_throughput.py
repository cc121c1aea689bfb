"""LIFE: Figure 5, throughput over the size of the window for four queries, direct against plus and minus tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from benchmarks import lifetimes, lifetimes_report
from benchmarks.contenders.lifetimes import do
from benchmarks.lifetimes import Point, QueryOutcome, SortingOutcome, Track
from benchmarks.lifetimes_queries import QUERIES, QueryName, sources
from benchmarks.lifetimes_run import QUICK
from benchmarks.lifetimes_run import Effort as Sizes
from benchmarks.reproduce.documents import LIFE
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, compared

QUICK_SIZES: Final = (100,)
TINY: Final = replace(QUICK, tuples=1_000, compared=600, repetitions=1)
SORTED: Final = (10, 100, 1_000, 10_000)  # beyond it a walk through the list takes minutes
LOW, HIGH = 1.4, 2.0  # of the throughput, up to 10,000 rows
JOIN_LOW, JOIN_HIGH = 1.6, 2.0
STEADY: Final = 0.7  # of the throughput of the smallest window, at least, and at most as much above it
EQUAL: Final = 1.15  # "almost equal"
LARGE_ASKED: Final[tuple[QueryName, ...]] = ("selection", "union")  # whose windows the document speaks of there
VM_MEGABYTES: Final = 756
COLLAPSED: Final = 2.0  # lazy sorting this many times as fast as insertion


class InThisProcess(Track):
    """Small sizes need no process of their own."""

    def ask(self, **request: Any) -> dict[str, Any]:
        return do({"effort": self.effort, **request})


def measure(effort: Effort) -> Findings:
    """Both methods in turn, both kinds of windows, all sizes; their results are compared first."""
    sizes = QUICK_SIZES if effort.quick else lifetimes.SIZES
    track = (InThisProcess if effort.quick else Track)(
        asdict(TINY if effort.quick else Sizes()), effort.folder, effort.say
    )
    outcomes = [lifetimes.measure_query(track, query, sizes) for query in QUERIES]
    sorting = lifetimes.measure_sorting(track, QUICK_SIZES if effort.quick else SORTED)
    large = lifetimes.QUICK_LARGE if effort.quick else lifetimes.LARGE
    compared_changes = sum(point.measured["changes_compared"] for outcome in outcomes for point in outcome.points)
    return Findings(
        lines=[line for outcome in outcomes for line in _lines(outcome)] + [_sorting(sorting), _large(track, large)],
        plots=[*(lifetimes_report.query_plot(each) for each in outcomes), lifetimes_report.sorting_plot(sorting)],
        checks=[Check("both methods give equal results in normal form, before any is timed", compared_changes > 0)],
        shortened=f"Windows of up to {sizes[-1]:,} tuples instead of 1,000,000." if effort.quick else "",
        figures={outcome.query: outcome.to_json() for outcome in outcomes} | {"sorting": sorting.to_json()},
    )


def _lines(outcome: QueryOutcome) -> list[Finding]:
    rows, times = outcome.of("rows"), outcome.of("time")
    if outcome.query == "join":
        return [
            compared(
                f"join, time windows: {JOIN_LOW:g} to {JOIN_HIGH:g} times negative tuples",
                _range(times),
                _least(times) >= JOIN_LOW and _most(times) <= JOIN_HIGH * EQUAL,
                _beyond(times, JOIN_LOW, "a join of plus and minus tuples looks for partners twice, and the direct one "
                "once"),
            ),
            compared(
                "join, row windows: equal at all sizes",
                _range(rows),
                _least(rows) >= 1 / EQUAL and _most(rows) <= EQUAL,
                "A holder is a number in an array here, and resolving ends is one merge of arrays per micro-batch, so "
                "the overhead that the document puts against the gain is small."
                if _least(rows) >= 1 / EQUAL
                else "Negative tuples are the faster ones at some of these sizes: why is not known.",
            ),
        ]  # fmt: skip
    small = [point for point in rows if point.tuples <= lifetimes.SMALL]
    large = rows[-1]
    return [
        compared(
            f"{outcome.query}, row windows up to 10,000 rows: {LOW:g} to {HIGH:g} times negative tuples",
            _range(small),
            _least(small) >= LOW and _most(small) <= HIGH,
            _beyond(small, LOW, "a minus tuple carries its payload a second time through every operator, which costs "
            "more beside compiled operators than beside the document's Java objects"),
        ),
        compared(
            f"{outcome.query}, row windows: both methods almost equal at 1,000,000 rows",
            f"{large.ratio:.2f} times at {large.tuples:,} rows",
            1 / EQUAL <= large.ratio <= EQUAL,
            "The document's holders are objects that a collector has to follow; here they are numbers in arrays, so "
            "the gain stays."
            if large.ratio > 1
            else "Negative tuples are the faster ones at this size.",
        ),
        compared(
            f"{outcome.query}, time windows: steady at all sizes",
            f"from {_relative(times, min):.2f} to {_relative(times, max):.2f} of the throughput of the smallest window",
            _relative(times, min) >= STEADY and _relative(times, max) <= 1 / STEADY,
            f"{'Slower' if _relative(times, min) < STEADY else 'Faster'} with larger windows: small ones end within "
            "the micro-batch in which they begin, larger ones are kept for later ones.",
        ),
    ]  # fmt: skip


def _sorting(outcome: SortingOutcome) -> Finding:
    size = max(size for size, found in outcome.throughput.items() if "walking" in found)
    found = outcome.throughput[size]
    ratio, halving = found["lazy"] / found["walking"], found["lazy"] / found["halving"]
    return compared(
        '"DT: insertion" falls off steeply from 100 tuples on, lazy sorting does not',
        f"at {size:,} tuples lazy sorting is {ratio:.1f} times as fast as insertion from the front "
        f"({halving:.2f} times as insertion by binary search)",
        ratio >= COLLAPSED,
        "A compiled walk through so short a list costs little.",
    )


def _large(track: Track, tuples: int) -> Finding:
    """The direct method with the row windows that the document's machine could not hold."""
    most: dict[QueryName, int] = {}
    for query in LARGE_ASKED:
        track.say(f"{query}, a row window of {tuples:,} rows, direct ...")
        answered = track.ask(job="large", query=query, method="direct", size=tuples // len(sources(query)))
        most[query] = answered["peak"] - answered["before"]
    return compared(
        f"row windows of {lifetimes.LARGE:,} rows, direct: out of memory, of which its VM had {VM_MEGABYTES} MB",
        f"{tuples:,} rows run, in " + ", ".join(f"{each / 1e6:,.0f} MB ({query})" for query, each in most.items()),
        min(most.values()) > VM_MEGABYTES * 1e6,
        f"Rows are kept in columns and holders are numbers: {max(most.values()) / tuples:,.0f} bytes for each row of "
        "the window, with all that a micro-batch needs.",
    )


def _least(points: Sequence[Point]) -> float:
    return min(point.ratio for point in points)


def _most(points: Sequence[Point]) -> float:
    return max(point.ratio for point in points)


def _range(points: Sequence[Point]) -> str:
    sizes = f"{points[0].tuples:,} to {points[-1].tuples:,} tuples"
    return f"{_least(points):.2f} to {_most(points):.2f} times ({sizes})"


def _relative(points: Sequence[Point], over: Any) -> float:
    first = points[0].throughput("direct")
    return float(over(point.throughput("direct") / first for point in points))


def _beyond(points: Sequence[Point], low: float, why: str) -> str:
    """More or less than the document's gain, and why."""
    if _least(points) < low:
        at = min(points, key=lambda point: point.ratio).tuples
        if at == min(point.tuples for point in points):
            return f"Less at {at:,} tuples, where fixed costs of a micro-batch, which both pay, weigh most."
        return f"Less at {at:,} tuples, which is not where fixed costs weigh most: why is not known."
    return f"More: {why}."


EXPERIMENT: Final = Experiment(
    "life-throughput", LIFE, "section 5, Figure 5", "Throughput of four queries over the window", measure, minutes=6
)
