"""What urgent rows have in common with others: a source that brings rows of another kind is awake, and late is late."""

from __future__ import annotations

from typing import Any

import pytest

from streamjoin.algebra import Equals, Range
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.relation import Join, Relation, Stream
from tests.in_process import plan_of
from tests.interpreter import InProcess
from tests.priority_simulator import SCHEMA, table


def joined(*, prioritised: bool = True) -> Relation:
    left, right = (
        Stream(name, ((f"{name}.id", "id"), (f"{name}.k", "k")), "ts", Range(5), "`p`" if prioritised else None)
        for name in "RS"
    )
    return Join(left, right, (Equals("R.k", "S.k"),))


def row(number: int, ts: int | None, priority: int | None = 0) -> dict[str, Any]:
    return {"id": number, "ts": ts, "te": (ts or 0) + 5, "k": 0, "v": 0, "p": priority}


def running(relation: Relation, *, idle_after: int | None = None, **options: Any) -> InProcess:
    leaving = Leaving(validity=("from", "to"), idle_after=idle_after, flagged="output" in options.values())
    return InProcess(plan_of(relation, dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0}, leaving, **options))


# -- invalid rows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prioritised", "priorities", "late"),
    [
        (False, (0,), 0),
        (True, (0,), 0),
        (True, (None,), 0),
        (True, (7, 0), 0),
        (True, (7,), 1),  # only urgent rows: such a source is idle, and who comes back finds that others went on
    ],
)
@pytest.mark.parametrize("invalid", ["drop", "output"])
def test_a_source_that_brings_invalid_rows_is_no_more_idle_than_without_priorities(
    prioritised: bool, priorities: tuple[int | None, ...], late: int, invalid: str
) -> None:
    query = running(joined(prioritised=prioritised), idle_after=10, invalid=invalid)
    list(query.micro_batch({"R": [table([row(1, 3)])], "S": [table([row(2, 3)])]}, clock=0))
    for clock in (8, 16, 24):
        without_time = [table([row(9, None, priority) for priority in priorities])]
        list(query.micro_batch({"R": without_time, "S": [table([row(3, 100 + clock)])]}, clock=clock))
    list(query.micro_batch({"R": [table([row(4, 50)])]}, clock=25))
    assert sum(figures.get("late", 0) for figures in query.figures) == late
