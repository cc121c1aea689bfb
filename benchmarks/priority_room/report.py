"""What is printed and plotted of the machine room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.table import Table

from benchmarks.priority_room.buffers import KINDS
from benchmarks.priority_room.claims import CLAIMS, Found, figure
from benchmarks.priority_room.join_formula import Case
from benchmarks.priority_room.sweeps import OVERLOAD, UNPRIORITISED, Sweep
from benchmarks.tables import new_table
from streamjoin.reporting.charts import Line, Plot

COLOURS: Final = ("#888888", "#c0392b", "#1f4e9c", "#2e9a8f", "#e08e0b", "#7d3c98", "#333333")


def load_table(found: Found) -> Table:
    """Mean latencies of prioritised elements by scheduler and buffer, and what the others pay."""
    title = f"load {found.load:g}: mean latency of prioritised elements, ms"
    table = new_table(title, "scheduler", *KINDS, "others, normal", "others, direct", "run time", "direct")
    for name in dict.fromkeys(scheduler for scheduler, _ in found.runs):
        normal, direct = found.runs[name, "normal"], found.runs[name, "direct"]
        table.add_row(
            name,
            *(figure(found.latency(name, kind) * 1e3) for kind in KINDS),
            figure(normal.plain.mean * 1e3),
            figure(direct.plain.mean * 1e3),
            f"{normal.seconds:.2f}",
            f"{direct.seconds:.2f}",
        )
    known = found.known
    table.add_row(
        "proposal+, at the source", figure(found.known_normal.prioritised.mean * 1e3),
        figure(known.prioritised.mean * 1e3), *([""] * 4), figure(found.known_normal.plain.mean * 1e3),
        figure(known.plain.mean * 1e3), f"{found.known_normal.seconds:.2f}", f"{known.seconds:.2f}",
    )  # fmt: skip
    best = found.best_unprioritised()
    table.caption = (
        f"every variant delivered the same {known.results:,} elements; run time: virtual seconds, normal and direct; "
        f"best unprioritised: {best.variant.name}"
    )
    return table


def claims_table(loads: Sequence[Found]) -> Table:
    """A line per claim, a column per load."""
    table = Table(title="what section 5 of the document says", title_justify="left")
    table.add_column("claim")
    for found in loads:
        table.add_column(f"load {found.load:g}")
    for claim in CLAIMS:
        checked = [claim.check(found) for found in loads]
        table.add_row(
            claim.words, *(f"{'[green]held[/]' if held else '[red]not[/]'}: {text}" for held, text in checked)
        )
    table.caption = (
        'gain: mean latency of prioritised elements, normal over this buffer, same scheduler; "train": with +'
    )
    return table


def gains_plot(loads: Sequence[Found]) -> Plot:
    """How the gain comes with the load."""
    lines = [
        Line(label, [(found.load, run(found)) for found in loads], colour)
        for label, run, colour in (
            ("highest priority+, direct", lambda f: f.gain_on_best(f.runs["highest priority+", "direct"]), COLOURS[1]),
            ("highest priority, direct", lambda f: f.gain_on_best(f.runs["highest priority", "direct"]), COLOURS[2]),
            ("proposal+, direct, at the source", lambda f: f.gain_on_best(f.known), COLOURS[3]),
            ("round robin+, direct", lambda f: f.gain_on_best(f.runs["round robin+", "direct"]), COLOURS[4]),
        )
    ]
    claimed = Line("document: 50", [(found.load, 50.0) for found in loads], COLOURS[0], dashed=True)
    words = ["The gain over the best scheduler without priorities: it comes with overload."]
    return Plot("Prioritised elements: mean latency won", "load", "times", [*lines, claimed], words)


def sweep_table(sweep: Sweep, per_source: int) -> Table:
    """Mean latencies of prioritised elements, a line per value."""
    table = new_table(f"{sweep.title}: mean latency of prioritised elements, ms", sweep.x, *sweep.lines)
    for number, value in enumerate(sweep.values):
        table.add_row(f"{value:,.4g}", *(figure(sweep.latencies(line)[number] * 1e3) for line in sweep.lines))
    table.caption = f"load {OVERLOAD:g}; {per_source:,} elements of each source; {_findings(sweep)}"
    return table


def sweep_plot(sweep: Sweep) -> Plot:
    """The same as lines."""
    lines = [
        Line(line, list(zip(sweep.values, sweep.latencies(line), strict=True)), colour)
        for line, colour in zip(sweep.lines, COLOURS, strict=False)
    ]
    words = [f"Load {OVERLOAD:g} in virtual time."]
    return Plot(sweep.title, sweep.x, "mean latency of prioritised elements, s", lines, words)


def formula_table(measured: Mapping[Case, float]) -> Table:
    """Each term of the formula, their sum, and what was won."""
    table = new_table(
        "gain in a join (section 3.1.3), ms", "case", "load", "x t_join", "waiting", "overtaken", "formula", "run",
        "formula/run",
    )  # fmt: skip
    for case, won in measured.items():
        terms = [f"{term * 1e3:,.1f}" for term in case.terms]
        total = sum(case.terms)
        table.add_row(
            case.name, f"{case.load:.2f}", *terms, f"{total * 1e3:,.1f}", f"{won * 1e3:,.1f}", f"{total / won:.2f}"
        )
    table.caption = (
        "terms as printed; run: the mean latency that results won, over several draws. Waiting is right. Below load 1 "
        "the plan's work is done while results wait, so the last term is not won; and results of the x are left out"
    )
    return table


def _findings(sweep: Sweep) -> str:
    """Where direct falls behind weak, and behind a scheduler without priorities."""
    said = []
    for line in (each for each in sweep.lines if each.endswith("direct")):
        for words, other in (("weak", line.removesuffix("direct") + "weak"), (UNPRIORITISED, UNPRIORITISED)):
            if other in sweep.lines:
                behind = ", ".join(f"{value:,.4g}" for value in sweep.behind(line, other))
                said.append(f"{line}: behind {words} at {behind}" if behind else f"{line}: never behind {words}")
        collapsed = sweep.collapses_from(line)
        if sweep.name == "share" and collapsed is not None:
            said.append(f"ten times as long as with few from {collapsed:,.4g} on")
    return "; ".join(said)
