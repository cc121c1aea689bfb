"""Times and durations in messages are written as people write them, never in ticks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import AsOf, Band, BestOf, Fixed, NearestOf, Range, Within
from streamjoin.errors import LateRowError
from streamjoin.plan.identity import identity_of
from streamjoin.plan.wording import in_units
from streamjoin.runtime.lateness import Slack
from tests.in_process import Troubled
from tests.joins import Bounds, JoinCall

TIMED = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
DAYS = pa.schema([("k", pa.int64()), ("ts", pa.date32())])
USUAL = JoinCall((TIMED, TIMED), ("k",), lateness=(Slack(0), Slack(0)))
AWAY: Any = "10 minutes"  # a tree may have lengths as they are written

CALLS: dict[str, tuple[JoinCall, str, str]] = {
    "window": (replace(USUAL, windows=(Range(AWAY), Fixed("2 hours"))), "window", "Range(10 min), Fixed(2 h)"),
    "slide": (
        replace(USUAL, windows=(Range(AWAY, "1500 ms"), Fixed("2 hours"))),
        "window",
        "Range(10 min, slide=1500 ms), Fixed(2 h)",
    ),
    "days": (
        replace(USUAL, schemas=(DAYS, DAYS), windows=(Range("1 week"), Range("1 day"))), "window",
        "Range(7 d), Range(1 d)",
    ),
    "bounds": (replace(USUAL, interval=Bounds(0, 600_000_000)), "predicates", "below='0 s', above='10 min'"),
    "tolerance": (replace(USUAL, choice=AsOf("backward", AWAY), how="left"), "choice", "at most 10 min away"),
    "time around": (
        replace(USUAL, choice=NearestOf(1, 600_000_000), predicates=(Within(("k",), ("k",), 2.0),)), "choice",
        "at most 10 min away in time",
    ),
    "best match": (
        replace(USUAL, choice=BestOf(), predicates=(Band("ts", "ts", AWAY, AWAY),)), "predicates", "above='10 min'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CALLS)
def test_a_restart_that_differs_is_told_in_words(what: str) -> None:
    call, part, words = CALLS[what]
    plan = call.plan()
    said = identity_of(plan, plan.stages[0])[part]
    assert words in said
    assert "000000" not in said


def test_the_progress_that_a_late_row_is_behind_is_a_time() -> None:
    call = replace(USUAL, windows=(Range(AWAY), Range(AWAY)), late=("fail", "fail"))
    running = Troubled(call.plan())

    def rows(*minutes: int) -> dict[str, list[pa.Table]]:
        times = [datetime(2024, 1, 1, 10, minute, tzinfo=UTC) for minute in minutes]
        return {"0": [pa.table({"k": [1] * len(times), "ts": times}, schema=TIMED)]}

    list(running.micro_batch(rows(30)))
    said = r"behind its progress 2024-01-01 10:30:00\+00:00, the first is .*'ts': 2024-01-01 10:20:00\+00:00"
    with pytest.raises(LateRowError, match=said):
        list(running.micro_batch(rows(20)))


@pytest.mark.parametrize(
    ("ticks", "words"),
    [(0, "0 s"), (1, "1 us"), (90_000_000, "90 s"), (-600_000_000, "-10 min"), (3_600_000_000, "1 h")],
)
def test_a_duration_has_the_largest_unit_that_divides_it(ticks: int, words: str) -> None:
    assert in_units(ticks, pa.timestamp("us")) == words
