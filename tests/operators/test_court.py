"""The court: results pass, and rows are decided when every bucket has passed their end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.errors import SnapshotError
from streamjoin.operators import Court, Results, Verdict
from streamjoin.operators.contract import side_by_side
from streamjoin.operators.court import RunningCourt
from streamjoin.state import Batch
from tests.operators.driving import SCHEMAS, results, rows


def court(*, buckets: int = 2, ordered: bool = False) -> RunningCourt:
    return Court((Verdict(0, SCHEMAS, "left"),), buckets, ordered).build()


def candidates(*some: tuple[int, int, int]) -> Batch:
    return replace(rows(*some), origin=np.array([number for number, *_ in some], np.int64))


def witnesses(*some: tuple[int, int, int]) -> Batch:
    return replace(candidates(*some), payload=pa.table({}))


def pair(ts: int, te: int) -> Results:
    member = rows((7, ts, te)).payload
    return Results(side_by_side([member, member]), np.array([ts]), np.array([te]))


def test_nothing_is_decided_before_every_bucket_has_passed_it() -> None:
    running = court()
    running.on_testimony(0, "candidate", candidates((1, 0, 5), (2, 0, 5)))
    running.on_testimony(0, "witness", witnesses((1, 0, 5)))
    running.on_progress(0, 9, 9)
    assert results(running.decide()) == []
    assert running.footprint.rows == 3
    running.on_progress(1, 4, 4)
    assert results(running.decide()) == [], "bucket 1 may still hold the one witness"
    running.on_progress(1, 5, 5)
    assert results(running.decide()) == [(2, None, 0, 5)]
    assert (running.footprint.rows, running.figures) == (0, {"results": 1})
    assert results(running.decide()) == [], "there are no news"


def test_results_pass_at_once_unless_they_must_be_in_order() -> None:
    assert results(court().on_results(pair(3, 9))) == [(7, 7, 3, 9)]
    running = court(buckets=1, ordered=True)
    assert results(running.on_results(pair(3, 9))) == []
    assert results(running.on_results(pair(2, 4))) == []
    running.on_testimony(0, "candidate", candidates((1, 1, 6)))
    running.on_progress(0, 5, 3)
    assert results(running.decide()) == [], "row 1 is undecided, and begins before both"
    running.on_progress(0, 6, 3)
    assert results(running.decide()) == [(1, None, 1, 6), (7, 7, 2, 4)]
    assert results(running.on_end()) == [(7, 7, 3, 9)]


def test_the_end_decides_everything() -> None:
    running = court()
    running.on_testimony(0, "candidate", candidates((1, 0, FOREVER)))
    assert results(running.on_end()) == [(1, None, 0, FOREVER)]


@pytest.mark.parametrize("ordered", [False, True])
def test_a_court_goes_on_from_its_snapshot(ordered: bool) -> None:
    running = court(ordered=ordered)
    list(running.on_results(pair(3, 9)))
    running.on_testimony(0, "candidate", candidates((1, 0, 5), (2, 0, 5)))
    running.on_testimony(0, "witness", witnesses((2, 0, 5)))
    running.on_progress(0, 7, 7)
    list(running.decide())
    again = court(ordered=ordered)
    again.restore(running.snapshot())
    for one in (running, again):
        one.on_progress(1, 5, 4)
    assert results(again.decide()) == results(running.decide()) != []
    assert again.snapshot().manifest["progress"] == [7, 5]
    assert results(again.on_end()) == results(running.on_end())


def test_a_court_over_other_buckets_is_another_one() -> None:
    with pytest.raises(SnapshotError, match="made by another join"):
        court(buckets=3).restore(court(buckets=2).snapshot())
