"""Streaming frames: restarts, late rows, state, static inputs, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.plan import delay
from streamjoin.runtime.lateness import Slack
from streamjoin.spark.marks import plan_of, uses_timers
from tests.spark.streams import SLACK, Source, counted, random_rows, row

GRACE = sj.Grace(f"{SLACK} seconds")
WINDOW = sj.Range("4 seconds")


def test_a_restart_goes_on_where_the_query_stopped(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(7), Source(spark, tmp_path)
    sides = [random_rows(rng, 60), random_rows(rng, 60)]

    def joined(streaming: bool) -> DataFrame:
        left, right = source.frames(streaming=streaming)
        options = {"on": "ts", "by": "k", "lower": "-2 s", "upper": "3 s", "how": "left"}
        return sj.join_interval(left, right, **options, lateness=GRACE, buckets=2)

    source.add([side[:30] for side in sides], 2)
    source.run(joined(True))
    source.add([side[30:] for side in sides], 2)
    source.close()
    assert source.run(joined(True)) == counted(joined(False))


def test_a_restart_with_another_window_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(8), Source(spark, tmp_path)
    for window in ("4 seconds", "5 seconds"):
        source.add([random_rows(rng, 10), random_rows(rng, 10)])
        options = {"time": "ts", "by": "k", "lateness": sj.Grace("60 seconds"), "buckets": 1}
        joined = sj.join(source.frames(streaming=True), window=sj.Range(window), **options)
        if window == "4 seconds":
            source.run(joined)
        else:
            with pytest.raises(Exception, match="this state was made by another join: window was Range"):
                source.run(joined)


@pytest.mark.parametrize("policy", ["output", "drop", "join", "fail"])
def test_late_rows_go_where_the_policy_says_and_nothing_else_is_lost(
    spark: SparkSession, tmp_path: Path, policy: str
) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 1, 50)], [row(1, 1, 50)]])
    source.add([[row(2, 1, 47), row(3, 1, 51)], [row(2, 1, 52)]])
    # Spark knows this watermark, and would drop row 2 of input 0 before we see it.
    frames = [frame.withWatermark("ts", "2 seconds") for frame in source.frames(streaming=True)]
    joined = sj.join(frames, time="ts", window=WINDOW, by="k", late=policy, buckets=1)
    if policy == "fail":
        with pytest.raises(Exception, match=r"input 0 brought 1 row\(s\) behind its progress .*'id': 2"):
            source.run(joined)
        return
    rows = [dict(items) for items in source.run(joined)]
    late = [row["id"] for row in rows if row.get("_late")]
    pairs = {(row["id"], row["id_right"]) for row in rows if not row.get("_late")}
    assert late == ([2] if policy == "output" else [])
    assert pairs == {(1, 1), (1, 2), (3, 1), (3, 2)} | ({(2, 1)} if policy == "join" else set())


def test_spark_drops_nothing_that_our_lateness_allows(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 1, 50)], [row(1, 1, 50)]])
    source.add([[row(2, 1, 47)], []])  # behind the frame's watermark, and not behind what the call says
    frames = [frame.withWatermark("ts", "1 second") for frame in source.frames(streaming=True)]
    options = {"time": "ts", "window": WINDOW, "by": "k", "how": "left", "buckets": 1}
    joined = sj.join(frames, lateness=GRACE, late="output", **options)
    rows = [dict(items) for items in source.run(joined)]
    assert sorted((row["id"], row["id_right"], row["_late"]) for row in rows) == [(1, 1, False), (2, 1, False)]


def test_a_condition_that_is_left_to_spark_does_not_lose_late_rows(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 1, 50, 1.0)], [row(1, 1, 50, 2.0), row(2, 1, 50, 0.5)]])
    source.add([[row(2, 1, 10, 1.0)], []])
    options = {"time": "ts", "window": WINDOW, "where": sj.theta("l.v < r.v"), "late": "output", "buckets": 1}
    query = source.start(sj.join(source.frames(streaming=True), lateness=GRACE, **options))
    query.awaitTermination()
    rows = spark.read.parquet(str(source.out)).orderBy("id").collect()
    assert [(row.id, row._late) for row in rows] == [(1, False), (2, True)]
    told = [sj.from_progress(progress)["rows_out"] for progress in query.recentProgress]
    assert told == [1, 1], "those that Spark has dropped are not counted"


def test_state_shrinks_to_what_can_still_be_met(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(9), Source(spark, tmp_path)
    source.add([random_rows(rng, 200), random_rows(rng, 200)], 3)
    source.close()
    options = {"time": "ts", "window": WINDOW, "by": "k", "lateness": GRACE, "buckets": 1}
    query = source.start(sj.join(source.frames(streaming=True), **options))
    query.awaitTermination()
    sizes = [sj.from_progress(progress)["joins"] for progress in query.recentProgress]
    (last,) = sizes[-1].values()
    assert last["state_rows"] == 2, "one row per input, the closing one"
    assert last["progress"][0].year == 1970
    blobs = spark.read.format("statestore").option("stateVarName", "blobs").load(str(source.checkpoint))
    assert 1 <= blobs.count() <= 2, "one run per input, with the closing row in it, perhaps in one bundle"


def test_one_key_with_half_of_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(10), Source(spark, tmp_path)
    sides = [random_rows(rng, 400, horizon=200) for _ in range(2)]
    skewed = [[(r[0], 0 if r[0] % 2 else r[1] + 10 * r[0], *r[2:]) for r in side] for side in sides]
    source.add(skewed, 4)
    options = {"time": "ts", "window": WINDOW, "by": "k", "lateness": GRACE, "buckets": 4, "how": "left"}
    expected = counted(sj.join(source.frames(streaming=False), **options))
    assert source.finished(sj.join(source.frames(streaming=True), **options)) == expected


# -- a static input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("static", "how"), [(1, "left"), (0, "full"), (1, "anti")])
def test_a_static_frame_beside_a_stream(spark: SparkSession, tmp_path: Path, static: int, how: str) -> None:
    rng, source = random.Random(how), Source(spark, tmp_path)
    source.add([random_rows(rng, 60), random_rows(rng, 60)], 3)
    options = {"time": "ts", "window": WINDOW, "by": "k", "how": how, "buckets": 2, "lateness": GRACE}
    expected = counted(sj.join(source.frames(streaming=False), **options))
    frames = [source.frame(side, streaming=side != static) for side in (0, 1)]
    assert source.finished(sj.join(frames, **options)) == expected


def test_a_static_frame_is_a_lookup_table_without_any_time(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(11), Source(spark, tmp_path)
    source.add([random_rows(rng, 40), []], 4)
    names = spark.createDataFrame([(0, "zero"), (1, "one"), (9, "nine")], "k int, name string")
    stream = sj.join([source.frame(0, streaming=True), names], by="k", how="left", buckets=2)
    expected = counted(sj.join([source.frame(0, streaming=False), names], by="k", how="left"))
    assert source.run(stream) == expected, "a static table never changes, so every row is decided at once"


def test_a_static_frame_is_frozen_when_the_query_starts(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    names = tmp_path / "names"
    spark.createDataFrame([(1, "one")], "k int, name string").write.parquet(str(names))

    def joined() -> DataFrame:
        table = spark.read.schema("k int, name string").parquet(str(names))
        return sj.join([source.frame(0, streaming=True), table], by="k", buckets=1)

    source.add([[row(1, 1, 10)], []])
    assert len(source.run(joined())) == 1
    spark.createDataFrame([(1, "uno")], "k int, name string").write.mode("append").parquet(str(names))
    source.add([[row(2, 1, 10)], []])
    found = {(dict(items)["id"], dict(items)["name"]) for items in source.run(joined())}
    assert found == {(1, "one"), (2, "one")}


# -- time that is not in the rows --------------------------------------------------------------------------------------


def test_rows_can_be_stamped_on_arrival(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    for number in range(2):
        source.add([[row(number, 1, 0)], [row(number, 1, 0)]])

    def joined(streaming: bool) -> DataFrame:
        return sj.join(source.frames(streaming=streaming), time=sj.arrival(), window=sj.Range("1 hour"), by="k")

    assert len(counted(joined(False))) == 4, "all rows of a batch arrive at once"
    left = source.run(joined(True))
    assert {(dict(items)["id"], dict(items)["id_right"]) for items in left} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    starts = [dict(items)["valid_from"] for items in left]
    assert len(set(starts)) == 2, "the clock of each micro-batch"


def test_an_idle_input_does_not_hold_results_back(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 1, 10)], [row(1, 2, 10)]])
    source.add([[row(2, 1, 1000)], []])
    source.add([[row(3, 1, 2000)], []])
    options = {"time": "ts", "window": WINDOW, "by": "k", "how": "left", "lateness": sj.Grace("0 s"), "buckets": 1}
    left = source.run(sj.join(source.frames(streaming=True), **options, idle_after="1 millisecond"))
    assert {dict(items)["id"] for items in left} >= {1}, "input 1 has been idle for longer than a millisecond"


def test_timers_find_idle_inputs_when_nothing_comes(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 1, 10), row(2, 1, 1000)], [row(1, 2, 10)]])
    options = {"time": "ts", "window": WINDOW, "by": "k", "how": "left", "lateness": sj.Grace("0 s"), "buckets": 1}
    joined = sj.join(source.frames(streaming=True), **options, idle_after="1 second", timers=True)
    query = joined.writeStream.format("memory").queryName("timers").start()
    try:
        for _ in range(60):
            query.awaitTermination(1)
            found = [row.id for row in spark.table("timers").collect()]
            if found:
                break
        assert found == [1], "row 1 met nobody, and input 1 no longer holds it back"
    finally:
        query.stop()


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_stream_must_say_how_late_rows_may_be(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    with pytest.raises(sj.CallError) as refused:
        sj.join(source.frames(streaming=True), time="ts", window=WINDOW, by="k")
    assert "nothing says how late rows of input 0 may be" in str(refused.value)
    assert 'lateness=sj.Grace("10 seconds")' in str(refused.value)
    assert 'withWatermark("ts", "10 seconds")' in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "k", "time": None, "window": None}, "needs time, or its state would grow for ever"),
        ({"by": "k", "timers": True}, "nothing says when an input is idle"),
        ({"by": "k", "timers": "yes", "idle_after": "1 s"}, "timers must be True or False"),
        ({"by": "k", "idle_after": "0 s"}, "idle_after must be positive"),
        ({"by": "k", "idle_after": 30}, "idle_after"),
        ({"by": "k", "how": "semi", "late": "output"}, 'late="output" cannot show rows of input 1'),
        ({"by": "k", "how": "anti", "late": ["drop", "output"]}, 'late="output" cannot show rows of input 1'),
    ],
)
def test_a_wrong_streaming_call_fails_when_it_is_made(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    source = Source(spark, tmp_path)
    source.close()
    call = {"time": "ts", "window": WINDOW} | options
    with pytest.raises(sj.CallError, match=message):
        sj.join(source.frames(streaming=True), **call)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": "ordered"}, "nothing would say when a result's turn has come"),
        ({"idle_after": "1 s"}, "an input without progress holds nothing back"),
        ({"late": "output"}, "no row can be late"),
    ],
)
def test_what_needs_time_is_refused_beside_a_lookup_table(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    source = Source(spark, tmp_path)
    source.close()
    frames = [source.frame(0, streaming=True), source.frame(1, streaming=False)]
    assert sj.join(frames, by="k").isStreaming
    with pytest.raises(sj.CallError, match=message):
        sj.join(frames, by="k", **options)


def test_a_restart_with_another_expression_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)

    def joined(factor: int) -> DataFrame:
        source.add([[row(1, 1, 50)], [row(1, 1, 50)]])
        key = F.transform(F.array("k"), lambda each: each * factor)[0]  # Spark numbers its variable anew
        options = {"time": "ts", "window": WINDOW, "lateness": GRACE, "buckets": 1, "left_by": key, "right_by": "k"}
        return sj.join(source.frames(streaming=True), **options)

    source.run(joined(2))
    source.run(joined(2))
    with pytest.raises(Exception, match="this state was made by another join: expressions was"):
        source.run(joined(3))


def test_late_rows_are_not_joined_where_a_second_stage_decides(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    options = {"time": "ts", "window": WINDOW, "where": sj.theta("l.v < r.v"), "lateness": GRACE, "late": "join"}
    with pytest.raises(sj.UnsupportedError, match='late="join" in a left join whose rows go to several buckets'):
        sj.join(source.frames(streaming=True), how="left", buckets=2, **options)
    assert sj.join(source.frames(streaming=True), how="left", buckets=1, **options).isStreaming


def test_a_session_without_rocksdb_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    setting = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(sj.CallError, match="keep their state in RocksDB"):
            sj.join(source.frames(streaming=True), time="ts", window=WINDOW, by="k", lateness=GRACE)
    finally:
        spark.conf.set(setting, before)


# -- several operators in one query ------------------------------------------------------------------------------------


def test_a_join_of_a_join(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(12), Source(spark, tmp_path)
    source.add([random_rows(rng, 50), random_rows(rng, 50)], 4)
    source.close()

    def joined(streaming: bool) -> DataFrame:
        left, right = source.frames(streaming=streaming)
        options = {"window": WINDOW, "by": "k", "buckets": 2}
        first = sj.join([left, right], time="ts", **options, lateness=GRACE, how="left").drop("ts_right", "valid_to")
        first = first.select("k", F.col("id").alias("first_id"), F.col("id_right").alias("second_id"), "valid_from")
        again = left.select("k", "id", "ts")
        # How late the first join's results can be is known: only the other input has to say it.
        times = {"time": ["valid_from", "ts"], "lateness": [None, GRACE], "validity": ("from", "to")}
        return sj.join([first, again], **times, **options, suffix="_2")

    def without_closing(frame: DataFrame) -> Any:
        return counted(frame.where("first_id >= 0"))

    expected = without_closing(joined(False))
    query = source.start(joined(True))
    query.awaitTermination()
    written = spark.read.schema(joined(True).schema).parquet(str(source.out))
    assert without_closing(written) == expected
    figures = [sj.from_progress(progress) for progress in query.recentProgress]
    assert sum(each["rows_out"] for each in figures) == written.count(), "not those that the first hands to the second"
    read = [source.frame(number, streaming=False).count() for number in (0, 1, 0)]
    assert sum(each["rows_in"] for each in figures) == sum(read)
    between = [[join["between"] for join in each["joins"].values()] for each in figures]
    handed = sum(first["out"] for first, _ in between)
    assert handed == sum(second["in"] for _, second in between) > 0
    assert not any(first["in"] or second["out"] for first, second in between)


def test_how_late_results_are_does_not_depend_on_their_names(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    windows, lateness = [sj.Range("1 s"), sj.Range("10 minutes")], [sj.Grace("1 hour"), sj.Grace("0 s")]
    frames = source.frames(streaming=True)
    first = sj.join(frames, time="ts", window=windows, by="k", lateness=lateness)
    renamed = first.drop("ts").withColumnRenamed("ts_right", "ts")
    assert sj.output_delay(renamed, "ts") == sj.output_delay(first, "ts_right") != sj.output_delay(first, "ts")
    again = sj.join([renamed.select("k", "ts"), frames[0]], time="ts", window=WINDOW, by="k", lateness=[None, GRACE])
    made = plan_of(first)
    expected = delay.output_delay(made.query, made.plan, "ts_right")
    assert plan_of(again).plan.sources[0].lateness == Slack(expected)


def test_timers_of_an_earlier_join_are_known(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.close()
    options = {"window": WINDOW, "by": "k"}
    frames = source.frames(streaming=True)
    for timers in (False, True):
        idle = {"idle_after": "1 minute", "timers": True} if timers else {}
        first = sj.join(frames, time="ts", lateness=GRACE, **idle, **options).select("k", "valid_from")
        times = {"time": ["valid_from", "ts"], "lateness": [None, GRACE], "validity": ("from", "to")}
        again = sj.join([first, frames[0]], **times, **options)
        assert uses_timers(first.schema) == uses_timers(again.schema) == timers


def test_an_aggregation_after_a_join_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(13), Source(spark, tmp_path)
    source.add([random_rows(rng, 80), random_rows(rng, 80)], 5)
    source.add([[row(0, 9, 10_000)], [row(0, 9, 10_000)]])  # a pair far in the future closes the windows before it

    def windows(joined: DataFrame) -> DataFrame:
        return joined.groupBy(F.window("valid_from", "10 seconds")).agg(F.count("*").alias("pairs"))

    options = {"time": "ts", "window": WINDOW, "by": "k", "buckets": 2, "lateness": GRACE}
    joined = sj.join(source.frames(streaming=True), **options)
    counts = windows(joined.withWatermark("valid_from", sj.output_delay(joined)))
    query = source.start(counts.select("window.start", "pairs"))
    query.awaitTermination()
    operators = [operator for batch in query.recentProgress for operator in batch["stateOperators"]]
    assert operators
    assert not any(operator["numRowsDroppedByWatermark"] for operator in operators)
    expected = windows(sj.join(source.frames(streaming=False), **options)).select("window.start", "pairs")
    # The last window stays open: no later row moves the watermark past it.
    last = expected.agg(F.max("start")).first()[0]
    found = counted(spark.read.parquet(str(source.out)))
    assert found == counted(expected.where(F.col("start") != last))


def test_a_join_inside_foreach_batch(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(14), Source(spark, tmp_path)
    source.add([random_rows(rng, 30), random_rows(rng, 30)], 1)
    table = source.frame(1, streaming=False)
    target = str(tmp_path / "joined")

    def join_batch(batch: DataFrame, number: int) -> None:
        sj.join([batch, table], time="ts", window=WINDOW, by="k").write.mode("append").parquet(target)

    query = source.frame(0, streaming=True).writeStream.foreachBatch(join_batch).trigger(availableNow=True).start()
    query.awaitTermination()
    expected = counted(sj.join([source.frame(0, streaming=False), table], time="ts", window=WINDOW, by="k"))
    assert counted(spark.read.parquet(target)) == expected


def test_figures_reach_the_query_and_its_listeners(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(15), Source(spark, tmp_path)
    source.add([random_rows(rng, 50), random_rows(rng, 50)], 3)
    joined = sj.join(source.frames(streaming=True), time="ts", window=WINDOW, by="k", lateness=GRACE, buckets=2)
    query = source.start(joined)
    query.awaitTermination()
    batches = [sj.from_progress(progress) for progress in query.recentProgress]
    assert sum(batch["rows_in"] for batch in batches) == 100
    assert sum(batch["rows_out"] for batch in batches) == spark.read.parquet(str(source.out)).count()
    last = sj.progress(query)
    assert last["batch"] == batches[-1]["batch"]
    ((name, figures),) = last["joins"].items()
    assert name.startswith("streamjoin-")
    assert all(figures[f"state_{what}"] > 0 for what in ("rows", "bytes", "runs"))
    assert all(lag >= SLACK for lag in figures["lag"])
    assert all(seconds > 0 for seconds in figures["seconds"].values())


# -- the end of a finite stream ----------------------------------------------------------------------------------------


def test_a_finished_query_cannot_go_on(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(16), Source(spark, tmp_path)
    source.add([random_rows(rng, 30), random_rows(rng, 30)], 2)
    options = {"time": "ts", "window": WINDOW, "by": "k", "lateness": GRACE, "emit": "ordered", "buckets": 2}
    joined = sj.join(source.frames(streaming=True), **options)
    source.run(joined)
    held = counted(sj.finish(source.checkpoint))
    assert held, "ordered results wait"
    assert counted(sj.finish(source.checkpoint)) == held, "reading it again changes nothing"
    source.add([random_rows(rng, 5), random_rows(rng, 5)])
    with pytest.raises(Exception, match=r"this query was ended by sj\.finish"):
        source.run(joined)


def test_joins_that_read_each_other_are_finished_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(17), Source(spark, tmp_path)
    source.add([random_rows(rng, 40), random_rows(rng, 40)], 3)
    options = {"by": "k", "buckets": 2, "window": WINDOW}

    def joined(streaming: bool, between: bool = False) -> DataFrame:
        left, right = source.frames(streaming=streaming)
        first = sj.join([left, right], time="ts", how="left", lateness=GRACE, validity=("f", "t"), **options)
        first = first.where("id >= 0") if between else first
        times = {"time": ["f", "ts"], "lateness": [None, GRACE]}
        return sj.join([first, right], how="left", suffix="_2", **times, **options)

    assert source.finished(joined(True)) == counted(joined(False))
    other = Source(spark, tmp_path / "between")
    other.add([random_rows(rng, 40), random_rows(rng, 40)])
    other.run(joined(True, between=True))
    with pytest.raises(sj.UnsupportedError, match="2 joins that do not read each other's results directly"):
        sj.finish(other.checkpoint)


def test_a_query_that_was_stopped_within_a_micro_batch_is_not_finished(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(18), Source(spark, tmp_path)
    source.add([random_rows(rng, 30), random_rows(rng, 30)], 2)
    options = {"time": "ts", "window": WINDOW, "by": "k", "lateness": GRACE, "how": "left", "buckets": 2}
    joined = sj.join(source.frames(streaming=True), **options)
    source.run(joined)
    (source.checkpoint / "commits" / "1").unlink()  # as if it had been killed before it wrote this
    with pytest.raises(sj.CallError, match=r"micro-batch 1 of the query of .* was begun and is not over"):
        sj.finish(source.checkpoint)
    assert source.finished(joined) == counted(sj.join(source.frames(streaming=False), **options))


def test_two_joins_that_are_alike_are_not_finished(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(19), Source(spark, tmp_path)
    source.add([random_rows(rng, 30), random_rows(rng, 30)])
    left, right = source.frames(streaming=True)
    options = {"time": "ts", "window": WINDOW, "by": "k", "lateness": GRACE, "buckets": 2}
    source.run(sj.join([left, right], **options).unionAll(sj.join([right, left], **options)))
    with pytest.raises(sj.UnsupportedError, match="has two joins that are alike"):
        sj.finish(source.checkpoint)
    source.add([random_rows(rng, 5), random_rows(rng, 5)])
    source.run(sj.join([left, right], **options).unionAll(sj.join([right, left], **options)))  # it can still go on


def test_only_a_checkpoint_of_ours_can_be_finished(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(sj.CallError, match="no state of a"):
        sj.finish(tmp_path)
    source = Source(spark, tmp_path)
    source.add([[row(1, 1, 1)], []])
    counts = source.frame(0, streaming=True).withWatermark("ts", "1 second").groupBy("ts").count()
    query = counts.writeStream.format("noop").option("checkpointLocation", str(source.checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    with pytest.raises(sj.CallError, match="has no state of a streamjoin call"):
        sj.finish(source.checkpoint)
