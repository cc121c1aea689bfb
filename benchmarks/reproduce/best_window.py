"""BEST: the algorithm as printed, with each correction left out, beside the definition and beside our operator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from benchmarks.plots import COLOURS, Dots
from benchmarks.reproduce.best_inputs import KINDS, Answer, Inputs, by_our_operator, draw
from benchmarks.reproduce.documents import BEST
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, beside, compared
from benchmarks.window_algorithm import AS_PRINTED, CORRECTED, Corrections, Joined, WindowAlgorithm, nested_loops
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
    again: int = 0
    unpadded: int = 0
    padded_too: int = 0
    unordered: int = 0
    stuck: int = 0

    def add(self, truth: Answer, joined: Joined) -> None:
        """One run more. Counters: who left twice is one too many."""
        found = Answer.of(joined)
        too_many = found.pairs - truth.pairs
        invented = sum(count for pair, count in too_many.items() if pair not in truth.pairs)
        self.runs += 1
        self.wrong += found != truth or not joined.in_order
        self.missing += (truth.pairs - found.pairs).total()
        self.invented += invented
        self.again += too_many.total() - invented
        self.unpadded += (truth.padded - found.padded).total()
        self.padded_too += (found.padded - truth.padded).total()
        self.unordered += not joined.in_order
        self.stuck += joined.stuck

    def words(self) -> str:
        """In one line, without what did not happen."""
        said = [
            f"{count:,} {what}"
            for count, what in (
                (self.missing, "results missing"),
                (self.invented, "pairs that are none"),
                (self.again, "pairs given again"),
                (self.unpadded, "rows without a partner not said"),
                (self.padded_too, "rows padded that have one, or twice"),
                (self.unordered, "runs not in the order of the left input"),
                (self.stuck, "runs in which the bounds stood still for ever"),
            )
            if count
        ]
        return f"{self.wrong:,} of {self.runs:,} runs wrong" + (f": {', '.join(said)}" if said else "")


def faults_of(inputs: Inputs, truth: Answer, faults: dict[tuple[str, str], Faults]) -> None:
    """Every way on one input."""
    for name, corrections in WAYS.items():
        joined = WindowAlgorithm(inputs.left, inputs.right, inputs.epsilons, corrections).run()
        faults.setdefault((name, inputs.kind), Faults()).add(truth, joined)


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
            Check(
                "the corrected algorithm equals the definition in every run, in the order of the left input",
                by_way["corrected"].wrong == 0,
            ),
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
    "begins at [0, epsilon]": (
        "In the first windows a left row up to epsilon above zero meets neither right rows below zero nor those behind "
        "them in the input; then the bounds move up, and what is below them never is in a window with it. (A left "
        "input that begins below zero leaves these windows empty, and its fourth case makes that good.)"
    ),
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
    pairs_right = whole.missing == whole.invented == whole.again == 0
    needed = sum(by_way[name].wrong > 0 for name in WHY)
    lines = [
        compared(
            '"all correct result tuples and only those", as printed',
            printed.words(),
            printed.wrong == 0,
            f"Left out alone, {needed} of the {len(WHY)} corrections give wrong runs, as the lines below show.",
        ),
        compared(
            '"all correct result tuples and only those", with the four corrections',
            corrected.words(),
            corrected.wrong == 0,
            "The corrections are not enough.",
        ),
        beside(
            "as printed, both sides from zero on and no gap wider than epsilon: its pairs",
            f"{'all right' if pairs_right else 'not all right'}; {whole.words()}",
            ""
            if pairs_right
            else "Even there a right row can be jumped over, where the next left row is more than epsilon away.",
        ),
    ]
    lines += [
        beside(f"without one correction: {name}", _by_kind(name, by_way, faults), why if by_way[name].wrong else "")
        for name, why in WHY.items()
    ]
    return lines


def _by_kind(name: str, by_way: dict[str, Faults], faults: dict[tuple[str, str], Faults]) -> str:
    """What went wrong, and on which inputs."""
    kinds = [f"{kind} ({faults[name, kind].wrong} of {faults[name, kind].runs})" for kind in KINDS]
    return f"{by_way[name].words()}. By kind of values: {', '.join(kinds)}"


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
