"""Priorities over frames: what is urgent, what results say of it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.spark.lane_limit import limit_of
from streamjoin.spark.marks import delay_of_column, has_urgent_rows, priority_column, uses_timers
from streamjoin.spark.starving import told

STATUS = [(1, 10, "ALARM", 5), (1, 11, "INFO", 5), (2, 20, "INFO", 99), (2, 21, None, 1)]
LIMITS = [(1, 12, 50), (2, 21, 60)]


@pytest.fixture(scope="module")
def status(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(STATUS, "k int, ts long, severity string, v int")


@pytest.fixture(scope="module")
def limits(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(LIMITS, "k int, ts long, most int")


@pytest.fixture(scope="module")
def urgent(status: DataFrame) -> DataFrame:
    return sj.prioritise(status, {"v > 50": 8, "severity = 'ALARM'": 10})


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS k", "1 AS v")


def rows_of(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


JOINED: dict[str, Any] = {"time": "ts", "window": sj.Range(5), "by": "k", "buckets": 2}


def test_the_most_urgent_condition_that_is_true_counts(urgent: DataFrame) -> None:
    both = sj.prioritise(urgent, {"v < 9": 3}, as_="urgency")
    assert both.columns == [*urgent.columns, "urgency"]
    found = rows_of(both, "ts", "priority", "urgency")
    assert found == [(10, 10, 3), (11, 0, 3), (20, 8, 0), (21, 0, 3)]
    assert priority_column(both.schema) == "urgency", "of two the latest counts"


def test_a_result_has_the_largest_priority_of_its_rows_or_what_is_said(
    urgent: DataFrame, limits: DataFrame, tmp_path: Path
) -> None:
    both = sj.join(urgent, limits, priority=["priority", "9 - k * 4"], **JOINED)
    assert both.columns == ["k", "ts", "severity", "v", "ts_right", "most", "valid_from", "valid_to", "priority"]
    assert rows_of(both, "ts", "priority") == [(10, 10), (11, 5), (20, 8), (21, 1)]
    assert "rows of input 1 by 9 - k * 4: their results leave first" in str(sj.explain(both))
    least = sj.join(urgent, limits, priority=["priority", "9 - k * 4"], new_priority="least(p0, p1)", **JOINED)
    assert rows_of(least, "ts", "priority") == [(10, 5), (11, 0), (20, 1), (21, 0)]
    folder = str(tmp_path)

    def handler(table: Any, batch: int, bucket: int) -> None:
        for row in table.to_pylist():
            Path(folder, f"{batch} {row['ts']} {row['urgency']}").touch()

    ranked = {"priority": ["priority", None], "priority_as": "urgency"}
    named = sj.join(urgent, limits, urgent=handler, **ranked, **JOINED)
    assert rows_of(named, "ts", "priority", "urgency") == [(10, 10, 10), (11, 0, 0), (20, 8, 8), (21, 0, 0)]
    assert {file.name for file in tmp_path.iterdir()} == {"0 10 10", "0 20 8"}, "a batch is called 0"
    three = sj.join([urgent, limits, limits], priority=["priority", None, None], **JOINED)
    assert rows_of(three, "ts", "priority") == [(10, 10), (11, 0), (20, 8), (21, 0)]


def test_whatever_spark_computes_with_results_leaves_them_their_priority(
    spark: SparkSession, urgent: DataFrame, limits: DataFrame
) -> None:
    less = sj.join(urgent, limits, priority=["priority", None], where="l.v * 1 < r.most", **JOINED)
    assert rows_of(less, "ts", "priority") == [(10, 10), (11, 0), (21, 0)]
    text = """SELECT a.k, a.v + 1 AS more
              FROM a [RANGE 5] AS a PRIORITY BY CASE WHEN severity = 'ALARM' THEN 10 ELSE 0 END
              LEFT JOIN b [RANGE 5] ON a.k = b.k AND a.v < b.most"""
    assert rows_of(sj.cql(spark, text, a=urgent, b=limits).where("more = 6"), "more", "priority").count((6, 10)) == 1
    counted = sj.cql(spark, "SELECT k, COUNT(*) AS n FROM a [RANGE 5] PRIORITY BY priority GROUP BY k", a=urgent)
    assert {row.priority for row in counted.collect()} == {0}, "what follows snapshots is not urgent"


def test_what_is_refused(spark: SparkSession, status: DataFrame, urgent: DataFrame, limits: DataFrame) -> None:
    cases: list[tuple[Any, str]] = [
        (lambda: sj.prioritise(urgent, {"true": 1}), "a column 'priority' already"),
        (lambda: sj.prioritise(status, {"true": 1}, as_="SEVERITY"), "a column 'SEVERITY' already"),
        (lambda: sj.prioritise(status, {"true": 1}, as_=""), "as_ is the name of a column, got ''"),
        (lambda: sj.lanes(urgent=status, normal=status, as_=""), "as_ is the name of a column, got ''"),
        (lambda: sj.lanes(urgent=status, normal=status, as_="severity"), "a priority is an integer, and 'severity'"),
        (lambda: sj.prioritise(status, {"v > ": 1}), "cannot evaluate the rules"),
        (lambda: sj.prioritise(status, {"v > 1": -1}), "whole number from 0 on, got -1"),
        (lambda: sj.prioritise(status, {}), "dict from a condition"),
        (lambda: sj.join(status, limits, priority=["severity", None], **JOINED), "severity of input 0 is string"),
        (lambda: sj.join(status, limits, priority=["v > 50", None], **JOINED), "and v > 50 of input 0 is boolean"),
        (lambda: sj.join(urgent, limits, priority=["v", None], **JOINED), "two columns 'priority'"),
        (lambda: sj.join(status, limits, new_priority="p0", **JOINED), "nothing says which rows are urgent"),
        (lambda: sj.join(urgent, limits, priority=["priority", None], new_priority="p0 > 1", **JOINED), "is boolean"),
        (
            lambda: sj.join(urgent, limits, priority=["priority", None], new_priority="p0 % p1", **JOINED),
            "no value where all priorities are 0",
        ),
        (lambda: sj.join(urgent, limits, priority=["priority", None], urgent=7, **JOINED), "is called with urgent"),
        (
            lambda: sj.join(
                urgent, limits, priority=["priority", None], urgent=print, where="l.v * 1 < r.most", **JOINED
            ),
            "where Spark computes with results",
        ),
        (
            lambda: sj.join(
                urgent, limits, priority=["priority", None], urgent=print, how="semi", outer="snapshot", **JOINED
            ),
            "here none is: the semi join by snapshot follows snapshots",
        ),
        (
            lambda: sj.cql(spark, "SELECT ISTREAM(k) FROM a [NOW] PRIORITY BY priority", a=urgent, urgent=print),
            "here none is: ISTREAM follows snapshots",
        ),
        (lambda: sj.deprioritise(status, time="ts"), "nothing says which rows"),
        (lambda: sj.deprioritise(urgent), "nothing says when rows"),
        (lambda: sj.deprioritise(urgent, time="ts", priority="v % 3"), r"already, and priority='v % 3'.*withColumn"),
        (lambda: sj.lanes(urgent=status), "two frames or more"),
        (lambda: sj.lanes(urgent=status, normal=limits), "lane 'normal' has the columns"),
        (
            lambda: sj.cql(spark, "WITH q AS (SELECT k FROM a [NOW]) SELECT k FROM q AS r PRIORITY BY k", a=status),
            "'q' is a query",
        ),
    ]
    for call, said in cases:
        with pytest.raises(sj.StreamjoinError, match=said):
            call()


def test_a_stream_with_urgent_rows_is_not_taken_for_a_plain_one(stream: DataFrame) -> None:
    ranked = sj.prioritise(stream, {"v > 1": 3})
    options: dict[str, Any] = {"time": "ts", "window": sj.Range("5 s"), "lateness": sj.Grace("0 s")}
    with pytest.raises(sj.CallError, match="input 0 has urgent rows, and nothing says which"):
        sj.join(ranked, stream, by="k", **options)
    plain = stream.selectExpr("*", "0 AS priority")
    for call in (
        lambda: sj.union(ranked, plain, **options),
        lambda: sj.distinct(ranked, **options),
        lambda: sj.reorder(ranked, time="ts", lateness=sj.Grace("0 s")),
    ):
        with pytest.raises(sj.CallError, match=r"Hint: sj\.deprioritise\(frame\) before, or write it in CQL"):
            call()
    with pytest.raises(sj.CallError, match="give PRIORITY BY priority, its column, behind stream a"):
        sj.cql(stream.sparkSession, "SELECT k FROM a [RANGE 5 SECONDS]", a=ranked, time="ts", lateness=sj.Grace("0 s"))
    joined = sj.join(ranked, stream, by="k", priority=["priority", None], **options)
    with pytest.raises(sj.CallError, match="has no delay"):
        sj.output_delay(joined)
    for later in (joined, joined.select("k", "valid_from"), joined.withColumnRenamed("priority", "p")):
        with pytest.raises(sj.CallError, match="has urgent rows"):
            sj.aggregate(later, {"n": "count"}, time="valid_from", window=sj.Now())
    plain = sj.deprioritise(joined)
    assert plain.columns == [*joined.columns[:-1], "priority"]
    sj.aggregate(plain, {"n": "count"}, time="valid_from", window=sj.Now(), lateness=sj.Grace("0 s"))


def test_which_of_sparks_operations_forget_that_rows_are_urgent(stream: DataFrame) -> None:
    ranked, plain = sj.prioritise(stream, {"v > 1": 3}), stream.selectExpr("*", "0 AS priority")
    both = sj.lanes(urgent=stream, normal=stream)
    for frame in (ranked, both):
        renamed, some = frame.withColumnRenamed("priority", "p"), frame.select("priority", "k")
        for kept in (frame.where("k > 1"), renamed, some, frame.union(plain)):
            assert has_urgent_rows(kept.schema)
        for forgotten in (plain.union(frame), frame.selectExpr("*", "priority + 1 AS q").drop("priority")):
            assert not has_urgent_rows(forgotten.schema), "as sj.prioritise says; if it is known now, say so there"
    said = "SELECT k FROM a [NOW] PRIORITY BY priority UNION ALL SELECT k FROM b [NOW] PRIORITY BY priority"
    united = sj.cql(stream.sparkSession, said, a=ranked, b=both, time="ts", lateness=sj.Grace("0 s"))
    assert has_urgent_rows(united.schema)


def test_lanes_give_at_least_their_own_priority(status: DataFrame, urgent: DataFrame) -> None:
    other = status.where("false").selectExpr("*", "0 AS priority")
    three = sj.lanes(first=urgent.where("ts = 10"), second=urgent.where("ts > 10 AND ts < 21"), last=other)
    named = sj.lanes(as_="rank", above=three.where("ts < 20"), below=three.where("ts >= 20"))
    assert rows_of(named, "ts", "priority", "rank") == [(10, 10, 10), (11, 1, 1), (20, 8, 8)], "whatever it is called"
    assert priority_column(named.schema) == "rank"
    assert sj.deprioritise(three, time="ts").count() == 3, "the column is known as what it is"
    large = status.limit(1).selectExpr("*", f"{1 << 40} AS priority")
    assert rows_of(sj.lanes(urgent=status.limit(0), normal=large), "priority") == [(1 << 40,)]


def test_lanes_know_how_late_rows_are_only_if_all_say_the_same(stream: DataFrame) -> None:
    def joined(grace: str, **options: Any) -> DataFrame:
        return sj.join(
            stream, stream, by="k", time="ts", window=sj.Range("5 s"), lateness=sj.Grace(grace), buckets=2, **options
        )

    def delay(frame: DataFrame) -> int | None:
        return delay_of_column(frame.schema, "valid_from")

    soon, late = joined("1 s"), joined("60 s")
    both = sj.lanes(urgent=soon, normal=late)
    assert (delay(soon), delay(late)) == (6_000_000, 65_000_000)
    assert delay(soon.union(late)) == 6_000_000, "Spark's union has what was said of the first"
    assert delay(both) is None
    ringing = joined("1 s", timers=True, idle_after="9 s")
    assert uses_timers(sj.lanes(urgent=ringing, normal=late).schema), "a query over it never ends by itself"
    ranked: dict[str, Any] = {"by": "k", "window": sj.Now(), "priority": ["priority", None]}
    since = [each.withColumnRenamed("valid_from", "since").select("k", "since", *more)
             for each, more in ((both, ["priority"]), (late, []))]  # fmt: skip
    with pytest.raises(sj.CallError, match="nothing says how late rows of input 0 may be"):
        sj.join(since, time="since", **ranked)
    sj.join(since, time="since", lateness=[sj.Grace("65 s"), None], **ranked)
    assert delay(sj.lanes(urgent=late.where("k > 1"), normal=late.where("k <= 1"))) == 65_000_000
    assert delay(sj.lanes(urgent=stream.selectExpr("ts AS valid_from"), normal=late.select("valid_from"))) is None
    few, many = (stream.withWatermark("ts", each) for each in ("1 second", "60 seconds"))
    with pytest.raises(sj.CallError, match="nothing says how late rows of input 0 may be"):
        sj.join(sj.lanes(urgent=few, normal=many), many, time="ts", **ranked)
    sj.join(sj.lanes(urgent=many, normal=many.where("k > 1")), many, time="ts", **ranked)


def test_results_that_are_made_urgent_have_no_delay(stream: DataFrame) -> None:
    joined = sj.join(stream, stream, by="k", time="ts", window=sj.Range("5 s"), lateness=sj.Grace("1 s"), buckets=2)
    assert sj.output_delay(joined) == "6001 milliseconds"
    for urgent in (sj.prioritise(joined, {"v > 1": 3}), sj.lanes(urgent=joined.where("v > 1"), normal=joined)):
        with pytest.raises(sj.CallError, match="a frame with urgent rows has no delay"):
            sj.output_delay(urgent)
        assert "no bound: Spark's watermark would follow the urgent ones" in sj.explain(urgent)
    plain = sj.deprioritise(urgent, time="valid_from", lateness=sj.Grace("6 s"))
    assert sj.output_delay(plain, "valid_from") == "6001 milliseconds"


def progress_of(rows: list[int], seconds: list[float]) -> list[dict[str, Any]]:
    return [
        {"batchId": n, "numInputRows": each, "durationMs": {"addBatch": 1, "triggerExecution": taken * 1000}}
        for n, (each, taken) in enumerate(zip(rows, seconds, strict=True))
    ]


def test_the_limit_of_a_lane_follows_from_what_micro_batches_took() -> None:
    limit = limit_of(progress_of([10, 1000, 2000, 11000], [9.0, 0.6, 0.7, 1.6]), 2)
    assert limit.rows == 15_000
    assert (round(limit.seconds_per_batch, 3), round(limit.throughput, 3)) == (0.5, 0.75)
    for rows, seconds, wanted, said in (
        ([10], [1.0], 2, "too little is known"),
        ([9, 10, 10, 10], [1.0] * 4, 2, "too little is known"),
        ([10, 10, 100], [1.0, 2.0, 1.0], 2, "took no longer"),
        ([10, 1000, 2000], [9.0, 0.6, 0.7], 0.4, "takes 0.50 s without any row"),
        ([10, 1000, 2000], [9.0, 0.6, 0.7], 0, "must be a positive number"),
    ):
        with pytest.raises(sj.CallError, match=said):
            limit_of(progress_of(rows, seconds), wanted)


def test_starving_rows_are_told_of() -> None:
    def micro_batch(number: int, share: float, progress: int) -> tuple[dict[str, Any], dict[str, Any]]:
        spark = {"timestamp": f"2026-01-01T00:00:{number:02d}.000Z", "durationMs": {"triggerExecution": 500}}
        join = {"urgent": {"rows": 1, "share": share}, "progress": [progress, None]}
        return spark, {"joins": {"streamjoin-1": join}}

    calm = [micro_batch(number, 0.9 if number != 2 else 0.1, number) for number in range(4)]
    urgent = told(calm[-1][1], calm)["joins"]["streamjoin-1"]["urgent"]
    assert (urgent["starving"], urgent["standing"]) == (False, [0.0, 3.0])
    busy = [micro_batch(number, 0.6, min(number, 1)) for number in range(4)]
    with pytest.warns(UserWarning, match=r"more than half of the rows of streamjoin-1 were urgent.*60%, 60%, 60%"):
        urgent = told(busy[-1][1], busy)["joins"]["streamjoin-1"]["urgent"]
    assert (urgent["starving"], urgent["standing"][0]) == (True, 2.0)


def test_only_urgent_rows_make_progress_look_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def micro_batches(pack: dict[str, int]) -> SimpleNamespace:
        each = {
            "numInputRows": 10, "timestamp": "2026-01-01T00:00:00.000Z",
            "durationMs": {"addBatch": 1, "triggerExecution": 10}, "observedMetrics": {"streamjoin-1-pack": pack},
        }  # fmt: skip
        return SimpleNamespace(recentProgress=[{**each, "batchId": number} for number in range(20)])

    looked: list[int] = []
    real = sj.from_progress  # before: the package looks names up when they are asked for

    def counting(progress: dict[str, Any]) -> dict[str, Any]:
        looked.append(progress["batchId"])
        return real(progress)

    monkeypatch.setattr("streamjoin.api.watching.from_progress", counting)
    assert sj.progress(micro_batches({"rows_in": 10}))["batch"] == 19
    assert looked == [19]
    urgent = sj.progress(micro_batches({"rows_in": 10, "urgent": 1}))["joins"]["streamjoin-1"]["urgent"]
    assert (urgent["share"], urgent["starving"]) == (0.1, False)
    assert sorted(looked[1:]) == list(range(20))
