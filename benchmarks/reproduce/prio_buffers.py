"""PRIO: Figure 4 and the claims of section 5, one by one, at four loads: the document does not name the one it had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.plots import COLOURS, Dots
from benchmarks.priority_room import questions
from benchmarks.priority_room.claims import ALL_TEN, BOTH, CLAIMS, Claim, Found, to_json
from benchmarks.priority_room.elements import PER_SOURCE
from benchmarks.priority_room.experiment import LOADS
from benchmarks.priority_room.report import gains_plot
from benchmarks.reproduce.documents import PRIO
from benchmarks.reproduce.experiment import Check, Effort, Experiment, Finding, Findings
from benchmarks.reproduce.prio_reasons import reason
from streamjoin.reporting.charts import Line

QUICK_LOADS: Final = (1.2,)
QUICK_PER_SOURCE: Final = 200
SHOWN: Final = 1.0  # the load at which Figure 4 is drawn: the document does not name its own


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


def _line(claim: Claim, loads: Sequence[Found]) -> Finding:
    checked = [(found.load, *claim.check(found)) for found in loads]
    measured = "; ".join(f"load {load:g}: {text}" for load, _, text in checked)
    failed = [found for found, (_, held, _) in zip(loads, checked, strict=True) if not held]
    claimed = not claim.words.endswith("(ours)")
    if not failed:
        return Finding(claim.words, f"held at every load. {measured}", claimed=claimed)
    held = [found for found, (_, held, _) in zip(loads, checked, strict=True) if held]
    where = f"but not at load {', '.join(f'{found.load:g}' for found in failed)}" if held else "at no load"
    return Finding(claim.words, f"held {where}. {measured}", reason(claim.words, failed, held), claimed=claimed)


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
