"""One small suite for every way to deploy: batch, stream, restart, figures, finish; its results can be compared.

    suite(spark, folder)                     in a session that is there: local, a cluster's, Spark Connect's
    python -m tests.deployments JSON FOLDER  in a driver of its own, with `sj.session(**JSON)`; prints one line of JSON.
                                             With a further word, `own`, also what a session of the user's own is told

Executors need streamjoin and nothing of the tests: no function of this file goes to a worker by name.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.api import buckets_of
from tests.spark.streams import SLACK, Source, random_rows

Results = dict[str, Any]


def joined(source: Source, *, streaming: bool, buckets: int | None = 2) -> DataFrame:
    """An outer join that holds rows back, in order: it has state, and something is left at the end. Its figures are the
    same everywhere with as many buckets.
    """
    options: dict[str, Any] = {"time": "ts", "window": sj.Range("7 seconds"), "by": "k", "how": "left"}
    frames = source.frames(streaming=streaming)
    return sj.join(frames, **options, emit="ordered", lateness=sj.Grace(f"{SLACK} seconds"), buckets=buckets)


def suite(spark: SparkSession, folder: Path) -> Results:
    """The results of all parts, by name, as JSON would have them. `folder` is seen by the driver and all executors."""
    rng, source = random.Random(11), Source(spark, folder)
    sides = [random_rows(rng, 40) for _ in (0, 1)]
    source.add([rows[:20] for rows in sides], pieces=2)
    first = figures(source.start(joined(source, streaming=True)))
    source.add([rows[20:] for rows in sides])
    again = figures(source.start(joined(source, streaming=True)))
    left, right = source.frames(streaming=False)
    return {
        "first": first,
        "again": again,
        "left": rows_of(spark.read.schema(joined(source, streaming=True).schema).parquet(str(source.out))),
        "rest": rows_of(sj.finish(source.checkpoint, spark)),
        "batch": rows_of(joined(source, streaming=False)),
        "near": rows_of(sj.join_within(left, right, on=["v", "lo"], radius=1.0)),
    }


def rows_of(frame: DataFrame) -> list[list[Any]]:
    """The rows, in an order of their own."""
    return sorted(json.loads(json.dumps([list(row) for row in frame.collect()], default=str)), key=str)


def figures(query: Any) -> dict[str, Any]:
    """What a query says of itself when it has ended, and of every micro-batch; in whatever form it is asked."""
    sj.report(query)  # from here on a listener keeps its figures
    query.awaitTermination()
    report = sj.report(query)
    every = [steady(sj.from_progress(each)) for each in query.recentProgress]
    assert every == [steady(sj.from_progress(each.json)) for each in query.recentProgress]
    reported = {"rows": report.figures()["rows_in"], "stages": [sorted(plan.stages.values()) for plan in report.plans]}
    told = {"last": steady(sj.progress(query)), "every": every, "reported": reported}
    return json.loads(json.dumps(told, default=str))  # type: ignore[no-any-return]


def steady(figures: dict[str, Any]) -> dict[str, Any]:
    """Figures without names and durations, which no two runs share."""
    joins = [
        {name: value for name, value in join.items() if name not in ("seconds", "state_bytes")}
        for join in figures["joins"].values()
    ]
    return {**figures, "joins": joins, "seconds": None}


def where_workers_find_it(spark: SparkSession, tasks: int) -> list[str]:
    """The folders from which workers load streamjoin."""

    def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        import streamjoin

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"path": [streamjoin.__file__]})

    rows = spark.range(0, tasks, numPartitions=tasks).mapInArrow(found, "path string").distinct().collect()
    return sorted(row.path for row in rows)


def main(settings: dict[str, Any], folder: Path, *, own: bool) -> None:
    spark = sj.session(**settings)
    told = {
        "results": suite(spark, folder),
        "partitions": int(spark.conf.get("spark.sql.shuffle.partitions") or 0),
        "buckets": buckets_of(joined(Source(spark, folder), streaming=True, buckets=None)),
        "found": where_workers_find_it(spark, 4),
    }
    spark.stop()
    print(json.dumps(told | (of_an_own_session(settings) if own else {})))


def of_an_own_session(settings: dict[str, Any]) -> dict[str, Any]:
    """What first calls find of a cluster, before anybody has waited for its executors."""
    builder = sj.configure(SparkSession.builder.master(settings["master"]))
    for name, value in settings.items():
        builder = builder if name == "master" else builder.config(name.replace("__", "."), value)
    spark = builder.getOrCreate()
    frame = spark.range(3).selectExpr("id AS value")
    told: dict[str, Any] = {"own buckets": buckets_of(sj.join([frame, frame], by="value"))}
    stream = spark.readStream.format("rate").load()
    try:
        sj.join([stream, stream], time="timestamp", window=sj.Range("5 s"), by="value", lateness=sj.Grace("1 s"))
    except sj.CallError as error:
        told["own hint"] = str(error)
    spark.stop()
    return told


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]), own=sys.argv[3:] == ["own"])
