"""A streaming join by streamjoin, in the session that `sj.session()` makes."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from benchmarks.contenders.spark_query import CORES, columns_of_result, read, run, serve, settings
from benchmarks.one_shot import Answer
from benchmarks.streams import CELL, REACH, Kind


def session(request: dict[str, Any]) -> SparkSession:
    chosen = {name.replace(".", "__"): value for name, value in settings(request["scratch"]).items()}
    return sj.session("streamjoin-bench", master=f"local[{CORES}]", **chosen)


def joined(kind: Kind, frames: list[DataFrame], bound: Any, lateness: sj.Grace) -> DataFrame:
    """The join of a kind of stream; `bound` seconds for times, a number of them for integers."""
    left, right = frames
    if kind == "equality":
        lower = f"-{bound}" if isinstance(bound, str) else -bound
        return sj.join_interval(left, right, on="ts", by="k", lower=lower, upper=bound, lateness=lateness)
    if kind == "asof":
        return sj.join_asof(left, right, on="ts", by="k", lateness=lateness)
    options: dict[str, Any] = {"time": "ts", "window": sj.Range(bound), "lateness": lateness}
    if kind == "band":
        return sj.join_band(left, right, on="x", below=REACH, above=REACH, **options)
    if kind == "overlap":
        return sj.join_overlap(left, right, on=("lo", "hi"), cell=CELL, **options)
    return sj.join_within(left, right, on=("x", "y"), radius=float(REACH), **options)


def measured(request: dict[str, Any]) -> Answer:
    """Parquet in, nothing out, micro-batches timed."""
    kind = request["kind"]
    frames = read(session(request), request)
    result = joined(kind, frames, f"{request['bound_seconds']} seconds", sj.Grace("0 seconds"))
    return run(result.select(*columns_of_result(kind)), request)


def whole(request: dict[str, Any]) -> Answer:
    """CSV in, CSV out, for a race of whole runs."""
    frames = read(session(request), {**request, "format": "csv"})
    result = joined("equality", frames, 1000 * request["bound_seconds"], sj.Grace(0))
    query = (
        result.select(*columns_of_result("equality"))
        .writeStream.format("csv")
        .option("path", request["output"])
        .option("checkpointLocation", request["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return {}


if __name__ == "__main__":
    serve(lambda request: whole(request) if "output" in request else measured(request))
