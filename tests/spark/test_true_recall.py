"""The true recall of a result: against the exact one, by period, each copy for itself."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.errors import CallError, UnknownColumnError

Rows = list[tuple[Any, ...]]


def by_hand(result: Rows, exact: Rows, period: int) -> dict[int, tuple[int, int, int]]:
    """found, exact and extra of each period, by multisets; the time is the last column."""
    found, true = Counter(result) & Counter(exact), Counter(exact)
    extra = Counter(result) - true
    sums = [Counter[int]() for _ in range(3)]
    for counts, total in zip((found, true, extra), sums, strict=True):
        for row, copies in counts.items():
            total[row[-1] // period * period] += copies
    return {at: (sums[0][at], sums[1][at], sums[2][at]) for at in set(sums[1]) | set(sums[2])}


def test_oracle_by_multisets(spark: SparkSession) -> None:
    rng = random.Random(7)
    exact = [(rng.choice([None, "a", "b"]), rng.randint(-25, 25)) for _ in range(300)]
    result = [row for row in exact if rng.random() < 0.7] + [("other", 3), ("a", 999), exact[0], exact[0]]
    frames = [spark.createDataFrame(rows, "k string, ts long") for rows in (result, exact)]
    told = sj.true_recall(frames[0], frames[1].select("k", "ts"), time="ts", period=10)
    assert told.columns == ["period_start", "found", "exact", "recall", "extra"]
    rows = told.collect()
    assert {row.period_start: (row.found, row.exact, row.extra) for row in rows} == by_hand(result, exact, 10)
    for row in rows:
        assert row.recall == (row.found / row.exact if row.exact else None)
    assert any(row.extra for row in rows)
    assert any(row.period_start < 0 for row in rows)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date", "int"])
def test_periods_have_the_type_of_the_time(spark: SparkSession, kind: str) -> None:
    # Three days before 1970 and every second one after that.
    day = "2 * id - 3" if kind == "int" else "date_from_unix_date(CAST(2 * id - 3 AS int))"
    days = spark.range(6).selectExpr("1 AS `a b`", f"CAST({day} AS {kind}) AS t")
    period = 4 if kind == "int" else "4 days"
    result = days.where("t != 1" if kind == "int" else "day(CAST(t AS date)) != 2")
    told = sj.true_recall(result, days, time="t", period=period)
    assert told.schema["period_start"].dataType == days.schema["t"].dataType
    rows = told.selectExpr("CAST(period_start AS string) AS at", "found", "exact").collect()
    starts = {"int": ["-4", "0", "4"]}.get(kind, ["1969-12-28", "1970-01-01", "1970-01-05"])
    assert {row.at[: len(starts[0]) if kind != "int" else None] for row in rows} == set(starts)
    assert sorted(row.exact for row in rows) == [2, 2, 2]
    assert sum(row.found for row in rows) == 5


def test_names_may_have_dots(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "`a.b` int, ts long")
    assert sj.true_recall(frame, frame, time="ts", period=10).first().recall == 1.0


def test_frames_that_cannot_be_compared(spark: SparkSession) -> None:
    one = spark.createDataFrame([(1, 2)], "id int, ts long")
    other = one.selectExpr("id", "ts", "1 AS more")
    with pytest.raises(CallError, match="'more' is not there in result, int in exact"):
        sj.true_recall(one, other, time="ts", period=10)
    with pytest.raises(CallError, match="'id' is string in result, int in exact"):
        sj.true_recall(one.selectExpr("string(id) AS id", "ts"), one, time="ts", period=10)
    with pytest.raises(UnknownColumnError, match="has no column 'when'"):
        sj.true_recall(one, one, time="when", period=10)
    with pytest.raises(CallError, match="period must be an integer"):
        sj.true_recall(one, one, time="ts", period="1 s")
    with pytest.raises(CallError, match="period must be positive"):
        sj.true_recall(one, one, time="ts", period=0)
    timed = one.withColumn("ts", one.ts.cast("timestamp"))
    with pytest.raises(CallError, match="period must say its unit"):
        sj.true_recall(timed, timed, time="ts", period=10)
    texts = one.withColumn("ts", one.ts.cast("string"))
    with pytest.raises(CallError, match="'ts' is string"):
        sj.true_recall(texts, texts, time="ts", period=10)
    stream: DataFrame = spark.readStream.format("rate").load()
    with pytest.raises(CallError, match="result is a stream"):
        sj.true_recall(stream, stream, time="timestamp", period=datetime.timedelta(seconds=1))
