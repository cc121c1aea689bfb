"""What `streamjoin bench lanes` prints and plots."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Final

import numpy as np
from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.plots import write_plots
from benchmarks.priority_lanes.arrivals import STEP
from benchmarks.priority_lanes.model import DRAWS
from benchmarks.priority_lanes.overload import AIM, FREE_RUN, LANES_RUN, LIMITED_RUN, Outcome
from benchmarks.priority_lanes.waits import LaneRun, percentile
from benchmarks.tables import new_table
from streamjoin.reporting.charts import Line, Plot

FOLDER: Final = ROOT / "build" / "lanes"
PIECES: Final = 40  # points of a line
LINES: Final = (
    (LIMITED_RUN, "urgent", "#888888"),
    (FREE_RUN, "urgent", "#1f4e9c"),
    (LANES_RUN, "normal", "#d9a441"),
    (LANES_RUN, "urgent", "#c0392b"),
)


def table_of(outcome: Outcome) -> Table:
    """A line for each run, and the model's below it."""
    found = outcome.calibration
    table = new_table(
        f"{found.rate:,.0f} rows/s for {outcome.seconds:g} s, seconds. Calibration: {found.throughput:,.0f} rows/s, "
        f"a = {found.a:.2f} s, b = {found.b * 1e6:.2f} s a million rows, limit {found.limit_rows:,} rows: "
        f"{found.limit} steps of {STEP} s. The runs: a = {outcome.a:.2f} s, b = {outcome.b * 1e6:.2f} s",
        "", "micro-batches", "median", "p99", "urgent p50", "urgent p99", "normal p99", "drain", "results", "checksum",
    )  # fmt: skip
    for name, run in outcome.runs.items():
        urgent, normal = run.latencies("urgent"), run.latencies("normal")
        results, checksum = run.digest
        waits = [percentile(urgent, 50), percentile(urgent, 99), percentile(normal, 99), run.drain]
        table.add_row(
            name, str(len(run.seconds)), *_figures(statistics.median(run.seconds), percentile(run.seconds, 99)),
            *_figures(*waits), f"{results:,}", f"{checksum:016x}",
        )  # fmt: skip
        model = outcome.models[name]
        waits = [percentile(model.urgent, 50), percentile(model.urgent, 99), percentile(model.normal, 99), model.drain]
        median, longest = statistics.median(model.batches), percentile(model.batches, 99)
        count = str(len(model.batches) // DRAWS)
        table.add_row("  the model", count, *_figures(median, longest, *waits), "", "", style="dim")
    lag = max(run.lag for run in outcome.runs.values())
    table.caption = f"Rows came at most {lag:.2f} s later than the clock said; latencies count from when they came."
    return table


def plot_of(outcome: Outcome) -> Plot:
    """Latencies by when rows arrived."""
    lines = [
        Line(f"{kind}: {name}", points(outcome.runs[name], kind), colour) for name, kind, colour in LINES
    ]  # fmt: skip
    found = outcome.calibration
    words = [
        f"Spark on two cores, {found.rate:,.0f} rows a second, {outcome.overload:.1f} times what it can do, of "
        f"which 1% are urgent; a limit is one for micro-batches of {AIM:g} s (./sj bench lanes)."
    ]
    return Plot("How long results wait in an overload", "second of arrival", "seconds", lines, words, linear_x=True)


def points(run: LaneRun, kind: str) -> list[tuple[float, float]]:
    """The longest wait of each piece of the time, at its middle."""
    latencies = run.latencies(kind)
    pieces = np.array_split(np.arange(len(latencies)), min(PIECES, len(latencies)))
    return [(float(piece.mean() + 0.5) * STEP, float(latencies[piece].max())) for piece in pieces]


def write_plot(outcome: Outcome, quick: bool) -> Path:
    """The plot in a file."""
    folder = FOLDER / "quick" if quick else FOLDER
    write_plots(folder, "Lanes", {"latencies": plot_of(outcome)})
    return folder / "latencies.svg"


def _figures(*values: float) -> list[str]:
    return [f"{value:.2f}" for value in values]
