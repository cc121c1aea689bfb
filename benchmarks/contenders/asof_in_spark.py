"""The same cached frames on local[2], joined as of by streamjoin and by what Spark itself has.

All end in the same aggregate over (v, w), as in `in_spark`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from benchmarks.contenders.in_spark import CORES, digest, frame
from benchmarks.worker import Loaded, serve
from benchmarks.workloads import Workload


def _ours(left: DataFrame, right: DataFrame) -> DataFrame:
    return sj.join_asof(left, right, on="ts", by="key", how="inner")


def _join_as_of(left: DataFrame, right: DataFrame) -> DataFrame:
    method: Any = left._joinAsOf  # type: ignore[attr-defined]
    return method(  # type: ignore[no-any-return]
        right, leftAsOfColumn=left["ts"], rightAsOfColumn=right["ts"], on="key", how="inner", direction="backward"
    ).select("v", "w")


def _asof_sql(spark: SparkSession, left: DataFrame, right: DataFrame) -> DataFrame:
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    left.createOrReplaceTempView("a")
    right.createOrReplaceTempView("b")
    return spark.sql("SELECT a.v, b.w FROM a ASOF JOIN b MATCH_CONDITION (a.ts >= b.ts) ON a.key = b.key")


def load(folder: Path) -> Loaded:
    spark = sj.session("streamjoin-bench", master=f"local[{CORES}]", spark__driver__memory="8g")
    workload = Workload.read(folder)
    left = frame(spark, workload.left, "v", folder / "left.parquet")
    right = frame(spark, workload.right, "w", folder / "right.parquet")
    return Loaded({
        "ours": lambda: digest(_ours(left, right)),
        "joinAsOf": lambda: digest(_join_as_of(left, right)),
        "ASOF SQL": lambda: digest(_asof_sql(spark, left, right)),
    })  # fmt: skip


if __name__ == "__main__":
    serve(load)
