"""The same cached frames on local[2], joined by streamjoin and by the nested loop that Spark plans for a range.

Both end in the same aggregate over (v, w), Spark's own count and order-free checksum: the rows never leave Spark, and
the aggregate is a small part of either time. No hints: Spark chooses, and the notes say what it chose.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from benchmarks.digest import Digest
from benchmarks.worker import Loaded, serve
from benchmarks.workloads import Columns, Workload

CORES = 2
_NESTED_LOOPS = ("BroadcastNestedLoopJoin", "CartesianProduct")


def frame(spark: SparkSession, side: Columns, payload: str, file: Path) -> DataFrame:
    pq.write_table(pa.table({payload if name == "id" else name: column for name, column in side.items()}), file)
    # As many partitions as cores: Spark would read a file this small on one core only.
    frame = spark.read.parquet(str(file)).repartition(CORES).cache()
    frame.count()
    return frame


def _ours(workload: Workload, left: DataFrame, right: DataFrame) -> DataFrame:
    if workload.name == "overlap":
        return sj.join_overlap(left, right, on=("lo", "hi"))
    reach = workload.bounds["reach"]
    return sj.join_band(left, right, on="x", below=reach, above=reach)


def _nested_loop(workload: Workload, left: DataFrame, right: DataFrame) -> DataFrame:
    a, b = left.alias("a"), right.alias("b")
    if workload.name == "overlap":
        return a.join(b, F.expr("a.lo < b.hi AND b.lo < a.hi"))
    reach = workload.bounds["reach"]
    return a.join(b, F.expr(f"b.x BETWEEN a.x - {reach} AND a.x + {reach}"))


def digest(joined: DataFrame) -> Digest:
    # Part of each hash is summed, so that the sum cannot overflow; the exclusive or has the other bits.
    mixed = F.xxhash64("v", "w")
    sums = joined.agg(
        F.count("*"), F.bit_xor(mixed), F.sum(mixed.bitwiseAND(F.lit(0xFFFFFFFF))), F.sum("v"), F.sum("w")
    )
    count, combined, summed, left, right = sums.first()
    return Digest(count, (combined or 0) % (1 << 64) ^ (summed or 0), left or 0, right or 0)


def _plan(joined: DataFrame) -> str:
    plan: Any = joined._jdf.queryExecution().executedPlan().toString()
    chosen = [name for name in _NESTED_LOOPS if name in plan]
    if not chosen:
        raise AssertionError(f"Spark was to plan a nested loop, but planned\n{plan}")
    return chosen[0]


def load(folder: Path) -> Loaded:
    spark = sj.session("streamjoin-bench", master=f"local[{CORES}]", spark__driver__memory="4g")
    workload = Workload.read(folder)
    left = frame(spark, workload.left, "v", folder / "left.parquet")
    right = frame(spark, workload.right, "w", folder / "right.parquet")
    ours, nested = _ours(workload, left, right), _nested_loop(workload, left, right)
    return Loaded(
        {"ours": lambda: digest(ours), "nested loop": lambda: digest(nested)},
        {"Spark's plan": _plan(nested.select("v", "w"))},
    )


if __name__ == "__main__":
    serve(load)
