"""What `bench streaming` prints: a table per question. The verdicts are printed like those of the kernels."""

from __future__ import annotations

from rich.table import Table

from benchmarks.bounded import BOUND_SECONDS, WINDOWS, BoundedOutcome
from benchmarks.micro_batches import StreamRun, speed_up
from benchmarks.streaming import BOUNDS, BreakdownOutcome, EqualityOutcome, KeylessOutcome, StateOutcome
from benchmarks.streaming_peers import PeersOutcome
from benchmarks.tables import new_table

TIMES = ("rows/s", "mean rows/s", "median s", "min", "max")
_COMMITS = ("walCommit", "commitOffsets", "commitBatch")


def figures(run: StreamRun) -> list[str]:
    """The columns of `TIMES`."""
    return [
        f"{run.throughput:,.0f}",
        f"{run.mean_throughput:,.0f}",
        f"{run.median:.2f}",
        f"{min(run.seconds):.2f}",
        f"{max(run.seconds):.2f}",
    ]


def warm(run: StreamRun) -> str:
    """How many micro-batches count."""
    return f"{len(run.warm)} of {len(run.batches)}"


def equality_table(outcome: EqualityOutcome) -> Table:
    """Ours and Spark's own. No ratio without equal results: `speed_up` refuses."""
    title = f"equality and a bound of 2 s: {outcome.rows:,} rows a micro-batch, local[2], warm micro-batches"
    table = new_table(title, "system", "warm", *TIMES, "results", "checksum", "ours is faster")
    for run in (outcome.ours, *outcome.native.values()):
        table.add_row(
            run.label,
            warm(run),
            *figures(run),
            f"{run.results:,.0f}",
            f"{run.checksum:016x}",
            "" if run is outcome.ours else f"{speed_up(outcome.ours, run):.2f} times",
        )
    table.caption = "results of a micro-batch; checksums of whole runs, compared micro-batch by micro-batch"
    return table


def bounded_table(outcome: BoundedOutcome) -> Table:
    """What is kept after each micro-batch."""
    title = f"state over {WINDOWS} windows of {BOUND_SECONDS} s, and after a closing row"
    table = new_table(title, "micro-batch", "rows in", "purged", "rows kept", "bytes kept", "runs")
    for number, batch in enumerate(outcome.batches):
        label = "closing" if number == len(outcome.batches) - 1 else str(number)
        table.add_row(label, *(f"{batch[name]:,}" for name in ("rows", "purged", "kept", "bytes", "runs")))
    return table


def peers_table(outcome: PeersOutcome) -> Table:
    """Whole runs, with and without their start."""
    title = f"equality and a bound of 2 s, whole runs: {outcome.rows:,} rows, CSV in, CSV out, two cores"
    table = new_table(title, "system", "median s", "start s", "without start", "results", "checksum", "ours is faster")
    ours = outcome.runs[0]
    for run in outcome.runs:
        assert run.digest is not None
        assert run.digest.pairs is not None
        table.add_row(
            run.label,
            f"{run.net + run.start:.1f}",
            f"{run.start:.1f}",
            f"{run.net:.1f}",
            f"{run.digest.count:,}",
            f"{run.digest.pairs:016x}",
            "" if run is ours else f"{outcome.ratio(run):.2f} times",
        )
    for label in outcome.missing:
        table.add_row(label, "not measured", style="dim")
    return table


def keyless_table(outcome: KeylessOutcome) -> Table:
    """Joins without a key, in terms of the equality join."""
    title = f"without a key, windows of 2 s: {outcome.equality.rows:,} rows a micro-batch, local[2], ours"
    table = new_table(title, "join", "warm", *TIMES, "results", "of equality")
    table.add_row("equality", warm(outcome.equality), *figures(outcome.equality), f"{outcome.equality.results:,.0f}")
    for kind, run in outcome.runs.items():
        share = f"{outcome.share(kind):.2f}"
        table.add_row(run.label, warm(run), *figures(run), f"{run.results:,.0f}", share)
    table.caption = f"Spark itself refuses the band: {outcome.refusal}"
    return table


def breakdown_table(outcome: BreakdownOutcome) -> Table:
    """Where the time of a warm micro-batch goes: each line adds to the one before."""
    title = f"one warm micro-batch of {outcome.ours.rows:,} rows: what each step adds"
    table = new_table(
        title, "step", "median s", "min", "max", "in tasks", "planning", "commits", "results", "adds s", "adds %"
    )
    before: StreamRun | None = None
    for run in (outcome.read, outcome.floor, outcome.ours):
        added = ["", ""]
        if before is not None:
            added = [f"{run.median - before.median:.2f}", f"{100 * (run.median / before.median - 1):.0f}"]
        table.add_row(
            run.label,
            f"{run.median:.2f}",
            f"{min(run.seconds):.2f}",
            f"{max(run.seconds):.2f}",
            f"{run.part('addBatch'):.2f}",
            f"{run.part('queryPlanning'):.2f}",
            f"{sum(run.part(name) for name in _COMMITS):.2f}",
            f"{run.results:,.0f}",
            *added,
        )
        before = run
    return table


def state_table(outcome: StateOutcome) -> Table:
    """The equality join with more and more state."""
    rows = outcome.runs[BOUNDS[0]].rows
    title = f"more state: {rows:,} rows a micro-batch, bounds on time of 2, 20 and 200 s, equally many results, ours"
    table = new_table(title, "bound", "warm", *TIMES, "results", "falls")
    for bound, run in outcome.runs.items():
        fall = f"{outcome.fall(bound):.2f} times"
        table.add_row(f"{bound} s", warm(run), *figures(run), f"{run.results:,.0f}", fall)
    return table
