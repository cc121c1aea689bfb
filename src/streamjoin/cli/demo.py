"""`streamjoin demo`: who was near the ball? Two streams of positions, joined by distance and time.

A football match: one sensor in the ball, one in each player's boot. A position is taken to hold for the length of the
window; a pair is a ball position and a player's position that hold at the same time, not farther apart than the radius.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import streamjoin as sj
from streamjoin.cli.complaint import complaints
from streamjoin.cli.local_spark import local_spark

LENGTH, WIDTH = 105.0, 68.0  # of the pitch, in metres
PLAYERS: Final = 22
MATCH_SECONDS: Final = 2 * 45 * 60
KICK_OFF: Final = np.datetime64("2024-06-14T21:00:00", "us")
SHOWN: Final = 8

Floats = npt.NDArray[np.float64]


def demo(
    rows: Annotated[int, typer.Option(min=1, help="Positions in each of the two streams.")] = 20_000,
    radius: Annotated[float, typer.Option(help="How near a player must be to the ball, in metres.")] = 2.0,
    window: Annotated[str, typer.Option(help="How long a position holds.")] = "2 seconds",
    seed: Annotated[int, typer.Option(help="Another seed is another match.")] = 2,
) -> None:
    """Join two sensor streams by distance and time, on a Spark of its own."""
    console = Console()

    def near_ball(ball: Any, players: Any) -> Any:
        return sj.join_within(ball, players, on=("x", "y"), radius=radius, time="ts", window=sj.Range(window))

    with complaints(), Steps(console, total=5) as steps:
        with steps.step("starting Spark"):
            spark = local_spark()
        with steps.step("generating two streams"):
            ball, players = (spark.createDataFrame(table) for table in generate_match(rows, seed))
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
    say("Next: ./sj demo --radius 5 | ./sj explain --help | ./sj bench kernels | docs/guides/joining.md")


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


def generate_match(rows: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """The positions of the ball and of the players over a match, in metres.

    >>> ball, players = generate_match(100, seed=1)
    >>> ball.column_names, players.column_names, players.num_rows
    (['ts', 'x', 'y'], ['ts', 'player', 'x', 'y'], 100)
    """
    random = np.random.default_rng(seed)
    ball_path = [Wave(random, middle, reach=0.48 * side) for middle, side in ((LENGTH / 2, LENGTH), (WIDTH / 2, WIDTH))]
    # Every player keeps around a place of his own, and is drawn towards the ball.
    places = random.uniform([5, 5], [LENGTH - 5, WIDTH - 5], (PLAYERS, 2))
    drawn = random.uniform(0.2, 0.6, PLAYERS)

    seconds = ticking(random, rows)
    ball = pa.table({"ts": clock(seconds), "x": ball_path[0].at(seconds), "y": ball_path[1].at(seconds)})

    seconds = ticking(random, rows)
    player = random.integers(0, PLAYERS, rows)
    x, y = (
        places[player, axis] + drawn[player] * (path.at(seconds) - places[player, axis]) + random.normal(0, 3, rows)
        for axis, path in enumerate(ball_path)
    )
    return ball, pa.table({"ts": clock(seconds), "player": player + 1, "x": x, "y": y})


def ticking(random: np.random.Generator, rows: int) -> Floats:
    """Time stamps of a sensor: evenly over the match, each a little off."""
    step = MATCH_SECONDS / rows
    return step * (np.arange(rows) + random.uniform(0, 1, rows))


@dataclass
class Wave:
    """A smooth movement along one axis: a few oscillations on top of each other."""

    random: np.random.Generator
    middle: float
    reach: float

    def __post_init__(self) -> None:
        self.periods = self.random.uniform(15, 120, 4)
        self.shifts = self.random.uniform(0, 2 * np.pi, 4)

    def at(self, seconds: Floats) -> Floats:
        """The coordinate at each time."""
        angles = 2 * np.pi * seconds[:, None] / self.periods + self.shifts
        return self.middle + self.reach * np.asarray(np.sin(angles).mean(axis=1))


def clock(seconds: Floats) -> pa.Array:
    """Seconds since the kick-off as time stamps."""
    return pa.array(KICK_OFF + (seconds * 1e6).astype("timedelta64[us]"))


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
