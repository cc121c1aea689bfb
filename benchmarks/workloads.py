"""The data sets, by name: seeded, and with the same number of pairs per row at every size.

| name     | columns     | match                                       | drawn from                                  |
|----------|-------------|---------------------------------------------|---------------------------------------------|
| overlap  | lo, hi      | `a.lo < b.hi and b.lo < a.hi`               | lo uniform in [0, 1000 n), lengths uniform  |
| band     | x           | `-reach <= b.x - a.x <= reach`              | x uniform in [0, 1000 n)                    |
| within   | x, y        | `(b.x - a.x)^2 + (b.y - a.y)^2 <= radius^2` | uniform in a square, radius 1000            |
| validity | key, ts, te | equal keys, `a.ts < b.te and b.ts < a.te`   | 100 rows per key, uniform in [0, 1,000,000) |
| asof     | key, ts     | equal keys, of `b.ts <= a.ts` the newest    | 500 rows per key, all times of b different  |
| best     | x, y, z     | of `b` within `epsilon` of `a` in x, y, z,  | uniform in a cube, epsilon 1,000,000        |
|          |             | those that no other one dominates (pareto)  |                                             |

Every side has a payload too, `id`: a random order of 0 ... n - 1. All values are whole numbers (the coordinates of
`within` and `best` as doubles), so that every system computes every comparison exactly and checksums can be asked to be
equal. Of `best` it is the number of candidates per row that is the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = dict[str, npt.NDArray[Any]]

SEED = 20_240_607
SPACING = 1_000  # of the domain per row: the domain grows with n, the density stays
RADIUS = 1_000
ROWS_PER_KEY = 100
ROWS_PER_KEY_ASOF = 500
TIMES = 1_000_000
EPSILON = 1_000_000  # squares of distances are exact in doubles, and two that are equal are not to be expected


@dataclass(frozen=True)
class Workload:
    """Two sides of equal length, and the bounds of the match between them."""

    name: str
    left: Columns
    right: Columns
    bounds: dict[str, int]

    def __len__(self) -> int:
        return len(self.left["id"])

    def write(self, folder: Path) -> None:
        """Write the columns and bounds to `folder`, for every contender to read."""
        folder.mkdir(parents=True)
        for side in ("left", "right"):
            for name, column in getattr(self, side).items():
                np.save(folder / f"{side}.{name}.npy", column)
        (folder / "workload.json").write_text(json.dumps({"name": self.name, "bounds": self.bounds}))

    @classmethod
    def read(cls, folder: Path) -> Workload:
        """Read what `write` has written, into memory."""
        declared = json.loads((folder / "workload.json").read_text())
        left, right = (
            {file.name.split(".")[1]: np.load(file) for file in sorted(folder.glob(f"{side}.*.npy"))}
            for side in ("left", "right")
        )
        return cls(declared["name"], left, right, declared["bounds"])


def _overlap(rng: np.random.Generator, rows: int, per_row: int) -> tuple[Columns, Columns, dict[str, int]]:
    def side() -> Columns:
        lo = rng.integers(0, SPACING * rows, rows)
        # Two lengths of SPACING * per_row / 2 on average: per_row starts of the other side lie in reach.
        return {"lo": lo, "hi": lo + rng.integers(1, SPACING * per_row + 1, rows), "id": rng.permutation(rows)}

    return side(), side(), {}


def _band(rng: np.random.Generator, rows: int, per_row: int) -> tuple[Columns, Columns, dict[str, int]]:
    def side() -> Columns:
        return {"x": rng.integers(0, SPACING * rows, rows), "id": rng.permutation(rows)}

    return side(), side(), {"reach": SPACING * per_row // 2}


def _within(rng: np.random.Generator, rows: int, per_row: int) -> tuple[Columns, Columns, dict[str, int]]:
    edge = round(RADIUS * math.sqrt(math.pi * rows / per_row))

    def side() -> Columns:
        x, y = (rng.integers(0, edge, rows).astype(np.float64) for _ in range(2))
        return {"x": x, "y": y, "id": rng.permutation(rows)}

    return side(), side(), {"radius": RADIUS}


def _validity(rng: np.random.Generator, rows: int, per_row: int) -> tuple[Columns, Columns, dict[str, int]]:
    keys = max(rows // ROWS_PER_KEY, 1)
    longest = TIMES * per_row // ROWS_PER_KEY

    def side() -> Columns:
        ts = rng.integers(0, TIMES, rows)
        te = ts + rng.integers(1, longest + 1, rows)
        return {"key": rng.integers(0, keys, rows), "ts": ts, "te": te, "id": rng.permutation(rows)}

    return side(), side(), {}


def _asof(rng: np.random.Generator, rows: int, _: int) -> tuple[Columns, Columns, dict[str, int]]:
    keys = max(rows // ROWS_PER_KEY_ASOF, 1)

    def side(ts: npt.NDArray[np.int64]) -> Columns:
        return {"key": rng.integers(0, keys, rows), "ts": ts, "id": rng.permutation(rows)}

    # Times of the right side are all different: systems do not agree on which of several equal rows is the newest.
    return side(rng.integers(0, SPACING * rows, rows)), side(SPACING * rng.permutation(rows)), {}


def _best(rng: np.random.Generator, rows: int, per_row: int) -> tuple[Columns, Columns, dict[str, int]]:
    # Two values of [0, edge) are within epsilon with the chance 2 t - t**2, t = epsilon / edge, and there are three.
    share = 1 - math.sqrt(1 - math.cbrt(per_row / rows))
    edge = round(EPSILON / share)

    def side() -> Columns:
        x, y, z = (rng.integers(0, edge, rows).astype(np.float64) for _ in range(3))
        return {"x": x, "y": y, "z": z, "id": rng.permutation(rows)}

    return side(), side(), {"epsilon": EPSILON}


_MAKERS: dict[str, Callable[..., tuple[Columns, Columns, dict[str, int]]]] = {
    "overlap": _overlap,
    "band": _band,
    "within": _within,
    "validity": _validity,
    "asof": _asof,
    "best": _best,
}


def make(name: str, rows: int, per_row: int = 10) -> Workload:
    """The workload of this name with `rows` rows on each side and about `rows * per_row` pairs, or candidates."""
    rng = np.random.default_rng([SEED, list(_MAKERS).index(name), rows, per_row])
    return Workload(name, *_MAKERS[name](rng, rows, per_row))
