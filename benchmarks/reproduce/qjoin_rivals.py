"""QJOIN: Figures 3 and 4, latency and rows kept beside MP-K-slack; and the formulas as printed, beside ours."""

from __future__ import annotations

from typing import Any, Final

from benchmarks import recall, recall_figures
from benchmarks.recall_figures import LESS_LATENCY, LESS_MEMORY
from benchmarks.reproduce.documents import QJOIN
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, compared

PREDICTION_OFF: Final = 0.01
NEAR: Final = 0.05


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
        figures=drawn.found,
    )


def _lines(name: str, found: dict[str, Any]) -> list[Finding]:
    reached = {target: kept for target, kept in found["kept"] if target >= 0.85}
    less = [1 - kept / found["k_slack"] for kept in reached.values()]
    sooner = 1 - found["ours"] / found["waits"]
    low, high = LESS_LATENCY
    least, most = LESS_MEMORY
    return [
        compared(
            f"{name}, Figure 3: targets above 0.85 have {low:.0%} to {high:.0%} less latency than MP-K-slack",
            f"{sooner:.1%} less: {found['ours']:.2f} s beside {found['waits']:.2f} s, half a micro-batch of it in both",
            low <= sooner <= high + NEAR,
            "More: K-slack makes every row wait for the largest delay so far, and a few here are very long."
            if sooner > high
            else "Less: both wait for their micro-batch here, which the document has not.",
        ),
        compared(
            f"{name}, Figure 4: {least:.0%} to {most:.0%} less memory than MP-K-slack",
            f"{min(less):.0%} to {max(less):.0%} less rows kept, targets {min(reached):g} to {max(reached):g}",
            least - NEAR <= min(less) and max(less) <= most + NEAR,
            _memory(min(less), max(less), least, most),
        ),
    ]


def _memory(smallest: float, largest: float, least: float, most: float) -> str:
    if largest > most:
        return (
            "More is spared than the document has: K-slack holds every row for the largest delay so far, which is many "
            "times the window, while a target needs hardly more than the window."
        )
    return f"At the highest target {smallest:.0%}, below {least:.0%}: it needs nearly as long a slack as K-slack has."


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
