"""Random sides for the pair kernels: narrow values to force ties, and the values at which arithmetic breaks."""

from __future__ import annotations

import numpy as np

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.kernels import cells_of
from tests.kernels.twins import Side

INFINITY = np.inf

# Name of a pool of values: what is drawn from. In `tenths` differences round, so that `x - eps + eps != x`.
POOLS: dict[str, np.ndarray] = {
    "small": np.arange(-3, 4),
    "extreme": np.array([NEVER, NEVER + 1, -(2**62), -1, 0, 1, 2**62, FOREVER - 1, FOREVER]),
    "tenths": np.array([-0.7, -0.3, -0.1, -0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.7, 0.8, 1.1]),
    "infinite": np.array([-INFINITY, -1e308, -1.0, 0.0, 5e-324, 1.0, 1e308, INFINITY]),
}
LIMITS = (1, 2, 7, 1 << 20)


def sizes(rng: np.random.Generator) -> tuple[int, int]:
    """Lengths of two sides: empty, alike, and far apart both ways, since kernels walk the smaller side."""
    return [(0, 5), (5, 0), (1, 1), (25, 25), (3, 120), (120, 3)][rng.integers(6)]


def groups(rng: np.random.Generator, rows: int, grouped: bool) -> np.ndarray:
    """Group codes: all zero, or a few, the ends of int64 among them."""
    return rng.choice(np.array([NEVER, -1, 2, FOREVER]), rows) if grouped else np.zeros(rows, np.int64)


def times(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Validities; some never end, some are empty."""
    ts = rng.integers(-5, 6, rows)
    te = np.where(rng.random(rows) < 0.2, FOREVER, ts + rng.integers(0, 6, rows))
    return np.where(rng.random(rows) < 0.1, NEVER, ts), te


def in_order(side: Side, *keys: int) -> Side:
    """The side sorted by these of its columns, ties at random places."""
    order = np.lexsort([side[key] for key in reversed(keys)])
    return tuple(column[order] for column in side)


def valued(rng: np.random.Generator, rows: int, pool: str, grouped: bool) -> Side:
    """A side (group, value, ts, te), sorted for a band."""
    return in_order((groups(rng, rows, grouped), rng.choice(POOLS[pool], rows), *times(rng, rows)), 0, 1)


def intervals(rng: np.random.Generator, rows: int, pool: str, grouped: bool) -> Side:
    """A side (group, lo, hi, ts, te) without empty intervals, sorted for an overlap."""
    values = POOLS[pool]
    first = rng.integers(0, len(values) - 1, rows)
    while (stuck := values[first] >= values[-1]).any():
        first[stuck] -= 1
    last = np.array([rng.integers(one + 1, len(values)) for one in first], np.int64)
    lo, hi = values[first], values[last] if rows else values[:0]
    hi = np.where(hi > lo, hi, values[-1])  # -0.0 and 0.0 stand side by side
    return in_order((groups(rng, rows, grouped), lo, hi, *times(rng, rows)), 0, 1)


def points(rng: np.random.Generator, rows: int, axes: int, radius: float, pool: str, grouped: bool) -> Side:
    """A side (group, cell, axes, ts, te), sorted for a distance."""
    coordinates = rng.choice(POOLS[pool], (rows, axes)).astype(np.float64)
    cell = cells_of(coordinates[:, -1], radius * 1.001 or 1.0) if axes > 1 else np.zeros(rows, np.int64)
    side = (groups(rng, rows, grouped), cell, coordinates, *times(rng, rows))
    order = np.lexsort((coordinates[:, 0], cell, side[0]))
    return tuple(column[order] for column in side)
