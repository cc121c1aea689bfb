"""`streamjoin demo`: who was near the ball? Two streams of positions, joined by distance and time.

A football match: one sensor in the ball, one in each player's boot. A position is taken to hold for the length of the
window; a pair is a ball position and a player's position that hold at the same time, not farther apart than the radius.
By default the match is played in half a minute, as two streams (`demo_stream.py`); with `--batch` it is over already.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import streamjoin as sj
from streamjoin import CallError
from streamjoin.cli.complaint import complaints
from streamjoin.cli.demo_stream import SECONDS, Match, play
from streamjoin.cli.failure import readable_failures
from streamjoin.cli.local_spark import local_spark
from streamjoin.cli.match import generate_match
from streamjoin.cli.reported import check_report

SHOWN: Final = 8


def demo(
    rows: Annotated[int, typer.Option(min=1, help="Positions in each of the two streams.")] = 20_000,
    radius: Annotated[float, typer.Option(help="How near a player must be to the ball, in metres.")] = 2.0,
    window: Annotated[str, typer.Option(help="How long a position holds.")] = "2 seconds",
    seed: Annotated[int, typer.Option(help="Another seed is another match.")] = 2,
    batch: Annotated[bool, typer.Option("--batch", help="Join the whole match at once, as two tables.")] = False,
    seconds: Annotated[int | None, typer.Option(min=1, help="How long the streams take; by default 30.")] = None,
    report: Annotated[Path | None, typer.Option(help="The HTML file of the report; by default one of its own.")] = None,
) -> None:
    """Join two sensor streams by distance and time, on a Spark of its own."""
    with complaints(), readable_failures():
        if not batch:
            check_report(report, live=False, port=None)
            play(Console(), Match(rows, radius, window, seed), seconds or SECONDS, report)
            return
        for option, given in (("--seconds", seconds), ("--report", report)):
            if given is not None:
                raise CallError(f"{option} is for streams, and --batch has none", hint="leave one of the two out")
        join_at_once(Console(), Match(rows, radius, window, seed))


def join_at_once(console: Console, match: Match) -> None:
    """The whole match as two tables."""
    rows, radius, window = match.rows, match.radius, match.window

    def near_ball(ball: Any, players: Any) -> Any:
        return sj.join_within(ball, players, on=("x", "y"), radius=radius, time="ts", window=sj.Range(window))

    with Steps(console, total=5) as steps:
        with steps.step("starting Spark"):
            spark = local_spark()
        with steps.step("generating two streams"):
            ball, players = (spark.createDataFrame(table) for table in generate_match(rows, match.seed))
        with steps.step("starting workers, loading kernels"):
            # So that the time of the join below is the join's alone. The very first run compiles the kernels here.
            near_ball(ball.limit(1), players.limit(1)).count()
        with steps.step("joining by distance and time"):
            # Kept, so that the pairs are counted and shown from one and the same run.
            near = near_ball(ball, players).persist()
            pairs = near.count()
        with steps.step("collecting the closest pairs"):
            closest = closest_pairs(near)
            near.unpersist()
    seconds = steps.seconds["joining by distance and time"]
    console.print(as_table(closest, radius, window))
    say = partial(console.print, highlight=False, soft_wrap=True)
    say(f"{2 * rows:,} positions in, {pairs:,} pairs out, {seconds:.1f} s for the join.")
    say("Next: ./sj demo --batch --radius 5 | ./sj explain --help | ./sj bench kernels | docs/guides/joining.md")


@dataclass
class Steps:
    """A progress bar over steps that are really done, and how long each took."""

    console: Console
    total: int
    seconds: dict[str, float] = field(default_factory=dict)

    def __enter__(self) -> Steps:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.bar = Progress(*columns, TimeElapsedColumn(), console=self.console)
        self.bar.start()
        self.task = self.bar.add_task("", total=self.total)
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            self.bar.update(self.task, description="done")
        self.bar.stop()

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """One step: named while it runs, counted when it is done."""
        self.bar.update(self.task, description=what)
        started = time.monotonic()
        yield
        self.seconds[what] = time.monotonic() - started
        self.bar.advance(self.task)


def closest_pairs(near: Any) -> list[Any]:
    """The pairs with the smallest distance, ready to be shown."""
    return list(
        near.selectExpr("*", "sqrt(power(x - x_right, 2) + power(y - y_right, 2)) metres")
        .orderBy("metres", "ts", "ts_right")
        .limit(SHOWN)
        .selectExpr(
            "date_format(ts, 'HH:mm:ss.SSS') ball_seen",
            "cast(player as string) player",
            "date_format(ts_right, 'HH:mm:ss.SSS') player_seen",
            "format_number(metres, 2) metres",
            "date_format(valid_from, 'HH:mm:ss.SSS') valid_from",
            "date_format(valid_to, 'HH:mm:ss.SSS') valid_to",
        )
        .collect()
    )


def as_table(rows: list[Any], radius: float, window: str) -> Table:
    """Pairs as a table for the screen."""
    title = f"Closest to the ball, within {radius:g} m; a position holds for {window}"
    table = Table(title=title, title_justify="left")
    for name in ("ball seen", "player", "player seen", "metres", "valid from", "valid to"):
        table.add_column(name, justify="right" if name in ("player", "metres") else "left")
    for row in rows:
        table.add_row(*row)
    return table
