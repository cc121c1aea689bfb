"""BEST: the algorithm as printed, with each correction left out, beside the definition and beside our operator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from benchmarks.plots import COLOURS, Dots
from benchmarks.reproduce.best_inputs import KINDS, Answer, Inputs, by_our_operator, draw
from benchmarks.reproduce.documents import BEST
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, beside, compared
from benchmarks.window_algorithm import AS_PRINTED, CORRECTED, Corrections, WindowAlgorithm, nested_loops
from streamjoin.reporting.charts import Line

RUNS, QUICK_RUNS = 250, 12  # of each kind of input
ROWS: Final = 40

WAYS: Final[dict[str, Corrections]] = {
    "corrected": CORRECTED,
    "begins at [0, epsilon]": replace(CORRECTED, start=False),
    "keeps right rows that never fit": replace(CORRECTED, throw_away=False),
    "bounds as rounded sums": replace(CORRECTED, differences=False),
    "says nothing of unmatched rows": replace(CORRECTED, unmatched=False),
    "as printed": AS_PRINTED,
}


@dataclass
class Faults:
    """What went wrong over many runs."""

    runs: int = 0
    wrong: int = 0
    missing: int = 0
    invented: int = 0
    unpadded: int = 0
    padded_too: int = 0
    stuck: int = 0

    def add(self, truth: Answer, found: Answer, stuck: bool) -> None:
        """One run more."""
        self.runs += 1
        self.wrong += found != truth
        self.missing += len(truth.pairs - found.pairs)
        self.invented += len(found.pairs - truth.pairs)
        self.unpadded += len(truth.padded - found.padded)
        self.padded_too += len(found.padded - truth.padded)
        self.stuck += stuck

    def words(self) -> str:
        """In one line, without what did not happen."""
        said = [
            f"{count:,} {what}"
            for count, what in (
                (self.missing, "results missing"),
                (self.invented, "pairs that are none"),
                (self.unpadded, "rows without a partner not said"),
                (self.padded_too, "rows padded that have one"),
                (self.stuck, "runs in which the bounds stood still for ever"),
            )
            if count
        ]
        return f"{self.wrong:,} of {self.runs:,} runs wrong" + (f": {', '.join(said)}" if said else "")


def faults_of(inputs: Inputs, truth: Answer, faults: dict[tuple[str, str], Faults]) -> None:
    """Every way on one input."""
    for name, corrections in WAYS.items():
        joined = WindowAlgorithm(inputs.left, inputs.right, inputs.epsilons, corrections).run()
        faults.setdefault((name, inputs.kind), Faults()).add(truth, Answer.of(joined), joined.stuck)


def measure(effort: Effort) -> Findings:
    """All kinds of inputs, all ways; the definition by nested loops is the truth, and our operator must be equal."""
    faults: dict[tuple[str, str], Faults] = {}
    runs, unequal = QUICK_RUNS if effort.quick else RUNS, 0
    for kind in KINDS:
        effort.say(f"best match, {kind} values: {runs} inputs, {len(WAYS)} ways ...")
        for seed in range(runs):
            inputs = draw(kind, seed, ROWS)
            tables = inputs.left, inputs.right, inputs.epsilons
            truth = Answer.of(nested_loops(*tables))
            unequal += by_our_operator(*tables) != truth
            faults_of(inputs, truth, faults)
    by_way = {name: _together(faults, name) for name in WAYS}
    return Findings(
        lines=_lines(by_way, faults),
        plots=[_plot(faults)],
        checks=[
            Check("the corrected algorithm equals the definition in every run", by_way["corrected"].wrong == 0),
            Check("our operator equals the definition in every run", unequal == 0),
            Check("each correction left out gives wrong runs", all(by_way[name].wrong for name in list(WAYS)[1:])),
        ],
        figures={f"{name}, {kind}": vars(each) for (name, kind), each in faults.items()},
    )


def _together(faults: dict[tuple[str, str], Faults], name: str) -> Faults:
    added: dict[str, Any] = {}
    for (way, _), each in faults.items():
        if way == name:
            added = {field: added.get(field, 0) + count for field, count in vars(each).items()}
    return Faults(**added)


WHY: Final = {
    "begins at [0, epsilon]": "Values below zero are never in a window that begins at zero.",
    "keeps right rows that never fit": (
        "A right row that the windows jump over stays at the head of its input, and nobody behind it is ever read."
    ),
    "bounds as rounded sums": (
        "next - epsilon + epsilon may be less than next, which then never fits; and rows on a bound fall to its wrong "
        "side."
    ),
    "says nothing of unmatched rows": (
        "The buffer holds pairs only, so a left row without one is never written, though the join is a left-outer one."
    ),
}


def _lines(by_way: dict[str, Faults], faults: dict[tuple[str, str], Faults]) -> list[Finding]:
    printed, corrected = by_way["as printed"], by_way["corrected"]
    whole = faults["as printed", "whole"]
    pairs_right = whole.missing == whole.invented == 0
    lines = [
        compared(
            '"all correct result tuples and only those", as printed',
            printed.words(),
            printed.wrong == 0,
            "Four places of the text need a correction, as the lines below show one by one.",
        ),
        Finding('"all correct result tuples and only those", with the four corrections', corrected.words()),
        compared(
            "as printed, values from zero on and no gap wider than epsilon: the pairs are right",
            whole.words(),
            pairs_right,
            "Even there a right row can be jumped over, where the next left row is more than epsilon away.",
        ),
    ]
    lines += [
        beside(f"without one correction: {name}", by_way[name].words(), why if by_way[name].wrong else "")
        for name, why in WHY.items()
    ]
    return lines


def _plot(faults: dict[tuple[str, str], Faults]) -> Dots:
    lines = []
    for kind, colour in zip(KINDS, COLOURS, strict=False):
        each = [faults[name, kind] for name in WAYS]
        lines.append(Line(kind, [(at, 100 * some.wrong / some.runs) for at, some in enumerate(each)], colour))
    words = ["Share of the runs whose result is not that of the definition, by kind of values and correction left out."]
    title = "What goes wrong without a correction"
    return Dots(title, "", "% of runs wrong", lines, words, linear=True, names=tuple(WAYS))


EXPERIMENT: Final = Experiment(
    "best-window", BEST, "the algorithm", "The Window Algorithm as printed, and its corrections", measure, minutes=0.5
)
