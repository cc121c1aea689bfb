"""What `streamjoin bench priority` asks, prints and plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.plots import write_plots
from benchmarks.priority_room import control_room
from benchmarks.priority_room.claims import Found, figure, measure, to_json
from benchmarks.priority_room.elements import PER_SOURCE
from benchmarks.priority_room.experiment import LOADS, Measured, Room, document_room, everything
from benchmarks.priority_room.join_formula import CASES, Case, mean_gain
from benchmarks.priority_room.report import claims_table, formula_table, gains_plot, load_table, sweep_plot, sweep_table
from benchmarks.priority_room.sweeps import OVERLOAD, SWEEPS, Say, elements_of
from benchmarks.race import Verdict
from streamjoin.reporting.charts import Plot

FOLDER: Final = ROOT / "build" / "priority"
QUESTIONS: Final = ("claims", *SWEEPS, "formula", "alarms")
QUICK_PER_SOURCE: Final = 1_000
QUICK_LOADS: Final = (0.7, 1.2)
SMALL_LOAD: Final = 0.7

# What must come out at load 1.2, against the best scheduler that knows of no priorities.
HIGHEST_PRIORITY_GAIN, PROPOSAL_GAIN, THROUGHPUT_LOST = 5_000, 1_000, 0.05
SMALL_GAIN: Final = 2  # at load 0.7: priorities are for overload
WAITING_TERM: Final = 0.05  # off, in the cases where a join's gain is waiting only

Outcomes = Iterator[tuple[str, list[Verdict], Any, Table]]


@dataclass(frozen=True)
class AtLoad:
    """Everything at one load."""

    found: Found

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return to_json(self.found)


@dataclass(frozen=True)
class AllClaims:
    """The claims over all loads."""

    loads: Sequence[Found]

    @property
    def verdicts(self) -> list[Verdict]:
        """What must come out beside the document's own claims."""
        made = []
        for found in self.loads:
            if found.load == OVERLOAD:
                highest = [found.runs[name, "direct"] for name in ("highest priority", "highest priority+")]
                for run in highest:
                    words = f"load {found.load:g}: {run.variant.name}, direct against the best unprioritised"
                    made.append(_gain(words, found, run, HIGHEST_PRIORITY_GAIN))
                words = f"load {found.load:g}: proposal+, direct, priority known at the source, against the same"
                made.append(_gain(words, found, found.known, PROPOSAL_GAIN))
                lost = found.throughput_lost(found.known)
                made.append(Verdict("... throughput that it loses", lost, THROUGHPUT_LOST, f"{lost:.3f}", at_most=True))
            elif found.load == SMALL_LOAD:
                runs = (found.runs["highest priority+", "direct"], found.known)
                best = max(runs, key=found.gain_on_best)
                words = f"load {found.load:g}: the gain is small ({best.variant.name}, direct)"
                made.append(_gain(words, found, best, SMALL_GAIN, at_most=True))
        return made

    def to_json(self) -> dict[str, Any]:
        """Each claim by load."""
        return {f"{found.load:g}": to_json(found)["claims"] for found in self.loads}


@dataclass(frozen=True)
class Formula:
    """Cases of the formula and what was won when they were run."""

    measured: dict[Case, float]

    @property
    def verdicts(self) -> list[Verdict]:
        """The waiting term alone must be right; the others are shown."""
        off = max(abs(sum(c.terms) / won - 1) for c, won in self.measured.items() if c.name.startswith("waiting only"))
        return [Verdict("formula: waiting term off by", off, WAITING_TERM, f"{off:.3f}", at_most=True)]

    def to_json(self) -> dict[str, Any]:
        """All cases."""
        return {case.name: {**asdict(case), "terms": case.terms, "won": won} for case, won in self.measured.items()}


def outcomes(asked: Sequence[str], quick: bool, say: Say) -> Outcomes:
    """One question after another; plots are written."""
    if "claims" in asked:
        loads = []
        for load in QUICK_LOADS if quick else LOADS:
            say(f"load {load:g}: every scheduler with every kind of buffer ...")
            loads.append(measure_load(load, quick))
            yield f"load {load:g}", [], AtLoad(loads[-1]), load_table(loads[-1])
        _write("loads", gains_plot(loads), quick)
        claims = AllClaims(loads)
        yield "claims", claims.verdicts, claims, claims_table(loads)
    for name, sweep in SWEEPS.items():
        if name in asked:
            swept = sweep(quick, say)
            _write(name, sweep_plot(swept), quick)
            yield name, [], swept, sweep_table(swept, elements_of(quick))
    if "formula" in asked:
        say("the formula of a join's gain ...")
        formula = Formula({case: mean_gain(case, 3 if quick else 100) for case in CASES})
        yield "formula", formula.verdicts, formula, formula_table(formula.measured)
    if "alarms" in asked:
        say("alarms among status messages ...")
        alarms = control_room.measure(QUICK_PER_SOURCE if quick else PER_SOURCE)
        if not quick:
            control_room.write_plot(alarms)
        yield "alarms", [], alarms, control_room.table_of(alarms)


def measure_load(load: float, quick: bool, per_source: int | None = None) -> Found:
    """All variants at a load; with another number of elements of each source than usual, if it is told."""
    usual = QUICK_PER_SOURCE if quick else PER_SOURCE

    def few_elements(priorities: int) -> Room:
        return document_room(min(per_source or usual, elements_of(quick)), priorities=priorities)

    return measure(document_room(per_source or usual), everything(load), few_elements, load)


def folder_of(quick: bool) -> Path:
    """Where plots go."""
    return FOLDER / "quick" if quick else FOLDER


def _gain(words: str, found: Found, run: Measured, target: float, *, at_most: bool = False) -> Verdict:
    best, gain = found.best_unprioritised(), found.gain_on_best(run)
    text = (
        f"{figure(gain)} times ({figure(run.prioritised.mean * 1e3)} ms against "
        f"{figure(best.prioritised.mean * 1e3)} ms with {best.variant.name})"
    )
    return Verdict(words, gain, target, text, at_most=at_most)


def _write(name: str, plot: Plot, quick: bool) -> None:
    write_plots(folder_of(quick), "Priorities", {name: plot})
