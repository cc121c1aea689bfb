"""Reports of real queries: figures of every micro-batch, also of those that Spark forgets, and of one that fails."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import streamjoin as sj
from streamjoin.spark.listening import FIRST, LIMITED, Left, Looking, looking_of
from tests.spark.streams import Source, row

BATCHES = 3
# Two stages, and between them Spark computes something: what it drops does not go on.
QUERY = """SELECT j, COUNT(*) AS n FROM (
    SELECT R.k + S.k AS j FROM R [RANGE 6 SECONDS], S [RANGE 6 SECONDS] WHERE R.k = S.k AND R.id + S.id > 1
) AS pairs GROUP BY j"""


def test_a_report_has_the_figures_of_all_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    for number in range(BATCHES):
        rows = [row(10 * number + each, each % 3, 20 * number + each) for each in range(5)]
        source.add([rows, rows[:3]])
    source.add([[row(99, 0, 1), row(98, 0, 90)], [row(97, 0, 90)]])  # one of them late
    left, right = (source.frame(number, streaming=True) for number in (0, 1))
    joined = sj.cql(spark, QUERY, R=left, S=right, lateness=sj.Grace("2 s"), buckets=2)
    before = spark.conf.get("spark.sql.streaming.numRecentProgressUpdates")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "2")
    try:
        query = joined.writeStream.format("noop").queryName("both").trigger(availableNow=True).start(
            checkpointLocation=str(tmp_path / "checkpoint")
        )  # fmt: skip
        sj.report(query)
        query.awaitTermination()
    finally:
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", before)
    assert len(query.recentProgress) <= 2, "Spark has forgotten the others"
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # the listener is told later than the query runs
    report = sj.report(query, settings={"who": "a test"})
    assert [(each.first, each.last) for each in report.batches] == [(each, each) for each in range(BATCHES + 1)]
    figures = report.figures()
    assert figures["rows_in"] == [8.0] * BATCHES + [3.0]
    assert figures["late"] == [0.0] * BATCHES + [1.0]
    (plan,) = report.plans
    name, last = plan.stages
    assert plan.stages == {name: 0, last: 1}
    assert figures[f"{name} rows_of {plan.plan.sources[0].channel}"] == [5.0] * BATCHES + [2.0]
    assert figures[f"{name} rows_of {plan.plan.sources[1].channel}"] == [3.0] * BATCHES + [1.0]
    # Rows of equal k meet, five pairs in a micro-batch; the very first has ids that Spark's condition drops.
    pairs = [5 - 1.0] + [5.0] * (BATCHES - 1) + [1.0]
    assert figures[f"{last} rows_on {plan.plan.stages[0].outlet.way.channel}"] == pairs
    assert looking_of(query) == Looking(once=True)
    assert figures["latency_p50"] == [None] * (BATCHES + 1), "all lay there before"
    text = report.write(tmp_path / "report.html").read_text()
    assert "<title>both: over</title>" in text
    assert "17 rows, " in text
    assert f"{sum(pairs):.0f} rows, " in text, "between the stages"
    assert "a test" in text


def test_a_report_of_a_query_that_failed_has_its_error(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 0, 90)], [row(2, 0, 90)]])
    source.add([[row(3, 0, 1)], []])
    frames = [source.frame(number, streaming=True) for number in (0, 1)]
    options = {"by": "k", "time": "ts", "window": sj.Range("6 s"), "lateness": sj.Grace("2 s"), "late": "fail"}
    joined = sj.join(frames, buckets=2, **options)  # type: ignore[arg-type]
    query = joined.writeStream.format("noop").trigger(availableNow=True).start()
    with pytest.raises(Exception, match="behind its progress"):
        query.awaitTermination()
    report = sj.report(query)
    assert len(report.batches) == 1
    assert "behind its progress" in (report.error or "")
    assert "behind its progress" in report.html()


def test_a_trigger_says_how_often_a_query_looks(spark: SparkSession) -> None:
    writer = spark.readStream.format("rate").load().writeStream.format("noop")
    for every in (0.0, 3.0):
        query = writer.trigger(processingTime=f"{every:g} seconds").start()
        try:
            looking = looking_of(query)
            assert (looking.every, looking.once) == (every, False)
        finally:
            query.stop()


def test_a_query_says_which_of_its_sources_have_a_limit_as_its_reports_call_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A file in each of two folders; of one a micro-batch takes one file at most."""
    folders = [str(tmp_path / name) for name in ("limited", "free")]
    frames = []
    for folder, options in zip(folders, ({"maxFilesPerTrigger": 1}, {}), strict=True):
        spark.range(3).coalesce(1).write.parquet(folder)
        frames.append(spark.readStream.schema("id long").options(**options).parquet(folder))
    query = frames[0].union(frames[1]).writeStream.format("noop").start()
    try:
        query.processAllAvailable()
        looking = looking_of(query)
        (told,) = [report for report in query.recentProgress if report["numInputRows"]]
    finally:
        query.stop()
    assert looking.limited == {each["description"] for each in told["sources"] if "limited" in each["description"]}
    assert len(looking.limited) == 1
    assert looking.known
    assert looking.left(told["sources"]) is Left.PERHAPS, "nothing says that the folder has no more files"


def test_rows_that_may_have_waited_are_left_out_and_the_page_says_so(spark: SparkSession, tmp_path: Path) -> None:
    """Three files that lie there, one for each micro-batch; a while after them another one, which has a latency."""
    source = Source(spark, tmp_path)
    for number in range(BATCHES):
        source.add([[row(number, 0, 20 * number)], [row(number, 0, 20 * number)]])
    frames = [source.frame(number, streaming=True) for number in (0, 1)]
    joined = sj.join(frames, by="k", time="ts", window=sj.Range("6 s"), lateness=sj.Grace("2 s"), buckets=2)
    query = joined.writeStream.format("noop").start(checkpointLocation=str(tmp_path / "checkpoint"))
    try:
        sj.report(query)
        query.processAllAvailable()
        time.sleep(1)  # idle
        source.add([[row(9, 0, 90)], [row(9, 0, 90)]])
        query.processAllAvailable()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        report = sj.report(query)
    finally:
        query.stop()
    before, after = report.batches[:BATCHES], report.batches[BATCHES:]
    assert [each.unseen for each in before] == [None] * BATCHES
    assert [dict(each.left_out) for each in before] == [{FIRST: 1}, *[{LIMITED: 1}] * (BATCHES - 1)]
    assert len(after) in (1, 2), "the query may look when one of the two files is there"
    assert after[0].unseen is not None, "it looked while it was idle"
    known = [each for each in after if each.unseen is not None]
    assert all(each.unseen < each.began - before[-1].ended for each in known), "and not when it had rows last"
    assert all(dict(each.left_out) == {LIMITED: 1} for each in after if each not in known), "which began at once"
    assert f"Latency is known of {len(known)} of {BATCHES + len(after)} micro-batches." in report.html()


def test_what_is_no_query_is_refused(spark: SparkSession) -> None:
    with pytest.raises(sj.CallError, match="report takes a streaming query, got DataFrame"):
        sj.report(spark.range(1))
