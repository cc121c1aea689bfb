"""SWEEP: page accesses and Figure 2, one join of four inputs against a cascade, by two strategies."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import sweep
from benchmarks.reproduce.documents import SWEEP, SWEEP_DIFFERENT
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, at_most_off, compared
from benchmarks.sweep_experiment import PAGES_PER_MS, SIZE

DOCUMENT_RESULTS: Final = 631_130
DEVIATION: Final = 2_815  # of the results over eight seeds, by brute force
CHANCE: Final = 3.0  # deviations that a draw may be off by chance
NEAR: Final = 0.1  # of a count of page accesses
KEEPS_UP: Final = 0.9  # of what is computable, on average: "essentially"
QUICK_SIZE: Final = 6_000  # just enough to be written


def measure(effort: Effort) -> Findings:
    """All variants on the same streams; they are compared before anything is counted."""
    size = QUICK_SIZE if effort.quick else SIZE
    outcome = sweep.pages(size, effort.say)
    return Findings(
        lines=_lines(outcome.results, outcome.figures, size / 1000),
        plots=list(outcome.plots.values()),
        checks=[Check("all variants have the same results, in order", outcome.results > 0)],
        shortened=f"{QUICK_SIZE:,} instead of {SIZE:,} elements of each stream." if effort.quick else "",
        different=SWEEP_DIFFERENT,
        figures=outcome.figures,
    )


def _lines(count: int, figures: dict[str, Any], end: float) -> list[Finding]:
    return [
        _results(count),
        *_accesses({name: figures[name]["accesses"] for name in sweep.DOCUMENT}),
        *(_ratio(strategy, figures) for strategy in ("MaxFanIn", "Greedy")),
        _first(figures),
        *(_greedy_keeps_up(figures, way) for way in ("n-way", "cascade")),
        _nway_is_faster(figures),
        _maxfanin_waits(figures, end),
    ]


def _results(count: int) -> Finding:
    off = (DOCUMENT_RESULTS - sweep.EXPECTED) / DEVIATION
    return compared(
        f"{DOCUMENT_RESULTS:,} results",
        f"{count:,}",
        abs(count - DOCUMENT_RESULTS) <= DEVIATION,
        f"The streams are random permutations: {sweep.EXPECTED:,} on average over eight seeds, with a standard "
        f"deviation of {DEVIATION:,}, so the document's draw is {off:.1f} deviations above the mean."
        if abs(count - sweep.EXPECTED) <= CHANCE * DEVIATION
        else f"More than {CHANCE:g} deviations off the mean of eight seeds, {sweep.EXPECTED:,}: why is not known.",
    )


def _accesses(measured: dict[str, int]) -> list[Finding]:
    near = {name: at_most_off(count, sweep.DOCUMENT[name], NEAR) for name, count in measured.items()}
    why = (
        "One choice of sizes, rate and fan-ins has to serve all four counts, and "
        f"{sum(near.values())} of them are within {NEAR:.0%}."
    )
    return [
        compared(
            f"{name}: {sweep.DOCUMENT[name]:,} page accesses",
            f"{count:,} ({count / sweep.DOCUMENT[name] - 1:+.1%})",
            near[name],
            why if any(near.values()) else "None of the four counts is near: why is not known.",
        )
        for name, count in measured.items()
    ]


def _ratio(strategy: str, figures: dict[str, Any]) -> Finding:
    document = sweep.DOCUMENT[f"{strategy}, cascade"] / sweep.DOCUMENT[f"{strategy}, n-way"]
    measured = figures[f"{strategy}, cascade"]["accesses"] / figures[f"{strategy}, n-way"]["accesses"]
    return compared(
        f"{strategy}: the cascade needs about five times the accesses ({document:.2f} times)",
        f"{measured:.2f} times",
        4 <= measured <= 6,
        f"{'Fewer' if measured < 4 else 'More'} pages of intermediate results are written and read here.",
    )


def _first(figures: dict[str, Any]) -> Finding:
    firsts = [figures[name]["first_result"] for name in sweep.DOCUMENT]
    return compared(
        f"no variant has results before the first elements leave their windows, after {sweep.FIRST_RESULT:g} s",
        ", ".join(f"{name}: {first:.1f} s" for name, first in zip(sweep.DOCUMENT, firsts, strict=True)),
        min(firsts) >= sweep.FIRST_RESULT,
        "A merge with the oldest group may emit every result that starts before the progress at which its newest group "
        "was written: nobody has to leave a window for that, only the groups have to be merged.",
    )


def _greedy_keeps_up(figures: dict[str, Any], way: str) -> Finding:
    share, accesses = (figures[f"Greedy, {way}"][name] for name in ("share", "accesses"))
    return compared(
        f"Greedy, {way}: at any time essentially what is computable by then has left",
        f"{share:.0%} of it on average",
        share >= KEEPS_UP,
        f"Its page accesses take {accesses / PAGES_PER_MS / 1000:,.0f} s of merge threads at {PAGES_PER_MS:g} pages "
        "per millisecond, a rate that is not in the document: it falls behind.",
    )


def _nway_is_faster(figures: dict[str, Any]) -> Finding:
    nway, cascade = (figures[f"Greedy, {way}"]["share"] for way in ("n-way", "cascade"))
    times = figures["Greedy, cascade"]["accesses"] / figures["Greedy, n-way"]["accesses"]
    return compared(
        "Greedy: the n-way join delivers slightly faster than the cascade",
        f"on average {nway:.0%} of what is computable has left, of the cascade {cascade:.0%}",
        KEEPS_UP * nway <= cascade < nway,
        f"More than slightly: the cascade's merge threads have {times:.1f} times the page accesses to make."
        if cascade < nway
        else "It is not: why is not known.",
    )


def _maxfanin_waits(figures: dict[str, Any], end: float) -> Finding:
    said, held = [], []
    for way in ("n-way", "cascade"):
        waits, keeps_up = figures[f"MaxFanIn, {way}"], figures[f"Greedy, {way}"]
        said.append(
            f"{way}: the last result after {waits['last_result']:.1f} s, {waits['left_by_end']:.0%} had left when the "
            f"sources ended (Greedy: {keeps_up['left_by_end']:.0%})"
        )
        held.append(waits["last_result"] >= end and waits["left_by_end"] < keeps_up["left_by_end"])
    return compared(
        f"MaxFanIn waits too long with merges, and is through only when all sources have ended (after {end:g} s)",
        "; ".join(said),
        all(held),
        "Its fan-in is reached often enough to keep up with Greedy."
        if all(figures[f"MaxFanIn, {way}"]["last_result"] >= end for way in ("n-way", "cascade"))
        else "Its last merge is through before the sources have ended.",
    )


EXPERIMENT: Final = Experiment(
    "sweep-pages", SWEEP, "section 7, Figure 2", "Page accesses, and results over time", measure, minutes=3
)
