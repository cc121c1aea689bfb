"""Two folders of Parquet files, one file of each a micro-batch, and queries over them."""

from __future__ import annotations

import json
import os
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj

SCHEMA = "id int, k int, v double, lo double, hi double, ts timestamp"
_ARROW = pa.schema([
    ("id", pa.int32()), ("k", pa.int32()), ("v", pa.float64()), ("lo", pa.float64()), ("hi", pa.float64()),
    ("ts", pa.timestamp("us", tz="UTC")),
])  # fmt: skip
SLACK = 5  # seconds
BEGIN = 1_700_000_000  # when the first file was written, in seconds
CLOSING = -1  # the id of rows that come last, far in the future, and let everything else be decided

Row = tuple[int, int, float, float, float, int]


def row(number: int, key: int, seconds: int, value: float = 0.0) -> Row:
    return (number, key, value, value, value + 1, seconds)


def random_rows(rng: random.Random, count: int, *, horizon: int = 60) -> list[Row]:
    """Rows at most `SLACK` seconds late."""
    rows = []
    for number in range(count):
        lo = rng.choice([0.0, 0.5, 1.0, 7.5])
        value = rng.choice([0.0, 0.5, 1.0, 7.5])
        rows.append((number, rng.randint(0, 3), value, lo, lo + rng.choice([0.5, 2.0]), rng.randint(0, horizon)))
    return sorted(rows, key=lambda row: row[-1] + rng.randint(0, SLACK))


class Source:
    """Two inputs in a folder, with an output and a checkpoint beside them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0
        self.out, self.checkpoint = folder / "out", folder / "checkpoint"
        for side in "01":
            (folder / side).mkdir(parents=True, exist_ok=True)

    def add(self, sides: list[list[Row]], pieces: int = 1) -> None:
        """More rows, each side in so many files."""
        for piece in range(pieces):
            for side, rows in enumerate(sides):
                some = rows[len(rows) * piece // pieces : len(rows) * (piece + 1) // pieces]
                columns = list(zip(*some, strict=True)) if some else [[]] * len(_ARROW)
                columns[-1] = [seconds * 1_000_000 for seconds in columns[-1]]
                arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
                scratch = self.folder / "scratch"
                pq.write_table(pa.table(arrays, schema=_ARROW), scratch)
                # Spark takes files in order of their times, and those of one millisecond in any order.
                os.utime(scratch, (BEGIN + self.files, BEGIN + self.files))
                scratch.rename(self.folder / str(side) / f"{self.files:04d}.parquet")
            self.files += 1

    def close(self) -> None:
        self.add([[row(CLOSING, -1, 10_000)], [row(CLOSING, -2, 10_000, 100.0)]])

    def frames(self, *, streaming: bool) -> list[DataFrame]:
        return [self.frame(side, streaming=streaming) for side in (0, 1)]

    def frame(self, side: int, *, streaming: bool) -> DataFrame:
        path = str(self.folder / str(side))
        if not streaming:
            return self.spark.read.schema(SCHEMA).parquet(path)
        return self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(path)

    def start(self, joined: DataFrame) -> Any:
        """A query over all that is there; it goes on from the checkpoint."""
        writer = joined.writeStream.format("parquet").option("path", str(self.out))
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()

    def run(self, joined: DataFrame) -> Counter[Any]:
        """Run to the end of what is there: all that has left so far."""
        self.start(joined).awaitTermination()
        return self.left(joined)

    def left(self, joined: DataFrame) -> Counter[Any]:
        return counted(self.spark.read.schema(joined.schema).parquet(str(self.out)))

    def partitions(self) -> dict[str, list[list[dict[str, Any]]]]:
        """What has left, as it left: for every partition of the result the rows of each micro-batch in turn."""
        log, seen = self.out / "_spark_metadata", set()
        found: dict[str, list[list[dict[str, Any]]]] = defaultdict(list)
        for batch in sorted(log.glob("[0-9]*"), key=lambda path: int(path.stem)):
            # A line per file, after the version. Every tenth micro-batch says again what those before it said.
            written = {Path(json.loads(line)["path"]).name for line in batch.read_text().splitlines()[1:]}
            for name in sorted(written - seen):
                rows = ds.dataset(self.out / name, format="parquet").to_table(use_threads=False)
                found[name.split("-")[1]].append(rows.to_pylist())
            seen |= written
        return found

    def finished(self, joined: DataFrame) -> Counter[Any]:
        """What has left, and what was still held."""
        return self.run(joined) + counted(sj.finish(self.checkpoint))


def counted(frame: DataFrame) -> Counter[Any]:
    """The rows as a multiset, without what the closing rows made."""
    rows = (row.asDict() for row in frame.collect())
    return Counter(tuple(row.items()) for row in rows if CLOSING not in (row.get("id"), row.get("id_right")))
