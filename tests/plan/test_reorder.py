"""Rows in order of time: what leaves is sorted, whatever the cut, and waits no longer than rows may be late."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Now
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Stream
from streamjoin.runtime.lateness import LargestDelay, Lateness
from tests.in_process import Troubled, plan_of

SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.int64())])
LEAVING = Leaving(validity=None, emit="ordered", reordered=True)


def plan_for(lateness: Lateness | int, **options: Any) -> PhysicalPlan:
    """What `sj.reorder` makes of a frame."""
    stream = Stream("0", (("ts", "ts"), ("id", "id")), "ts", Now())
    return plan_of(stream, {"0": SCHEMA}, {"0": lateness}, LEAVING, label="input 0", **options)


def running(lateness: Lateness | int, **options: Any) -> Troubled:
    return Troubled(plan_for(lateness, **options), trouble=0.3)


def times(tables: list[pa.Table]) -> list[int]:
    return [row["ts"] for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("seed", range(5))
def test_what_leaves_is_sorted_whatever_the_cut(seed: int) -> None:
    rng = random.Random(seed)
    ts = [at + rng.randint(0, 9) for at in range(200)]
    plan, left, at = running(9), [], 0
    while at < len(ts):
        some = ts[at : at + rng.randint(1, 40)]
        at += len(some)
        left += times(plan.rows({"0": pa.table({"ts": some, "id": some}, schema=SCHEMA)}))
    assert 150 < len(left) < 200, "some wait for the end"
    left += times(plan.finished())
    assert left == sorted(ts)


def test_the_largest_delay_says_how_long_to_wait_and_later_rows_are_late() -> None:
    plan = running(LargestDelay())
    left = [
        times(plan.rows({"0": pa.table({"ts": some, "id": some}, schema=SCHEMA)}))
        for some in ([5, 3, 10], [8, 12], [20], [7, 30])
    ]
    # Of delays nothing is known, so progress is 10: 8 comes 2 late, and is dropped. From then on 2 are waited for, and
    # after 7, which is 13 late, 13.
    assert left == [[3, 5], [], [10, 12], []]
    assert times(plan.finished()) == [20, 30]
