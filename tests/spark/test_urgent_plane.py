"""Functions that are told of urgent results, through the processors and tasks that ship: at least once."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.plan.physical import PhysicalPlan
from tests.function_trees import plan_of, rows, table, tree
from tests.plane import Plane, own_cache

__all__ = ["own_cache"]
pytestmark = pytest.mark.usefixtures("own_cache")
PIECES, ROWS = 3, 30
Ids = tuple[int, int]
told: list[tuple[int, Ids]] = []  # the number of the micro-batch, and a result


def handler(results: pa.Table, batch: int, bucket: int) -> None:
    """Travels by its name, so what it notes is found here."""
    assert min(results["priority"].to_pylist()) > 0
    told.extend((batch, ids) for ids in ids_of([results]).elements())


def plan(lateness: dict[str, int] | None) -> PhysicalPlan:
    keys: Any = tree("keys")
    return plan_of(replace(keys, left=replace(keys.left, priority="`k`")), lateness, buckets=2)  # type: ignore[arg-type]


def ids_of(tables: Any, *, urgent: bool = False) -> Counter[Ids]:
    left = [row for part in tables for row in part.to_pylist()]
    return Counter((row["id"], row["id_right"]) for row in left if row["priority"] > 0 or not urgent)


def streamed(trouble: float) -> tuple[Counter[Ids], Counter[Ids]]:
    """The urgent results that have left, and those that were told."""
    told.clear()
    plane, left = Plane(plan({"0": 50, "1": 50}), random.Random(0), trouble=trouble, urgent=handler), Counter[Ids]()
    for number in range(PIECES):
        drawn = random.Random(number)
        left += ids_of(plane.micro_batch({side: table(rows(drawn, ROWS)) for side in "01"}), urgent=True)
    return left, Counter(ids for _, ids in told)


def test_a_task_that_is_run_again_tells_again() -> None:
    left, once = streamed(trouble=0.0)
    assert once == left
    assert left
    again, twice = streamed(trouble=1.0)  # the first attempt of every task is lost, after its work
    assert again == left, "what is in the frame is there once"
    assert twice == left + left


def test_over_batch_frames_it_is_told_of_batch_0() -> None:
    told.clear()
    drawn, plane = random.Random(1), Plane(plan(None), random.Random(0), urgent=handler)
    left = list(plane.put({side: table(rows(drawn, ROWS)) for side in "01"}))
    assert Counter(told) == Counter({(0, ids): count for ids, count in ids_of(left, urgent=True).items()})
    assert told
    assert len(told) < sum(part.num_rows for part in left), "others are in the frame alone"
