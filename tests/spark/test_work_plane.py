"""Work that a join puts off while rows come, through the processors that ship: timers look after it when none come."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Greedy, TimeAxis
from streamjoin.operators.tpmj import Shares, Tpmj
from streamjoin.operators.tpmj.running import RunningTpmj
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.spark.running.stream import WORK_TIMER
from streamjoin.spark.stored import bucket
from streamjoin.spark.stored.trees import trees_of
from tests.function_trees import plan_of, rows, table, tree
from tests.plane import Plane, Store, own_cache

__all__ = ["own_cache"]
pytestmark = pytest.mark.usefixtures("own_cache")
PIECES, ROWS = 6, 20


def plan(credit: float, *, timers: bool) -> PhysicalPlan:
    """A join in sorted runs of a few rows, which may move so many bytes for every byte that comes."""
    lowered = plan_of(
        replace(tree("keys"), merge=Greedy(3)), {"0": 0, "1": 0}, buckets=1, emit="ordered", timers=timers
    )  # fmt: skip
    (stage,) = lowered.stages
    (node,) = stage.nodes
    assert isinstance(node.config, Tpmj)
    shares = Shares(lists=8, pages=40, results=1000)
    config = replace(node.config, memory=shares, page_bytes=1, row_bytes=(1, 1), credit=credit)
    return replace(lowered, stages=(replace(stage, nodes=(replace(node, config=config),)),))


def ids(tables: Any) -> Counter[tuple[int, int]]:
    return Counter((row["id"], row["id_right"]) for part in tables for row in part.to_pylist())


def fed(plane: Plane) -> Counter[tuple[int, int]]:
    """What has left after all rows have come, in order of time."""
    found, drawn = Counter[tuple[int, int]](), random.Random(3)
    sides = [sorted(rows(drawn, PIECES * ROWS), key=lambda row: row["ts"]) for _ in range(2)]
    for number in range(PIECES):
        batch: dict[str, pa.Table] = {
            str(side): table(some[number * ROWS : (number + 1) * ROWS]) for side, some in enumerate(sides)
        }
        found += ids(plane.micro_batch(batch))
    return found


def store_of(plane: Plane) -> Store:
    ((store,),) = (list(stores.values()) for stores in plane.stores.values())
    return store


@pytest.mark.parametrize("trouble", [0.0, 0.5])
def test_merges_go_on_while_nothing_comes_and_timers_last_as_long(trouble: float) -> None:
    paid = fed(Plane(plan(1000.0, timers=True), random.Random(0)))
    plane = Plane(plan(0.5, timers=True), random.Random(0), trouble=trouble)
    found = fed(plane)
    assert found < paid, "without credit results wait"
    store, clock = store_of(plane), -1 + WORK_TIMER
    assert store.timers[-1] == clock
    found += ids(plane.tick(clock - 1))
    assert found < paid, "rows came after an earlier timer had been set: that one does nothing"
    for _ in range(200):
        before = len(store.timers)
        found += ids(plane.tick(clock))
        if len(store.timers) == before:
            break
        clock = store.timers[-1]
    assert found == paid
    assert ids(plane.tick(clock + 10 * WORK_TIMER)) == Counter(), "nothing is left to do"


def test_a_merge_that_waits_is_told_of() -> None:
    """From what is stored: which groups it takes, how far it has come, and how much there is of everything."""
    plane = Plane(plan(8.0, timers=True), random.Random(0))
    fed(plane)
    manifest = json.loads(store_of(plane).cells["manifest"][0])
    (stored,) = trees_of(7, manifest, [0], TimeAxis.INTEGER)
    (running,) = bucket._remembered[manifest["state"]].stage.fragment.operators
    assert isinstance(running, RunningTpmj)
    assert running.tree.merge is not None, "the case itself is wrong: nothing is being merged"
    assert stored.merging == (*running.tree.block, running.tree.merge.steps)
    assert (stored.operator, stored.bucket, stored.left) == (7, 0, running.tree.s)
    assert [group.rows for group in stored.groups] == [
        tuple(run.rows for run in group.runs) for group in running.tree.groups
    ]
    assert [group.pages for group in stored.groups] == [
        sum(run.pages.pages for run in group.runs) for group in running.tree.groups
    ]
    every = [sum(group.rows[side] for group in stored.groups) + stored.waiting[side] for side in (0, 1)]
    assert every == [running.kept_rows(side) for side in (0, 1)]


def test_without_timers_nobody_looks_after_it() -> None:
    plane = Plane(plan(0.5, timers=False), random.Random(0))
    fed(plane)
    assert store_of(plane).timers == []
