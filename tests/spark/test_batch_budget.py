"""Batches larger than memory on Spark: the same rows as without a budget, and nothing left in the local folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from tests.spark.test_streaming_spill import SCHEMA, spilled_states, write

TIMED: dict[str, Any] = {"time": "ts", "window": sj.Range("4 seconds")}
BUDGET = "2 MB"

JOINS: dict[str, Callable[..., DataFrame]] = {
    "band": lambda a, b, **given: sj.join_band(a, b, on="v", below=5.0, above=5.0, **TIMED, **given),
    "keys without time": lambda a, b, **given: sj.join(a, b, by="k", **given),
    "left": lambda a, b, **given: sj.join(a, b, by="k", how="left", **TIMED, **given),
    "as of": lambda a, b, **given: sj.join_asof(a, b, on="ts", by="k", **given),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows")
    for number in (0, 1):
        for side in (0, 1):
            write(made, side, number)
    return made


def frames(spark: SparkSession, folder: Path) -> list[DataFrame]:
    return [spark.read.schema(SCHEMA).parquet(str(folder / side)) for side in "01"]


def ids(rows: DataFrame) -> Counter[Any]:
    table = rows.select("id", "id_right", "note", "note_right").toArrow()
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("kind", JOINS)
def test_a_batch_with_a_budget_gives_the_same_and_leaves_no_files(spark: SparkSession, folder: Path, kind: str) -> None:
    inputs, before = frames(spark, folder), spilled_states(spark)
    whole = JOINS[kind](*inputs, buckets=2)
    bounded = JOINS[kind](*inputs, buckets=2, memory=BUDGET)
    told = sj.explain(bounded)
    assert ("progressive merge join (pmj)" in told) == (kind in ("band", "keys without time"))
    assert ("not by pmj" in told) == (kind in ("left", "as of"))
    assert ids(bounded) == ids(whole)
    assert spilled_states(spark) <= before


def test_files_of_a_task_that_was_cut_off_or_failed_go_with_the_next(spark: SparkSession, folder: Path) -> None:
    inputs, before = frames(spark, folder), spilled_states(spark)
    left = JOINS["left"](*inputs, buckets=2, memory=BUDGET)
    assert len(left.limit(3).collect()) == 3
    broken = left.select(F.when(F.col("id") >= 0, F.raise_error(F.lit("broken on purpose"))).alias("x"))
    with pytest.raises(PySparkException, match="broken on purpose"):
        broken.collect()
    assert JOINS["band"](*inputs, buckets=2, memory=BUDGET).count() > 0
    assert spilled_states(spark) <= before


def test_the_rows_of_the_example_are_more_than_the_budget(folder: Path) -> None:
    rows = sum(pq.read_table(path).nbytes for path in folder.rglob("*.parquet"))
    assert rows > 2 << 20, "the other tests show nothing"
