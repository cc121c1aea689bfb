"""The data of the streaming questions: two streams in files, seeded, with about one result per row of a side.

Rows of a side come at a steady pace, in order of time. A micro-batch is `FILES_PER_BATCH` files of each side.

| name     | columns       | match, besides the bound on time            | drawn from                             |
|----------|---------------|---------------------------------------------|----------------------------------------|
| equality | ts, k, v, p   | `l.k = r.k`                                 | k uniform                              |
| band     | ts, x, v, p   | `-REACH <= r.x - l.x <= REACH`              | x uniform                              |
| overlap  | ts, lo, hi, p | `l.lo < r.hi and r.lo < l.hi`               | lo uniform, lengths uniform            |
| within   | ts, x, y, p   | `(r.x - l.x)^2 + (r.y - l.y)^2 <= REACH^2`  | uniform in a square                    |
| asof     | ts, k, v, p   | `l.k = r.k`, the newest right row           | k uniform                              |

Whatever the bound on time, the domain of the other condition grows with the number of rows in the bound, so that the
results per row stay the same. `p` is the row's number, unique on its side. Needs numpy and pyarrow only.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

Kind = Literal["equality", "band", "overlap", "within", "asof"]

SEED: Final = 20_251_101
SIDES: Final = ("left", "right")
COLUMNS: Final[dict[Kind, tuple[str, ...]]] = {
    "equality": ("ts", "k", "v", "p"),
    "band": ("ts", "x", "v", "p"),
    "overlap": ("ts", "lo", "hi", "p"),
    "within": ("ts", "x", "y", "p"),
    "asof": ("ts", "k", "v", "p"),
}
FILES_PER_BATCH: Final = 2  # of a side: one for each core
BATCH_US: Final = 10_000_000  # of event time in a micro-batch of the usual size
REACH: Final = 1_000
LENGTH: Final = 1_000  # of an interval, on average
CELL: Final = 32 * LENGTH  # of the grid for overlaps: a row is in little more than one cell
EPOCH_US: Final = 1_700_000_000_000_000


@dataclass(frozen=True)
class Stream:
    """What two streams look like. `rows` counts both sides of a micro-batch, `step_us` is the time between two rows."""

    kind: Kind
    rows: int
    batches: int
    step_us: int
    bound_seconds: int = 2

    @property
    def rows_per_file(self) -> int:
        return self.rows // (len(SIDES) * FILES_PER_BATCH)

    @property
    def in_bound(self) -> int:
        """How many rows of the other side lie within the bound on time of a row."""
        return 2 * self.bound_seconds * 1_000_000 // self.step_us

    def tables(self, side: int) -> Iterator[pa.Table]:
        """The rows of a side, one table for each file."""
        for number in range(self.batches * FILES_PER_BATCH):
            # The kind by its place, since seeds are numbers. The bound is part of it: it decides the domain.
            seed = [SEED, list(COLUMNS).index(self.kind), self.rows, self.bound_seconds, side, number]
            yield self._table(np.random.default_rng(seed), number * self.rows_per_file)

    def _table(self, rng: np.random.Generator, first: int) -> pa.Table:
        count, meet = self.rows_per_file, self.in_bound
        number = np.arange(first, first + count)
        columns = {"ts": pa.array(EPOCH_US + number * self.step_us, pa.timestamp("us", tz="UTC")), "p": number}
        if self.kind in ("equality", "asof"):
            columns |= {"k": rng.integers(0, max(meet, 1), count)}
        elif self.kind == "band":
            columns |= {"x": rng.integers(0, meet * (2 * REACH + 1), count)}
        elif self.kind == "overlap":
            lo = rng.integers(0, meet * 2 * LENGTH, count)
            columns |= {"lo": lo, "hi": lo + rng.integers(1, 2 * LENGTH, count)}
        else:
            edge = round(REACH * math.sqrt(math.pi * meet))
            columns |= {axis: rng.integers(0, edge, count).astype(np.float64) for axis in ("x", "y")}
        if "v" in COLUMNS[self.kind]:
            columns["v"] = rng.integers(0, 1_000_000, count) / 1000
        return pa.table({name: columns[name] for name in COLUMNS[self.kind]})


def usual_step(rows: int) -> int:
    """The time between two rows of a side, when a micro-batch of `rows` rows is to span `BATCH_US`."""
    return max(1, BATCH_US // (rows // len(SIDES)))


def write_parquet(stream: Stream, folder: Path) -> None:
    """Both sides as Parquet files, in folders of their own."""
    for side, name in enumerate(SIDES):
        (folder / name).mkdir(parents=True)
        for number, table in enumerate(stream.tables(side)):
            file = folder / name / f"{number:04d}.parquet"
            pq.write_table(table, file)
            _arrived(file, number)


def write_csv(stream: Stream, folder: Path) -> None:
    """Both sides as CSV, with times in whole milliseconds: Flink has no finer ones.

    `left`, `right`   as many files as for Parquet, with a header
    `left.csv`, `right.csv`   the same rows in one file each, without: Flink reads several files in no particular order,
                              would find rows late, and knows no headers
    """
    without = pa.csv.WriteOptions(include_header=False)
    for side, name in enumerate(SIDES):
        (folder / name).mkdir(parents=True)
        with (folder / f"{name}.csv").open("wb") as whole:
            for number, table in enumerate(stream.tables(side)):
                millis = pa.array(table["ts"].cast(pa.int64()).to_numpy() // 1000)
                rows = table.set_column(0, "ts", millis)
                file = folder / name / f"{number:04d}.csv"
                pa.csv.write_csv(rows, file)
                _arrived(file, number)
                pa.csv.write_csv(rows, whole, without)


def link_batches(folder: Path, batches: int, target: Path) -> Path:
    """The first micro-batches of a folder once more, without a copy: contenders do not all run equally many."""
    for name in SIDES:
        (target / name).mkdir(parents=True)
        for file in sorted((folder / name).iterdir())[: batches * FILES_PER_BATCH]:
            os.link(file, target / name / file.name)
    return target


def _arrived(file: Path, number: int) -> None:
    # Spark takes files in the order of their times, and those written within a millisecond have the same.
    os.utime(file, (EPOCH_US // 1_000_000 + number,) * 2)
