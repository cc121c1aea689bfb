"""What `bench house` prints: a table per question. The verdicts are printed like those of other benchmarks."""

from __future__ import annotations

from rich.table import Table

from benchmarks.house import HouseOutcome, Lane, times_as_fast
from benchmarks.house_restore import RestoreOutcome
from benchmarks.house_start import PARTS, TIMES, StartOutcome
from benchmarks.race import ratio
from benchmarks.tables import new_table

_STEPS = ("pack", "read", "join", "write")


def house_table(outcome: HouseOutcome) -> Table:
    """All lanes. No ratio without equal results: `times_as_fast` refuses."""
    rows = outcome.lanes[0].first.run.rows
    title = f"{outcome.question}: {rows:,} rows a micro-batch, local[2], warm micro-batches of all rounds"
    table = new_table(title, "query", "warm", "rows/s", "median s", "min", "max", "results", "checksum", "this is")
    for lane in outcome.lanes:
        ours, run = outcome.lanes_of(lane.query)[0], lane.first.run
        table.add_row(
            lane.label,
            f"{len(lane.seconds)}",
            f"{lane.throughput:,.0f}",
            *(f"{value:.3f}" for value in (lane.median, min(lane.seconds), max(lane.seconds))),
            f"{run.results:,.0f}",
            _checksum(lane),
            "" if lane is ours else f"{times_as_fast(ours, lane):.2f} times as fast",
        )
    table.caption = "results of a micro-batch; checksums of all that has left in the end"
    return table


def _checksum(lane: Lane) -> str:
    return f"{lane.first.run.checksum if lane.first.total is None else lane.first.total[1]:016x}"


def start_table(outcome: StartOutcome) -> Table:
    """Where the seconds go, from the call to the end of the first micro-batch."""
    title = f"start, {TIMES[outcome.which]}: seconds from the call to the end of the first micro-batch, medians"
    table = new_table(title, "part", *(start.label for start in outcome.starts))

    def line(name: str, *path: str, style: str | None = None) -> None:
        found = [start.part(outcome.which, *path) for start in outcome.starts]
        if any(value is not None for value in found):
            table.add_row(name, *("" if value is None else f"{value:.3f}" for value in found), style=style)

    line("in all", "seconds", style="bold")
    line("the call", "call")
    line("start() until the first trigger", "to_trigger")
    line("the first micro-batch", "trigger")
    seen = {name for start in outcome.starts for starts in start.told for name in starts[outcome.which]["parts"]}
    for name in (*PARTS, *sorted(seen - set(PARTS))):
        line(f"  {name}", "parts", name)
    steps = {name for start in outcome.starts for starts in start.told for name in starts[outcome.which]["steps"]}
    for name in (*_STEPS, *sorted(steps - set(_STEPS))):
        line(f"    {name}, in tasks", "steps", name, style="dim")
    table.caption = "steps in tasks are sums over tasks, which run side by side, in addBatch"
    return table


def restore_table(outcome: RestoreOutcome) -> Table:
    """One job by all states."""
    title = f"restore, {outcome.job}: {outcome.rows:,} rows in {outcome.parts:,} parts, one thread"
    table = new_table(title, "state", "median s", "min", "max", "rows", "checksum", "this is")
    ours = outcome.contenders[0]
    for contender in outcome.contenders:
        assert contender.digest is not None
        assert contender.digest.pairs is not None
        table.add_row(
            contender.label,
            *(f"{value:.3f}" for value in (contender.median, min(contender.seconds), max(contender.seconds))),
            f"{contender.digest.count:,}",
            f"{contender.digest.pairs:016x}",
            "" if contender is ours else f"{ratio(ours, contender):.2f} times as fast",
        )
    if outcome.notes:
        table.caption = "; ".join(f"{label}: {note}" for label, note in outcome.notes.items())
    return table
