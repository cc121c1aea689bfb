"""Queries over lifetimes on running streams: restarted and finished they give what the batch gives; late rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from tests.spark.streams import SLACK, Source, counted, random_rows, row

# Query, files before the restart, buckets, options.
CASES: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "row window": ("SELECT id, k FROM R [ROWS 4] WHERE v < 7", 3, 2, {}),
    "join of row windows": (
        "SELECT R.id, S.id AS other FROM R [ROWS 5], S [PARTITION BY k ROWS 2] WHERE R.k = S.k", 4, 2, {},
    ),
    "aggregation": (
        "SELECT k, COUNT(*) AS n, SUM(v) AS total, MAX(id) AS last FROM R [RANGE 9 SECONDS] GROUP BY k", 3, 3, {},
    ),
    "of a join": (
        """SELECT R.k, AVG(S.v) AS mean FROM R [RANGE 4 SECONDS], S [ROWS 6] WHERE R.k = S.k
           GROUP BY R.k HAVING COUNT(*) > 1""", 3, 2, {},
    ),
    "set operators": (
        "SELECT k, v FROM R [RANGE 8 SECONDS] EXCEPT SELECT k, v FROM S [ROWS 7] UNION SELECT k, lo FROM S [NOW]",
        3, 2, {},
    ),
    "outer join by band": (
        """SELECT R.id, S.id AS other FROM R [RANGE 5 SECONDS] PRIORITY BY CASE WHEN id % 4 = 0 THEN 3 ELSE 0 END
           LEFT JOIN S [ROWS 3] ON abs(R.v - S.v) <= 0.5""", 3, 2, {},
    ),
    "what appears": ("SELECT ISTREAM(k) FROM R [RANGE 6 SECONDS]", 3, 2, {}),
    "changelog": (
        "SELECT k, SUM(v) AS total FROM R [PARTITION BY k ROWS 3] GROUP BY k", 3, 2, {"output": "changelog"},
    ),
    "as of": (
        """SELECT R.id, S.id AS other, R.v + S.v AS total FROM R LEFT ASOF JOIN S MATCH_CONDITION (R.ts <= S.ts)
           ON R.k = S.k WHERE R.v < 7""", 3, 2, {},
    ),
    "by plus and minus tuples": (
        "SELECT R.id, S.id AS other FROM R [ROWS 5] LEFT JOIN S [RANGE 6 SECONDS] ON R.k = S.k", 3, 2,
        {"method": "negative"},
    ),
}  # fmt: skip


def distinct_times(rng: random.Random, count: int) -> list[Any]:
    """Rows with times of their own: who came first among equal ones is not the same in a batch."""
    rows = random_rows(rng, count)
    seconds = sorted(rng.sample(range(3 * count), count))
    return sorted(
        ((*each[:-1], at) for each, at in zip(rows, seconds, strict=True)),
        key=lambda each: each[-1] + rng.randint(0, SLACK),
    )


def query(spark: SparkSession, text: str, frames: list[DataFrame], buckets: int, **options: Any) -> DataFrame:
    lateness = sj.Grace(f"{SLACK} seconds")
    return sj.cql(spark, text, lateness=lateness, buckets=buckets, R=frames[0], S=frames[1], **options)


# What "of a join" and the planes without Spark show too, of all that these are made of.
REPEATED = ("join of row windows", "by plus and minus tuples")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in REPEATED else name for name in CASES]
)
def test_differential_a_finished_stream_gives_what_the_batch_gives(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    text, pieces, buckets, options = CASES[name]
    rng, source = random.Random(name), Source(spark, tmp_path)
    sides = [distinct_times(rng, 40), distinct_times(rng, 40)]
    source.add([side[:20] for side in sides], pieces)
    source.run(query(spark, text, source.frames(streaming=True), buckets, **options))
    source.add([side[20:] for side in sides], 1)
    expected = counted(query(spark, text, source.frames(streaming=False), buckets, **options))
    assert source.finished(query(spark, text, source.frames(streaming=True), buckets, **options)) == expected
    assert len(expected) > 10, "the case says nothing"
    assert any(dict(each).get("priority") for each in expected) == ("PRIORITY BY" in text)


def test_what_ends_before_progress_leaves_while_the_stream_runs(spark: SparkSession, tmp_path: Path) -> None:
    """And what is dropped is counted once: ghosts of a row window, and of a stream that no stage reads."""
    source = Source(spark, tmp_path)
    source.add([[*(row(number, 0, number) for number in range(1, 6)), row(7, 0, 5), row(8, 0, 5)], [row(30, 0, 0)]])
    source.add([[row(6, 0, 20)], [row(31, 0, 3), row(32, 0, 4), row(33, 0, 0, 1.0)]])
    text = "SELECT id FROM R [ROWS 2] UNION ALL SELECT id FROM S [RANGE 2 SECONDS SLIDE 4 SECONDS] WHERE v < 1"
    options = {"time": {"R": "ts", "S": "nullif(ts, timestamp_seconds(4))"}, "invalid": {"S": "drop"}}
    frame = query(spark, text, source.frames(streaming=True), 1, **options)
    running = source.start(frame)
    running.awaitTermination()
    left = source.left(frame)
    assert sorted(dict(each)["id"] for each in left) == [1, 2, 3, 4, 30], "7 ends at 20, and rows at 15 may still come"
    told = [sj.from_progress(each) for each in running.recentProgress]
    assert sum(each["rows_in"] for each in told) == 12
    assert sum(each["rows_out"] for each in told) == 5
    dropped = [(join["ghosts"], join["invalid"]) for each in told for join in each["joins"].values()]
    assert sorted(dropped) == [(0, 0), (0, 0), (1, 0), (1, 1)], "5 of R; 31 of S, and 32, which has no time"


def test_late_rows_are_counted_or_fail_and_lateness_must_be_said(spark: SparkSession, tmp_path: Path) -> None:
    text, source = "SELECT COUNT(*) AS n FROM R [RANGE 5 SECONDS]", Source(spark, tmp_path)
    source.add([[row(1, 0, 100)], []])
    source.add([[row(2, 0, 20), row(3, 0, 101)], []])
    with pytest.raises(sj.CallError, match="how late rows of stream R may be"):
        sj.cql(spark, text, R=source.frame(0, streaming=True))
    frame = query(spark, text, source.frames(streaming=True), 1)
    running = source.start(frame)
    running.awaitTermination()
    assert sum(sj.from_progress(each)["late"] for each in running.recentProgress) == 1
    other = Source(spark, tmp_path / "other")
    other.add([[row(1, 0, 100)], []])
    other.add([[row(2, 0, 20)], []])
    failing = other.start(query(spark, text, other.frames(streaming=True), 1, late="fail"))
    with pytest.raises(Exception, match="behind its progress"):
        failing.awaitTermination()


JOINED = "SELECT R.id, R.k AS key FROM R [4 SECONDS], S [4 SECONDS] WHERE R.k = S.k"


@pytest.mark.parametrize(
    ("before", "after", "buckets", "differs"),
    [
        ("SELECT id FROM R [ROWS 4]", "SELECT id FROM R [ROWS 5]", 1, "window"),
        (JOINED, JOINED, 2, "buckets"),
        (JOINED, JOINED.replace("R.k =", "R.id ="), 1, "keys"),  # columns of one type: state of the same form
        (JOINED, JOINED.replace("S [4", "S [9"), 1, "window"),
    ],
)
def test_a_restart_with_another_query_is_refused(
    spark: SparkSession, tmp_path: Path, before: str, after: str, buckets: int, differs: str
) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 0, 1)], [row(1, 0, 1)]])
    source.start(query(spark, before, source.frames(streaming=True), 1)).awaitTermination()
    source.add([[row(2, 0, 2)], [row(2, 0, 2)]])
    again = source.start(query(spark, after, source.frames(streaming=True), buckets))
    with pytest.raises(Exception, match=f"this state was made by another join: {differs} was"):
        again.awaitTermination()


def test_a_late_row_counts_once_wherever_it_goes(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 0, 100)], [row(1, 0, 100)]])
    source.add([[row(2, 0, 20, 0.3), row(3, 0, 20, 9.9)], [row(2, 0, 20, 4.6)]])
    text = "SELECT R.id FROM R [5 SECONDS], S [5 SECONDS] WHERE R.v < S.v"
    running = source.start(query(spark, text, source.frames(streaming=True), 4))
    running.awaitTermination()
    assert [sj.from_progress(each)["late"] for each in running.recentProgress] == [0, 3]


def test_lateness_by_names_that_the_query_has_not(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    frames = source.frames(streaming=True)
    lateness = {"R": sj.Grace("1 s"), "T": sj.Grace("1 s")}
    with pytest.raises(sj.CallError, match="lateness names a stream 'T'"):
        sj.cql(spark, "SELECT id FROM R [5 SECONDS]", R=frames[0], lateness=lateness)
    both = {"time": "ts", "window": sj.Range("5 s")}
    frames = [frame.select("k", "ts") for frame in frames]
    assert sj.except_(frames, lateness=[sj.Grace("1 s"), sj.Grace("2 s")], **both).isStreaming
    with pytest.raises(sj.CallError, match="lateness needs one value, or one per input, got 3"):
        sj.except_(frames, lateness=[sj.Grace("1 s")] * 3, **both)


def test_how_late_a_query_is_is_what_the_function_says(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    frames, options = source.frames(streaming=True), {"by": "k", "lateness": sj.Grace(f"{SLACK} seconds"), "buckets": 1}
    joined = sj.join(frames, time="ts", window=sj.Range("4 seconds"), **options)
    assert sj.output_delay(query(spark, JOINED, frames, 1)) == sj.output_delay(joined)
    counted = f"SELECT key, count(*) AS n FROM ({JOINED}) q GROUP BY key"
    assert sj.output_delay(query(spark, counted, frames, 1)) == "4001 milliseconds", (
        "pieces start in order, and last 4 s"
    )
    with pytest.raises(sj.CallError, match="looks ahead may wait for ever"):
        sj.output_delay(query(spark, CASES["as of"][0], frames, 1))
