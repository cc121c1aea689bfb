"""The document's experiment with TPMJ: page accesses, results over time, adaptivity, the order of merges.

pages        one join of four inputs against a cascade of joins of two, by MaxFanIn and Greedy: page accesses, the
             document's counts beside them, and results over time (its Figure 2)
adaptivity   sources that switch between 1 and 10 ms every 20 s: three strategies, delay and memory (its Figure 3)
traversal    all groups there, a small fan-in: merges in postorder against level order
pmj          two finite inputs of 4M rows at 64 MB against the join in memory (`sweep_pmj`): this one is timed

Everything else goes by a simulated clock (see `sweep_experiment`), so figures are the same on every machine. Results
of all variants are compared before anything is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.table import Table

from benchmarks import sweep_pmj
from benchmarks.environments import ROOT
from benchmarks.errors import BenchmarkError
from benchmarks.plots import write_plots
from benchmarks.race import Verdict
from benchmarks.sweep_experiment import (
    MEMORY,
    PHASE,
    QUICK_SIZE,
    SIZE,
    Plan,
    alternating,
    cascade,
    nway,
    permutations,
    steady,
)
from streamjoin.algebra.merging import Adaptive, Greedy, MaxFanIn
from streamjoin.reporting.charts import Line, Plot

QUESTIONS: Final = ("pages", "adaptivity", "traversal", "pmj")
SEED: Final = 0
FOLDER: Final = ROOT / "build" / "sweep"
EXPECTED: Final = 626_606  # results, over eight seeds by brute force; the document counted 631,130
GIVE_OR_TAKE: Final = 9_000
DOCUMENT: Final = {
    "MaxFanIn, n-way": 42_004,
    "MaxFanIn, cascade": 227_872,
    "Greedy, n-way": 107_214,
    "Greedy, cascade": 492_240,
}
# Goals: off the document's count, times fewer than the cascade, accesses when spared, and the speed of PMJ.
OFF, FEWER, SPARED, PMJ_SPEED = 0.03, {"MaxFanIn": 5.3, "Greedy": 4.6}, 80_000, 0.8
NEAR: Final = 0.01  # of the document's ratio
FIRST_RESULT: Final = 10.0  # seconds, as the document's Figure 2 shows it
FULL_FAN_IN: Final = 90
# How many groups a greedy merge takes is not in the document: 8 is nearest to its ratio. The goal goes back to another
# count of the same plans, by a sketch (cascade: 556,734): 7 is nearest to that. See `benchmarks.sweep_experiment`.
GREEDY_FAN_IN: Final = 8
GOAL_FAN_IN: Final = 7
OTHER_FAN_INS: Final = (FULL_FAN_IN, 6, GOAL_FAN_IN, 10)
SMALL_FAN_IN: Final = 3
# How many more results have left in postorder, of all of them, at these parts of the accesses on average.
PARTS, EARLIER = (0.25, 0.5, 0.75), 0.1
# One for each variant of the first experiment.
COLOURS: Final = (
    "#1b6ca8", "#d1495b", "#2e8b57", "#8a5a00", "#7a4fa3", "#666666", "#e08e0b", "#17a2b8", "#c2185b",
)  # fmt: skip

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What a question gave."""

    verdicts: list[Verdict]
    table: Table
    plots: dict[str, Plot]
    figures: dict[str, Any] = field(default_factory=dict)
    results: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"figures": self.figures, "verdicts": [verdict.to_json() for verdict in self.verdicts]}


def outcomes(asked: Sequence[str], quick: bool, say: Say) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """One after another; plots are written."""
    asking = {"pages": pages, "adaptivity": adaptivity, "traversal": traversal, "pmj": pmj}
    for name in asked:
        outcome = asking[name](QUICK_SIZE if quick else SIZE, say)
        write_plots(folder_of(quick), "Joins in sorted runs", outcome.plots)
        yield name, outcome.verdicts, outcome, outcome.table


def folder_of(quick: bool) -> Path:
    """Where plots go."""
    return FOLDER / "quick" if quick else FOLDER


def check_equal(plans: dict[str, Plan]) -> int:
    """All variants have the same results; how many."""
    (first, one), *others = plans.items()
    whole = one.curve.everything()
    for name, other in others:
        if not np.array_equal(whole, other.curve.everything()):
            raise BenchmarkError(f"{first} and {name} have different results: nothing else counts")
    return len(whole)


# -- page accesses -----------------------------------------------------------------------------------------------------


def pages(size: int, say: Say) -> Outcome:
    """The first experiment."""
    lows, arrival = permutations(SEED, size), steady(size)
    plans: dict[str, Plan] = {}
    variants: dict[str, Callable[[], Plan]] = {
        "MaxFanIn, n-way": lambda: nway(MaxFanIn(FULL_FAN_IN)),
        "MaxFanIn, cascade": lambda: cascade(MaxFanIn(FULL_FAN_IN)),
        "Greedy, n-way": lambda: nway(Greedy(GREEDY_FAN_IN)),
        "Greedy, cascade": lambda: cascade(Greedy(GREEDY_FAN_IN)),
        "Greedy, n-way, spared": lambda: nway(Greedy(GREEDY_FAN_IN), spare=True),
        # The document does not say how many groups a greedy merge takes; the first: as if it took all that came.
        **{f"Greedy, cascade, fan-in {fan_in}": _greedy_cascade(fan_in) for fan_in in OTHER_FAN_INS},
    }
    for name, make in variants.items():
        say(f"{name} ...")
        plans[name] = make().run(lows, arrival)
    count = check_equal(plans)
    computable = np.sort(np.concatenate(plans["MaxFanIn, n-way"].curve.starts))
    figures = {name: _figures(plan, computable, size) for name, plan in plans.items()}
    verdicts = [] if size != SIZE else _verdicts(count, plans, figures)
    return Outcome(verdicts, _pages_table(count, figures), {"figure2": _figure2(plans, computable)}, figures, count)


def _greedy_cascade(fan_in: int) -> Callable[[], Plan]:
    return lambda: cascade(Greedy(fan_in))


def _figures(plan: Plan, computable: Any, size: int) -> dict[str, Any]:
    first, left = plan.curve.results[0][0], np.array(plan.curve.results)
    ticks = np.arange(size // 4, size + 1, max(1, size // 100))
    by_then = np.searchsorted(computable, ticks, side="right")
    gone = np.concatenate([[0], left[:, 1]])[np.searchsorted(left[:, 0], ticks, side="right")]
    return {
        "accesses": plan.pages,
        "read": plan.figure("pages_read"),
        "written": plan.figure("pages_written"),
        "merges": plan.figure("merges"),
        "first_result": first / 1000,
        "share": float((gone / np.maximum(1, by_then)).mean()),
        "last_result": left[-1, 0] / 1000,
        "left_by_end": float(left[left[:, 0] <= size, 1].max(initial=0) / left[-1, 1]),
    }


def _verdicts(count: int, plans: dict[str, Plan], figures: dict[str, Any]) -> list[Verdict]:
    most, least = (figures[f"MaxFanIn, {way}"]["accesses"] for way in ("cascade", "n-way"))
    more, fewer = (figures[f"Greedy, {way}"]["accesses"] for way in ("cascade", "n-way"))
    at_goal = figures[f"Greedy, cascade, fan-in {GOAL_FAN_IN}"]["accesses"]
    its = DOCUMENT["Greedy, cascade"] / DOCUMENT["Greedy, n-way"]
    spared, document = figures["Greedy, n-way, spared"]["accesses"], DOCUMENT["MaxFanIn, n-way"]
    off = abs(least / document - 1)
    return [
        Verdict(
            "results", abs(count - EXPECTED), GIVE_OR_TAKE, f"{count:,} results, expected {EXPECTED:,}", at_most=True
        ),
        Verdict(
            "MaxFanIn, n-way", off, OFF, f"{least:,} page accesses, {off:.1%} from {document:,}", at_most=True
        ),
        *(
            Verdict(f"{name}{at}, cascade / n-way", times, FEWER[name], f"{times:.2f} times fewer accesses")
            for name, at, times in (
                ("MaxFanIn", "", most / least), ("Greedy", f", fan-in {GOAL_FAN_IN}", at_goal / fewer),
            )
        ),
        Verdict(
            f"Greedy, fan-in {GREEDY_FAN_IN}, beside the document", abs(more / fewer / its - 1), NEAR,
            f"{more / fewer:.2f} times fewer accesses, the document {its:.2f}", at_most=True,
        ),
        Verdict("Greedy, n-way, spared", spared, SPARED, f"{spared:,} page accesses", at_most=True),
    ]  # fmt: skip


def _pages_table(count: int, figures: dict[str, Any]) -> Table:
    table = Table(title=f"Page accesses, {count:,} results, equal in all variants")
    table.add_column("")
    headings = ("accesses", "of n-way", "document", "read", "written", "merges", "first result, s", "share left")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name, each in figures.items():
        document = DOCUMENT.get(name)
        times = each["accesses"] / figures[f"{name.partition(',')[0]}, n-way"]["accesses"]
        table.add_row(
            name, f"{each['accesses']:,}", f"{times:.2f}" if "cascade" in name else "",
            "" if document is None else f"{document:,}", f"{each['read']:,}", f"{each['written']:,}",
            f"{each['merges']:,}", f"{each['first_result']:.1f}", f"{each['share']:.0%}",
        )  # fmt: skip
    return table


def _figure2(plans: dict[str, Plan], computable: Any) -> Plot:
    lines = []
    for (name, plan), colour in zip(plans.items(), COLOURS, strict=True):
        lines.append(Line(name, [(0, 0), *((clock / 1000, count) for clock, count in plan.curve.results)], colour))
    ticks = np.linspace(0, computable[-1], 101)
    by_then = np.searchsorted(computable, ticks, side="right")
    points = [(float(at) / 1000, float(there)) for at, there in zip(ticks, by_then, strict=True)]
    lines.append(Line("computable by then", points, "#bbbbbb", dashed=True))
    words = [
        "Figure 2 of the document: results over time. A merge thread of 1.4 pages per ms. "
        f"The document's first results come after {FIRST_RESULT:g} s."
    ]
    return Plot("results over time", "seconds", "results", lines, words, linear=True)


# -- adaptivity --------------------------------------------------------------------------------------------------------


def adaptivity(size: int, say: Say) -> Outcome:
    """The second experiment."""
    lows, arrival = permutations(SEED, size), alternating(size)
    plans: dict[str, Plan] = {}
    for strategy in (MaxFanIn(GREEDY_FAN_IN), Greedy(GREEDY_FAN_IN), Adaptive(GREEDY_FAN_IN)):
        name = type(strategy).__name__
        say(f"{name} ...")
        plans[name] = nway(strategy, ahead=MEMORY).run(lows, arrival)
    count = check_equal(plans)
    figures = {}
    for name, plan in plans.items():
        delay = np.concatenate(plan.curve.delays) / 1000
        used = np.array([used for _, used in plan.curve.memory])
        figures[name] = {
            "accesses": plan.pages, "merges": plan.figure("merges"), "delay": float(delay.mean()),
            "median": float(np.median(delay)), "largest": float(delay.max()), "memory": float(used.max()),
            "mean_memory": float(used.mean()), "in_slow_phases": _in_slow_phases(plan, float(arrival[-1])),
        }  # fmt: skip
    table = Table(title=f"1 and 10 ms in turns of 20 s, {count:,} results, equal in all variants")
    table.add_column("")
    for heading in ("accesses", "merges", "delay, mean s", "median", "largest", "memory, largest MB", "mean"):
        table.add_column(heading, justify="right")
    for name, each in figures.items():
        table.add_row(
            name, f"{each['accesses']:,}", f"{each['merges']}", f"{each['delay']:.1f}", f"{each['median']:.1f}",
            f"{each['largest']:.1f}", f"{each['memory'] / 1e6:.2f}", f"{each['mean_memory'] / 1e6:.2f}",
        )  # fmt: skip
    verdicts = []
    if size == SIZE:
        low, middle, high = (figures[name]["accesses"] for name in ("MaxFanIn", "Adaptive", "Greedy"))
        verdicts = [
            Verdict("Adaptive, accesses beside Greedy", high / middle, 1.0, f"{middle:,} of {low:,} to {high:,}"),
            Verdict(
                "Adaptive, delay beside MaxFanIn", figures["MaxFanIn"]["delay"] / figures["Adaptive"]["delay"], 1.0,
                f"{figures['Adaptive']['delay']:.1f} s on average, MaxFanIn {figures['MaxFanIn']['delay']:.1f}, "
                f"Greedy {figures['Greedy']['delay']:.1f}",
            ),
        ]  # fmt: skip
    return Outcome(verdicts, table, _figure3(plans), figures, count)


def _in_slow_phases(plan: Plan, end: float) -> float:
    """The share of the results that leave while sources are slow; what leaves after their end does not count there."""
    clock, count = np.array([(0.0, 0), *plan.curve.results]).T
    slow = (clock[1:] <= end) & (clock[1:] // PHASE % 2 == 1)
    return float(np.diff(count)[slow].sum() / count[-1])


def _figure3(plans: dict[str, Plan]) -> dict[str, Plot]:
    words = ["Figure 3 of the document: an element per 1 ms and per 10 ms, in turns of 20 s; four inputs at once."]
    results, memory = [], []
    for (name, plan), colour in zip(plans.items(), COLOURS, strict=False):
        left = [(0.0, 0), *plan.curve.results]
        results.append(Line(name, [(clock / 1000, count) for clock, count in left], colour))
        memory.append(Line(name, _thin([(clock / 1000, used / 1e6) for clock, used in plan.curve.memory]), colour))
    return {
        "figure3_results": Plot("results over time", "seconds", "results", results, words, linear=True),
        "figure3_memory": Plot("memory", "seconds", "MB: lists, pages, alive, results", memory, words, linear=True),
    }


def _thin(points: list[tuple[float, float]], most: int = 400) -> list[tuple[float, float]]:
    """The largest of every few neighbours, so that peaks stay."""
    step = -(-len(points) // most)
    return [max(points[at : at + step], key=lambda point: point[1]) for at in range(0, len(points), step)]


# -- the order of merges -----------------------------------------------------------------------------------------------


def traversal(size: int, say: Say) -> Outcome:
    """Postorder against level order: how much has left after how many accesses."""
    lows, arrival = permutations(SEED, size), steady(size)
    plans: dict[str, Plan] = {}
    for order in ("postorder", "level order"):
        say(f"{order} ...")
        plan = nway(MaxFanIn(SMALL_FAN_IN, traversal=order))  # type: ignore[arg-type]
        plan.waits = True
        plans[order] = plan.run(lows, arrival)
    count = check_equal(plans)
    figures = {}
    for order, plan in plans.items():
        at = np.array(plan.curve.accesses)
        end = at[-1, 0]
        steps = np.diff(np.concatenate([at[:, 0], [end]]))
        (half,) = left_after(plan.curve.accesses, (end / 2,))
        figures[order] = {
            "accesses": plan.pages, "half": half, "mean": float((at[:, 1] * steps).sum() / (count * end)),
        }  # fmt: skip
    table = Table(title=f"Fan-in {SMALL_FAN_IN}, merges when all groups are there, {count:,} results, equal in both")
    for heading in ("", "accesses", "left after half of them", "on average"):
        table.add_column(heading, justify="right" if heading else "left")
    for order, each in figures.items():
        table.add_row(order, f"{each['accesses']:,}", f"{each['half']:.0%}", f"{each['mean']:.0%}")
    lines = [
        Line(order, [(0, 0), *((float(a), float(b)) for a, b in plan.curve.accesses)], colour)
        for (order, plan), colour in zip(plans.items(), COLOURS, strict=False)
    ]
    words = ["What has left after so many page accesses, when merging begins with all groups there."]
    plot = Plot("postorder and level order", "page accesses", "results", lines, words, linear=True)
    verdicts = [earlier(*(plan.curve.accesses for plan in plans.values()))] if size == SIZE else []
    return Outcome(verdicts, table, {"traversal": plot}, figures, count)


Left = Sequence[tuple[float, float]]  # after so many page accesses, how many results have left


def left_after(curve: Left, accesses: Sequence[float]) -> list[float]:
    """The share of all results that have left after so many accesses.

    >>> left_after([(10, 1), (20, 4)], [5, 10, 15, 20])
    [0.0, 0.25, 0.25, 1.0]
    """
    at, left = np.array(curve, dtype=np.float64).T
    before = np.searchsorted(at, accesses, side="right")
    return [float(share) for share in np.concatenate([[0.0], left])[before] / left[-1]]


def earlier(postorder: Left, level_order: Left) -> Verdict:
    """Whether more results leave early in postorder: both are looked at after the same numbers of accesses, parts of
    what the slower one needs. A difference of shares, because in level order there may be none at all until late.
    """
    end = max(postorder[-1][0], level_order[-1][0])
    shares = [left_after(curve, [part * end for part in PARTS]) for curve in (postorder, level_order)]
    told = [", ".join(f"{share:.0%}" for share in each) for each in shares]
    parts = ", ".join(f"{part:.0%}" for part in PARTS)
    text = f"after {parts} of the accesses {told[0]} of the results have left, in level order {told[1]}"
    return Verdict("postorder beside level order", float(np.mean(shares[0]) - np.mean(shares[1])), EARLIER, text)


# -- finite inputs -----------------------------------------------------------------------------------------------------


def pmj(size: int, say: Say) -> Outcome:
    """PMJ beside the join in memory."""
    quick = size != SIZE
    rows = sweep_pmj.QUICK_ROWS if quick else sweep_pmj.ROWS
    memory, merged = sweep_pmj.compare(rows, 1 if quick else sweep_pmj.REPETITIONS, say)
    if memory.results != merged.results:
        raise BenchmarkError(f"{memory.results:,} results in memory, {merged.results:,} in generations")
    ratio = memory.median / merged.median
    table = Table(title=f"2 x {rows:,} rows, {sweep_pmj.MEMORY >> 20} MB, {memory.results:,} results")
    for heading in ("", "seconds", "of the process", "generations", "early results", "memory above the rows"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("in memory", f"{memory.median:.2f}", f"{memory.median_cpu:.2f}", "", "", "")
    early, above = f"{merged.early / merged.results:.1%}", f"{merged.above / (1 << 20):.0f} MB"
    cpu = f"{merged.median_cpu:.2f}"
    table.add_row("pmj", f"{merged.median:.2f}", cpu, str(merged.generations), early, above)
    text = f"{ratio:.2f} of the join in memory ({merged.median:.2f} s against {memory.median:.2f} s)"
    figures = {
        "memory": memory.seconds, "pmj": merged.seconds, "early": merged.early, "results": merged.results,
        "above": merged.above, "memory cpu": memory.cpu, "pmj cpu": merged.cpu,
    }  # fmt: skip
    over = merged.above / sweep_pmj.MEMORY
    verdicts = [
        Verdict("pmj beside in memory", ratio, PMJ_SPEED, text),
        Verdict("memory of pmj", over, 1.0, f"{over:.2f} of its budget, at most", at_most=True),
    ]
    return Outcome([] if quick else verdicts, table, {}, figures)
