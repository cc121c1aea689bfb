"""What is printed of kernels: races of arrays and of frames, and growth."""

from __future__ import annotations

from rich.table import Table

from benchmarks.growth import GrowthOutcome
from benchmarks.kernels import KernelOutcome
from benchmarks.race import Contender, check_equal, ratio
from benchmarks.spark_nested_loop import SparkOutcome
from benchmarks.tables import new_table


def _seconds(contender: Contender) -> list[str]:
    return [f"{value:.3f}" for value in (contender.median, min(contender.seconds), max(contender.seconds))]


def _checksum(contender: Contender) -> str:
    checksum = contender.digest and contender.digest.pairs
    return "none: less work" if checksum is None else f"{checksum:016x}"


def kernel_table(outcome: KernelOutcome) -> Table:
    """The race of one question. No ratio without equal results: `ratio` refuses."""
    found, size = "pairs", f"{outcome.rows:,} x {outcome.rows:,} rows"
    if outcome.inputs > 2:
        found, size = "results", f"{outcome.inputs} x {outcome.rows:,} rows"
    title = f"{outcome.question}: {size}, one thread, {found} with a column of each side"
    table = new_table(title, "system", "median s", "min", "max", "user", "system", found, "checksum", "ours is faster")
    ours, *peers = outcome.contenders
    for contender in (ours, *sorted(peers, key=lambda peer: peer.median)):
        assert contender.digest is not None
        table.add_row(
            contender.label,
            *_seconds(contender),
            f"{contender.user:.2f}",
            f"{contender.system:.2f}",
            f"{contender.digest.count:,}",
            _checksum(contender),
            "" if contender is ours else f"{ratio(ours, contender):.2f} times",
            style=None if contender.equal_work else "dim",
        )
    if outcome.notes:
        table.caption = "; ".join(f"{name}: {note}" for name, note in outcome.notes.items())
    return table


def spark_table(outcome: SparkOutcome) -> Table:
    """Ours and the nested loop at two sizes, and how each grew."""
    title = f"{outcome.question}: frames on Spark local[2], against the nested loop Spark plans ({outcome.plans[0]})"
    columns = ("ours, median s", "min", "max", "nested loop s", "results", "checksum", "ours is faster")
    table = new_table(title, "rows a side", *columns)
    for rows, mine, nested, plan in zip(outcome.rows, outcome.ours, outcome.nested, outcome.plans, strict=True):
        check_equal(mine, nested)
        assert mine.digest is not None
        table.add_row(
            f"{rows:,}" if plan == outcome.plans[0] else f"{rows:,} ({plan})",
            *_seconds(mine),
            f"{nested.median:.2f}",
            f"{mine.digest.count:,}",
            _checksum(mine),
            f"{ratio(mine, nested):.1f} times",
        )
    growth = [f"{outcome.growth(contenders):.2f} times" for contenders in (outcome.ours, outcome.nested)]
    table.add_row("twice the rows take", growth[0], "", "", growth[1], "", "", "", style="dim")
    return table


def growth_table(outcome: GrowthOutcome) -> Table:
    """The times at growing sizes; a ratio stands at the larger of its two sizes."""
    title = f"growth of {outcome.question}: ours, one thread; prediction: n log n + results"
    table = new_table(title, "rows a side", "results", "median s", "min", "max", "user", "system", "ratio", "predicted")
    measured = ["", *(f"{value:.2f}" for value in outcome.measured)]
    predicted = ["", *(f"{value:.2f}" for value in outcome.predicted)]
    rows = zip(outcome.rows, outcome.results, outcome.contenders, measured, predicted, strict=True)
    for size, results, contender, was, should in rows:
        table.add_row(
            f"{size:,}",
            f"{results:,}",
            *_seconds(contender),
            f"{contender.user:.3f}",
            f"{contender.system:.3f}",
            was,
            should,
        )
    return table
