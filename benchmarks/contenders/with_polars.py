"""Polars on one thread: `join_where`, which it runs as an IEJoin (the notes say what it planned), or `join_asof`, which
wants both sides sorted by time.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchmarks.digest import Digest
from benchmarks.worker import Delivered, Loaded, serve
from benchmarks.workloads import Workload


def _conditions(workload: Workload) -> list[pl.Expr]:
    if workload.name == "overlap":
        return [pl.col("a_lo") < pl.col("b_hi"), pl.col("b_lo") < pl.col("a_hi")]
    reach = workload.bounds["reach"]
    return [pl.col("b_x") >= pl.col("a_x") - reach, pl.col("b_x") <= pl.col("a_x") + reach]


def _joined(workload: Workload, left: pl.LazyFrame, right: pl.LazyFrame) -> pl.LazyFrame:
    if workload.name == "asof":
        times = {"left_on": "a_ts", "right_on": "b_ts", "by_left": "a_key", "by_right": "b_key"}
        joined = left.sort("a_ts").join_asof(right.sort("b_ts"), **times, check_sortedness=False)
        return joined.drop_nulls("b_id")
    return left.join_where(right, *_conditions(workload))


def load(folder: Path) -> Loaded:
    workload = Workload.read(folder)
    left, right = (
        pl.DataFrame(side).rename(lambda name, prefix=prefix: f"{prefix}_{name}")
        for prefix, side in (("a", workload.left), ("b", workload.right))
    )
    joined = _joined(workload, left.lazy(), right.lazy()).select(v="a_id", w="b_id")

    def pairs() -> Delivered:
        table = joined.collect().to_arrow()
        return [(batch["v"].to_numpy(), batch["w"].to_numpy()) for batch in table.to_batches()]

    def aggregate() -> Digest:
        count, v, w = joined.select(pl.len(), pl.col("v").sum(), pl.col("w").sum()).collect().row(0)
        return Digest(count, None, v, w)

    plan = next((line.strip() for line in joined.explain().splitlines() if "JOIN" in line), "?")
    return Loaded({"pairs": pairs, "aggregate": aggregate}, {"Polars' plan": plan.rstrip(":")})


if __name__ == "__main__":
    assert pl.thread_pool_size() == 1
    serve(load)
