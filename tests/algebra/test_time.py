"""Durations: every unit on every axis, and what is refused because nobody could know what it means."""

from __future__ import annotations

import datetime
import random

import pytest

from streamjoin.algebra import TimeAxis
from streamjoin.errors import CallError

MICROSECONDS = {
    "us": 1, "microsecond": 1, "microseconds": 1,
    "ms": 1_000, "millisecond": 1_000, "milliseconds": 1_000,
    "s": 10**6, "sec": 10**6, "secs": 10**6, "second": 10**6, "seconds": 10**6,
    "m": 60 * 10**6, "min": 60 * 10**6, "mins": 60 * 10**6, "minute": 60 * 10**6, "minutes": 60 * 10**6,
    "h": 3_600 * 10**6, "hour": 3_600 * 10**6, "hours": 3_600 * 10**6,
    "d": 86_400 * 10**6, "day": 86_400 * 10**6, "days": 86_400 * 10**6,
    "w": 604_800 * 10**6, "week": 604_800 * 10**6, "weeks": 604_800 * 10**6,
}  # fmt: skip


@pytest.mark.parametrize(("unit", "microseconds"), MICROSECONDS.items())
def test_every_unit_on_the_timestamp_axis(unit: str, microseconds: int) -> None:
    ticks = TimeAxis.TIMESTAMP.ticks
    assert ticks(f"3 {unit}") == 3 * microseconds
    assert ticks(f"-3{unit.upper()}") == -3 * microseconds
    assert ticks(f"  +3  {unit} ") == 3 * microseconds


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1 hour 30 minutes", 5_400_000_000),
        ("1 hour, 30 minutes", 5_400_000_000),
        ("1h30m", 5_400_000_000),
        ("interval 2 seconds", 2_000_000),
        ("INTERVAL 2 seconds", 2_000_000),
        ("1 day -1 hour", 82_800_000_000),
        ("0 seconds", 0),
        ("1.5 seconds", 1_500_000),
        ("0.000001 s", 1),
        ("0.1 ms", 100),
        ("0.1 s 0.2 s", 300_000),  # exact: 0.1 + 0.2 as doubles would be more
    ],
)
def test_spark_strings_are_exact(text: str, microseconds: int) -> None:
    assert TimeAxis.TIMESTAMP.ticks(text) == microseconds


@pytest.mark.parametrize("axis", [TimeAxis.TIMESTAMP, TimeAxis.DATE])
@pytest.mark.parametrize("seed", range(20))
def test_differential_timedelta_and_its_text_agree(axis: TimeAxis, seed: int) -> None:
    rng = random.Random(seed)
    days, seconds = rng.randint(-400, 400), rng.randint(-90_000, 90_000) if axis is TimeAxis.TIMESTAMP else 0
    length = datetime.timedelta(days=days, seconds=seconds)
    assert axis.ticks(length) == axis.ticks(f"{days} days {seconds} seconds"), f"seed {seed}"


def test_a_timedelta_keeps_its_microseconds() -> None:
    assert TimeAxis.TIMESTAMP.ticks(datetime.timedelta(days=-1, microseconds=7)) == -86_400_000_000 + 7


@pytest.mark.parametrize(("text", "days"), [("1 week", 7), ("-2 days", -2), ("48 hours", 2), ("0.5 w 12 h", 4)])
def test_the_date_axis_counts_days(text: str, days: int) -> None:
    assert TimeAxis.DATE.ticks(text) == days


@pytest.mark.parametrize("length", [0, 7, -7, 2**62])
def test_the_integer_axis_takes_integers_as_they_are(length: int) -> None:
    assert TimeAxis.INTEGER.ticks(length) == length


@pytest.mark.parametrize(
    ("axis", "length", "unit"),
    [
        (TimeAxis.TIMESTAMP, "0.5 us", "microseconds"),
        (TimeAxis.TIMESTAMP, "0.0000001 s", "microseconds"),
        (TimeAxis.DATE, "36 hours", "days"),
        (TimeAxis.DATE, "1 s", "days"),
        (TimeAxis.DATE, datetime.timedelta(hours=1), "days"),
    ],
)
def test_a_fraction_of_a_tick_is_refused(axis: TimeAxis, length: object, unit: str) -> None:
    with pytest.raises(CallError, match=f"slack must be a whole number of {unit}, got "):
        axis.ticks(length, "slack")


@pytest.mark.parametrize("axis", [TimeAxis.TIMESTAMP, TimeAxis.DATE])
@pytest.mark.parametrize("number", [5, 5.0, True, None])
def test_a_bare_number_is_refused_where_it_would_need_a_unit(axis: TimeAxis, number: object) -> None:
    with pytest.raises(CallError, match=r"window size must say its unit .* Hint: write it as \"5 seconds\""):
        axis.ticks(number, "window size")


@pytest.mark.parametrize("length", ["5 seconds", 5.0, True, None, datetime.timedelta(seconds=5)])
def test_only_integers_on_the_integer_axis(length: object) -> None:
    with pytest.raises(CallError, match="lateness must be an integer on an integer time axis"):
        TimeAxis.INTEGER.ticks(length, "lateness")


@pytest.mark.parametrize("text", ["1 month", "2 Years", "1 day 1 month", "1 MONTHS"])
def test_months_and_years_are_refused_with_the_reason(text: str) -> None:
    with pytest.raises(CallError, match="months and years have no fixed length"):
        TimeAxis.TIMESTAMP.ticks(text)


@pytest.mark.parametrize("text", ["5", "seconds", "5 parsecs", "5 s x", "--5 s", "5 . s", "interval", "1e3 s"])
def test_text_that_is_no_duration_is_refused_whole(text: str) -> None:
    with pytest.raises(CallError, match=f"'{text}' is not a duration. Hint: write it as"):
        TimeAxis.TIMESTAMP.ticks(text)


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_duration_is_refused(text: str) -> None:
    with pytest.raises(CallError, match="duration is empty"):
        TimeAxis.TIMESTAMP.ticks(text)
