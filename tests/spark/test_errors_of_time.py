"""A wrong time, window or lateness fails when the call is made."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import streamjoin as sj
from tests.spark.wrong_calls import USE_A_NUMBER, USE_A_UNIT, Frames, Wrong, check, join, make_frames, timed

NOW = "use Now() for the current instant only"

TIME: dict[str, Wrong] = {
    "timestamps with and without zone": (
        join("timestamp", "ntz", time="ts", window=sj.Now()),
        "the inputs' times have different types: timestamp and timestamp_ntz",
        "cast one of them: they must count the same thing",
    ),
    "a timestamp and a number": (
        join("timestamp", "long", time="ts", window=sj.Now()),
        "the inputs' times have different types: timestamp and bigint",
        "cast one of them: they must count the same thing",
    ),
    "a date and a timestamp": (
        join("date", "timestamp", time="ts", window=sj.Now()),
        "the inputs' times have different types: date and timestamp",
        "cast one of them: they must count the same thing",
    ),
    "text as time": (
        join(time="name", window=sj.Now()),
        "time column 'name' of input 0 has type string, which is no time axis",
        "use a timestamp (with or without zone), a date or an integer column; to_timestamp(...) makes one",
    ),
    "a window without time": (join(window=sj.Now()), "input 0 has a window but no time", 'give time="ts"'),
    "a time without window": (
        join(time="ts"), "input 0 has a time but no window",
        'say how long a row is valid, window=sj.Range("2 seconds"), or use sj.join_interval',
    ),
    "time on one input only": (
        join(time=["ts", None], window=[sj.Now(), None]),
        "either both inputs have a time or none", "give time= and window= one per input",
    ),
    "a validity beside a time": (
        timed(sj.Validity("ts", "speed")), "Validity brings its own time", "leave time= out for this input",
    ),
    "a validity of two types": (
        join(window=sj.Validity("ts", "speed")),
        "the two ends of a validity must have one type, got bigint and int", "cast one of them",
    ),
    "text as window": (
        timed("5 seconds"), "window must be a window, got '5 seconds'", 'for example window=sj.Range("2 seconds")',
    ),
    "three windows": (
        timed([sj.Now()] * 3), "window needs one value, or one per input, got 3 for 2 inputs", None,
    ),
    "a negative range": (timed(sj.Range(-1)), "window size must be positive, got -1", NOW),
    "an empty range": (timed(sj.Range("0 s"), "timestamp"), "window size must be positive, got '0 s'", NOW),
    "a negative slide": (
        timed(sj.Range(5, slide=-1)), "window slide must be positive, got -1",
        "leave slide out for a window that moves freely",
    ),
    "a negative fixed window": (timed(sj.Fixed(-4)), "window size must be positive, got -4", NOW),
    "a duration on a numeric axis": (
        timed(sj.Range("5 s")), "window size must be an integer on an integer time axis, got '5 s'", USE_A_NUMBER,
    ),
    "a number on a timestamp axis": (
        timed(sj.Range(5000), "timestamp"),
        "window size must say its unit on a timestamp or date axis, got 5000", USE_A_UNIT,
    ),
    "a month": (
        timed(sj.Range("1 month"), "timestamp"),
        "window size '1 month' is not a duration (months and years have no fixed length)", USE_A_UNIT,
    ),
    "hours on a date axis": (
        timed(sj.Fixed("36 hours"), "date"), "window size must be a whole number of days, got '36 hours'",
        "one tick of this time axis cannot be divided",
    ),
    "a cell without unit": (
        timed(sj.Now(), "timestamp", cell=2), "cell must say its unit on a timestamp or date axis, got 2", USE_A_UNIT,
    ),
    "a negative cell": (
        timed(sj.Now(), "timestamp", cell="-2 s"),
        "cell must be a positive number, got '-2 s'", "leave it out to have it chosen",
    ),
    "lateness that is no policy": (
        timed(sj.Now(), lateness="5 s"), "lateness must be a policy, got '5 s'",
        'lateness=sj.Grace("5 seconds"), sj.MaxDelay() or sj.Recall(0.95)',
    ),
    "lateness of the wrong type": (
        timed(sj.Now(), lateness=sj.Grace("5 s")),
        "lateness must be an integer on an integer time axis, got '5 s'", USE_A_NUMBER,
    ),
    "negative lateness": (
        timed(sj.Now(), lateness=sj.Grace(-5)), "lateness must not be negative, got -5", "Grace of zero expects order",
    ),
    "lateness without time": (
        join(by="ts", lateness=sj.Grace(5)), "lateness needs a time", "give time= and window=",
    ),
    "lateness for three inputs": (
        timed(sj.Now(), lateness=[sj.Grace(5)] * 3),
        "lateness needs one value, or one per input, got 3 for 2 inputs", None,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Frames:
    return make_frames(spark)


@pytest.mark.parametrize("what", TIME)
def test_a_wrong_time_or_window_is_refused(frames: Frames, what: str) -> None:
    check(frames, TIME[what], sj.CallError)
