"""How late results can be: never later than is said, and as late somewhere."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from streamjoin.algebra import Grace, Unbounded
from streamjoin.errors import CallError
from streamjoin.plan.join_delay import output_delay
from streamjoin.plan.planner import JoinPlan
from tests.plane import Plane, own_cache
from tests.spark.test_streaming_plane import SLACK, planned, rows, table

__all__ = ["own_cache"]

pytestmark = pytest.mark.usefixtures("own_cache")


def worst(plan: JoinPlan, column: str, seed: int) -> int:
    """By how much a result's time was behind what left in earlier micro-batches, at worst."""
    rng = random.Random(seed)
    sides = [rows(rng, 60), rows(rng, 60)]
    for each in (each for side in sides for each in side if rng.random() < 0.1):
        each["k"] = None  # by keys it can meet nobody, and must still not leave before its time
    plane, largest, late = Plane(plan, rng), None, 0
    positions = [0, 0]
    while min(positions) < 60:
        cut = {}
        for number, side in enumerate(sides):
            step = rng.choice([0, 1, 3, 15])
            cut[number] = table(side[positions[number] : positions[number] + step])
            positions[number] += step
        times = [time for part in plane.micro_batch(cut) for time in part[column].to_pylist() if time is not None]
        late = max([late, *(0 if largest is None else largest - time for time in times)])
        largest = max([*times, *([] if largest is None else [largest])], default=None)
    return late


@pytest.mark.parametrize(
    ("shape", "how", "column", "emit"),
    [
        ("keys", "inner", "valid_from", "eager"),
        ("keys", "inner", "ts", "eager"),
        ("keys", "full", "valid_from", "eager"),
        ("theta", "left", "valid_from", "eager"),
        ("keys", "anti", "valid_from", "ordered"),
        ("interval", "inner", "ts", "eager"),
        ("interval", "left", "ts", "ordered"),
        ("interval", "inner", "ts_right", "eager"),
        ("as of", "left", "ts", "eager"),
        ("as of, near, without keys", "left", "ts_right", "eager"),
        ("best match", "left", "ts", "eager"),
        ("best match without keys", "full", "ts_right", "eager"),
        ("best match", "right", "ts_right", "eager"),
        ("nearest", "left", "ts", "eager"),
        ("nearest", "inner", "ts_right", "eager"),
    ],
)
def test_results_are_never_later_than_is_said(shape: str, how: str, column: str, emit: str) -> None:
    plan = planned(shape, how=how, buckets=2, emit=emit)
    said = output_delay(plan, column)
    found = [worst(plan, column, seed) for seed in range(8)]
    assert max(found) <= said
    assert max(found) > 0 or emit == "ordered", "results are late at all"


def test_the_bounds_by_hand() -> None:
    assert output_delay(planned("keys")) == 5 + SLACK
    assert output_delay(planned("keys"), "valid_to") == 5 + SLACK
    assert output_delay(planned("keys"), "ts_right") == 5 + SLACK + 5
    assert output_delay(planned("keys", how="left")) == 5 + 5 + SLACK
    assert output_delay(planned("interval")) == 3 + 2 + SLACK
    assert output_delay(planned("keys", ended=(False, True))) == 5 + SLACK


@pytest.mark.parametrize(
    ("plan", "column", "message"),
    [
        ({"late": ("join", "drop")}, None, "late without bound"),
        ({}, "id", "'id' is no time column of this join's result"),
    ],
)
def test_what_has_no_bound_is_refused(plan: dict[str, Any], column: str | None, message: str) -> None:
    with pytest.raises(CallError, match=message):
        output_delay(planned("keys", **plan), column)


def test_steps_of_doubles_are_no_time() -> None:
    plan = planned("best match")
    assert output_delay(plan) == SLACK  # above the epsilon of 3
    counted = replace(plan, join=replace(plan.join, choice=replace(plan.join.choice, reach=66)))
    with pytest.raises(CallError, match="not ordered by a time"):
        output_delay(counted)


def test_an_endless_window_has_no_bound() -> None:
    plan = planned("keys")
    endless = replace(plan.node.inputs[0], window=Unbounded())
    plan = replace(plan, node=replace(plan.node, inputs=(endless, plan.node.inputs[1])))
    with pytest.raises(CallError, match="input 0 may be valid for any length of time"):
        output_delay(plan)
    assert isinstance(plan.arrivals.lateness[0], Grace)
