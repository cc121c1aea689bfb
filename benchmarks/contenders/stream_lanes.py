"""Status rows in lanes, or all in one, meet the limits of their plants: a query that is calibrated, or overloaded."""

from __future__ import annotations

import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

import streamjoin as sj
from benchmarks.contenders.spark_query import described, digest_columns, run_observed, serve
from benchmarks.contenders.stream_ours import session
from benchmarks.errors import BenchmarkError
from benchmarks.one_shot import Answer
from benchmarks.priority_lanes.arrivals import EPOCH_US, LANES, LIMITS, LIMITS_EVERY, STATUS, STEP_US, Feeder, steps_of

RULES: Final = {"urgent": 1}
# Of the status rows, then of the limits. Folders are listed one after the other, so a step's normal rows may be taken
# before its urgent ones, which are not late for that.
GRACES: Final = [sj.Grace("5 seconds"), sj.Grace("0 seconds")]
KINDS: Final = {"urgent": "priority > 0", "normal": "priority = 0"}
LOOK_SECONDS: Final = 0.5  # how often it is looked whether all results are there


def joined(spark: SparkSession, folders: dict[str, Path], limits: dict[str, int | None]) -> DataFrame:
    """The query over the folders of the lanes; two lanes of status rows, or one folder for both."""

    def read(lane: str, schema: str) -> DataFrame:
        reader = spark.readStream.schema(schema)
        limit = limits.get(lane)
        reader = reader if limit is None else reader.option("maxFilesPerTrigger", limit)
        return reader.parquet(str(folders[lane]))

    normal = sj.prioritise(read("normal", STATUS), RULES)
    if folders["urgent"] == folders["normal"]:
        status = normal
    else:
        status = sj.lanes(urgent=sj.prioritise(read("urgent", STATUS), RULES), normal=normal)
    result = sj.join_interval(
        status, read("limits", LIMITS), on="ts", by="plant", lower="-1 hour", upper="0 seconds", lateness=GRACES,
        priority=["priority", None],
    )  # fmt: skip
    return result.select("ts", "plant", "value", "id", "high", "priority")


def told_columns(frame: DataFrame) -> list[Column]:
    """The digest, and of which steps the urgent results and the others are."""
    step = F.expr(f"(unix_micros(ts) - {EPOCH_US}) div {STEP_US}")
    columns = digest_columns(frame)
    for kind, condition in KINDS.items():
        which = F.when(F.expr(condition), step)
        columns += [F.min(which).alias(f"first_{kind}"), F.max(which).alias(f"last_{kind}")]
        columns.append(F.count(which).alias(f"count_{kind}"))
    return columns


def lane_batch(progress: dict[str, Any]) -> dict[str, Any]:
    """A micro-batch as `LaneBatch` wants it."""
    said, told = described(progress), progress["observedMetrics"]["digest"]
    del said["parts"]
    came = {kind: {name: told[f"{name}_{kind}"] for name in ("first", "last", "count")} for kind in KINDS}
    return {**said, "began": datetime.fromisoformat(progress["timestamp"]).timestamp(), **came}


def calibrated(request: dict[str, Any]) -> Answer:
    """Micro-batches of LIMITS_EVERY steps each, and what `sj.lane_limit` says of them."""
    folders = {lane: Path(request["prepared"]) / lane for lane in LANES}
    frame = joined(session(request), folders, {"limits": 1, "urgent": LIMITS_EVERY, "normal": LIMITS_EVERY})
    ran = run_observed(frame, request, told_columns(frame))
    seen = ran[request["cold"] - 1 :]  # the first of these is left out by lane_limit
    limit = sj.lane_limit(SimpleNamespace(recentProgress=seen), batch_seconds=request["batch_seconds"])
    return {
        "batches": [lane_batch(progress) for progress in ran],
        "limit": {"rows": limit.rows, "a": limit.seconds_per_batch, "b": limit.seconds_per_row},
    }


def overloaded(request: dict[str, Any]) -> Answer:
    """Some steps to warm up, a micro-batch at a time, then the clock's, until all results have left."""
    names = {"limits": "limits", "urgent": "urgent" if request["lanes"] else "all"}
    names["normal"] = "normal" if request["lanes"] else "all"
    folders = {lane: Path(request["scratch"]) / "source" / name for lane, name in names.items()}
    for folder in set(folders.values()):
        folder.mkdir(parents=True)
    feeder, steps, warm = Feeder(Path(request["prepared"]), folders), steps_of(request["rows"]), request["warm"]
    frame = joined(session(request), folders, {"normal": request["files"]})
    query = (
        frame.observe("digest", *told_columns(frame))
        .writeStream.format("noop")
        .option("checkpointLocation", request["checkpoint"])
        .start()
    )
    for begin, end in pairwise((0, *range(1, warm + 1, request["piece"]))):
        for step in steps[begin:end]:
            feeder.let_in(step)
        wait_for(query, sum(step.rows for step in steps[:end]), request["patience"])
    lag = max(feeder.by_the_clock(steps[warm:], lambda: check_running(query)))
    ran = wait_for(query, sum(step.rows for step in steps), request["patience"])
    query.stop()
    arrived = [feeder.arrived[step.number] for step in steps]
    return {"batches": [lane_batch(progress) for progress in ran], "arrived": arrived, "lag": lag}


def wait_for(query: StreamingQuery, results: int, patience: float) -> list[dict[str, Any]]:
    """Until so many results have left: Spark's word about all micro-batches that had input."""
    until = time.time() + patience
    while True:
        check_running(query)
        ran = [each for each in query.recentProgress if each["numInputRows"] and each["observedMetrics"]]
        left = sum(each["observedMetrics"]["digest"]["count"] for each in ran)
        if left >= results:
            return ran
        if time.time() > until:
            raise BenchmarkError(
                f"after {patience:.0f} s only {left:,} of {results:,} results had left", hint="is the machine busy?"
            )
        time.sleep(LOOK_SECONDS)


def check_running(query: StreamingQuery) -> None:
    """Refuse to feed a query that has ended."""
    if not query.isActive:
        raise BenchmarkError(f"the query has ended: {query.exception()}")


if __name__ == "__main__":
    serve(lambda request: calibrated(request) if request["do"] == "calibrate" else overloaded(request))
