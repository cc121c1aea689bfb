"""Urgent rows of a semi join by row leave at their first partner, if they meet it in the bucket that is their own."""

from __future__ import annotations

from typing import Any

import pytest

from streamjoin.algebra import Equals, Range
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.relation import Join, Stream
from tests.in_process import plan_of
from tests.interpreter import InProcess
from tests.priority_simulator import SCHEMA, draw, simulate, table

MANY = 20  # of which every other one is urgent


def row(number: int, ts: int, priority: int = 0) -> dict[str, Any]:
    return {"id": number, "ts": ts, "te": ts + 5, "k": 0, "v": number, "p": priority}


def when_urgent_rows_leave(buckets: int, *, keys: bool, partners: list[dict[str, Any]]) -> tuple[list[int], int]:
    """How many of R leave when they come, with their partners of S, and at the end; and in how many stages."""
    left, right = (
        Stream(name, ((f"{name}.id", "id"), (f"{name}.k", "k")), "ts", Range(50), priority)
        for name, priority in (("R", "`p`"), ("S", None))
    )
    relation = Join(left, right, (Equals("R.k", "S.k"),) if keys else (), None, "semi", "row")
    leaving = Leaving(validity=("from", "to"), buckets=buckets)
    running = InProcess(plan_of(relation, dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0}, leaving))
    rows = [row(number, 10, 5 * (number % 2)) for number in range(MANY)]
    steps = [running.micro_batch({"R": [table(rows)]}), running.micro_batch({"S": [table(partners)]}), running.end()]
    counts = [sum(each["priority"] > 0 for part in step for each in part.to_pylist()) for step in steps]
    return counts, len(running.plan.stages)


@pytest.mark.parametrize(("buckets", "keys"), [(1, True), (3, True), (1, False)])
def test_where_one_bucket_knows_all_of_a_row_it_leaves_with_its_first_partner(buckets: int, keys: bool) -> None:
    assert when_urgent_rows_leave(buckets, keys=keys, partners=[row(100, 10)]) == ([0, MANY // 2, 0], 1)


def test_with_copies_in_several_buckets_it_leaves_with_the_first_in_its_own_and_otherwise_when_it_is_final() -> None:
    everywhere = [row(100 + number, 10 + number) for number in range(MANY)]
    assert when_urgent_rows_leave(2, keys=False, partners=everywhere) == ([0, MANY // 2, 0], 2)
    ways = [when_urgent_rows_leave(2, keys=False, partners=[row(100, ts)]) for ts in range(10, 20)]
    found = {tuple(counts) for counts, _ in ways}
    assert found == {(0, MANY // 2, 0), (0, 0, MANY // 2)}, "one partner is in one bucket: that of all, or of none"


def test_the_simulator_waits_for_no_urgent_pair_of_an_outer_join_and_no_row_of_a_semi_join() -> None:
    """Cases in which some had to leave at once; seeds that are dealt out have few of them."""
    outer = [seed for seed in range(500) if draw(seed).kind in ("join", "interval") and _how(seed) in ("left", "full")]
    semi = [seed for seed in range(500) if draw(seed).kind in ("join", "interval") and _how(seed) == "semi"]
    assert min(len(outer), len(semi)) > 20
    for seed in outer[:20] + semi[:20]:
        simulate(seed)


def _how(seed: int) -> str:
    relation: Any = draw(seed).tree(True)
    return str(relation.how)
