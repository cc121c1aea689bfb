"""A football match as two streams of positions: one sensor in the ball, one in each player's boot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LENGTH, WIDTH = 105.0, 68.0  # of the pitch, in metres
PLAYERS: Final = 22
MATCH_SECONDS: Final = 2 * 45 * 60
KICK_OFF: Final = np.datetime64("2024-06-14T21:00:00", "us")

Floats = npt.NDArray[np.float64]


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
