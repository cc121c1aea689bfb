"""Wherever a column may stand, it is a name, SQL text or a Column; and what may stand where a frame stands."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.language.parameters import with_values

TIMED: dict[str, Any] = {"time": "ts", "window": sj.Range(5)}


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Names that differ in case only, times, and numbers."""
    made = [(1, "a", 1, 5, 1.0), (2, "A", 3, 9, 2.0), (3, "b", 4, 4, 3.0)]
    return spark.createDataFrame(made, "id int, who string, ts long, until long, v double")


def ways(text: str) -> list[Any]:
    """SQL text, and the Column of it."""
    return [text, F.expr(text)]


def result(frame: DataFrame, *columns: str) -> Counter[Any]:
    """The rows of a result."""
    return Counter(tuple(row) for row in frame.select(*columns).collect())


# A call with a column in each parameter that takes one, beside a frame that has it as a column of its own.
CALLS: dict[str, tuple[str, Any]] = {
    "by": ("upper(who)", lambda a, c: sj.join(a, a, by=c)),
    "left_by": ("upper(who)", lambda a, c: sj.join(a, a, left_by=c, right_by=F.upper("who"))),
    "time": ("ts * 2", lambda a, c: sj.join(a, a, time=c, window=sj.Range(3), by="who")),
    "Validity": ("ts + 1", lambda a, c: sj.join(a, a, window=sj.Validity("ts", c), where="l.id <= r.id")),
    "Rows": ("upper(who)", lambda a, c: sj.join(a, a, time="ts", window=sj.Rows(1, by=c), where="l.id <= r.id")),
    "equals": ("upper(who)", lambda a, c: sj.join(a, a, where=sj.equals(c, c))),
    "band": ("v * 2", lambda a, c: sj.join(a, a, where=sj.band(c, below=2, above=0))),
    "within": ("v * 2", lambda a, c: sj.join(a, a, where=sj.within((c, "v"), radius=2.3))),
    "interval": ("ts * 2", lambda a, c: sj.join_interval(a, a, on=c, lower=-3, upper=0)),
    "on of a band": ("v * 2", lambda a, c: sj.join_band(a, a, on=c, below=2, above=0)),
    "on of an overlap": ("until + 1", lambda a, c: sj.join_overlap(a, a, on=("ts", c))),
    "on of a radius": ("v * 2", lambda a, c: sj.join_within(a, a, on=[c], radius=2)),
    "on of asof": ("ts * 2", lambda a, c: sj.join_asof(a, a, left_on="ts", right_on=c, tolerance=4)),
    "tie_break": ("-v", lambda a, c: sj.join_asof(a, a.withColumn("ts", F.lit(1)), on="ts", tie_break=c)),
    "on of nearest": ("v * 2", lambda a, c: sj.join_nearest(a, a, left_on="v", right_on=c, within=3)),
    "ties of nearest": ("-v", lambda a, c: sj.join_nearest(a, a, on="id - id", within=1, tie_break=c)),
    "time of nearest": ("ts * 2", lambda a, c: sj.join_nearest(a, a, on="v", within=9, time=["ts", c], tolerance=3)),
}


@pytest.mark.parametrize("what", CALLS)
def test_text_and_column_mean_what_a_column_of_the_frame_would(rows: DataFrame, what: str) -> None:
    text, call = CALLS[what]
    named = result(call(rows.withColumn("computed", F.expr(text)), "computed"), "id", "id_right")
    assert named
    for column in ways(text):
        joined = call(rows, column)
        assert "computed" not in joined.columns
        assert result(joined, "id", "id_right") == named


def test_a_best_match_goes_by_text_which_can_be_a_key_of_a_dict(rows: DataFrame) -> None:
    best = sj.join_best_match(rows, rows, on={("v", "v * 2"): 1.5, "ts": 9})
    assert result(best, "id", "id_right") == Counter([(1, 1), (2, 1), (3, 2)])


def test_groups_and_aggregates_are_computed_and_called_what_spark_calls_them(rows: DataFrame) -> None:
    for group in ways("upper(who)"):
        for column in ways("v * 2"):
            found = sj.aggregate(rows, {"most": ("max", column)}, by=group, **TIMED)
            assert found.columns == ["upper(who)", "most", "valid_from", "valid_to"]
            assert result(found, "upper(who)", "most", "valid_from") == Counter(
                [("A", 2.0, 1), ("A", 4.0, 3), ("A", 4.0, 6), ("B", 6.0, 4)]
            )
    named = sj.aggregate(rows, {"n": "count"}, by=["id % 2 AS odd", F.upper("who").alias("name")], **TIMED)
    assert named.columns == ["odd", "name", "n", "valid_from", "valid_to"]


def test_a_column_that_is_nothing_else_is_that_column(rows: DataFrame) -> None:
    joined = sj.join(rows, rows, by=[F.col("who"), rows.id])
    assert joined.columns == sj.join(rows, rows, by=["who", "id"]).columns
    slow = rows.withColumn("at", F.timestamp_seconds("ts"))
    assert sj.aggregate(slow, {"n": "count"}, by=F.col("WHO"), **TIMED).columns[0] == "who"


def test_the_watermark_of_a_column_is_known_however_the_column_is_given(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "7 seconds")
    for column in ("timestamp", F.col("timestamp"), stream.timestamp):
        joined = sj.join_interval(stream, stream, on=column, by="value", lower="0 s", upper="1 s")
        assert "rows may be 7 s late" in sj.explain(joined)


def test_a_name_that_is_a_column_wins_over_sql(spark: SparkSession) -> None:
    odd = spark.createDataFrame([(1, 5), (2, 6)], "`id + 1` int, id int")
    assert result(sj.join(odd, odd, left_by="id + 1", right_by="id - 4"), "id", "id_right") == Counter([(5, 5), (6, 6)])


def test_of_a_literal_nothing_is_a_column(spark: SparkSession) -> None:
    odd = spark.createDataFrame([("x", True, 1)], "who string, `true` boolean, id int")
    assert sj.join(odd, odd, left_by=F.lit("who"), right_by="who").count() == 0
    assert sj.join(odd, odd, left_by=F.lit(False), right_by="true").count() == 0


WRONG: dict[str, tuple[Any, str]] = {
    "upper(whom)": (
        "upper(whom)",
        r"input 0 has no column 'upper\(whom\)', and cannot evaluate it: .*`whom` cannot be resolved",
    ),
    "upper(": ("upper(", r"input 0 has no column 'upper\(', and cannot evaluate it: .*Syntax error"),
    "two words": ("who name", "input 0 has no column 'who name'"),
    "several columns": ("stack(2, 1, 2, 3, 4)", r"input 0: 'stack\(2, 1, 2, 3, 4\)' gives several columns"),
    "an aggregate": ("max(v)", r"input 0 has no column 'max\(v\)', and cannot evaluate it"),
}


@pytest.mark.parametrize("what", WRONG)
def test_text_that_is_neither_name_nor_sql_is_refused(rows: DataFrame, what: str) -> None:
    column, message = WRONG[what]
    with pytest.raises(sj.CallError, match=message) as refused:
        sj.join(rows, rows, left_by=column, right_by="id")
    assert "== SQL ==" not in str(refused.value)


def test_a_column_of_another_frame_is_refused(spark: SparkSession, rows: DataFrame) -> None:
    other: Column = spark.range(3).withColumnRenamed("id", "elsewhere").elsewhere
    with pytest.raises(sj.CallError) as refused:
        sj.join(rows, rows, left_by=other, right_by="id")
    assert refused.value.hint == "a Column of another frame means nothing here: write F.col(...), or its name"


def test_conditions_are_text_without_a_word_around_it(rows: DataFrame) -> None:
    text = sj.join(rows, rows, where="l.id < r.id AND l.who <> r.who", by="ts - ts")
    assert result(text, "id", "id_right") == Counter([(1, 2), (1, 3), (2, 3)])
    both = sj.join_band(rows, rows, on="v", below=0, above=1, where="l.id <> r.id")
    assert result(both, "id", "id_right") == Counter([(1, 2), (2, 3)])


# -- frames ------------------------------------------------------------------------------------------------------------

TWO = {
    "join": {"by": "id"},
    "join_interval": {"on": "ts", "lower": 0, "upper": 1},
    "join_band": {"on": "v", "below": 0, "above": 1},
    "join_overlap": {"on": ("ts", "until")},
    "join_within": {"on": "v", "radius": 1},
    "join_asof": {"on": "ts"},
    "join_best_match": {"on": {"v": 1.0}},
    "join_nearest": {"on": "v", "within": 1},
    "union": TIMED,
    "except_": TIMED,
    "intersect": TIMED,
}


@pytest.mark.parametrize("name", TWO)
def test_two_frames_come_one_after_the_other_or_in_a_list(rows: DataFrame, name: str) -> None:
    function, options = getattr(sj, name), TWO[name]
    plans = {sj.explain(function(*frames, **options)) for frames in ((rows, rows), ([rows, rows],), ((rows, rows),))}
    assert len(plans) == 1
    if name != "union":
        assert sj.explain(function(left=rows, right=rows, **options)) in plans


NOT_FRAMES = {
    "pandas": (pd.DataFrame({"id": [1]}), "pandas.DataFrame", "spark.createDataFrame(frame)"),
    "arrow": (pa.table({"id": [1]}), "pyarrow.Table", "spark.createDataFrame(table)"),
    "polars": (
        type("DataFrame", (), {"__module__": "polars.dataframe.frame"})(), "polars.DataFrame",
        "spark.createDataFrame(frame.to_arrow())",
    ),
    "text": ("rows.parquet", "str", "spark.read.parquet(path), or spark.readStream for a stream"),
    "path": (
        Path("rows.parquet"), "pathlib.PosixPath", "spark.read.parquet(str(path)), or spark.readStream for a stream",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", NOT_FRAMES)
def test_what_is_no_frame_of_sparks_is_refused_with_the_way_to_make_one(
    spark: SparkSession, rows: DataFrame, what: str
) -> None:
    given, called, fix = NOT_FRAMES[what]
    calls: dict[str, Any] = {
        "input 1": lambda: sj.join(rows, given, by="id"),
        "input 0": lambda: sj.distinct(given, **TIMED),
        "R, which is no option of cql but a stream,": lambda: sj.cql(spark, "SELECT * FROM R [NOW]", R=given),
    }
    for where, call in calls.items():
        with pytest.raises(sj.CallError) as refused:
            call()
        assert refused.value.message == f"{where} must be a Spark DataFrame, got {called}"
        assert refused.value.hint == f"make one of it: {fix}"


# -- parameters --------------------------------------------------------------------------------------------------------

VALUES: list[Any] = [
    5, -5, 2**40, 1.5, -1e300, float("inf"), True, None, Decimal("1.50"), Decimal("-0.01"), "it's",
    "a\\b\n'; --", b"ab",
    date(2024, 2, 29), datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))),
    timedelta(days=1, seconds=2, microseconds=3), timedelta(seconds=-1),
]  # fmt: skip


def test_parameters_have_the_types_and_values_that_spark_gives_them(spark: SparkSession) -> None:
    args = {f"a{number}": value for number, value in enumerate(VALUES)}
    theirs = spark.sql(f"SELECT {', '.join(f':{name} AS {name}' for name in args)}", args=args)
    ours = spark.range(1).select(*(F.expr(with_values(f":{name}", {name: args[name]})[0]).alias(name) for name in args))
    assert [field.dataType for field in ours.schema] == [field.dataType for field in theirs.schema]
    assert ours.collect() == theirs.collect()


def test_a_query_takes_parameters(spark: SparkSession, rows: DataFrame) -> None:
    text = "SELECT id, who || :mark AS name FROM R [RANGE :size] WHERE v > ?".replace("?", ":least")
    found = sj.cql(spark, text, args={"mark": "'", "size": 5, "least": 1.5}, R=rows)
    assert result(found, "id", "name", "valid_to") == Counter([(2, "A'", 8), (3, "b'", 9)])
    with pytest.raises(sj.CallError, match=r"cql has no option 'arg'. Hint: did you mean 'args'"):
        sj.cql(spark, text, arg={"mark": 1}, R=rows)  # type: ignore[arg-type]
