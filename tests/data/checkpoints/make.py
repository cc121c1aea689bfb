"""Checkpoints of small queries, as this version stores them; `tests/spark/test_upgrading.py` goes on with them.

    ./sj python -m tests.data.checkpoints.make

writes `format-N.tar.xz` beside this file, N being the number of the format. It has, for each query, the checkpoint
after two micro-batches, and the rows that have left so far. Make one whenever the number changes, and keep the others:
they are what users have. Spark stores some paths as they are, absolute, of the files that were read too, and looks at
them again: in the archive they begin with `PLACE`, and `inputs` lies beside the queries.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.state.snapshot import FORMAT

HERE = Path(__file__).parent
PLACE = b"/where-it-was-unpacked"
SCHEMA = "id long, k long, v long, ts long"
FAR = 1000  # a time beyond all others: rows there come last, and let everything before them be decided
BEGIN = 1_700_000_000  # when the first file was written, in seconds

QUERIES: dict[str, Callable[[SparkSession, DataFrame, DataFrame], DataFrame]] = {
    "equality": lambda spark, a, b: sj.join(
        [a, b], time="ts", window=sj.Range(9), by="k", how="left", emit="ordered", lateness=sj.Grace(4), buckets=2
    ),
    "outer": lambda spark, a, b: sj.join(
        [a, b], time="ts", window=sj.Range(5), where=sj.theta("l.v < r.v"), how="full", lateness=sj.Grace(4), buckets=2
    ),
    "groups": lambda spark, a, b: sj.cql(
        spark, "SELECT k, COUNT(*) AS n, MAX(v) AS top FROM R [PARTITION BY k ROWS 2] GROUP BY k",
        R=a, lateness=sj.Grace(4), buckets=2,
    ),
}  # fmt: skip


def write_inputs(folder: Path, numbers: range) -> None:
    """Files of both sides, each a micro-batch. The third is the last."""
    for number in numbers:
        for side in (0, 1):
            times = [20 * number + (7 * i + 3 * side) % 20 for i in range(8)]
            rows = [(10 * number + i, i % 3, (5 * i + side) % 7, ts) for i, ts in enumerate(times)]
            if number == 2:
                rows += [(-1, k, 0, FAR + later) for later in (0, 50, 100) for k in range(3)]
            lines = [json.dumps(dict(zip(("id", "k", "v", "ts"), row, strict=True))) for row in rows]
            file = folder / str(side) / f"{number}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(lines))
            os.utime(file, (BEGIN + number, BEGIN + number))  # Spark takes files in order of their times


def asked(spark: SparkSession, folder: Path, name: str, *, streaming: bool) -> DataFrame:
    """A query over the files that are there."""
    reader = spark.readStream.option("maxFilesPerTrigger", 1) if streaming else spark.read
    reader = reader.schema(SCHEMA)
    return QUERIES[name](spark, *(reader.json(str(folder / side)) for side in "01"))


def left_of(frame: DataFrame, checkpoint: Path) -> list[list[Any]]:
    """Run a query to the end of what is there: the rows that leave."""
    left: list[list[Any]] = []

    def take(rows: DataFrame, number: int) -> None:
        left.extend(list(row) for row in rows.collect())

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return left


def pack(folder: Path, archive: Path) -> None:
    """An archive of a folder, with `PLACE` for where it lies, and without checksums, which would tell."""
    for file in folder.rglob("*.crc"):
        file.unlink()
    _moved(folder, bytes(folder), PLACE)
    with tarfile.open(archive, "w:xz") as packed:
        packed.add(folder, ".", filter=_nobodys)


def unpack(archive: Path, folder: Path) -> None:
    """The inverse of `pack`."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    _moved(folder, PLACE, bytes(folder))


def _moved(folder: Path, before: bytes, after: bytes) -> None:
    """Another place for whatever Spark has written down."""
    for file in folder.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        if before in content:
            content.decode()  # text only: elsewhere a path of another length would spoil it
            file.write_bytes(content.replace(before, after))


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    spark = sj.session(master="local[2]", spark__sql__shuffle__partitions=2)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_inputs(folder / "inputs", range(2))
        for name in QUERIES:
            frame = asked(spark, folder / "inputs", name, streaming=True)
            left = left_of(frame, folder / name / "checkpoint")
            (folder / name / "left.json").write_text(json.dumps(left))
        spark.stop()
        pack(folder, HERE / f"format-{FORMAT}.tar.xz")


if __name__ == "__main__":
    main()
