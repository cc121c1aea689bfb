"""A predicate that cannot mean anything fails when the call is made."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import streamjoin as sj
from tests.spark.wrong_calls import USE_A_NUMBER, USE_A_UNIT, Frames, Wrong, check, join, make_frames, short

PREDICATES: dict[str, Wrong] = {
    "a negative radius": (
        short(sj.join_within, on="v", radius=-1), "radius must not be negative, got -1", "a radius of 0 is equality",
    ),
    "a radius that is text": (
        short(sj.join_within, on="v", radius="1"), "radius must be a finite number, got '1'", None,
    ),
    "a radius on text": (
        short(sj.join_within, on=("v", "name"), radius=1), "a radius needs numbers, 'name' of input 0 is string",
        "cast the column to double",
    ),
    "other axes on the right": (
        short(sj.join_within, left_on=("v", "ts"), right_on="v", radius=1),
        "within needs as many axes on both sides, got 2 and 1",
        'write within(("x", "y"), radius=5.0), or within(("x", "y"), ("px", "py"), radius=5.0)',
    ),
    "a globe with three axes": (
        short(sj.join_within, on=("v", "v", "v"), radius=1, metric="haversine"),
        "haversine needs (latitude, longitude), got 3 axes", None,
    ),
    "a metric that does not exist": (
        short(sj.join_within, on="v", radius=1, metric="euclid"),
        "metric must be one of euclidean, manhattan, chebyshev, haversine, got 'euclid'", None,
    ),
    "a band on text": (
        short(sj.join_band, on="name", below=1, above=1), "a band needs numbers or times, 'name' of input 0 is string",
        "cast the column to a number",
    ),
    "a band's bound that is text": (
        short(sj.join_band, on="v", below="1", above=1), "a band's bounds must be numbers on a double column, got '1'",
        "for example below=0.5, above=0.5",
    ),
    "a band's bound without unit": (
        short(sj.join_band, "timestamp", on="ts", below=1, above=1),
        "a band's bound must say its unit on a timestamp or date axis, got 1", USE_A_UNIT,
    ),
    "an empty band": (
        short(sj.join_band, on="v", below=-2, above=1), "the band from -below = 2 to above = 1 is empty",
        "below and above count from the left value downwards and upwards",
    ),
    "bounds closed somehow": (
        short(sj.join_band, on="v", below=1, above=1, closed="upper"),
        "closed must be one of both, left, right, neither, got 'upper'", None,
    ),
    "lower above upper": (
        short(sj.join_interval, on="ts", lower=3, upper=1), "lower must not be above upper, got 3 and 1",
        "both are bounds of right - left; earlier right rows have negative bounds",
    ),
    "a lower bound of the wrong type": (
        short(sj.join_interval, on="ts", lower="0 s", upper=1),
        "lower must be an integer on an integer time axis, got '0 s'", USE_A_NUMBER,
    ),
    "an upper bound without unit": (
        short(sj.join_interval, "timestamp", on="ts", lower="0 s", upper=1),
        "upper must say its unit on a timestamp or date axis, got 1", USE_A_UNIT,
    ),
    "no upper bound": (
        short(sj.join_interval, on="ts", lower=0, upper=None),
        "an interval join needs both bounds, got lower=0 and upper=None",
        'lower="0 seconds", upper="10 minutes": right - left lies between',
    ),
    "no bounds": (
        short(sj.join_interval, on="ts", lower=None, upper=None),
        "an interval join needs both bounds, got lower=None and upper=None",
        'lower="0 seconds", upper="10 minutes": right - left lies between',
    ),
    "an interval join without times": (
        short(sj.join_interval, lower=0, upper=1), "join_interval needs on=, or left_on= and right_on=",
        "give on= when the names are the same",
    ),
    "on and left_on": (
        short(sj.join_band, on="v", left_on="v", below=1, above=1),
        "join_band needs on=, or left_on= and right_on=", "give on= when the names are the same",
    ),
    "an interval with one end": (
        short(sj.join_overlap, on="ts"), "join_overlap needs the two ends of an interval, got 'ts'",
        'on=("start", "end")',
    ),
    "an overlap of text": (
        short(sj.join_overlap, on=("name", "name")), "an overlap needs numbers or times, 'name' of input 0 is string",
        "cast the column to a number",
    ),
    "a condition that is neither predicate nor text": (
        join(where=3), "where must be a predicate, SQL text or a Column, got 3",
        'write where=sj.equals("k") & sj.band("v", below=1, above=1), or where="l.a < r.b"',
    ),
    "a Column of a frame that is joined with itself": (
        lambda frames: sj.join(frames.long, frames.long, where=frames.long.v < 3),
        "the column 'v' in where= is one of a frame, and both inputs of the join have it",
        'write F.col("l.v") or F.col("r.v")',
    ),
    "theta with an unknown column": (
        join(where=sj.theta("l.spede > 25")), "input 0 ('l') has no column 'spede'", "did you mean 'speed'?",
    ),
    "theta with a syntax error": (
        join(where=sj.theta("l.speed > > 25")),
        "The expression is wrong at line 1, column 11:\n"
        "    l.speed > > 25\n"
        "              ^\n"
        "'>' is not expected here",
        "write one Spark SQL boolean expression, for example l.speed > 25 AND r.temperature > 12",
    ),
    "theta that is no condition": (
        join(where=sj.theta("l.speed + 1")),
        "the expression must be a condition (boolean), got 'l.speed + 1', which is int",
        "compare it with something, as in l.speed > 0",
    ),
    "theta that Spark does not know": (
        join(where=sj.theta("frobnicate(l.speed)")),
        "Spark cannot evaluate theta 'frobnicate(l.speed)': [UNRESOLVED_ROUTINE]", None,
    ),
    "theta with types that Spark does not compare": (
        join(where=sj.theta("upper(l.name) > array(r.v)")),
        "Spark cannot evaluate theta 'upper(l.name) > array(r.v)': [DATATYPE_MISMATCH", None,
    ),
    "nothing to join by": (
        join(), "nothing to join by: neither keys, nor a predicate, nor time",
        'give by="key", where=..., or time= with window=; a cross product is sj.theta("true")',
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Frames:
    return make_frames(spark)


@pytest.mark.parametrize("what", PREDICATES)
def test_a_wrong_predicate_is_refused(frames: Frames, what: str) -> None:
    check(frames, PREDICATES[what], sj.CallError)
