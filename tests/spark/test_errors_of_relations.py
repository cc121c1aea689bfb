"""A wrong call fails when it is made: the functions over lifetimes, and joins with row windows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.sql import SparkSession

import streamjoin as sj
from tests.spark.wrong_calls import Call, Frames, Wrong, check, make_frames, timed

A_WINDOW = 'window=sj.Range("5 seconds"), sj.Rows(100), or sj.Validity("from", "to")'
A_DICT = '{"mean": ("avg", "speed"), "n": "count"}'


def aggregate(aggregates: Any, axis: str = "long", **options: Any) -> Call:
    chosen = {"time": "ts", "window": sj.Now(), **options}
    return lambda frames: sj.aggregate(getattr(frames, axis), aggregates, **chosen)


def distinct(**options: Any) -> Call:
    return lambda frames: sj.distinct(frames.long, **options)


def of_frames(function: Any, *columns: list[str], **options: Any) -> Call:
    """A set operator over selections of the same frame."""
    chosen = {"time": "ts", "window": sj.Now(), **options}
    return lambda frames: function([frames.long.select(*names) for names in columns], **chosen)


AGGREGATES: dict[str, Wrong] = {
    "nothing": (aggregate({}), "aggregates is a dict from names to functions and columns, got {}", A_DICT),
    "no dict": (
        aggregate(["count"]), "aggregates is a dict from names to functions and columns, got ['count']", A_DICT,
    ),
    "neither a function nor a pair": (
        aggregate({"n": 3}), "the aggregate 'n' is a function, or a function and a column, got 3", A_DICT,
    ),
    "a function and two columns": (
        aggregate({"n": ("sum", "v", "speed")}),
        "the aggregate 'n' is a function, or a function and a column, got ('sum', 'v', 'speed')", A_DICT,
    ),
    "an unknown function": (
        aggregate({"m": ("median", "v")}), "unknown aggregate 'median'", "use one of count, sum, avg, min, max, stddev",
    ),
    "a function that needs a column": (
        aggregate({"m": "sum"}), "sum needs a column", "only count works without one",
    ),
    "a misspelt column": (
        aggregate({"m": ("sum", "spede")}), "input 0 has no column 'spede'", "did you mean 'speed'?",
    ),
    "a misspelt group": (aggregate({"n": "count"}, by="nam"), "input 0 has no column 'nam'", "did you mean 'name'?"),
    "a group twice": (aggregate({"n": "count"}, by=["name", "name"]), "by has 'name' twice", "name every group once"),
    "a group that is no name": (
        aggregate({"n": "count"}, by=3), "a column of input 0 must be a name, SQL text or a Column, got 3", None,
    ),
    "two results of one name": (
        aggregate({"name": "count"}, by="name"), "the result would have two columns 'name'",
        "give the aggregate another name",
    ),
    "a result named like the validity": (
        aggregate({"valid_to": "count"}),
        "the result would have two columns 'valid_to': the query's, and the one that says when it holds",
        'rename it with AS, or name the validity with validity=("from", "to")',
    ),
}  # fmt: skip

WINDOWS: dict[str, Wrong] = {
    "no window": (distinct(time="ts"), "a window says how long a row is valid, got window=None", A_WINDOW),
    "a window that is none": (
        distinct(time="ts", window=5), "a window says how long a row is valid, got window=5", A_WINDOW,
    ),
    "no time": (distinct(window=sj.Now()), "a window needs a time column", 'time="ts"'),
    "a time beside a validity": (
        distinct(time="ts", window=sj.Validity("ts", "speed")), "a Validity names its own time columns",
        "leave time= out",
    ),
    "a misspelt time": (distinct(time="tss", window=sj.Now()), "input 0 has no column 'tss'", "did you mean 'ts'?"),
    "a time that is no column": (
        distinct(time=3, window=sj.Now()), "a column of input 0 must be a name, SQL text or a Column, got 3", None,
    ),
    "no buckets": (distinct(time="ts", window=sj.Now(), buckets=0), "buckets must be at least 1, got 0", None),
}  # fmt: skip

WINDOWS["a changelog in order"] = (
    distinct(time="ts", window=sj.Now(), output="changelog", emit="ordered"),
    'output="changelog" cannot be combined with emit="ordered"',
    "a correction comes after the row that it corrects, so it cannot be in order of time",
)

SETS: dict[str, Wrong] = {
    "no list": (
        lambda frames: sj.union(3, time="ts", window=sj.Now()),  # type: ignore[arg-type]
        "input 0 must be a Spark DataFrame, got int", None,
    ),
    "no frames": (
        lambda frames: sj.union([], time="ts", window=sj.Now()), "union takes frames, got none",
        "sj.union(a, b, ...)",
    ),
    "one frame": (of_frames(sj.except_, ["ts", "v"]), "except_ takes two frames, got 1", "sj.except_(a, b, ...)"),
    "three frames": (
        of_frames(sj.intersect, ["ts"], ["ts"], ["ts"]), "intersect takes two frames, got 3",
        "sj.intersect(a, b, ...)",
    ),
    "more windows than frames": (
        of_frames(sj.union, ["ts"], ["ts"], window=[sj.Now()] * 3),
        "window needs one value, or one per input, got 3 for 2 inputs", None,
    ),
    "other columns": (
        of_frames(sj.union, ["ts", "v"], ["ts", "v", "name"]),
        "UNION needs parts with as many columns each, got 1 and 2", "select the same columns on both sides",
    ),
    "other types": (
        of_frames(sj.except_, ["ts", "v"], ["ts", "name"]),
        "EXCEPT compares 'v' (double) and 'name' (string), which have no common type", "cast one of them",
    ),
    "other axes": (
        lambda frames: sj.union([frames.long, frames.timestamp], time="ts", window=sj.Now()),
        "the inputs' times have different types: that of input 1 is timestamp, and another one's is bigint",
        "cast one of them: they must count the same thing",
    ),
    "times with and without a zone": (
        lambda frames: sj.union([frames.timestamp, frames.ntz], time="ts", window=sj.Now()),
        "the inputs' times have different types: that of input 1 is timestamp_ntz, and another one's is timestamp",
        "cast one of them: they must count the same thing",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Frames:
    return make_frames(spark)


CALLS = AGGREGATES | {f"window: {name}": wrong for name, wrong in WINDOWS.items()}
CALLS |= {f"sets: {name}": wrong for name, wrong in SETS.items()}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls(frames: Frames, name: str) -> None:
    check(frames, CALLS[name], sj.CallError)


UNSUPPORTED: dict[str, Wrong] = {
    "a sum of text": (
        aggregate({"m": ("sum", "name")}), "sum of column 'name', which is string", "cast the column to a number first",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_done_yet(frames: Frames, name: str) -> None:
    check(frames, UNSUPPORTED[name], sj.UnsupportedError)


ROW_WINDOWS: dict[str, Wrong] = {
    "one frame": (
        lambda frames: sj.join([frames.long], time="ts", window=sj.Rows(3)),
        "a join needs two frames, got 1", "sj.join(a, b, ...)",
    ),
    "a row window beside none": (
        timed([sj.Rows(3), None]), "input 1 has a time but no window",
        'say how long a row is valid, window=sj.Range("2 seconds"), or use sj.join_interval',
    ),
    "a misspelt key": (timed(sj.Rows(3), by="nam"), "input 0 has no column 'nam'", "did you mean 'name'?"),
    "a misspelt key on the right": (
        timed(sj.Rows(3), left_by="v", right_by="w"), "input 1 has no column 'w'", "it has 'ts', 'speed', 'name', 'v'",
    ),
    "a misspelt column of the window": (
        timed(sj.Rows(3, by="nam")), "input 0 has no column 'nam'", "did you mean 'name'?",
    ),
    "more left than right keys": (
        timed(sj.Rows(3), left_by=["ts", "v"], right_by="ts"),
        "left_by and right_by must be equally many, got 2 and 1", None,
    ),
    "by and left_by": (
        timed(sj.Rows(3), by="ts", left_by="ts"), "give either by= or left_by= and right_by=, not both", None,
    ),
    "a misspelt column of a condition": (
        timed(sj.Rows(3), where=sj.band("spede", "v", below=1, above=1)),
        "input 0 has no column 'spede'", "did you mean 'speed'?",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROW_WINDOWS)
def test_wrong_joins_with_row_windows(frames: Frames, name: str) -> None:
    check(frames, ROW_WINDOWS[name], sj.CallError)


def test_rows_with_maps_are_not_compared_whoever_makes_them(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1L AS ts, '{}' AS s, map('a', 1) AS m")
    options: dict[str, Any] = {"time": "ts", "window": sj.Now()}
    calls: dict[str, Any] = {
        "DISTINCT": lambda: sj.distinct(frame, **options),
        "EXCEPT": lambda: sj.except_([frame, frame], **options),
        "INTERSECT": lambda: sj.intersect([frame, frame], **options),
        "DISTINCT ": lambda: sj.union([frame, frame], all=False, **options),
        "GROUP BY": lambda: sj.aggregate(frame, {"n": "count"}, by="m", **options),
        "DISTINCT over 'm', which is map<string,int>:": lambda: sj.cql(
            spark, "SELECT DISTINCT from_json(s, 'map<string,int>') AS m FROM R [NOW]", R=frame, time="ts"
        ),
    }
    for words, call in calls.items():
        with pytest.raises(sj.UnsupportedError, match=f"^{re.escape(words)}.*maps are not compared"):
            call()
    assert sj.union([frame, frame], **options).count() == 2
