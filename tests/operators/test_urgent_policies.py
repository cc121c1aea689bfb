"""What urgent rows have in common with others: a source that brings rows of another kind is awake, and late is late."""

from __future__ import annotations

from typing import Any

import pytest

from streamjoin.algebra import Equals, Range
from streamjoin.errors import LateRowError
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


# -- late rows ---------------------------------------------------------------------------------------------------------


def after_100(**options: Any) -> InProcess:
    """Both inputs have come to 100, and S at 95 has ended there."""
    query = running(joined(), **options)
    list(query.micro_batch({"R": [table([row(1, 100)])], "S": [table([row(2, 100), row(3, 95)])]}))
    return query


def left(query: InProcess, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """What leaves when R brings these rows, and how many were late."""
    shown = [each for part in query.micro_batch({"R": [table(rows)]}) for each in part.to_pylist()]
    return shown, sum(figures.get("late", 0) for figures in query.figures)


def test_an_urgent_row_is_late_against_the_progress_that_others_made() -> None:
    shown, late = left(after_100(), [row(4, 97, 9)])
    assert (shown, late) == ([], 1), "it would have met S at 95 and 100"
    shown, late = left(after_100(), [row(4, 100, 9)])
    assert ([(each["S.id"], each["priority"]) for each in shown], late) == ([(2, 9)], 0), "not before progress"


def test_whoever_is_urgent_makes_nobody_late() -> None:
    query = after_100()
    list(query.micro_batch({"R": [table([row(4, 500, 9)])]}))
    shown, late = left(query, [row(5, 100), row(6, 101, 9)])
    assert ({each["R.id"] for each in shown}, late) == ({5, 6}, 0)


def test_a_late_urgent_row_is_shown() -> None:
    shown, late = left(after_100(late="output"), [row(4, 97, 9)])
    assert late == 1
    assert [(each["_late"], each["R.id"], each["S.id"], each["from"]) for each in shown] == [(True, 4, None, None)]


def test_a_late_urgent_row_fails() -> None:
    with pytest.raises(LateRowError):
        left(after_100(late="fail"), [row(4, 97, 9)])


def test_a_late_urgent_row_is_joined_with_whatever_is_still_kept() -> None:
    shown, late = left(after_100(late="join"), [row(4, 97, 9)])
    assert [(each["S.id"], each["priority"]) for each in shown] == [(2, 9)], "S at 95 is forgotten"
    assert late == 1


def test_the_same_rows_are_late_with_and_without_priorities() -> None:
    for prioritised in (True, False):
        query = running(joined(prioritised=prioritised))
        list(query.micro_batch({"R": [table([row(1, 100)])], "S": [table([row(2, 100)])]}))
        _, late = left(query, [row(number, 96 + number, 9 * (number % 2)) for number in range(8)])
        assert late == 4
