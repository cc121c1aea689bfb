"""What is tried on other versions of Spark, part by part. `tests.spark_versions` runs this with the Python of each.

    python -m tests.spark.version_parts here|connect|pipelines|begin|go-on FOLDER

Prints one line of JSON: what the parts gave, or how they failed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import streamjoin as sj
from streamjoin.api import rescale_query
from tests.deployments import Results, joined, rows_of, suite
from tests.spark.connect_job import SETTINGS
from tests.spark.every_name import Tried, through_a_query, through_streams, through_tables
from tests.spark.streams import Row, Source, random_rows, row

Part = Callable[[SparkSession, Path], Any]


def _tables(spark: SparkSession, folder: Path) -> Results:
    on = Tried(spark, folder)
    through_tables(on)
    return on.results


def _lateness(spark: SparkSession, folder: Path) -> Results:
    on = Tried(spark, folder)
    through_streams(on)
    through_a_query(on)
    return on.results


def _collated(spark: SparkSession, folder: Path) -> Any:
    source = _filled(spark, folder)
    frames = [
        frame.selectExpr("id", "collate(CASE WHEN id % 2 = 0 THEN 'a' ELSE 'A' END, 'UTF8_LCASE') AS name", "ts")
        for frame in source.frames(streaming=False)
    ]
    return rows_of(sj.join(frames, by="name", time="ts", window=sj.Range("2 seconds")))


def _beside_a_table(spark: SparkSession, folder: Path) -> Any:
    source = _filled(spark, folder)
    stream, table = source.frame(0, streaming=True), source.frame(1, streaming=False)
    timed: dict[str, Any] = {"time": "ts", "window": sj.Range("5 seconds"), "by": "k", "lateness": sj.Grace("5 s")}
    source.start(sj.join(stream, table, **timed, buckets=2)).awaitTermination()
    return rows_of(spark.read.parquet(str(source.out)))


def _timers(spark: SparkSession, folder: Path) -> Any:
    """An input that has nothing more to say is noticed while nothing comes at all."""
    source = Source(spark, folder)
    source.add([[row(1, 1, 10), row(2, 1, 1000)], [row(1, 2, 10)]])
    timed: dict[str, Any] = {"time": "ts", "window": sj.Range("5 seconds"), "by": "k", "lateness": sj.Grace("0 s")}
    frame = sj.join(source.frames(streaming=True), **timed, how="left", buckets=1, idle_after="1 second", timers=True)
    query = frame.writeStream.format("memory").queryName("timers").start()
    try:
        for _ in range(60):
            query.awaitTermination(1)
            found = [each.id for each in spark.table("timers").collect()]
            if found:
                return found
    finally:
        query.stop()
    return "nothing has left"


def _rescaled(spark: SparkSession, folder: Path) -> Any:
    """A query goes on over another number of partitions."""
    source, sides = Source(spark, folder), _sides()
    frame = joined(source, streaming=True, buckets=4)
    for begin in (0, 20):
        source.add([rows[begin : begin + 20] for rows in sides])
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(source.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        if not begin:
            rescale_query(spark, str(source.checkpoint), 4)
    return rows_of(sj.finish(source.checkpoint, spark))


# In one session, one after the other; the guide to deploying has the same words.
HERE: Final[Mapping[str, Part]] = {
    "tables, through every function": _tables,
    "streams: restarts, figures, reports, `sj.finish`": suite,
    "streams: `sj.MaxDelay`, `sj.Recall`, `sj.arrival()`, `sj.checkpoint`, errors": _lateness,
    "a table beside a stream": _beside_a_table,
    "keys with a collation": _collated,
    "timers": _timers,
    "`streamjoin rescale`": _rescaled,
}
CONNECT: Final = "Spark Connect: the same suite of streams and tables"
PIPELINES: Final = "declarative pipelines"
GOES_ON: Final = "a query that begins there goes on with the version of the lock"
PARTS: Final = (*HERE, CONNECT, PIPELINES, GOES_ON)


def _sides() -> list[list[Row]]:
    return [random_rows(random.Random(side), 40) for side in (0, 1)]


def _filled(spark: SparkSession, folder: Path) -> Source:
    source = Source(spark, folder)
    source.add([rows[:20] for rows in _sides()], pieces=2)
    return source


def _session(*, connect: bool = False) -> SparkSession:
    settings = {name.replace(".", "__"): value for name, value in SETTINGS.items()}
    if connect:
        os.environ["SPARK_REMOTE"] = "local[2]"
        return sj.session(**settings)
    return sj.session(master="local[2]", **{name: value for name, value in settings.items() if "connect" not in name})


def _tried(part: Part, spark: SparkSession, folder: Path) -> Any:
    """What a part gives; or in words how it failed: that is what is asked."""
    try:
        return json.loads(json.dumps(part(spark, folder), default=str))
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def _pipeline() -> Any:
    test = "tests/spark/test_pipelines.py::test_a_pipeline_joins_its_own_tables"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        capture_output=True,
        text=True,
        check=False,
    )
    return "passed" if ran.returncode == 0 else {"failed": ran.stdout[-3000:]}


def _begin(spark: SparkSession, folder: Path) -> Any:
    source = _filled(spark, folder)
    source.start(joined(source, streaming=True)).awaitTermination()
    return "begun"


def _go_on(spark: SparkSession, folder: Path) -> Any:
    source = Source(spark, folder)
    source.files = 2
    source.add([rows[20:] for rows in _sides()])
    frame = joined(source, streaming=True)
    source.start(frame).awaitTermination()
    left = rows_of(spark.read.schema(frame.schema).parquet(str(source.out)))
    found = sorted(left + rows_of(sj.finish(source.checkpoint, spark)), key=str)
    expected = rows_of(joined(source, streaming=False))
    return "went on" if found == expected else {"failed": f"{len(found)} rows instead of {len(expected)}, or others"}


def main(what: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    match what:
        case "here":
            spark = _session()
            told = {name: _tried(part, spark, folder / str(number)) for number, (name, part) in enumerate(HERE.items())}
        case "connect":
            told = {CONNECT: _tried(suite, _session(connect=True), folder)}
        case "pipelines":
            told = {PIPELINES: _pipeline()}
        case "begin" | "go-on":
            told = {GOES_ON: _tried(_begin if what == "begin" else _go_on, _session(), folder)}
        case _:
            raise SystemExit(f"here, connect, pipelines, begin or go-on, got {what}")
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
