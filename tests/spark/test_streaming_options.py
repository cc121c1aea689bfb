"""Options of running streams: tables beside them, rows that are shown whole, idle streams, times of arrival."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from tests.spark.streams import SLACK, Row, Source, counted, random_rows, row

GRACE = sj.Grace(f"{SLACK} seconds")
LATE, INVALID = 100, 101  # ids


def some_rows(seed: str, count: int = 24) -> list[Row]:
    """Rows with times of their own, in order: who came first among equal ones is not the same in a batch."""
    rng = random.Random(seed)
    seconds = sorted(rng.sample(range(3 * count), count))
    return [(*each[:-1], at) for each, at in zip(random_rows(rng, count), seconds, strict=True)]


def shown(rows: Counter[Any], name: str) -> list[int]:
    """The ids of rows that are shown whole, and nothing beside them."""
    found = [dict(each) for each in rows if dict(each)[name] is not None]
    assert all(value is None for each in found for column, value in each.items() if column != name)
    assert all(set(each[name].asDict()) == {"id", "k", "v", "lo", "hi", "ts"} for each in found)
    return sorted(each[name].id for each in found)


def joined(rows: Counter[Any], *marks: str) -> Counter[Any]:
    """The other rows, without those columns."""
    kept: Counter[Any] = Counter()
    for each, count in rows.items():
        if all(dict(each)[mark] is None for mark in marks):
            kept[tuple((name, value) for name, value in each if name not in marks)] += count
    return kept


def valid() -> Any:
    """A time, and none for one of the rows."""
    return F.expr(f"if(id = {INVALID}, NULL, ts + INTERVAL 1 SECOND)")


def with_strays(source: Source, rows: list[Row], others: list[Row]) -> None:
    """Rows in two files, and then one that is too late, and one without time."""
    source.add([rows, others], 2)
    source.add([[row(LATE, 0, 1), row(INVALID, 0, 90), row(99, 0, 95)], []])


def test_a_query_beside_a_table_shows_late_and_invalid_rows_whole(spark: SparkSession, tmp_path: Path) -> None:
    """A left join without keys, whose rows go to several buckets."""
    source = Source(spark, tmp_path)
    with_strays(source, some_rows("left"), some_rows("right"))
    text = """SELECT R.id, S.id AS other FROM R [RANGE 6 SECONDS] LEFT JOIN S [RANGE 6 SECONDS] ON R.v < S.v"""
    options: dict[str, Any] = {"time": valid(), "lateness": GRACE, "buckets": 2}
    stream, table = source.frame(0, streaming=True), source.frame(1, streaming=False)
    query = sj.cql(spark, text, R=stream, S=table, late={"R": "output"}, invalid={"R": "output"}, **options)
    assert query.columns == ["id", "other", "valid_from", "valid_to", "_late_R", "_invalid_R"]
    left = source.finished(query)
    assert (shown(left, "_late_R"), shown(left, "_invalid_R")) == ([LATE], [INVALID])
    rows = source.frame(0, streaming=False).where(f"id NOT IN ({LATE}, {INVALID})")
    expected = counted(sj.cql(spark, text, R=rows, S=table, **options))
    assert joined(left, "_late_R", "_invalid_R") == expected
    assert {dict(each)["other"] is None for each in expected} == {False, True}


def test_an_aggregate_by_a_computed_time_shows_late_and_invalid_rows_whole(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    with_strays(source, some_rows("rows"), [])
    options: dict[str, Any] = {"by": "k", "time": valid(), "window": sj.Range("6 s"), "lateness": GRACE, "buckets": 2}
    asked = {"n": "count", "most": ("max", "v")}
    counts = sj.aggregate(source.frame(0, streaming=True), asked, late="output", invalid="output", **options)
    left = source.finished(counts)
    assert (shown(left, "_late_0"), shown(left, "_invalid_0")) == ([LATE], [INVALID])
    rows = source.frame(0, streaming=False).where(f"id NOT IN ({LATE}, {INVALID})")
    assert joined(left, "_late_0", "_invalid_0") == counted(sj.aggregate(rows, asked, **options))


def test_a_union_of_a_stream_and_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """One that keeps nothing, and the distinct rows of one."""
    for every in (True, False):
        source = Source(spark, tmp_path / str(every))
        source.add([some_rows("one"), some_rows("two")], 2)
        options = {"all": every, "time": "ts", "window": sj.Range("6 s"), "lateness": GRACE, "buckets": 2}
        parts = [
            [source.frame(n, streaming=n == 0 and s).select("k", "v", "ts") for n in (0, 1)] for s in (True, False)
        ]
        expected = counted(sj.union(parts[1], **options))
        left = source.run(sj.union(parts[0], **options)) if every else source.finished(sj.union(parts[0], **options))
        assert left == expected
        assert len(expected) > 10, "the case says nothing"


def test_late_rows_of_a_stream_that_passes_beside_results_are_nobodys_business(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = """SELECT R.id FROM R [RANGE 4 SECONDS], S [RANGE 4 SECONDS] WHERE R.k = S.k
              UNION ALL SELECT id FROM T [RANGE 4 SECONDS]"""
    source = Source(spark, tmp_path)
    source.add([some_rows("one"), some_rows("two")], 2)
    one, two = source.frames(streaming=True)
    frames, options = {"R": one, "S": two, "T": one}, {"lateness": GRACE, "buckets": 2}
    with pytest.raises(sj.CallError, match=r'late="fail" of stream T, of which nothing is kept') as refused:
        sj.cql(spark, text, late={"T": "fail"}, **frames, **options)
    assert refused.value.hint == "leave it out for this stream"
    for late in ("fail", {"R": "fail"}):  # for all, or for one that is joined
        sj.cql(spark, text, late=late, **frames, **options)
    ordered = sj.cql(spark, text, late={"T": "fail"}, emit="ordered", **frames, **options)
    assert ordered.isStreaming, "in order it waits, and may come too late for its turn"


def test_an_idle_stream_of_a_query_holds_nothing_back(spark: SparkSession, tmp_path: Path) -> None:
    text = "SELECT R.id, S.id AS other FROM R [RANGE 4 SECONDS] LEFT JOIN S [RANGE 4 SECONDS] ON R.k = S.k"
    source = Source(spark, tmp_path)
    source.add([[row(1, 1, 10)], [row(1, 2, 10)]])
    source.add([[row(2, 1, 1000)], []])
    source.add([[row(3, 1, 2000)], []])
    frames = source.frames(streaming=True)
    options = {"lateness": sj.Grace("0 s"), "idle_after": "1 millisecond", "buckets": 1}
    left = source.run(sj.cql(spark, text, R=frames[0], S=frames[1], **options))
    assert {dict(each)["id"] for each in left} == {1, 2}, "S has shown nothing beyond 10"


def test_rows_of_a_query_by_arrival_meet_those_of_their_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    files = [([row(1, 0, 5), row(2, 1, 5)], [row(11, 0, 900)]), ([row(3, 0, 1)], [row(12, 0, 2), row(13, 1, 3)])]
    for each in files:
        source.add(list(each))
    text = "SELECT R.id, S.id AS other FROM R [NOW], S [NOW] WHERE R.k = S.k"
    frames = source.frames(streaming=True)
    left = source.run(sj.cql(spark, text, R=frames[0], S=frames[1], time=sj.arrival(), buckets=2))
    assert Counter((dict(each)["id"], dict(each)["other"]) for each in left) == Counter([(1, 11), (3, 12)])


def test_an_outer_join_by_row_of_the_newest_rows_by_band(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([some_rows("newest"), some_rows("others")], 2)
    options: dict[str, Any] = {
        "on": "v", "below": 0.5, "above": 0.5, "time": "ts", "window": [sj.Rows(3), sj.Rows(2, by=F.col("k") + 1)],
        "how": "full", "lateness": GRACE, "buckets": 2,
    }  # fmt: skip
    expected = counted(sj.join_band(*source.frames(streaming=False), **options))
    assert source.finished(sj.join_band(*source.frames(streaming=True), **options)) == expected
    assert {dict(each)["id_right"] is None for each in expected} == {False, True}
