"""Two inputs as folders of Parquet files, drawn from a seed. One file of each is a micro-batch.

    file     0        1        2       ...     n-1       n
    ts     [0, 20)  [20, 40)  ...                        far in the future: the closing row

Rows are out of order by at most the slack, so none of them is late, however the files are cut into micro-batches. On
request some rows come four or more files after their time: those are late even if a kill lets two files fall into one
micro-batch. Times lie on half seconds and keys are few, because ties are where the mistakes are. On request the rows
of a key have times of their own: only other keys and the other side share them.

The closing row lets everything before it be decided. It is told by its `id`, and left out of comparisons: a stream
keeps it as it waits for more, a batch has ended. Without one, a query holds what is not decided in the end.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA: Final = "id int, k int, v double, x double, y double, ts timestamp, te timestamp, late boolean"
ARROW_SCHEMA: Final = pa.schema(
    [
        ("id", pa.int32()),
        ("k", pa.int32()),
        ("v", pa.float64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("te", pa.timestamp("us", tz="UTC")),
        ("late", pa.bool_()),
    ]
)
SIDES: Final = ("left", "right")
BALLAST: Final = "ballast"  # what joins add that need wide rows: compared by its digest
CLOSING_ID: Final = -1
SLACK_SECONDS: Final = 5
SECONDS_PER_FILE: Final = 20
FILES_BEHIND: Final = 4  # how far a late row is moved, at least
LATEST_SECONDS: Final = 600  # more than any row is late by: all files together are shorter
KEYS: Final = 40
HALF_SECOND: Final = 500_000  # microseconds
BEGIN: Final = 1_704_067_200_000_000  # 2024, in microseconds
FAR: Final = 100_000  # seconds after the beginning

Row = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """How much there is: files of one side without the closing one, rows of a file, and whether a row closes it."""

    files: int = 12
    rows: int = 200
    closing: bool = True

    @property
    def batches(self) -> int:
        """Micro-batches that a query takes."""
        return self.files + self.closing


def draw_side(seed: str, side: int, shape: Shape, *, late: bool, distinct: bool = False) -> list[list[Row]]:
    """The files of one side, each a list of rows, in the order in which they come.

    >>> files = draw_side("1", 0, Shape(files=3, rows=10), late=False)
    >>> [len(file) for file in files], files[-1][0]["id"]
    ([10, 10, 10, 1], -1)
    """
    rng = random.Random(f"{seed}/{SIDES[side]}")
    rows = [_draw_row(rng, number, shape) for number in range(shape.files * shape.rows)]
    if distinct:
        _set_apart(rng, rows, shape)
    # Whoever is overtaken is overtaken by at most the slack: both have been put off by something between 0 and it.
    rows.sort(key=lambda row: row["ts"] + rng.randint(0, 2 * SLACK_SECONDS) * HALF_SECOND)
    files = [rows[n * shape.rows : (n + 1) * shape.rows] for n in range(shape.files)]
    if late:
        _put_off(rng, files)
    return [*files, [_closing_row(side)]] if shape.closing else files


def _draw_row(rng: random.Random, number: int, shape: Shape) -> Row:
    ts = _draw_time(rng, shape)
    return {
        "id": number,
        "k": rng.randrange(KEYS) if rng.random() > 0.03 else None,  # NULL meets nobody
        "v": rng.randrange(1000) / 10,
        "x": rng.uniform(0, 30),
        "y": rng.uniform(0, 30),
        "ts": ts,
        "te": ts + rng.randint(1, 12) * HALF_SECOND,
        "late": False,
    }


def _draw_time(rng: random.Random, shape: Shape) -> int:
    return BEGIN + rng.randrange(2 * SECONDS_PER_FILE * shape.files) * HALF_SECOND


def _set_apart(rng: random.Random, rows: list[Row], shape: Shape) -> None:
    """Move rows that have the time of another one of their key; there are many more times than rows of a key."""
    taken: set[tuple[int | None, int]] = set()
    for row in rows:
        while (row["k"], row["ts"]) in taken:
            lasts = row["te"] - row["ts"]
            row["ts"] = _draw_time(rng, shape)
            row["te"] = row["ts"] + lasts
        taken.add((row["k"], row["ts"]))


def _put_off(rng: random.Random, files: list[list[Row]]) -> None:
    for number in range(len(files) - FILES_BEHIND):
        for row in [row for row in files[number] if not row["late"] and rng.random() < 0.05]:
            files[number].remove(row)
            row["late"] = True
            files[rng.randrange(number + FILES_BEHIND, len(files))].append(row)


def _closing_row(side: int) -> Row:
    ts = BEGIN + FAR * 1_000_000
    # The two sides' closing rows do not meet each other either.
    apart = 1000.0 * (1 + side)
    return {
        "id": CLOSING_ID,
        "k": -1 - side,
        "v": apart,
        "x": apart,
        "y": apart,
        "ts": ts,
        "te": ts + 1,
        "late": False,
    }


def write(folder: Path, seed: str, shape: Shape, *, late: bool, distinct: bool = False) -> None:
    """Both sides as files under `folder`."""
    for side, name in enumerate(SIDES):
        (folder / name).mkdir(parents=True)
        for number, rows in enumerate(draw_side(seed, side, shape, late=late, distinct=distinct)):
            path = folder / name / f"{number:03d}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, schema=ARROW_SCHEMA), path)
            # Spark takes files in the order of their times, which would be equal in part.
            os.utime(path, (BEGIN // 1_000_000 + number, BEGIN // 1_000_000 + number))


def frames(spark: SparkSession, folder: Path, *, streaming: bool) -> tuple[DataFrame, DataFrame]:
    """The two sides, as streams of one file a micro-batch or as a batch."""
    paths = [str(folder / name) for name in SIDES]
    if streaming:
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return stream.parquet(paths[0]), stream.parquet(paths[1])
    return spark.read.schema(SCHEMA).parquet(paths[0]), spark.read.schema(SCHEMA).parquet(paths[1])
