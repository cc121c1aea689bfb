"""A streaming join on Spark whose state does not fit into memory, beside the same join without a limit.

    spark-band, spark-equality, spark-overlap     `--only spark`: all three

Two workers, micro-batches of a million rows, a window that keeps 1.3 GB or more in each worker. Both joins deliver the
same in every micro-batch, or there is no verdict. Those count that come when the window is full. Before the last ones
the files of runs are put out of the system's cache: these are printed, and count for nothing else.

Memory is RssAnon of every Python worker, sampled while the query runs: at most the budget, the rows that a worker takes
in a micro-batch, and 64 MB more than in a query whose stage only hands rows back. Plots go to build/spill.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.micro_batches import StreamRun, check_equal, check_rows
from benchmarks.one_shot import ask
from benchmarks.plots import write_plots
from benchmarks.race import Verdict
from benchmarks.spill_streams import VALUES, Kept, Kind
from benchmarks.streams import link_batches
from benchmarks.worker_memory import Series
from streamjoin.reporting.charts import Line, Plot

PREFIX: Final = "spark-"
QUESTIONS: Final = tuple(f"{PREFIX}{kind}" for kind in VALUES)
ALL: Final = "spark"
WORKERS: Final = 2
MEMORY: Final = 64 << 20
# Once a minute Spark copies what its database has: so many micro-batches count that each way meets that at least once.
ROWS, COUNTED, UNCACHED = 1_000_000, 34, 2
WINDOWS: Final[dict[Kind, int]] = {"band": 22, "equality": 24, "overlap": 22}  # for so much state: their rows differ
QUICK_MEMORY: Final = 2 << 20
QUICK: Final = (40_000, 4, 2, 1)
HANDED_BACK: Final = 6  # micro-batches of the query that only hands rows back
SLOWEST: Final = 0.6  # of the rows that the join takes that has everything in memory
OVER: Final = 64 << 20  # bytes above a worker that hands rows back, budget and arriving rows
STATE: Final = 1_300_000_000  # bytes in each worker
FOLDER: Final = ROOT / "build" / "spill"
REDS, BLUES, GREENS = ("#d1495b", "#8b1e2d"), ("#1b6ca8", "#6aa9d8", "#0b3c5d", "#7a4fa3"), ("#2e8b57", "#9bd0b0")
MODULE: Final = "benchmarks.contenders.stream_spilled"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """One query: all its micro-batches, those whose times count, bytes kept after each, and memory of its workers."""

    whole: StreamRun
    run: StreamRun
    kept: list[int]
    memory: Series

    @property
    def peak(self) -> int:
        """The most anonymous memory that a worker had."""
        return max(nbytes for points in self.memory.values() for _, nbytes in points)

    @property
    def state(self) -> float:
        """Bytes kept for each worker, at most."""
        return max(self.kept, default=0) / WORKERS

    def to_json(self) -> dict[str, Any]:
        return {"run": self.whole.to_json(), "kept": self.kept, "memory": self.memory, "peak": self.peak}


@dataclass(frozen=True)
class SparkSpillOutcome:
    """The same join without a limit and with one, and a query that hands rows back."""

    stream: Kept
    memory: int
    arriving: int  # bytes of rows that a worker takes in a micro-batch
    within: Measured
    spilled: Measured
    back: Measured
    quick: bool

    @property
    def limit(self) -> int:
        """Anonymous memory that a worker may have."""
        return self.back.peak + self.memory + self.arriving + OVER

    @property
    def uncached(self) -> list[float]:
        """Seconds of the micro-batches whose runs were on disk only."""
        whole = self.spilled.whole.batches
        return [batch.seconds for batch in whole[len(self.spilled.run.batches) :]]

    @property
    def verdicts(self) -> list[Verdict]:
        check_equal(self.within.whole, self.spilled.whole)
        name, within, spilled = f"spark, {self.stream.kind}", self.within.run, self.spilled.run
        share = spilled.mean_throughput / within.mean_throughput
        longest = max(spilled.seconds) / max(within.seconds)
        found = [
            Verdict(f"{name}, rows per second", share, SLOWEST, f"{share:.2f} of those without a limit"),
            Verdict(
                f"{name}, memory", self.spilled.peak / 1e6, self.limit / 1e6,
                f"{self.spilled.peak / 1e6:,.0f} MB in the largest worker, of {self.limit / 1e6:,.0f}; "
                f"{self.within.peak / 1e6:,.0f} without a limit",
                at_most=True,
            ),
            Verdict(
                f"{name}, longest micro-batch", longest, 1.0, f"{longest:.2f} of the longest without a limit",
                at_most=True,
            ),
        ]  # fmt: skip
        if not self.quick:
            state = min(self.within.state, self.spilled.state) / 1e9
            found.append(Verdict(f"{name}, state", state, STATE / 1e9, f"{state:.2f} GB for each worker"))
        return found

    def to_json(self) -> dict[str, Any]:
        both = {name: getattr(self, name).to_json() for name in ("within", "spilled", "back")}
        told = {"memory": self.memory, "arriving": self.arriving, "limit": self.limit, "uncached": self.uncached}
        return {"stream": asdict(self.stream), **told, **both, "verdicts": [each.to_json() for each in self.verdicts]}


def outcomes(
    asked: Sequence[str], quick: bool, folder: Path, say: Say
) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """What each question gave, as soon as it is there; its plot is written."""
    for question in asked:
        found = measure(question.removeprefix(PREFIX), quick, folder, say)  # type: ignore[arg-type]
        plots = FOLDER / "quick" if quick else FOLDER
        write_plots(plots, "State larger than memory, on Spark", {question: plot(found)})
        say(f"plot: {plots / question}.svg")
        yield question, found.verdicts, found, table(found)


def measure(kind: Kind, quick: bool, folder: Path, say: Say) -> SparkSpillOutcome:
    """One kind of join: with a limit, without one, and rows handed back; each in a Spark of its own."""
    rows, window, counted, uncached = QUICK if quick else (ROWS, WINDOWS[kind], COUNTED, UNCACHED)
    memory = QUICK_MEMORY if quick else MEMORY
    stream = Kept(kind, rows, window, window + 1 + counted + uncached)
    data, place = folder / f"{PREFIX}{kind}", folder / "query"
    say(f"{kind}: writing {stream.batches} micro-batches of {rows:,} rows ...")
    arriving = stream.write(data) // WORKERS

    def run(label: str, do: str, limit: int, batches: int, cold: int, left_out: int) -> Measured:
        say(f"{kind}, {label}: {batches} micro-batches ...")
        inputs = link_batches(data, batches, place / "data")
        places = {"folder": inputs, "checkpoint": place / "checkpoint", "scratch": place / "scratch"}
        request = {"do": do, "stream": asdict(stream), "memory": limit, "uncached": left_out}
        request |= {name: str(path) for name, path in places.items()}
        try:
            answered, _ = ask(sys.executable, MODULE, ROOT, request, place / "tmp")
        finally:
            shutil.rmtree(place, ignore_errors=True)
        ran = answered["batches"]
        whole = StreamRun.of(label, ran, cold)
        check_rows(whole, rows, batches)
        timed = StreamRun.of(label, ran[: len(ran) - left_out], cold)
        return Measured(whole, timed, [each["bytes"] for each in answered["kept"]], answered["memory"])

    try:
        joins = [
            run(f"{limit >> 20} MB" if limit else "no limit", "join", limit, stream.batches, window + 1, uncached)
            for limit in (memory, 0)
        ]
        back = run("rows handed back", "hand back", 0, min(stream.batches, HANDED_BACK), 1, 0)
    finally:
        shutil.rmtree(data, ignore_errors=True)
    spilled, within = joins
    return SparkSpillOutcome(stream, memory, arriving, within, spilled, back, quick)


def table(found: SparkSpillOutcome) -> Table:
    """All three side by side."""
    stream = found.stream
    title = f"{stream.kind} on Spark: {stream.rows:,} rows a micro-batch, kept for {stream.window} of them"
    shown = Table("", "rows / s", "longest batch", "largest worker", "state of a worker", "results", title=title)
    for each in (found.within, found.spilled, found.back):
        shown.add_row(
            each.run.label, f"{each.run.mean_throughput:,.0f}", f"{max(each.run.seconds):.2f} s",
            f"{each.peak / 1e6:,.0f} MB", f"{each.state / 1e6:,.0f} MB", f"{each.run.results:,.0f}",
        )  # fmt: skip
    rate = len(found.uncached) * stream.rows / sum(found.uncached)
    shown.add_row("runs not in the cache", f"{rate:,.0f}", f"{max(found.uncached):.2f} s", "", "", "")
    return shown


def plot(found: SparkSpillOutcome) -> Plot:
    """Anonymous memory of every worker over time."""
    lines = []
    for each, colours in ((found.within, REDS), (found.spilled, BLUES), (found.back, GREENS)):
        largest = sorted(each.memory.values(), key=lambda points: -max(nbytes for _, nbytes in points))
        for number, (points, colour) in enumerate(zip(largest, colours, strict=False)):
            there = [(at, nbytes / 1e6) for at, nbytes in points]
            lines.append(Line(f"{each.run.label}, worker {number + 1}", there, colour))
    last = max(at for line in lines for at, _ in line.points)
    limit = found.limit / 1e6
    lines.append(Line("limit", [(0.0, limit), (last, limit)], "#666666", dashed=True))
    words = [
        f"RssAnon of the largest Python workers: {found.stream.kind}, a budget of {found.memory >> 20} MB, "
        f"{found.spilled.state / 1e6:,.0f} MB of state in each worker. The limit: a worker that hands rows back, the "
        f"budget, rows of a micro-batch ({found.arriving / 1e6:,.0f} MB), 64 MB."
    ]
    return Plot(f"{found.stream.kind}: memory of workers", "seconds", "MB", lines, words, linear=True)
