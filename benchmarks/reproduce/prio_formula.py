"""PRIO: the gain that section 3.1.3 promises in a join, beside the same join run on a virtual clock."""

from __future__ import annotations

from typing import Final

from benchmarks.plots import COLOURS, Dots
from benchmarks.priority_room.join_formula import CASES, Case, mean_gain
from benchmarks.priority_room.questions import WAITING_TERM
from benchmarks.reproduce.documents import PRIO
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings, compared
from streamjoin.reporting.charts import Line

NEAR: Final = 0.1
REPETITIONS, QUICK_REPETITIONS = 100, 1


def measure(effort: Effort) -> Findings:
    """Every case over several draws."""
    won: dict[Case, float] = {}
    for case in CASES:
        effort.say(f"formula 3.1.3: {case.name} ...")
        won[case] = mean_gain(case, QUICK_REPETITIONS if effort.quick else REPETITIONS)
    waiting = [abs(sum(case.terms) / gain - 1) for case, gain in won.items() if case.name.startswith("waiting only")]
    # One draw may be far off.
    allowed = 6 * WAITING_TERM if effort.quick else WAITING_TERM
    names = tuple(case.name for case in won)
    plot = Dots(
        "Gain in a join: formula and run", "", "seconds won",
        [
            Line("formula, as printed", [(at, sum(case.terms)) for at, case in enumerate(won)], COLOURS[1]),
            Line("run", [(at, gain) for at, gain in enumerate(won.values())], COLOURS[0]),
        ],
        ["Mean latency that the results of a prioritised element win."], names=names,
    )  # fmt: skip
    return Findings(
        lines=[_line(case, gain) for case, gain in won.items()],
        plots=[plot],
        checks=[Check(f"the term for waiting is at most {allowed:.0%} off", max(waiting) <= allowed)],
        shortened=f"{QUICK_REPETITIONS} instead of {REPETITIONS} draws." if effort.quick else "",
        different="Costs and waiting go by a virtual clock; the document has the formula only, and no run of it.",
        figures={case.name: {"terms": case.terms, "won": gain} for case, gain in won.items()},
    )


def _line(case: Case, gain: float) -> Finding:
    total, (_, _, overtaken) = sum(case.terms), case.terms
    if total < gain:
        why = "More is won than the formula promises: why is not known."
    elif case.x and not overtaken:
        why = (
            "The x that are overtaken would have joined while results waited for progress, which the sum counts twice."
        )
    elif case.load < 1:
        why = (
            "The last term counts the work of results that are overtaken, but below load 1 that work is done while "
            "results wait for progress anyway."
        )
    else:
        why = "Part of the work of overtaken results is done while results wait for progress: only the rest is won."
    return compared(
        f"{case.name} (load {case.load:.2f}): t_win = {total * 1e3:,.1f} ms",
        f"{gain * 1e3:,.1f} ms won, the formula is {total / gain:.2f} times that",
        abs(total / gain - 1) <= NEAR,
        why,
    )


EXPERIMENT: Final = Experiment(
    "prio-formula", PRIO, "section 3.1.3", "The formula of a join's gain", measure, minutes=1
)
