"""Joins to a recall target on Spark: row for row what the same plan gives in this process."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.spark.marks import plan_of
from tests.interpreter import InProcess
from tests.spark.streams import Row, Source, counted

TARGET = sj.Recall(0.8, period="10 s", interval="1 s")
FILES = 9


def late_rows(seed: int) -> list[list[Row]]:
    """Rows by micro-batch, of which every third is up to 20 seconds late."""
    rng = random.Random(seed)
    batches: list[list[Row]] = [[] for _ in range(FILES)]
    for number in range(180):
        at = rng.randint(0, 6 * FILES - 1)
        came = min(FILES - 1, (at + (rng.randint(0, 20) if rng.random() < 0.35 else 0)) // 6)
        batches[came].append((number, rng.randint(0, 1), 0.0, 0.0, 1.0, at))
    return batches


def joined_by(lateness: Any, source: Source, buckets: int) -> DataFrame:
    frames = source.frames(streaming=True)
    return sj.join(frames, time="ts", window=sj.Range("4 s"), by="k", lateness=lateness, buckets=buckets)


def expected(joined: DataFrame, source: Source) -> Counter[Any]:
    """The rows that leave of the same plan in this process, by the same micro-batches."""
    plan = plan_of(joined).plan
    running, left = InProcess(plan), []
    for rows in by_micro_batch(source):
        left += list(running.micro_batch({each.name: rows[int(each.name)] for each in plan.sources}))
    return Counter((row["id"], row["id_right"]) for table in left for row in table.to_pylist())


def by_micro_batch(source: Source) -> Iterator[list[list[pa.Table]]]:
    for number in range(source.files):
        files = [source.folder / side / f"{number:04d}.parquet" for side in "01"]
        yield [[pq.read_table(file)] for file in files]


def pairs(rows: Counter[Any]) -> Counter[Any]:
    return Counter({(dict(row)["id"], dict(row)["id_right"]): count for row, count in rows.items()})


@pytest.mark.parametrize(
    ("lateness", "buckets"),
    [pytest.param(TARGET, 1, marks=pytest.mark.long), (TARGET, 2), (TARGET, 5), (sj.MaxDelay(), 2)],
)
def test_row_for_row_as_in_this_process(spark: SparkSession, tmp_path: Path, lateness: Any, buckets: int) -> None:
    """With a restart in the middle, by what the checkpoint says: the controller, and the largest delay, go on."""
    source = Source(spark, tmp_path)
    batches = list(zip(late_rows(1), late_rows(2), strict=True))
    half = FILES // 2 if buckets == 2 else FILES
    left: Counter[Any] = Counter()
    for some in (batches[:half], batches[half:]):
        for one, two in some:
            source.add([one, two])
        if some:
            begun = sj.checkpoint(source.checkpoint, spark).lateness if buckets == 2 else None
            query = source.start(joined_by(begun or lateness, source, buckets))
            query.awaitTermination()
    joined = joined_by(lateness, source, buckets)
    left = source.left(joined)
    found = pairs(left)
    assert found == expected(joined, source)
    exact = counted(sj.join(source.frames(streaming=False), time="ts", window=sj.Range("4 s"), by="k"))
    assert 0.6 * exact.total() < found.total() < exact.total(), "some are lost, and not all that can be"
    if buckets == 5:
        check_figures(query, joined, source)


def check_figures(query: Any, joined: DataFrame, source: Source) -> None:
    """What is told of the last micro-batch, by all buckets together, is what the buckets in this process tell."""
    plan = plan_of(joined).plan
    running = InProcess(plan)
    for rows in by_micro_batch(source):
        list(running.micro_batch({each.name: rows[int(each.name)] for each in plan.sources}))
    stages = [stage.figures() for stage in running.running.values()]
    one = stages[0]
    (told,) = sj.progress(query)["joins"].values()
    recall = told["recall"]
    assert recall["target"] == 0.8
    assert recall["expected"] == one["recall_ppm"] / 1e6
    assert recall["kept_rows"] == [sum(each[f"kept_rows_{number}"] for each in stages) for number in (0, 1)]
    assert sum(recall["kept_rows"]) == told["state_rows"] > 0
    for number in (0, 1):
        assert recall["slack"][number] == one[f"slack_{number}"] / 1e6
        assert recall["kept_for"][number] == 4 + recall["slack"][1 - number]
        delay = recall["delay"][number]
        assert delay == {name: one[f"delay_{name}_{number}"] / 1e6 for name in ("p50", "p90", "p99", "max")}
        assert delay["max"] > 0, "the last micro-batch has late rows"
        late = ("late", "late_classes", "late_most")
        assert [*recall["late"][number].values()] == [one[f"{name}_{number}"] for name in late]


def test_what_a_target_cannot_stand_beside(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    table = spark.createDataFrame([(1, 2)], "value long, x int").selectExpr("*", "current_timestamp() AS ts")
    both: dict[str, Any] = {"time": "ts", "by": "value", "window": sj.Range("2 s")}
    with pytest.raises(CallError, match='late="drop" beside a recall target'):
        sj.join([stream, stream], lateness=TARGET, late="drop", **both)
    with pytest.raises(CallError, match="for both inputs"):
        sj.join([stream, table], lateness=TARGET, **both)
    with pytest.raises(CallError, match="for both inputs"):
        sj.join([stream, stream], lateness=[TARGET, sj.Grace("1 s")], **both)
    with pytest.raises(CallError, match='emit="ordered"'):
        sj.join([stream, stream], lateness=TARGET, emit="ordered", **both)
    with pytest.raises(UnsupportedError, match="a row window"):
        sj.join([stream, stream], lateness=TARGET, **both | {"window": sj.Rows(3)})
    with pytest.raises(UnsupportedError, match="rows choose"):
        sj.join_asof(stream, stream, on="ts", lateness=TARGET)
    with pytest.raises(UnsupportedError, match="one join of two streams"):
        sj.cql(
            spark, "SELECT A.value FROM A [2 SECONDS], B [2 SECONDS], C [2 SECONDS] WHERE A.value = B.value AND "
            "B.value = C.value", A=stream, B=stream, C=stream, lateness=TARGET,
        )  # fmt: skip
    joined = sj.join([stream, stream], lateness=TARGET, **both)
    with pytest.raises(CallError, match="a slack that adapts"):
        sj.output_delay(joined)
    assert sj.join([table, table], lateness=TARGET, **both | {"window": sj.Range("1 s")}).count() == 1, "a batch"


def test_cql_with_a_target_keeps_what_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    for one, two in zip(late_rows(3), late_rows(4), strict=True):
        source.add([one, two])
    left, right = source.frames(streaming=True)
    text = """SELECT R.id AS id, S.id AS id_right FROM R [4 SECONDS], S [4 SECONDS] WHERE R.k = S.k AND R.id % 2 = 0"""
    found = source.run(sj.cql(spark, text, R=left, S=right, lateness=sj.Recall(1.0, max_delay="1 minute"), buckets=2))
    one, two = source.frames(streaming=False)
    assert pairs(found) == pairs(counted(sj.cql(spark, text, R=one, S=two)))


def test_figures_say_what_is_aimed_at_and_expected() -> None:
    told = {"target_ppm": 900_000, "recall_ppm": 912_345, "axis": "timestamp", "kept_rows_0": 7, "kept_rows_1": 9}
    told |= {"slack_0": 1_500_000, "slack_1": 0, "kept_for_0": 2_000_000, "kept_for_1": 3_500_000}
    told |= {"delay_p50_0": 0, "delay_p90_0": 500_000, "delay_p99_0": 1_000_000, "delay_max_0": 9_000_000}
    told |= {"late_0": 4, "late_classes_0": 2, "late_most_0": 3}
    figures = sj.from_progress({"observedMetrics": {"streamjoin-1-join": told}})["joins"]["streamjoin-1"]
    assert figures["recall"] == {
        "target": 0.9, "expected": 0.912345, "slack": [1.5, 0.0], "kept_for": [2.0, 3.5], "kept_rows": [7, 9],
        "delay": [
            {"p50": 0.0, "p90": 0.5, "p99": 1.0, "max": 9.0}, {"p50": None, "p90": None, "p99": None, "max": None},
        ],
        "late": [{"rows": 4, "classes": 2, "most": 3}, {"rows": None, "classes": None, "most": None}],
    }  # fmt: skip
    begins = sj.from_progress({"observedMetrics": {"streamjoin-1-join": {**told, "recall_ppm": None}}})
    assert begins["joins"]["streamjoin-1"]["recall"]["expected"] is None, "nothing is known yet"
    without = sj.from_progress({"observedMetrics": {"streamjoin-1-join": {"rows_out": 1}}})
    assert "recall" not in without["joins"]["streamjoin-1"]


def test_numbers_as_time(spark: SparkSession) -> None:
    """All sizes are numbers then, also those that were left out."""
    ticks = spark.readStream.format("rate").load().selectExpr("value AS ts", "value % 3 AS k")
    both: dict[str, Any] = {"time": "ts", "by": "k", "window": sj.Range(40)}
    joined = sj.join([ticks, ticks], lateness=sj.Recall(0.9, period=100, interval=10, max_delay=50), **both)
    aims = {source.lateness.model.aim for source in plan_of(joined).plan.sources}  # type: ignore[attr-defined]
    assert [(aim.period, aim.interval, aim.step, aim.max_delay) for aim in aims] == [(100, 10, 2, 50)]
    with pytest.raises(CallError, match="period of a recall target must be an integer"):
        sj.join([ticks, ticks], lateness=sj.Recall(0.9), **both)
