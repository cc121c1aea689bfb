"""`sj.explain` says in words what a joined frame will do."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.spark import marks


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, 5, 1.5, 2.5)], "k int, ts long, lo double, hi double")


def _lines(joined: DataFrame) -> dict[str, str]:
    """The lines of an explanation by their heading."""
    return {line[:15].strip(): line[15:] for line in sj.explain(joined).splitlines()}


def test_equality_keys_go_by_hash(frame: DataFrame) -> None:
    lines = _lines(sj.join([frame, frame], time="ts", window=sj.Range(5), by="k", how="full", buckets=4))
    assert lines["operator"] == "temporal join, how=full, outer by row"
    assert lines["matches by"] == "equal k"
    assert lines["order"] == "runs sorted by (key, ts)"
    assert lines["buckets"] == "hash of the equality keys over 4 buckets, no row twice"
    assert "verdict" not in lines
    assert lines["input 0"] == "Range(5): a row is kept until the other input's progress reaches its end"


def test_the_session_may_say_how_much_memory_there_is(frame: DataFrame) -> None:
    """To calls that do not say it."""
    session = frame.sparkSession

    def memory(**options: Any) -> str:
        joined = sj.join([frame, frame], time="ts", window=sj.Range(5), by="k", buckets=2, **options)
        return _lines(joined).get("memory", "").partition(";")[0]

    assert memory() == ""
    session.conf.set("spark.streamjoin.memory", "48 MB")
    try:
        assert memory() == "48 MB in each Python process"
        assert memory(memory="64 MB") == "64 MB in each Python process"
        session.conf.set("spark.streamjoin.memory", "plenty")
        with pytest.raises(sj.CallError, match="number of bytes with its unit, got 'plenty'"):
            memory()
    finally:
        session.conf.unset("spark.streamjoin.memory")


def test_one_bucket_needs_no_partitioning(frame: DataFrame) -> None:
    assert _lines(sj.join([frame, frame], time="ts", window=sj.Now(), buckets=1))["buckets"] == "one bucket"


def test_a_band_has_a_home(frame: DataFrame) -> None:
    lines = _lines(sj.join_band(frame, frame, on="lo", below=0.5, above=1, closed="left", how="left", buckets=3))
    assert lines["operator"] == "temporal join, how=left, outer by row, without validity"
    assert lines["matches by"] == "lo - lo in [-0.5, 1.0)"
    assert lines["buckets"].startswith(
        "grid of cell 12 over 3 buckets: input 0 in its home cell, input 1 in every cell"
    )
    assert "(about 1.12 copies of a row)" in lines["buckets"]
    assert "verdict" not in lines
    assert lines["input 1"] == "no time: every row is kept"


def test_the_home_of_a_right_join_is_the_right_input(frame: DataFrame) -> None:
    lines = _lines(sj.join_within(frame, frame, on=("lo", "hi"), radius=2, how="right", buckets=3))
    assert lines["matches by"] == "euclidean distance over (lo, hi) at most 2"
    assert "input 1 in its home cell, input 0 in every cell" in lines["buckets"]
    assert "verdict" not in lines


def test_where_both_must_know_their_partners_a_verdict_follows(frame: DataFrame) -> None:
    lines = _lines(sj.join_band(frame, frame, on="lo", below=1, above=1, how="full", buckets=3))
    assert lines["verdict"] == "a second stage decides which rows of input 1 met nobody"


def test_an_overlap_with_a_cell_goes_by_reference_point(frame: DataFrame) -> None:
    lines = _lines(sj.join([frame, frame], where=sj.overlaps("lo", "hi"), how="semi", buckets=3, cell=2.5))
    assert lines["matches by"] == "[lo, hi) overlaps [lo, hi)"
    assert lines["buckets"] == (
        "grid of cell 2.5 over 3 buckets: both inputs in every cell they cover, a pair is kept where the larger of its "
        "two starts lies"
    )
    assert lines["verdict"] == "a second stage decides which rows of input 0 met nobody"


def test_anything_else_goes_by_matrix(frame: DataFrame) -> None:
    joined = sj.join(
        [frame, frame], time="ts", window=sj.Fixed(4), where=sj.theta("l.lo < r.hi"), how="full", buckets=6
    )
    lines = _lines(joined)
    assert lines["matches by"] == "validity alone"
    assert lines["then tested"] == "ExpressionTest"
    assert lines["buckets"] == "matrix of 2 x 3 buckets: input 0 3 times, input 1 2 times"
    assert lines["verdict"] == "a second stage decides which rows of input 0 and input 1 met nobody"


def test_theta_of_an_inner_join_is_left_to_spark(frame: DataFrame) -> None:
    lines = _lines(sj.join([frame, frame], by="k", where=sj.theta("sqrt(l.lo) < r.hi")))
    assert lines["left to Spark"] == "sqrt(l.lo) < r.hi"
    assert "then tested" not in lines


def test_ordered_emission_says_what_it_holds(frame: DataFrame) -> None:
    ordered = {"time": "ts", "window": sj.Now(), "emit": "ordered"}
    assert _lines(sj.join([frame, frame], **ordered))["emission"] == "ordered, holding inputs"
    assert _lines(sj.join([frame, frame], by="k", **ordered))["emission"] == "ordered, holding outputs"
    assert _lines(sj.join([frame, frame], by="k", hold="inputs", **ordered))["emission"] == "ordered, holding inputs"


def test_an_interval_join_says_how_long_rows_are_kept(frame: DataFrame) -> None:
    lines = _lines(sj.join_interval(frame, frame, on="ts", lower=-3, upper=10))
    assert lines["matches by"] == "ts - ts in [-3, 10]"
    assert lines["input 0"] == "a row is kept until the other input's progress is 11 beyond its time"
    assert lines["input 1"] == "a row is kept until the other input's progress is 4 beyond its time"


def test_durations_have_units_where_time_has(frame: DataFrame) -> None:
    timed = frame.withColumn("ts", F.timestamp_seconds("ts"))
    lines = _lines(sj.join([timed, timed], time="ts", window=[sj.Range("90 s", slide="1 day"), sj.Now()]))
    assert lines["input 0"].startswith("Range(90 s, slide=1 d): ")
    lines = _lines(sj.join_interval(timed, timed, on="ts", lower="-1 ms", upper="2 hours"))
    assert lines["matches by"] == "ts - ts in [-1 ms, 2 h]"


def test_a_stream_says_how_late_results_can_be(spark: SparkSession, frame: DataFrame) -> None:
    ticks = spark.readStream.format("rate").load()
    timed = {"time": "timestamp", "window": sj.Range("5 s"), "lateness": sj.Grace("2 s")}
    joined = sj.join(ticks, ticks, by="value", **timed)
    assert sj.output_delay(joined) == "7001 milliseconds"
    assert _lines(joined)["delay"] == "results may be 7 s late, by valid_from"
    pairs = sj.join_interval(ticks, ticks, on="timestamp", lower="0 s", upper="1 s", lateness=sj.Grace("2 s"))
    assert _lines(pairs)["delay"] == "results may be 3 s late, by the time of the left input"
    query = "SELECT ISTREAM(value) FROM R [RANGE 5 SECONDS]"
    told = sj.cql(spark, query, time="timestamp", lateness=sj.Grace("2 s"), R=ticks)
    assert _lines(told)["delay"] == "results may be 0 s late, by _time"
    assert _lines(sj.join(frame, frame, by="k")).keys().isdisjoint({"delay"}), "of a batch nothing is late"


def test_a_stream_says_why_results_may_be_late_without_bound(spark: SparkSession, frame: DataFrame) -> None:
    ticks = spark.readStream.format("rate").load()
    timed = {"time": "timestamp", "window": sj.Range("5 s"), "lateness": sj.Grace("2 s")}
    each_once = sj.distinct(ticks, **timed)
    why = "no bound: DISTINCT: a row may be there for ever, as equal ones follow one another"
    assert _lines(each_once)["delay"] == why
    adapting = sj.join(ticks, ticks, by="value", **{**timed, "lateness": sj.MaxDelay()})
    why = "no bound: input 0 has a slack that adapts, so nobody knows how late results can be"
    assert _lines(adapting)["delay"] == why
    urgent = sj.join(ticks, ticks, by="value", priority="value", **timed)
    why = "no bound: Spark's watermark would follow the urgent ones, and drop others"
    assert _lines(urgent)["delay"] == why
    assert _lines(sj.join(ticks, frame, left_by="value", right_by="k"))["delay"] == "none: results have no time"


def test_the_plan_is_found_again_after_filter_and_with_column(frame: DataFrame) -> None:
    joined = sj.join([frame, frame], by="k")
    shaped = joined.where("lo > 1").withColumn("more", F.lit(1)).withColumn("lo", F.col("lo") * 2)
    assert sj.explain(shaped) == sj.explain(joined)
    assert sj.explain(joined.select("k", "lo")) == sj.explain(joined)


def test_the_last_join_is_the_one_explained(frame: DataFrame) -> None:
    first = sj.join([frame, frame], by="k").select("k", "lo")
    second = sj.join_band(first, frame, on="lo", below=1, above=1)
    assert _lines(second)["matches by"].startswith("lo - lo in")


@pytest.mark.parametrize("made", ["a frame of Spark", "a frame of Spark's own join"])
def test_a_frame_from_elsewhere_is_refused(frame: DataFrame, made: str) -> None:
    other = frame if made == "a frame of Spark" else frame.join(frame, "k")
    with pytest.raises(sj.CallError) as refused:
        sj.explain(other)
    assert refused.value.message == "this frame does not come from a streamjoin call"
    assert refused.value.hint == "explain the frame that sj.join returned, or one made from it"


def _another_program(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What remembers calls, as another program has it: it has seen none yet."""
    assert marks.__file__ is not None
    spec = importlib.util.spec_from_file_location(name, marks.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_files_of_another_program_are_no_result_of_this_one(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark keeps in files what is said of columns, so a program reads what another one has said."""
    ticks = spark.readStream.format("rate").load()
    timed = sj.join(ticks, ticks, by="value", time="timestamp", window=sj.Range("5 s"), lateness=sj.Grace("2 s"))
    plain = sj.join([frame, frame], by="k", time="ts", window=sj.Range(5))
    writer, reader = (_another_program(name, monkeypatch) for name in ("writer", "reader"))
    writer.remember(plain, marks.plan_of(plain)).write.parquet(str(tmp_path / "written"))
    own = reader.remember(timed, marks.plan_of(timed))  # like the other one's, its first
    read = spark.read.parquet(str(tmp_path / "written"))
    assert "valid_from" in read.columns
    for later in (read, read.selectExpr("valid_from + 1 AS then")):
        assert reader.plan_if_any(later) is None, "it has not made this call"
        assert writer.plan_if_any(later) is marks.plan_of(plain), "the file has kept whose it is"
    assert reader.delay_of_column(read.schema, "valid_from") is None, "nothing says how late its rows may be"
    assert reader.delay_of_column(own.schema, "valid_from") == 7_000_000


def test_a_number_that_files_have_kept_is_no_call(frame: DataFrame) -> None:
    """Calls had numbers before, from 1 on, in the metadata of columns."""
    for number in (1, marks.PLANS_KEPT):
        kept = frame.select(F.col("k").alias("k", metadata={"streamjoin.plan": number, "streamjoin.column": "k"}))
        for later in (kept, kept.selectExpr("k + 1 AS more")):
            assert marks.plan_if_any(later) is None
            with pytest.raises(sj.CallError, match="does not come from a streamjoin call"):
                sj.explain(later)


def test_the_calls_that_are_remembered_are_the_last_ones(frame: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    program = _another_program("program", monkeypatch)
    monkeypatch.setattr(program, "PLANS_KEPT", 2)
    joined = sj.join([frame, frame], by="k")
    made = [program.remember(joined, marks.plan_of(joined)) for _ in range(3)]
    assert [program.plan_by_mark(each.schema.fields[0]) is not None for each in made] == [False, True, True]
