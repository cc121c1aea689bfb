"""PRIO: Figure 4 and the claims of section 5, one by one, at four loads: the document does not name the one it had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.plots import COLOURS, Dots
from benchmarks.priority_room import questions
from benchmarks.priority_room.claims import ALL_TEN, BOTH, CLAIMS, CLEARLY, Claim, Found, to_json
from benchmarks.priority_room.elements import PER_SOURCE
from benchmarks.priority_room.experiment import LOADS
from benchmarks.priority_room.report import gains_plot
from benchmarks.reproduce.documents import PRIO
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings
from streamjoin.reporting.charts import Line

QUICK_LOADS: Final = (1.2,)
QUICK_PER_SOURCE: Final = 200
SHOWN: Final = 1.0  # the load of Figure 4 here: where its gain of more than fifty begins

# Why a claim fails where it does; by the beginning of its words.
WHY: Final = {
    "one sorted list": "Where buffers are short, putting an element at its place costs little.",
    "sorting (strong)": "Short buffers are sorted quickly however many priorities there are.",
    "priorities 8, 9 and 10": "Under overload the buffers are so long that even small preferences are seen.",
    "strong adds nothing": "Where many prioritised elements wait at once, their order matters to the highest.",
    "almost all methods": "Where buffers inside the plan stay short there is nobody to overtake",
    "almost throughout": "Elements wait at the source before their priority is known, and that is not won",
    "direct almost always": "Both modes let prioritised elements pass; where buffers are empty they are the same.",
    "highest priority gains": "Without a backlog the order in which buffers are served hardly matters.",
    "highest priority, direct": (
        "More than fifty-fold is a matter of overload: below it there is no queue that long to overtake."
    ),
    "trains have": "A train makes others wait for its end, which costs more than overhead where there is little to do.",
    "buffers do not change": "A scheduler that looks for prioritised elements does other turns with other buffers.",
    "biggest queue, highest": "Below capacity the overhead of choosing anew fits into idle time.",
    "... and normal": "Overtaking is zero-sum only under load: below it normal elements hardly notice.",
    "... and buffers": (
        "With biggest queue they do; highest priority needs a rule for ties, which the document does not give, and "
        "with ours (lowest in the plan first) the sources' buffers are served before others."
    ),
    "min-latency has": "Which scheduler has the best mean depends on how much overhead the load leaves room for.",
    "min-latency gains": "Its whole paths leave few elements in the buffers in between, but not none.",
    "highest priority with": (
        "As proposed the priority is set behind the source's buffer, where it comes too late; known at the source it "
        "gains (next line)."
    ),
    "... with priorities": "Prioritised elements gain; the mean of all is what it costs.",
    "setting priorities": "Near capacity every microsecond of an operator lengthens the queue.",
}


def measure(effort: Effort) -> Findings:
    """All schedulers with all buffers at each load; every variant must deliver the same elements."""
    loads = []
    per_source = QUICK_PER_SOURCE if effort.quick else PER_SOURCE
    for load in QUICK_LOADS if effort.quick else LOADS:
        effort.say(f"load {load:g}: every scheduler with every kind of buffer ...")
        loads.append(questions.measure_load(load, effort.quick, per_source))
    figure = min(loads, key=lambda found: abs(found.load - SHOWN))
    delivered = {run.results for found in loads for run in found.runs.values()}
    return Findings(
        lines=[_line(claim, loads) for claim in CLAIMS],
        plots=[_figure4(figure, True), _figure4(figure, False), gains_plot(loads)],
        checks=[Check("every variant delivered the same elements", len(delivered) == 1)],
        shortened=f"{per_source:,} instead of 100,000 elements of each source." if effort.quick else "",
        different="A virtual clock with fixed costs of operators and choices, at four loads: the document measured on "
        "a machine, at a load that it does not name.",
        figures={f"{found.load:g}": to_json(found)["claims"] for found in loads},
    )


def _without_gain(found: Found) -> str:
    """Who has not at least twice the gain, with which buffers."""
    few = {name: [kind for kind in BOTH if found.gain(name, kind) <= CLEARLY] for name in ALL_TEN}
    return ", ".join(f"{name} ({' and '.join(kinds)})" for name, kinds in few.items() if kinds) or "nobody"


def _line(claim: Claim, loads: Sequence[Found]) -> Finding:
    checked = [(found.load, *claim.check(found)) for found in loads]
    measured = "; ".join(f"load {load:g}: {text}" for load, _, text in checked)
    failed = [f"{load:g}" for load, held, _ in checked if not held]
    claimed = not claim.words.endswith("(ours)")
    if not failed:
        return Finding(claim.words, f"held at every load. {measured}", claimed=claimed)
    reason = next(why for words, why in WHY.items() if claim.words.startswith(words))
    if not reason.endswith("."):
        reason += f": at load {loads[-1].load:g} with {_without_gain(loads[-1])}."
    where = "at no load" if len(failed) == len(checked) else f"but not at load {', '.join(failed)}"
    return Finding(claim.words, f"held {where}. {measured}", reason, claimed=claimed)


def _figure4(found: Found, prioritised: bool) -> Dots:
    """Mean latency beside that with normal buffers and the same scheduler: 0.5 is half of it, 2 is twice."""
    lines = []
    for kind, colour in zip(BOTH, COLOURS, strict=False):
        points = []
        for at, name in enumerate(ALL_TEN):
            mine, normal = (found.runs[name, buffers] for buffers in (kind, "normal"))
            share = (
                mine.prioritised.mean / normal.prioritised.mean if prioritised else mine.plain.mean / normal.plain.mean
            )
            points.append((float(at), share))
        lines.append(Line(kind, points, colour))
    whose = "prioritised" if prioritised else "other"
    words = [f"Figure 4 of the document, at load {found.load:g}: mean latency of {whose} elements, 1: normal buffers."]
    return Dots(f"Latency of {whose} elements", "", "beside normal buffers", lines, words, names=ALL_TEN)


EXPERIMENT: Final = Experiment(
    "prio-buffers", PRIO, "section 5, Figure 4", "Schedulers and buffers, claim by claim", measure, minutes=4
)
