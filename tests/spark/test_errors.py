"""A wrong call fails when it is made: it says what is wrong, what it got, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj

UNIT = 'write it as "5 seconds", "1 hour 30 minutes" or datetime.timedelta(seconds=5)'
NUMBER = "use the unit of the time column, for example 10_000; or make the column a timestamp"
NOW = "use Now() for the current instant only"


@dataclass(frozen=True)
class Frames:
    """The same row on several time axes."""

    long: DataFrame
    timestamp: DataFrame
    ntz: DataFrame
    date: DataFrame
    stream: DataFrame


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Frames:
    row = spark.createDataFrame([(1, 10, "x", 1.5)], "ts long, speed int, name string, v double")
    timestamp = row.withColumn("ts", F.timestamp_millis("ts"))
    return Frames(
        row,
        timestamp,
        timestamp.withColumn("ts", F.col("ts").cast("timestamp_ntz")),
        timestamp.withColumn("ts", F.to_date("ts")),
        spark.readStream.format("rate").load(),
    )


def _join(axis: str = "long", other: str | None = None, **options: Any) -> Callable[[Frames], DataFrame]:
    return lambda frames: sj.join([getattr(frames, axis), getattr(frames, other or axis)], **options)


def _short(function: Callable[..., DataFrame], axis: str = "long", **options: Any) -> Callable[[Frames], DataFrame]:
    return lambda frames: function(getattr(frames, axis), getattr(frames, axis), **options)


def _timed(window: Any, axis: str = "long", **options: Any) -> Callable[[Frames], DataFrame]:
    return _join(axis, time="ts", window=window, **options)


# What is called, the error's message, the error's hint.
Wrong = tuple[Callable[[Frames], DataFrame], str, str | None]

COLUMNS: dict[str, Wrong] = {
    "a misspelt key": (_join(by="spede"), "input 0 has no column 'spede'", "did you mean 'speed'?"),
    "a misspelt time": (
        _join(time="tss", window=sj.Now()), "input 0 has no column 'tss'", "did you mean 'ts'?",
    ),
    "a key with no near name": (
        _join(by="qqqq"), "input 0 has no column 'qqqq'", "it has 'ts', 'speed', 'name', 'v'",
    ),
    "a misspelt value on the right": (
        _short(sj.join_band, left_on="v", right_on="vv", below=1, above=1),
        "input 1 has no column 'vv'", "did you mean 'v'?",
    ),
    "a column that is neither name nor Column": (
        _join(left_by=3, right_by="ts"), "a column of input 0 must be a name or a Column, got 3", None,
    ),
    "a key that is text against a number": (
        _join(left_by="name", right_by="ts"),
        "equality compares 'name' (string) and 'ts' (bigint), which have no common type", "cast one of them",
    ),
    "a predicate on text against a number": (
        _join(where=sj.equals("v", "name")),
        "equality compares 'v' (double) and 'name' (string), which have no common type", "cast one of them",
    ),
    "by and left_by": (
        _join(by="ts", left_by="ts"), "give either by= or left_by= and right_by=, not both", None,
    ),
    "more left than right keys": (
        _join(left_by=["ts", "v"], right_by="ts"), "left_by and right_by must be equally many, got 2 and 1", None,
    ),
    "a key twice": (_join(by=["ts", "TS"]), "by has 'TS' twice", "name every key once"),
    "by with something else than names": (
        _join(by=3), "by takes column names, got 3", "use left_by= and right_by= for expressions",
    ),
}  # fmt: skip

TIME: dict[str, Wrong] = {
    "timestamps with and without zone": (
        _join("timestamp", "ntz", time="ts", window=sj.Now()),
        "the inputs' times have different types: timestamp and timestamp_ntz",
        "cast one of them: they must count the same thing",
    ),
    "a timestamp and a number": (
        _join("timestamp", "long", time="ts", window=sj.Now()),
        "the inputs' times have different types: timestamp and bigint",
        "cast one of them: they must count the same thing",
    ),
    "a date and a timestamp": (
        _join("date", "timestamp", time="ts", window=sj.Now()),
        "the inputs' times have different types: date and timestamp",
        "cast one of them: they must count the same thing",
    ),
    "text as time": (
        _join(time="name", window=sj.Now()),
        "time column 'name' of input 0 has type string, which is no time axis",
        "use a timestamp (with or without zone), a date or an integer column; to_timestamp(...) makes one",
    ),
    "a window without time": (_join(window=sj.Now()), "input 0 has a window but no time", 'give time="ts"'),
    "a time without window": (
        _join(time="ts"), "input 0 has a time but no window",
        'say how long a row is valid, window=sj.Range("2 seconds"), or use sj.join_interval',
    ),
    "time on one input only": (
        _join(time=["ts", None], window=[sj.Now(), None]),
        "either both inputs have a time or none", "give time= and window= one per input",
    ),
    "a validity beside a time": (
        _timed(sj.Validity("ts", "speed")), "Validity brings its own time", "leave time= out for this input",
    ),
    "a validity of two types": (
        _join(window=sj.Validity("ts", "speed")),
        "the two ends of a validity must have one type, got bigint and int", "cast one of them",
    ),
    "text as window": (
        _timed("5 seconds"), "window must be a window, got '5 seconds'", 'for example window=sj.Range("2 seconds")',
    ),
    "three windows": (
        _timed([sj.Now()] * 3), "window needs one value, or one per input, got 3", None,
    ),
    "a negative range": (_timed(sj.Range(-1)), "window size must be positive, got -1", NOW),
    "an empty range": (_timed(sj.Range("0 s"), "timestamp"), "window size must be positive, got '0 s'", NOW),
    "a negative slide": (
        _timed(sj.Range(5, slide=-1)), "window slide must be positive, got -1",
        "leave slide out for a window that moves freely",
    ),
    "a negative fixed window": (_timed(sj.Fixed(-4)), "window size must be positive, got -4", NOW),
    "a duration on a numeric axis": (
        _timed(sj.Range("5 s")), "window size must be an integer on an integer time axis, got '5 s'", NUMBER,
    ),
    "a number on a timestamp axis": (
        _timed(sj.Range(5000), "timestamp"), "window size must say its unit on a timestamp or date axis, got 5000", UNIT,
    ),
    "a month": (
        _timed(sj.Range("1 month"), "timestamp"),
        "window size '1 month' is not a duration (months and years have no fixed length)", UNIT,
    ),
    "hours on a date axis": (
        _timed(sj.Fixed("36 hours"), "date"), "window size must be a whole number of days, got '36 hours'",
        "one tick of this time axis cannot be divided",
    ),
    "lateness that is no policy": (
        _timed(sj.Now(), lateness="5 s"), "lateness must be a policy, got '5 s'", 'lateness=sj.Grace("5 seconds")',
    ),
    "lateness of the wrong type": (
        _timed(sj.Now(), lateness=sj.Grace("5 s")),
        "lateness must be an integer on an integer time axis, got '5 s'", NUMBER,
    ),
    "negative lateness": (
        _timed(sj.Now(), lateness=sj.Grace(-5)), "lateness must not be negative, got -5", "Grace of zero expects order",
    ),
    "lateness without time": (
        _join(by="ts", lateness=sj.Grace(5)), "lateness needs a time", "give time= and window=",
    ),
    "lateness for three inputs": (
        _timed(sj.Now(), lateness=[sj.Grace(5)] * 3), "lateness needs one value, or one per input, got 3", None,
    ),
}  # fmt: skip

PREDICATES: dict[str, Wrong] = {
    "a negative radius": (
        _short(sj.join_within, on="v", radius=-1), "radius must not be negative, got -1", "a radius of 0 is equality",
    ),
    "a radius that is text": (
        _short(sj.join_within, on="v", radius="1"), "radius must be a finite number, got '1'", None,
    ),
    "a radius on text": (
        _short(sj.join_within, on=("v", "name"), radius=1), "a radius needs numbers, 'name' of input 0 is string",
        "cast the column to double",
    ),
    "other axes on the right": (
        _short(sj.join_within, left_on=("v", "ts"), right_on="v", radius=1),
        "within needs as many axes on both sides, got 2 and 1",
        'write within(("x", "y"), radius=5.0), or within(("x", "y"), ("px", "py"), radius=5.0)',
    ),
    "a globe with three axes": (
        _short(sj.join_within, on=("v", "v", "v"), radius=1, metric="haversine"),
        "haversine needs (latitude, longitude), got 3 axes", None,
    ),
    "a metric that does not exist": (
        _short(sj.join_within, on="v", radius=1, metric="euclid"),
        "metric must be one of euclidean, manhattan, chebyshev, haversine, got 'euclid'", None,
    ),
    "a band on text": (
        _short(sj.join_band, on="name", below=1, above=1), "a band needs numbers or times, 'name' of input 0 is string",
        "cast the column to a number",
    ),
    "a band's bound that is text": (
        _short(sj.join_band, on="v", below="1", above=1), "a band's bounds must be numbers on a double column, got '1'",
        "for example below=0.5, above=0.5",
    ),
    "a band's bound without unit": (
        _short(sj.join_band, "timestamp", on="ts", below=1, above=1),
        "a band's bound must say its unit on a timestamp or date axis, got 1", UNIT,
    ),
    "an empty band": (
        _short(sj.join_band, on="v", below=-2, above=1), "the band from -below = 2 to above = 1 is empty",
        "below and above count from the left value downwards and upwards",
    ),
    "bounds closed somehow": (
        _short(sj.join_band, on="v", below=1, above=1, closed="upper"),
        "closed must be one of both, left, right, neither, got 'upper'", None,
    ),
    "lower above upper": (
        _short(sj.join_interval, on="ts", lower=3, upper=1), "lower must not be above upper, got 3 and 1",
        "both are bounds of right - left; earlier right rows have negative bounds",
    ),
    "a lower bound of the wrong type": (
        _short(sj.join_interval, on="ts", lower="0 s", upper=1),
        "lower must be an integer on an integer time axis, got '0 s'", NUMBER,
    ),
    "an upper bound without unit": (
        _short(sj.join_interval, "timestamp", on="ts", lower="0 s", upper=1),
        "upper must say its unit on a timestamp or date axis, got 1", UNIT,
    ),
    "no upper bound": (
        _short(sj.join_interval, on="ts", lower=0, upper=None),
        "an interval join needs both bounds, got lower=0 and upper=None",
        'lower="0 seconds", upper="10 minutes": right - left lies between',
    ),
    "no bounds": (
        _short(sj.join_interval, on="ts", lower=None, upper=None),
        "an interval join needs both bounds, got lower=None and upper=None",
        'lower="0 seconds", upper="10 minutes": right - left lies between',
    ),
    "an interval join without times": (
        _short(sj.join_interval, lower=0, upper=1), "join_interval needs on=, or left_on= and right_on=",
        "give on= when the names are the same",
    ),
    "on and left_on": (
        _short(sj.join_band, on="v", left_on="v", below=1, above=1),
        "join_band needs on=, or left_on= and right_on=", "give on= when the names are the same",
    ),
    "an interval with one end": (
        _short(sj.join_overlap, on="ts"), "join_overlap needs the two ends of an interval, got 'ts'",
        'on=("start", "end")',
    ),
    "an overlap of text": (
        _short(sj.join_overlap, on=("name", "name")), "an overlap needs numbers or times, 'name' of input 0 is string",
        "cast the column to a number",
    ),
    "a condition in quotes": (
        _join(where="l.v < r.v"), "where must be a predicate, got 'l.v < r.v'",
        'write where=sj.equals("k") & sj.band("v", below=1, above=1), or sj.theta("l.a < r.b")',
    ),
    "theta with an unknown column": (
        _join(where=sj.theta("l.spede > 25")), "input 0 ('l') has no column 'spede'", "did you mean 'speed'?",
    ),
    "theta with a syntax error": (
        _join(where=sj.theta("l.speed > > 25")),
        "The expression is wrong at line 1, column 11:\n"
        "    l.speed > > 25\n"
        "              ^\n"
        "'>' is not expected here",
        "write one Spark SQL boolean expression, for example l.speed > 25 AND r.temperature > 12",
    ),
    "theta that is no condition": (
        _join(where=sj.theta("l.speed + 1")),
        "the expression must be a condition (boolean), got 'l.speed + 1', which is int",
        "compare it with something, as in l.speed > 0",
    ),
    "theta that Spark does not know": (
        _join(where=sj.theta("frobnicate(l.speed)")),
        "Spark cannot evaluate theta 'frobnicate(l.speed)': [UNRESOLVED_ROUTINE]", None,
    ),
    "theta with types that Spark does not compare": (
        _join(where=sj.theta("upper(l.name) > array(r.v)")),
        "Spark cannot evaluate theta 'upper(l.name) > array(r.v)': [DATATYPE_MISMATCH", None,
    ),
    "nothing to join by": (
        _join(), "nothing to join by: neither keys, nor a predicate, nor time",
        'give by="key", where=..., or time= with window=; a cross product is sj.theta("true")',
    ),
}  # fmt: skip

OPTIONS: dict[str, Wrong] = {
    "an option that does not exist": (
        _join(by="ts", windw=sj.Now()), "join has no option 'windw'",
        "its options are buckets, by, cell, emit, hold, how, invalid, late, lateness, left_by, outer, right_by, suffix, "
        "time, validity, where, window",
    ),
    "an option that a short form does not have": (
        _short(sj.join_band, on="v", below=1, above=1, hwo="left"), "there is no option 'hwo'", None,
    ),
    "a window in an interval join": (
        _short(sj.join_interval, on="ts", lower=0, upper=1, window=sj.Now()), "join_interval has no option 'window'",
        "an interval join has bounds instead of windows",
    ),
    "one frame": (
        lambda frames: sj.join([frames.long], by="ts"), "a join needs two frames, got 1", "sj.join([a, b], ...)",
    ),
    "one frame without a list": (
        lambda frames: sj.join(frames.long, by="ts"), "a join needs two frames, got 1", "sj.join([a, b], ...)",
    ),
    "something else than a frame": (
        lambda frames: sj.join([frames.long, [1, 2]], by="ts"), "input 1 must be a Spark DataFrame, got list", None,
    ),
    "no buckets": (_join(by="ts", buckets=0), "buckets must be at least 1, got 0", None),
    "half a bucket": (_join(by="ts", buckets=2.5), "buckets must be at least 1, got 2.5", None),
    "an empty cell": (
        _join(by="ts", cell=0), "cell must be a positive number, got 0", "leave it out to have it chosen",
    ),
    "a negative cell": (
        _join(by="ts", cell=-1.5), "cell must be a positive number, got -1.5", "leave it out to have it chosen",
    ),
    "an unknown join type": (
        _join(by="ts", how="sideways"), "unknown join type how='sideways'",
        "use one of inner, left, right, full, semi, anti",
    ),
    "an unknown outer": (_join(by="ts", outer="x"), "outer must be one of 'row', 'snapshot', got 'x'", None),
    "snapshots without validity": (
        _join(by="ts", outer="snapshot"), 'outer="snapshot" needs validity', "give a window=, or use outer='row'",
    ),
    "an unknown emission": (_join(by="ts", emit="x"), "emit must be one of 'eager', 'ordered', got 'x'", None),
    "an unknown hold": (_join(by="ts", hold="x"), "hold must be one of 'auto', 'outputs', 'inputs', got 'x'", None),
    "an unknown late": (
        _timed(sj.Now(), late="x"), "late must be one of 'drop', 'fail', 'output', 'join', got 'x'", None,
    ),
    "an unknown invalid": (
        _join(by="ts", invalid="x"), "invalid must be one of 'fail', 'drop', 'output', got 'x'", None,
    ),
    "invalid rows of a semi join": (
        _join(by="ts", invalid="output", how="semi"),
        'invalid="output" cannot show rows of input 1 in a semi or anti join, whose result has no column of it',
        'use invalid="fail" or invalid="drop"',
    ),
    "late rows in order": (
        _timed(sj.Now(), late="join", emit="ordered"), 'late="join" cannot be combined with emit="ordered"',
        'a late row\'s results would leave out of order: use emit="eager", or late="output"',
    ),
}  # fmt: skip

UNSUPPORTED: dict[str, Wrong] = {
    "a streaming frame": (
        _join("stream", "long", left_by="value", right_by="ts"),
        "input 0 is a streaming frame; this version joins batch frames",
        "join inside foreachBatch, or read the source with spark.read",
    ),
    "a streaming frame on the right": (
        _join("long", "stream", left_by="ts", right_by="value"),
        "input 1 is a streaming frame; this version joins batch frames",
        "join inside foreachBatch, or read the source with spark.read",
    ),
    "three frames": (
        lambda frames: sj.join([frames.long] * 3, by="ts"), "this version joins two frames, got 3",
        "join two, then join the result with the next",
    ),
    "theta outside the subset in an outer join": (
        _join(where=sj.theta("l.speed > 1 AND upper(l.name) = r.name"), how="left"),
        "theta inside a left join must be evaluated while joining, and streamjoin does not evaluate the function upper() "
        "(line 1, column 17)",
        'use how="inner", where Spark evaluates any expression, or write the condition with comparisons, arithmetic, '
        "AND/OR/NOT, NULL tests, IN, BETWEEN and LIKE",
    ),
}  # fmt: skip


def _check(frames: Frames, wrong: Wrong, kind: type[sj.StreamjoinError]) -> None:
    call, message, hint = wrong
    with pytest.raises(kind) as refused:
        call(frames)
    said = refused.value.message
    # Spark's own complaints go on after what is ours.
    assert said.startswith(message) if message.startswith("Spark cannot") else said == message
    if hint is not None:
        assert refused.value.hint == hint
        assert str(refused.value).startswith(f"{message}. Hint: {hint}")


@pytest.mark.parametrize("what", COLUMNS)
def test_a_wrong_column_is_refused(frames: Frames, what: str) -> None:
    _check(frames, COLUMNS[what], sj.CallError)


@pytest.mark.parametrize("what", TIME)
def test_a_wrong_time_or_window_is_refused(frames: Frames, what: str) -> None:
    _check(frames, TIME[what], sj.CallError)


@pytest.mark.parametrize("what", PREDICATES)
def test_a_wrong_predicate_is_refused(frames: Frames, what: str) -> None:
    _check(frames, PREDICATES[what], sj.CallError)


@pytest.mark.parametrize("what", OPTIONS)
def test_a_wrong_option_is_refused(frames: Frames, what: str) -> None:
    _check(frames, OPTIONS[what], sj.CallError)


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_what_makes_sense_but_is_not_done_is_refused(frames: Frames, what: str) -> None:
    _check(frames, UNSUPPORTED[what], sj.UnsupportedError)


def test_an_unknown_column_has_an_error_of_its_own(frames: Frames) -> None:
    with pytest.raises(sj.UnknownColumnError):
        sj.join([frames.long, frames.long], by="spede")


def test_a_hundred_wrong_calls_are_asked_for_nothing_of_spark(spark: SparkSession, frames: Frames) -> None:
    """A wrong call fails before anything runs: no job is started for any of them."""
    status = spark.sparkContext.statusTracker()
    before = set(status.getJobIdsForGroup())
    for wrong in [*COLUMNS.values(), *TIME.values(), *PREDICATES.values(), *OPTIONS.values()]:
        with pytest.raises(sj.StreamjoinError):
            wrong[0](frames)
    assert set(status.getJobIdsForGroup()) == before


def test_frames_come_first_and_everything_else_by_keyword(frames: Frames) -> None:
    with pytest.raises(TypeError, match=re.escape("takes 2 positional arguments but 3 were given")):
        sj.join_band(frames.long, frames.long, "v", below=1, above=1)  # type: ignore[misc]
