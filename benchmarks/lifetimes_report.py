"""What is shown of lifetimes: a table per question in the terminal, and a plot of each beside the document's claim."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.lifetimes import LargeOutcome, QueryOutcome, SortingOutcome
from benchmarks.lifetimes_queries import CQL, KINDS, WindowKind
from benchmarks.plots import write_plots
from benchmarks.tables import new_table
from streamjoin.reporting.charts import Line, Plot

FOLDER: Final = ROOT / "build" / "lifetimes"
COLOURS: Final = {
    ("direct", "rows"): "#c0392b", ("direct", "time"): "#e08e0b",
    ("negative", "rows"): "#1f4e9c", ("negative", "time"): "#2e9a8f",
}  # fmt: skip
SORTING_COLOURS: Final = {"none": "#888", "lazy": "#c0392b", "halving": "#2e9a8f", "walking": "#1f4e9c"}
SORTING_NAMES: Final = {
    "none": "no list (as it is)",
    "lazy": "lazily sorted",
    "halving": "insertion, binary search",
    "walking": "insertion, from the front",
}


def query_table(outcome: QueryOutcome) -> Table:
    """Every size: throughput of both methods relative to 10 rows, the ratio, and memory."""
    title = f"{outcome.query}: {' '.join(CQL[outcome.query].split())}"
    columns = ("direct", "negative", "direct, relative", "negative", "ratio", "by CPU", "target", "")
    table = new_table(title, "window", *columns, "direct keeps", "holders", "negative keeps")
    for point in outcome.points:
        direct, negative = point.throughput("direct"), point.throughput("negative")
        table.add_row(
            f"{point.tuples:,} {'rows' if point.kind == 'rows' else 'ms'}",
            f"{direct / 1e6:.2f}",
            f"{negative / 1e6:.2f}",
            f"{direct / outcome.base:.2f}",
            f"{negative / outcome.base:.2f}",
            f"{point.ratio:.2f}",
            f"{point.cpu_ratio:.2f}",
            f"{point.target:g}",
            "[green]PASS[/]" if point.met else "[red]MISS[/]",
            f"{point.measured['direct']['nbytes'] / 2**10:,.1f}",
            f"{point.measured['direct']['holder_share']:.0%}",
            f"{point.measured['negative']['nbytes'] / 2**10:,.1f}",
        )
    table.caption = (
        "windows: tuples of all inputs together; throughput: million tuples/s; relative: to negative at 10 rows; "
        "ratio: direct/negative; KiB kept, and the share of the direct method's that holders take"
    )
    return table


def sorting_table(outcome: SortingOutcome) -> Table:
    """Each way to sort, and how many times as fast lazy sorting is as the document's insertion."""
    title = "direct join of time windows, areas with a list of ends: tuples per second"
    table = new_table(title, "window, ms", *SORTING_NAMES.values(), "lazy/from the front")
    for size, found in outcome.throughput.items():
        rates = [f"{found[name]:,.0f}" if name in found else "not waited for" for name in SORTING_NAMES]
        gain = f"{found['lazy'] / found['walking']:.2f}" if "walking" in found else ""
        table.add_row(f"{size:,}", *rates, gain)
    return table


def large_table(outcome: LargeOutcome) -> Table:
    """Memory of the processes with the largest windows."""
    title = f"row windows of {outcome.tuples:,} rows in all: the document's ran out of memory"
    table = new_table(
        title, "query", "method", "tuples/s", "peak MiB", "before the first tuple", "state MiB", "holders"
    )
    for (query, method), run in outcome.measured.items():
        mebibytes = [f"{run[name] / 2**20:,.0f}" for name in ("peak", "before", "nbytes")]
        share = f"{run['holder_share']:.0%}" if method == "direct" else ""
        table.add_row(query, method, f"{run['tuples'] / run['seconds']:,.0f}", *mebibytes, share)
    return table


def query_plot(outcome: QueryOutcome) -> Plot:
    """Throughput over the size of the window, as in Figure 5, and what the document says of the direct method."""
    lines = [
        Line(
            f"{method}, {kind} windows",
            [(point.tuples, point.throughput(method) / outcome.base) for point in outcome.of(kind)],
            COLOURS[method, kind],
        )
        for method in ("direct", "negative")
        for kind in KINDS
    ]
    x = "tuples that the windows hold"
    return Plot(outcome.query, x, "throughput, 1: negative, 10 rows", [*lines, *_claims(outcome)], _claim(outcome))


def _claims(outcome: QueryOutcome) -> list[Line]:
    """The document's gains over negative tuples, drawn upon ours of the same kind."""

    def over(kind: WindowKind, gain: float, label: str, largest: int = 10**9) -> Line:
        points = [
            (point.tuples, gain * point.throughput("negative") / outcome.base)
            for point in outcome.of(kind)
            if point.tuples <= largest
        ]
        return Line(label, points, "#aaa", dashed=True)

    if outcome.query == "join":
        return [over("time", 1.6, "document: 1.6 (time)"), over("time", 2, "document: 2 (time)")]
    return [over("rows", 1.4, "document: 1.4", 10_000), over("rows", 2, "document: 2.0", 10_000)]


def _claim(outcome: QueryOutcome) -> list[str]:
    if outcome.query == "join":
        return ["Document: time windows 1.6 to 2 times negative tuples; row windows equal."]
    return [
        "Document: row windows 1.4 to 2.0 times negative tuples up to 10,000, then falling,",
        "equal at 1,000,000 rows, out of memory at 10,000,000; time windows steady.",
    ]


def sorting_plot(outcome: SortingOutcome) -> Plot:
    """Tuples per second over the size of the window, by the way to sort."""
    lines = [
        Line(
            label,
            [(size, found[name]) for size, found in outcome.throughput.items() if name in found],
            SORTING_COLOURS[name],
        )
        for name, label in SORTING_NAMES.items()
    ]
    words = [
        "Document: insertion falls off steeply from 100 tuples on; lazy sorting keeps the trend of negative tuples."
    ]
    return Plot("join, time windows: sorting", "tuples that the windows hold", "tuples per second", lines, words)


def write_plot(name: str, plot: Plot, folder: Path) -> Path:
    """Write one plot, and a page that shows all that are there."""
    write_plots(folder, "Lifetimes", {name: plot})
    return folder / f"{name}.svg"
