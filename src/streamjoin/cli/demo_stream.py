"""The demo's match as two streams: files that arrive while it is played, joined as they come; a table that changes.

A match of ninety minutes is played in half a minute. Most positions arrive when they were taken; some a little late,
which the join waits for; and a few so late that nobody waits any longer: those are put aside, marked as late.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console, Group
from rich.filesize import decimal
from rich.live import Live
from rich.table import Table
from rich.text import Text

import streamjoin as sj
from streamjoin.api import EndedBatches
from streamjoin.cli.local_spark import local_spark
from streamjoin.cli.match import KICK_OFF, MATCH_SECONDS, generate_match
from streamjoin.cli.screen import HEADINGS, batch_line, in_columns, state_of

SECONDS: Final = 30
TICK: Final = 0.5  # seconds between two files of a stream
GRACE: Final = 60  # seconds of the match that the join waits for late positions
A_LITTLE, MUCH = (0.02, (1, 45)), (0.005, (240, 600))  # shares of the positions, and by how many seconds they are late
SCHEMAS: Final = ("ts timestamp_ntz, x double, y double", "ts timestamp_ntz, player long, x double, y double")
STREAMS: Final = ("ball", "players")
SHOWN: Final = 8
BARS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Match:
    """What is played, and what counts as near."""

    rows: int
    radius: float
    window: str
    seed: int


@dataclass
class Seen:
    """What has come out so far: pairs by player, and positions that came too late."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    near: Counter[int] = field(default_factory=Counter)
    closest: dict[int, float] = field(default_factory=dict)
    too_late: int = 0
    last_late: str = ""

    def take(self, frame: Any, _batch: int) -> None:
        """The results of one micro-batch, as Spark hands them over."""
        metres = "sqrt(power(x - x_right, 2) + power(y - y_right, 2))"
        self.add(frame.selectExpr("player", f"{metres} metres", "_late", "coalesce(ts, ts_right) ts").toArrow())

    def add(self, rows: pa.Table) -> None:
        """The same, as a table."""
        with self.lock:
            pairs, late = rows.filter(pc.invert(rows["_late"])), rows.filter(rows["_late"])
            for each in pairs.group_by("player").aggregate([("metres", "count"), ("metres", "min")]).to_pylist():
                player = each["player"]
                self.near[player] += each["metres_count"]
                self.closest[player] = min(each["metres_min"], self.closest.get(player, np.inf))
            self.too_late += late.num_rows
            for last in late.slice(max(0, late.num_rows - 1)).to_pylist():
                who = "the ball" if last["player"] is None else f"player {last['player']}"
                self.last_late = f"{who} at {last['ts']:%H:%M:%S}"


def play(console: Console, match: Match, seconds: int, report: Path | None) -> None:
    """Play the match, show what the join finds, and write a report."""
    with tempfile.TemporaryDirectory(prefix="streamjoin-demo-") as scratch, console.status("starting Spark") as status:
        spark, folder, seen = local_spark(), Path(scratch), Seen()
        status.update("generating a match")
        files = list(arriving(match, max(1, int(seconds / TICK))))
        for name in STREAMS:
            (folder / name).mkdir()
        deliver(folder, files[0])
        status.update("starting workers, loading kernels")
        query = start(spark, folder, match, seen)
        sj.report(query, spark=spark)
        shown = Shown(console, match, seen, len(files))
        try:
            while query.lastProgress is None:  # what comes before is no time of the match
                query.awaitTermination(TICK)
            status.stop()
            watch(query, folder, files, shown)
        finally:
            query.stop()
        report = report or Path(tempfile.mkdtemp(prefix="streamjoin-demo-")) / "report.html"
        written = sj.report(query, spark=spark).write(report)
    for line in shown.summary():
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"report: {written}", highlight=False, soft_wrap=True)
    console.print("Next: ./sj demo --batch | ./sj explain --help | docs/guides/streaming.md", highlight=False)


def start(spark: Any, folder: Path, match: Match, seen: Seen) -> Any:
    """The streaming join, and what becomes of its results."""
    ball, players = (
        spark.readStream.schema(schema).parquet(str(folder / name))
        for name, schema in zip(STREAMS, SCHEMAS, strict=True)
    )
    near = sj.join_within(
        ball, players, on=("x", "y"), radius=match.radius, time="ts", window=sj.Range(match.window),
        lateness=sj.Grace(f"{GRACE} seconds"), late="output",
    )  # fmt: skip
    writer = near.writeStream.queryName("who is near the ball").foreachBatch(seen.take)
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def watch(query: Any, folder: Path, files: list[tuple[pa.Table, ...]], shown: Shown) -> None:
    """Deliver the other files, one of each stream at a time, and show what the query makes of them until it has all."""
    batches, began, delivered = EndedBatches(query), time.monotonic(), 1
    with shown:
        while True:
            while delivered < len(files) and time.monotonic() - began >= TICK * delivered:
                deliver(folder, files[delivered])
                delivered += 1
            over = delivered == len(files) and not query.status["isDataAvailable"] and shown.rows_in >= shown.rows
            query.awaitTermination(TICK / 2)  # an error of the query is raised here
            for figures in batches.new():
                shown.show(figures, delivered)
            if over:
                return


def arriving(match: Match, ticks: int) -> Iterator[tuple[pa.Table, ...]]:
    """The positions of each stream by when they arrive, in so many parts.

    >>> parts = list(arriving(Match(1000, 2.0, "2 seconds", 1), 10))
    >>> len(parts), sum(part.num_rows for both in parts for part in both)
    (10, 2000)
    """
    random = np.random.default_rng(match.seed)
    streams = []
    for table in generate_match(match.rows, match.seed):
        taken = (table["ts"].to_numpy() - KICK_OFF) / np.timedelta64(1, "s")
        delay = np.zeros(match.rows)
        for share, (least, most) in (A_LITTLE, MUCH):
            some = random.uniform(size=match.rows) < share
            delay[some] = random.uniform(least, most, int(some.sum()))
        part = np.minimum((taken + delay) * ticks / MATCH_SECONDS, ticks - 1).astype(np.int64)
        streams.append((table, part))
    for tick in range(ticks):
        yield tuple(table.filter(pa.array(part == tick)) for table, part in streams)


def deliver(folder: Path, tables: tuple[pa.Table, ...]) -> None:
    """A file for each stream, whole when it is seen."""
    for name, table in zip(STREAMS, tables, strict=True):
        hidden = folder / name / ".next"
        pq.write_table(table, hidden)
        hidden.rename(folder / name / f"{time.time_ns()}.parquet")


class Shown:
    """The screen: on a terminal a table that changes, elsewhere a line for every micro-batch."""

    def __init__(self, console: Console, match: Match, seen: Seen, parts: int) -> None:
        self.console, self.match, self.seen, self.parts = console, match, seen, parts
        self.rows, self.rows_in, self.rows_out, self.late = 2 * match.rows, 0, 0, 0
        self.state: list[int] = []
        self.latest: Mapping[str, Any] = {}
        self.live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Shown:
        if self.live is not None:
            self.live.start()
        else:
            self.console.print(in_columns(HEADINGS), highlight=False, soft_wrap=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, figures: Mapping[str, Any], delivered: int) -> None:
        """A micro-batch has ended."""
        self.rows_in += figures["rows_in"]
        self.late += figures["late"]
        self.rows_out += figures["rows_out"] - figures["late"]  # what is put aside leaves too, and is no pair
        self.state.append(state_of(figures)[0])
        self.latest = figures
        if self.live is None:
            self.console.print(batch_line(figures), highlight=False, soft_wrap=True)
        else:
            self.live.update(self.table(delivered), refresh=True)

    def table(self, delivered: int) -> Group:
        """Who is near the ball, and what the join does meanwhile."""
        minute = 90 * delivered // self.parts
        table = Table(title=f"Near the ball, within {self.match.radius:g} m, minute {minute}", title_justify="left")
        for name, justify in (("player", "right"), ("times near", "right"), ("closest, m", "right"), ("", "left")):
            table.add_column(name, justify=justify, min_width=24 if not name else None)  # type: ignore[arg-type]
        with self.seen.lock:
            best, too_late, last = self.seen.near.most_common(SHOWN), self.seen.too_late, self.seen.last_late
            closest = dict(self.seen.closest)
        for player, count in best:
            table.add_row(str(player), f"{count:,}", f"{closest[player]:.2f}", "█" * round(24 * count / best[0][1]))
        size = decimal(state_of(self.latest)[1])
        lines = [
            f"{self.rows_in:,} of {self.rows:,} positions in, {self.rows_out:,} pairs out; "
            f"micro-batch {self.latest['batch']} took {self.latest['seconds']:.1f} s",
            f"late: {too_late:,} put aside, more than {GRACE} s late" + (f"; the last: {last}" if last else ""),
            f"state: {self.state[-1]:,} rows, {size}   {sparkline(self.state)}",
        ]
        return Group(table, *(Text(line, overflow="ellipsis", no_wrap=True) for line in lines))

    def summary(self) -> list[str]:
        """What has happened, in a few lines."""
        settled = self.state[len(self.state) // 3 :] or [0]
        return [
            f"{self.rows_in:,} positions in, {self.rows_out:,} pairs out, "
            f"{self.late:,} positions came more than {GRACE} s late and were put aside.",
            f"State: {min(settled):,} to {max(settled):,} rows in the last two thirds of {len(self.state)} "
            f"micro-batches, while {self.rows_in:,} rows passed.",
        ]


def sparkline(values: list[int], width: int = 40) -> str:
    """The last values as bars, from zero to the largest.

    >>> sparkline([0, 4, 8])
    '▁▅█'
    """
    some = values[-width:]
    most = max(max(some), 1)
    return "".join(BARS[round(value * (len(BARS) - 1) / most)] for value in some)
