"""A wrong call fails when it is made: wrong columns, wrong options, and what is not done yet."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import streamjoin as sj
from tests.spark.wrong_calls import Call, Frames, Wrong, check, join, make_frames, short, timed

COLUMNS: dict[str, Wrong] = {
    "a misspelt key": (join(by="spede"), "input 0 has no column 'spede'", "did you mean 'speed'?"),
    "a misspelt time": (
        join(time="tss", window=sj.Now()), "input 0 has no column 'tss'", "did you mean 'ts'?",
    ),
    "a key with no near name": (
        join(by="qqqq"), "input 0 has no column 'qqqq'", "it has 'ts', 'speed', 'name', 'v'",
    ),
    "a misspelt value on the right": (
        short(sj.join_band, left_on="v", right_on="vv", below=1, above=1),
        "input 1 has no column 'vv'", "did you mean 'v'?",
    ),
    "a column that is neither name nor Column": (
        join(left_by=3, right_by="ts"), "a column of input 0 must be a name, SQL text or a Column, got 3", None,
    ),
    "a key that is text against a number": (
        join(left_by="name", right_by="ts"),
        "equality compares 'name' (string) and 'ts' (bigint), which have no common type", "cast one of them",
    ),
    "a predicate on text against a number": (
        join(where=sj.equals("v", "name")),
        "equality compares 'v' (double) and 'name' (string), which have no common type", "cast one of them",
    ),
    "by and left_by": (
        join(by="ts", left_by="ts"), "give either by= or left_by= and right_by=, not both", None,
    ),
    "more left than right keys": (
        join(left_by=["ts", "v"], right_by="ts"), "left_by and right_by must be equally many, got 2 and 1", None,
    ),
    "a key twice": (join(by=["ts", "TS"]), "by has 'TS' twice", "name every key once"),
    "by with something else than names": (
        join(by=3), "a column of input 0 must be a name, SQL text or a Column, got 3", None,
    ),
}  # fmt: skip

OPTIONS: dict[str, Wrong] = {
    "one frame": (
        lambda frames: sj.join([frames.long], by="ts"), "a join needs two frames, got 1", "sj.join(a, b, ...)",
    ),
    "one frame without a list": (
        lambda frames: sj.join(frames.long, by="ts"), "a join needs two frames, got 1", "sj.join(a, b, ...)",
    ),
    "something else than a frame": (
        lambda frames: sj.join([frames.long, [1, 2]], by="ts"), "input 1 must be a Spark DataFrame, got list", None,
    ),
    "no buckets": (join(by="ts", buckets=0), "buckets must be at least 1, got 0", None),
    "half a bucket": (join(by="ts", buckets=2.5), "buckets must be at least 1, got 2.5", None),
    "an empty cell": (
        join(by="ts", cell=0), "cell must be a positive number, got 0", "leave it out to have it chosen",
    ),
    "a negative cell": (
        join(by="ts", cell=-1.5), "cell must be a positive number, got -1.5", "leave it out to have it chosen",
    ),
    "cells beside keys": (
        join(by="ts", cell=2), "cell says where rows without keys meet, and here they meet by key", "leave out cell=",
    ),
    "holding without order": (
        join(by="ts", hold="inputs"), "hold='inputs' says what waits for order, and nothing does",
        'give emit="ordered"',
    ),
    "an unknown join type": (
        join(by="ts", how="sideways"), "unknown join type how='sideways'",
        "use one of inner, left, right, full, semi, anti",
    ),
    "an unknown outer": (join(by="ts", outer="x"), "outer must be one of 'row', 'snapshot', got 'x'", None),
    "snapshots without validity": (
        join(by="ts", outer="snapshot"), 'outer="snapshot" needs validity', "give a window=, or use outer='row'",
    ),
    "an unknown emission": (join(by="ts", emit="x"), "emit must be one of 'eager', 'ordered', got 'x'", None),
    "an unknown hold": (join(by="ts", hold="x"), "hold must be one of 'auto', 'outputs', 'inputs', got 'x'", None),
    "an unknown late": (
        timed(sj.Now(), late="x"), "late must be one of 'drop', 'fail', 'output', 'join', got 'x'", None,
    ),
    "an unknown invalid": (
        join(by="ts", invalid="x"), "invalid must be one of 'fail', 'drop', 'output', got 'x'", None,
    ),
    "invalid rows of a semi join": (
        join(by="ts", invalid="output", how="semi"),
        'invalid="output" cannot show rows of input 1 in a semi or anti join, whose result has no column of it',
        'use invalid=["output", "drop"] or invalid=["output", "fail"]',
    ),
    "late rows in order": (
        timed(sj.Now(), late="join", emit="ordered"), 'late="join" cannot be combined with emit="ordered"',
        'a late row\'s results would leave out of order: use emit="eager", or late="output"',
    ),
}  # fmt: skip

UNSUPPORTED: dict[str, Wrong] = {
    "three frames": (
        lambda frames: sj.join_interval([frames.long] * 3, on="ts", lower=0, upper=1),
        "this join takes two frames, got 3",
        "join two, then join the result with the next; sj.join takes any number",
    ),
    "theta outside the subset in an outer join": (
        join(where=sj.theta("l.speed > 1 AND upper(l.name) = r.name"), how="left"),
        "theta in a join with how='left' must be evaluated while joining, and streamjoin does not evaluate the "
        "function upper() (line 1, column 17)",
        'use how="inner", where Spark evaluates any expression, or write the condition with comparisons, arithmetic, '
        "AND/OR/NOT, NULL tests, IN, BETWEEN and LIKE",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Frames:
    return make_frames(spark)


@pytest.mark.parametrize("what", COLUMNS)
def test_a_wrong_column_is_refused(frames: Frames, what: str) -> None:
    check(frames, COLUMNS[what], sj.CallError)


@pytest.mark.parametrize("what", OPTIONS)
def test_a_wrong_option_is_refused(frames: Frames, what: str) -> None:
    check(frames, OPTIONS[what], sj.CallError)


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_what_makes_sense_but_is_not_done_is_refused(frames: Frames, what: str) -> None:
    check(frames, UNSUPPORTED[what], sj.UnsupportedError)


def test_an_unknown_column_has_an_error_of_its_own(frames: Frames) -> None:
    with pytest.raises(sj.UnknownColumnError):
        sj.join([frames.long, frames.long], by="spede")


def test_wrong_calls_run_nothing(spark: SparkSession, frames: Frames) -> None:
    status = spark.sparkContext.statusTracker()
    before = set(status.getJobIdsForGroup())
    for call, _, _ in [*COLUMNS.values(), *OPTIONS.values(), *UNSUPPORTED.values()]:
        with pytest.raises(sj.StreamjoinError):
            call(frames)
    assert set(status.getJobIdsForGroup()) == before


def test_frames_come_first_and_everything_else_by_keyword(frames: Frames) -> None:
    with pytest.raises(TypeError, match="join_band takes its options by name, got 'v' without its name"):
        sj.join_band(frames.long, frames.long, "v", below=1, above=1)  # type: ignore[misc]


UNKNOWN: dict[str, tuple[Call, str]] = {
    "an option that does not exist": (
        join(by="ts", windw=sj.Now()), "join has no option 'windw'. Hint: did you mean 'window'",
    ),
    "an option that a short form does not have": (
        short(sj.join_band, on="v", below=1, above=1, hwo="left"),
        "join_band has no option 'hwo'. Hint: did you mean 'how'",
    ),
    "a window in an interval join": (
        short(sj.join_interval, on="ts", lower=0, upper=1, window=sj.Now()),
        "join_interval has no option 'window'. Hint: its options are 'left', 'right', 'lower'",
    ),
    "a window in an as-of join": (
        short(sj.join_asof, on="ts", window=sj.Now()), "join_asof has no option 'window'",
    ),
    "a join type in a set operator": (
        lambda frames: sj.distinct(frames.long, time="ts", window=sj.Now(), how="left"),
        "distinct has no option 'how'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNKNOWN)
def test_parameters_are_those_that_the_signature_shows(frames: Frames, what: str) -> None:
    call, message = UNKNOWN[what]
    with pytest.raises(TypeError, match=message) as refused:
        call(frames)
    assert isinstance(refused.value, sj.CallError)
