"""The same cached frames on local[2]: for every left row the nearest right row, if it is no farther than a radius.

`nearestByJoin` ranks by the distance alone, which is the least that it can be asked to do. Ours takes the nearest of
those in a box, which reaches as far as the radius in every dimension. Both then drop pairs that are farther apart than
the radius. What is left is the same, since whoever is within the radius is in the box. Both end in the same aggregate
over (v, w), as in `in_spark`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from benchmarks.contenders.in_spark import CORES, digest, frame
from benchmarks.worker import Loaded, serve
from benchmarks.workloads import Workload

# The columns of the two sides have different names, so that an expression over both says which it means.
DIMENSIONS = {"x": "x_right", "y": "y_right", "z": "z_right"}


def _squared_distance() -> Column:
    return F.expr(" + ".join(f"({one} - {two}) * ({one} - {two})" for one, two in DIMENSIONS.items()))


def _ours(left: DataFrame, right: DataFrame, radius: float) -> DataFrame:
    # Defined here, so that it travels to Spark's workers by value: the benchmarks are not installed there.
    def nearer(one: Any, two: Any) -> Any:
        return (one**2).sum(axis=1) < (two**2).sum(axis=1)

    box = dict.fromkeys(DIMENSIONS.items(), radius)
    return sj.join_best_match(left, right, on=box, dominance=nearer, how="inner")


def _nearest_by_join(left: DataFrame, right: DataFrame) -> DataFrame:
    method: Any = left.nearestByJoin
    return method(right, _squared_distance(), 1, "exact", "distance")  # type: ignore[no-any-return]


def load(folder: Path) -> Loaded:
    spark = sj.session("streamjoin-bench", master=f"local[{CORES}]", spark__driver__memory="8g")
    workload = Workload.read(folder)
    renamed = {DIMENSIONS.get(name, name): column for name, column in workload.right.items()}
    left = frame(spark, workload.left, "v", folder / "left.parquet")
    right = frame(spark, renamed, "w", folder / "right.parquet")
    radius = float(workload.bounds["epsilon"])
    near = _squared_distance() <= radius**2
    return Loaded({
        "ours": lambda: digest(_ours(left, right, radius).where(near)),
        "nearestByJoin": lambda: digest(_nearest_by_join(left, right).where(near)),
    })  # fmt: skip


if __name__ == "__main__":
    serve(load)
