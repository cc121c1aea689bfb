"""What a query was begun with, as its checkpoint says it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamjoin import Grace, MaxDelay, Recall
from streamjoin.algebra import TimeAxis
from streamjoin.plan.stored import to_stored
from streamjoin.runtime.lateness import Complete, LargestDelay, Slack, Timeless
from streamjoin.runtime.recall import ToRecall
from streamjoin.spark.stored.begun import _last, _lateness
from streamjoin.spark.stored.finish import StoredStage


def plan(axis: TimeAxis | None, kind: pa.DataType | None, **slacks: Any) -> dict[str, Any]:
    sources = [
        {"name": name.lstrip("_"), "lateness": to_stored(slack), "derived": {"items": []}, "made_by": None}
        for name, slack in slacks.items()
    ]
    return {"axis": to_stored(axis), "time_type": to_stored(kind), "sources": {"items": sources}}


@pytest.mark.parametrize(
    ("axis", "kind", "delay"),
    [
        (TimeAxis.TIMESTAMP, pa.timestamp("us"), "90 s"),
        (TimeAxis.DATE, pa.date32(), "90000000 d"),
        (TimeAxis.INTEGER, pa.int64(), 90_000_000),
    ],
)
def test_lateness_is_as_a_call_takes_it(axis: TimeAxis, kind: pa.DataType, delay: Any) -> None:
    assert _lateness(plan(axis, kind, R=Slack(90_000_000), S=Timeless())) == {"R": Grace(delay), "S": None}
    assert Grace(delay).resolve(axis).delay == 90_000_000, "and means the same"


def test_frames_of_a_function_have_their_lateness_in_their_order() -> None:
    stored = plan(TimeAxis.INTEGER, pa.int64(), _1=Slack(1), _0=Slack(2))
    assert _lateness(stored) == (Grace(2), Grace(1))


def test_the_largest_delay_has_no_units() -> None:
    stored = plan(TimeAxis.TIMESTAMP, pa.timestamp("us"), R=LargestDelay(), S=Complete())
    assert _lateness(stored) == {"R": MaxDelay(), "S": None}
    stored["sources"]["items"][0]["derived"]["items"] = ["floor(x / 0.5)"]
    assert _lateness(stored) == {"R": MaxDelay(), "S": None}


@pytest.mark.parametrize(
    ("axis", "kind", "target"),
    [
        (TimeAxis.TIMESTAMP, pa.timestamp("us"), Recall(0.8, "10 min", "90 s", "1 s", "1500 ms", "1 s")),
        (TimeAxis.TIMESTAMP, pa.timestamp("us"), Recall(0.5)),
        (TimeAxis.INTEGER, pa.int64(), Recall(0.9, 100, 10, max_delay=30)),
    ],
)
def test_a_recall_target_is_as_a_call_takes_it(axis: TimeAxis, kind: pa.DataType, target: Recall) -> None:
    asked: Any = target.resolve(axis)
    wanted = ToRecall(0.0 + asked.target, asked.period, asked.interval, asked.granularity, asked.max_delay)
    sides = [replace(wanted, initial=asked.initial or 0).side(number, (80, 40), keyed=True) for number in (0, 1)]
    one, two = _lateness(plan(axis, kind, _0=sides[0], _1=sides[1]))
    assert isinstance(one, Recall)
    assert one == two
    assert one.resolve(axis) == asked


def test_a_time_that_the_call_has_computed_may_count_in_other_units() -> None:
    stored = plan(TimeAxis.INTEGER, pa.int64(), R=Slack(1))
    stored["sources"]["items"][0]["derived"]["items"] = ["floor(x / 0.5)"]
    assert _lateness(stored) == {"R": None}


def test_the_last_call_is_the_one_whose_result_no_other_reads() -> None:
    inner, outer = plan(None, None, R=Timeless()), plan(None, None, R=Timeless())
    outer["sources"]["items"][0]["made_by"] = "inner"
    stages = [
        StoredStage(0, {"name": "outer", "stage": 0, "plan": outer}),
        StoredStage(1, {"name": "outer", "stage": 1, "plan": outer}),
        StoredStage(2, {"name": "inner", "stage": 3, "plan": inner}),
    ]
    assert _last(stages).operator == 1
