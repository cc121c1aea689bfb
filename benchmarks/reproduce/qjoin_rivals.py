"""QJOIN: Figures 3 and 4, latency and rows kept beside MP-K-slack; and the formulas as printed, beside ours."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import recall, recall_figures
from benchmarks.recall_figures import LESS_LATENCY, LESS_MEMORY
from benchmarks.reproduce.documents import QJOIN
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, beside, compared

PREDICTION_OFF: Final = 0.01
OF_THE_DOCUMENT: Final = ("D1", "D2")  # it has no others


def measure(effort: Effort) -> Findings:
    """The rivals of `bench recall`, and its comparison of formulas."""
    drawn = recall_figures.rivals(recall.SEED, effort.quick, effort.say)
    formulas = recall_figures.comparison(recall.SEED, effort.quick, effort.say)
    off, printed = max(formulas.found["off"]), formulas.found["printed_off"]
    return Findings(
        lines=[line for name in drawn.found for line in _lines(name, drawn.found[name])] + [_formulas(off, printed)],
        plots=list(drawn.plots.values()),
        checks=[
            Check(f"our prediction of recall is at most {PREDICTION_OFF:g} off at fixed slacks", off <= PREDICTION_OFF)
        ],
        shortened="D1 and D2 at 4% of their rates, at most 600 s; equal keys instead of distances on the field."
        if not effort.quick
        else "120 s of D2 at 4% of its rate.",
        different="The generators of Table 1 stand for its data. Latency goes by the clock of the arrivals, in "
        "micro-batches of 1 s, which the document does not have; the work of the join is not in it.",
        figures=drawn.found,
    )


def _lines(name: str, found: dict[str, Any]) -> list[Finding]:
    less = {target: 1 - kept / found["k_slack"] for target, kept in found["kept"] if target >= 0.85}
    sooner = 1 - found["ours"] / found["waits"]
    low, high = LESS_LATENCY
    least, most = LESS_MEMORY
    latency = (
        f"{sooner:.1%} less at any target: {found['ours']:.2f} s beside {found['waits']:.2f} s; until its micro-batch "
        f"is over a row waits {found['ours']:.2f} s in both"
    )
    memory = (
        f"{min(less.values()):.0%} to {max(less.values()):.0%} less rows kept, targets {min(less):g} to {max(less):g}"
    )
    if name not in OF_THE_DOCUMENT:
        return [
            beside(f"{name} (ours): latency beside MP-K-slack", latency),
            beside(f"{name} (ours): memory beside MP-K-slack", memory),
        ]
    return [
        compared(
            f"{name}, Figure 3: targets above 0.85 have {low:.0%} to {high:.0%} less latency than MP-K-slack",
            latency,
            low <= sooner <= high,
            f"{'More' if sooner > high else 'Less'}: K-slack makes every row wait for the largest delay so far, "
            f"{found['slack']:,.0f} s at the end, while a row of ours waits for its micro-batch only.",
        ),
        compared(
            f"{name}, Figure 4: {least:.0%} to {most:.0%} less memory than MP-K-slack",
            memory,
            least <= min(less.values()) and max(less.values()) <= most,
            _memory(less, found),
        ),
    ]


def _memory(less: dict[float, float], found: dict[str, Any]) -> str:
    least, most = LESS_MEMORY
    slack = (
        f"K-slack holds every row for the largest delay so far, {found['slack']:,.0f} s at the end, beside windows of "
    )
    slack += f"{found['window']:g} s"
    more, fewer = ([f"{target:g}" for target, each in less.items() if far(each)] for far in (most.__lt__, least.__gt__))
    said = [f"more at targets {', '.join(more)}"] if more else []
    said += [f"less at targets {', '.join(fewer)}, which need a slack nearer to that"] if fewer else []
    return f"{slack}: {' and '.join(said)}."


def _formulas(off: float, printed: list[float]) -> Finding:
    return compared(
        "formulas (4) to (12) predict the recall that a slack gives",
        f"as printed they are off by up to {max(printed):.2f}, ours by {off:.4f}",
        max(printed) <= PREDICTION_OFF,
        "In (7) bounds of sums are divided by the width of a window twice, in (10) the largest delay makes the window "
        "itself longer, and (11) and (12) stand upside down.",
    )


EXPERIMENT: Final = Experiment(
    "qjoin-rivals", QJOIN, "Figures 3 and 4", "Latency and memory beside MP-K-slack", measure, minutes=0.5
)
