"""Inputs that sleep, through the processors that ship: nobody else is lost, and nothing is counted twice."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Equals, Range
from streamjoin.errors import LateRowError
from streamjoin.plan.lowering import Leaving, lower
from streamjoin.plan.relation import Join, Stream
from streamjoin.runtime.lateness import Slack
from streamjoin.spark.calls.tree import check_late
from tests.function_trees import plan_of, table, tree
from tests.in_process import source
from tests.interpreter import PlainTyping
from tests.plane import Plane, own_cache

__all__ = ["own_cache"]
pytestmark = pytest.mark.usefixtures("own_cache")
ROW = {"id": 1, "ts": 10, "k": 0, "v": 0, "lo": 0, "hi": 1}
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64())])


def met_nobody(shape: str, how: str, idle_after: int | None) -> Counter[Any]:
    """Which rows leave, all of them unjoined, of two streams that go on in step."""
    plan = plan_of(tree(shape, how=how), {"0": 0, "1": 0}, buckets=2, idle_after=idle_after)
    plane, left = Plane(plan, random.Random(0)), Counter[Any]()
    for ts in range(10, 20):
        batch = {
            "0": table([ROW | {"id": ts, "ts": ts, "v": 5}]),
            "1": table([ROW | {"id": ts, "ts": ts, "lo": 50, "hi": 51}]),
        }
        for rows in plane.micro_batch(batch, clock=ts):
            left.update(rows["id"].to_pylist())
    for rows in plane.end():
        left.update(rows["id"].to_pylist())
    return left


@pytest.mark.parametrize("how", ["left", "anti", "full"])
@pytest.mark.parametrize("shape", ["theta", "overlap", "overlap in cells"])
def test_a_verdict_is_never_late(shape: str, how: str) -> None:
    found = met_nobody(shape, how, idle_after=10**9)
    assert found == met_nobody(shape, how, idle_after=None)
    assert set(found) >= set(range(10, 20))


def streams() -> tuple[Stream, Stream, Stream]:
    r, s, t = (
        Stream(name, tuple((f"{name}.{column}", column) for column in SCHEMA.names), "ts", Range(5)) for name in "RST"
    )
    return r, s, t


def rows(ts: int | None) -> pa.Table:
    return pa.table({"k": [1], "ts": pa.array([ts], pa.int64())})


def nested(late: Any) -> Any:
    """A join of T with a join of R and S, by other keys: two stages."""
    r, s, t = streams()
    infos = {name: source(name, SCHEMA, 0, late=late, whole=late == "output") for name in "RST"}
    tree = Join(Join(r, s, (Equals("R.k", "S.k"),)), t, (Equals("R.ts", "T.ts"),))
    return lower(tree, infos, PlainTyping(), Leaving(buckets=2, idle_after=10))


def waking(late: Any) -> Plane:
    """R and S sleep while T goes on."""
    plane = Plane(nested(late), random.Random(0))
    assert len(plane.plan.stages) == 2
    list(plane.micro_batch({"R": rows(10), "S": rows(10), "T": rows(10)}, clock=0))
    list(plane.micro_batch({"T": rows(100)}, clock=20))
    return plane


def test_what_sleepers_bring_late_together_is_counted_or_fails() -> None:
    plane = waking("drop")
    list(plane.micro_batch({"R": rows(50), "S": rows(50)}, clock=21))
    assert sum(figures.get("late", 0) for figures in plane.figures) == 1
    with pytest.raises(LateRowError, match=r"R and .*S brought 1 row"):
        list(waking("fail").micro_batch({"R": rows(50), "S": rows(50)}, clock=21))


def test_what_sleepers_bring_late_together_cannot_be_shown() -> None:
    with pytest.raises(Exception, match=r'late="output" beside idle_after: what .*R and .*S became together'):
        check_late(nested("output"))


def test_a_stream_that_is_read_twice_shows_a_row_for_each_reading() -> None:
    names = ("a", "b")
    reads = (Stream("R", tuple((f"{n}.{column}", column) for column in SCHEMA.names), "ts", Range(5)) for n in names)
    infos = {"R": source("R", SCHEMA, 0, late="output", invalid="output", whole=True)}
    plan = lower(Join(*reads, (Equals("a.k", "b.k"),)), infos, PlainTyping(), Leaving(buckets=1))
    assert all(isinstance(each.lateness, Slack) for each in plan.sources)
    plane, found = Plane(plan, random.Random(0)), []
    for ts in (50, 10, None):
        found += [row for part in plane.micro_batch({"R": rows(ts)}) for row in part.to_pylist()]
    late, invalid = {"k": 1, "ts": 10}, {"k": 1, "ts": None}
    assert [row["_late_R"] for row in found] == [None, late, late, None, None]
    assert [row["_invalid_R"] for row in found] == [None, None, None, invalid, invalid]


def test_a_late_row_is_counted_in_its_own_micro_batch_only() -> None:
    plan = plan_of(tree("time"), {"0": 0, "1": 0}, buckets=1, idle_after=5, timers=True)
    plane = Plane(plan, random.Random(0))
    late = []
    for clock, ts in enumerate((50, 10)):
        list(plane.micro_batch({"0": table([ROW | {"ts": ts}]), "1": table([ROW | {"ts": ts}])}, clock=clock))
        late.append(sum(figures.get("late", 0) for figures in plane.figures))
    list(plane.tick(10**6))
    late.append(sum(figures.get("late", 0) for figures in plane.figures))
    assert late == [0, 2, 0]
