"""Queries by streamjoin's public functions alone, so that any state of it can run them; and how long a first one takes.

equality   `sj.join_interval` by key, within the stream's bound
plain      the same rows joined by CQL, over time windows
grouped    the plain join, grouped by its key
query      a row window for each key, joined with a time window and grouped by the key: for small micro-batches
native     Spark's own join, equal to `equality`
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from benchmarks.contenders import stream_native, stream_ours
from benchmarks.contenders.spark_query import (
    columns_of_result,
    described,
    digest_columns,
    digested,
    read,
    run_observed,
    serve,
)
from benchmarks.one_shot import Answer

CQL: Final = {
    "plain": "SELECT R.k, R.v, S.v AS w FROM {windows} WHERE R.k = S.k",
    "grouped": "SELECT R.k, count(*) AS n, sum(R.v) AS s FROM {windows} WHERE R.k = S.k GROUP BY R.k",
    "query": (
        "SELECT R.k, count(*) AS n, sum(R.v) AS s FROM R [PARTITION BY k ROWS 5] AS R, S [RANGE 10 SECONDS] AS S "
        "WHERE R.k = S.k GROUP BY R.k"
    ),
}
WINDOWS: Final = "R [RANGE {bound} SECONDS] AS R, S [RANGE {bound} SECONDS] AS S"
_WEIGHT: Final = {"plain": "1", "grouped": "n"}


def session(request: dict[str, Any]) -> SparkSession:
    return stream_native.session(request) if request["query"] == "native" else stream_ours.session(request)


def frame_of(request: dict[str, Any], frames: list[DataFrame]) -> DataFrame:
    """The result of the query that is asked for."""
    name, bound = request["query"], request["bound_seconds"]
    if name == "native":
        return stream_native.joined(request, frames)
    lateness = sj.Grace("0 seconds")
    if name == "equality":
        joined = stream_ours.joined("equality", frames, f"{bound} seconds", lateness)
        return joined.select(*columns_of_result("equality"))
    text = CQL[name].format(windows=WINDOWS.format(bound=bound))
    left, right = frames
    return sj.cql(left.sparkSession, text, time="ts", lateness=lateness, R=left, S=right)


def do(request: dict[str, Any]) -> Answer:
    spark = session(request)
    if request["do"] == "start":
        starts = [started(request, number) for number in range(2)]
        totals = [total_of(request, start.pop("told"), number) for number, start in enumerate(starts)]
        return {"starts": starts, "totals": totals, "code": code_of(spark)}
    frame = frame_of(request, read(spark, request))
    progress = run_observed(frame, request, measures(request, frame))
    answered: Answer = {"batches": [described(each) for each in progress]}
    told = [each["observedMetrics"]["digest"] for each in progress]
    if request["query"] in CQL:
        # When a result of a query leaves is not promised, but that all have left in the end is.
        held = sj.finish(request["checkpoint"])
        told.append(held.agg(*measures(request, held)).first())
        answered["rest"] = digested(told[-1])
    if request["query"] in _WEIGHT:
        answered["weight"] = sum(each["weight"] or 0 for each in told)
    return {**answered, "code": code_of(spark)}


def measures(request: dict[str, Any], frame: DataFrame) -> list[Column]:
    """What is asked of all results: their digest; and of joins, grouped or not, how long how many pairs were there."""
    columns = digest_columns(frame)
    if request["query"] in _WEIGHT:
        length = F.unix_micros("valid_to") - F.unix_micros("valid_from")
        columns.append(F.sum(length * F.expr(_WEIGHT[request["query"]])).alias("weight"))
    return columns


def code_of(spark: SparkSession) -> list[str]:
    """The files that streamjoin was imported from, here and in Spark's Python workers."""

    def where(_: Any) -> Any:
        import streamjoin

        yield pa.record_batch({"file": [streamjoin.__file__]})

    there = spark.range(1).mapInArrow(where, "file string").collect()
    return sorted({str(sj.__file__), *(row.file for row in there)})


def started(request: dict[str, Any], number: int) -> dict[str, Any]:
    """From the call to the end of the first micro-batch, and where the seconds go; and the digests of all of them."""
    frames = read(session(request), request)
    called = time.time()
    frame = frame_of(request, frames)
    built = time.time()
    observed = frame.observe("digest", *digest_columns(frame))
    writer = observed.writeStream.format("noop").option("checkpointLocation", f"{request['checkpoint']}-{number}")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    first = query.recentProgress[0]
    batch = described(first)
    # Spark's own clock has the same time as ours, in milliseconds.
    began = datetime.fromisoformat(first["timestamp"]).timestamp()
    steps: Counter[str] = Counter()
    for figures in sj.from_progress(first)["joins"].values():
        steps.update(figures["seconds"])
    return {
        "seconds": began + batch["seconds"] - called,
        "call": built - called,
        "to_trigger": began - built,
        "trigger": batch["seconds"],
        "parts": batch["parts"],
        "steps": dict(steps),
        "told": [digested(each["observedMetrics"]["digest"]) for each in query.recentProgress if each["numInputRows"]],
    }


def total_of(request: dict[str, Any], told: list[dict[str, int]], number: int) -> dict[str, int]:
    """All that has left in the end."""
    if request["query"] in CQL:
        held = sj.finish(f"{request['checkpoint']}-{number}")
        told = [*told, digested(held.agg(*digest_columns(held)).first())]
    return {
        "results": sum(each["results"] for each in told),
        "checksum": sum(each["checksum"] for each in told) % (1 << 64),
    }


if __name__ == "__main__":
    serve(do)
