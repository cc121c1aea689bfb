"""SWEEP: Figure 3, sources that alternate between 1 and 10 ms, by three strategies."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from benchmarks import sweep
from benchmarks.plots import COLOURS
from benchmarks.reproduce.documents import SWEEP, SWEEP_DIFFERENT
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, beside, compared
from benchmarks.sweep_experiment import MEMORY, SIZE, alternating
from streamjoin.reporting.charts import Line, Plot

FEW_TIMES: Final = 3.0  # of it: noticeable, not the greater part
MOST: Final = 0.5  # of the results: phases of both rates are equally long
FULL: Final = 0.95  # of the memory for rows: "up to the limit"
QUICK_SIZE: Final = 6_000  # just enough to be written


def measure(effort: Effort) -> Findings:
    """MaxFanIn, Greedy and what switches between them, on the same streams."""
    size = QUICK_SIZE if effort.quick else SIZE
    outcome = sweep.adaptivity(size, effort.say)
    return Findings(
        lines=_lines(outcome.figures),
        plots=[_rates(size), *outcome.plots.values()],
        checks=[Check("all strategies have the same results, in order", outcome.results > 0)],
        shortened=f"{QUICK_SIZE:,} instead of {SIZE:,} elements of each stream." if effort.quick else "",
        different=SWEEP_DIFFERENT,
        figures=outcome.figures,
    )


def _lines(figures: dict[str, Any]) -> list[Finding]:
    most, adaptive, greedy = (figures[name] for name in ("MaxFanIn", "Adaptive", "Greedy"))
    largest = max(figures, key=lambda name: figures[name]["memory"])
    between = most["accesses"] <= adaptive["accesses"] <= greedy["accesses"]
    return [
        compared(
            "MaxFanIn under a high rate and Greedy under a low one: results come when the strategy has changed",
            ", ".join(
                f"{name}: {each['in_slow_phases']:.0%} leave while rates are low" for name, each in figures.items()
            ),
            adaptive["in_slow_phases"] > MOST,
            f"{1 - adaptive['in_slow_phases']:.0%} of Adaptive's leave under a high rate or after the sources' end.",
        ),
        beside(
            "how late results leave",
            ", ".join(f"{name}: {each['delay']:.1f} s on average" for name, each in figures.items()),
            "Adaptive lies between both."
            if greedy["delay"] <= adaptive["delay"] <= most["delay"]
            else "Adaptive does not lie between both.",
        ),
        beside(
            "the price of that in page accesses",
            ", ".join(f"{name}: {each['accesses']:,}" for name, each in figures.items()),
            "Adaptive lies between both."
            if between
            else "Fewer than with MaxFanIn: groups that are left alone under a high rate are merged in one go later."
            if adaptive["accesses"] < most["accesses"]
            else "Adaptive needs more than both.",
        ),
        compared(
            "memory rises to the limit of 1 MB, at which rows are written",
            ", ".join(f"{name}: {each['memory'] / 1e6:.2f} MB at most" for name, each in figures.items()),
            min(each["memory"] for each in figures.values()) >= FULL * MEMORY,
            "The streams are too short to fill it.",
        ),
        compared(
            "while results are computed, sweep areas and buffers need memory that is noticeable",
            f"at most {max(each['memory'] for each in figures.values()) / MEMORY:.1f} times the 1 MB for rows; "
            f"on average {greedy['mean_memory'] / 1e6:.2f} MB with Greedy, "
            f"{most['mean_memory'] / 1e6:.2f} MB with MaxFanIn",
            1.1 < max(each["memory"] for each in figures.values()) / MEMORY < FEW_TIMES,
            f"Results of a merge are held until they are sorted, most with {largest}; the document's plot shows one "
            "strategy only, the switching one."
            if figures[largest]["memory"] / MEMORY >= FEW_TIMES
            else "They hardly need any beside the rows.",
        ),
    ]


def _rates(size: int) -> Plot:
    """The rectangle of Figure 3."""
    seconds = alternating(size) / 1000
    edges = np.arange(0, int(seconds[-1]) + 2)
    rate, _ = np.histogram(seconds, edges)
    points = [(float(at), float(each)) for at, each in zip(edges[:-1], rate, strict=True)]
    line = Line("elements per second of each source", points, COLOURS[5])
    return Plot("Input rates", "seconds", "elements per second", [line], linear=True, stepped=True)


EXPERIMENT: Final = Experiment("sweep-rates", SWEEP, "section 7, Figure 3", "Alternating rates", measure, minutes=2.5)
