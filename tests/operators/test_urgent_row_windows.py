"""Row windows over whole frames, alone or beside a stream: urgent rows go first there too, and break no tie."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streamjoin.algebra import Equals, Range, Rows
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.relation import Join, Stream
from tests.in_process import plan_of
from tests.interpreter import InProcess
from tests.priority_simulator import SCHEMA, counted, table

# Of two rows of one time the one with the larger id is later, and pushes the other out. The earlier one is urgent in
# one pair, the later one in the other.
READ = [(1, 5, 9), (2, 5, 0), (3, 8, 0), (4, 8, 9), (5, 9, 0)]
PARTNERS = [(11, 4, 0), (12, 8, 7)]
WHERE = ["batch", "beside a stream", "stream"]


def rows(some: list[tuple[int, int, int]]) -> Any:
    return table([{"id": number, "ts": ts, "te": ts + 5, "k": 0, "v": 0, "p": p} for number, ts, p in some])


def join(by: tuple[str, ...], priority: str | None) -> Join:
    windows = {"R": Rows(1, by=by) if by else Rows(1), "S": Range(9)}
    reads = {name: ((f"{name}.id", "id"), (f"{name}.k", "k")) for name in windows}
    left, right = (Stream(name, reads[name], "ts", window, priority) for name, window in windows.items())
    return Join(left, right, (Equals("R.k", "S.k"),))


def found(by: tuple[str, ...], priority: str | None, slacks: dict[str, int | None]) -> Counter[tuple]:
    plan = plan_of(join(by, priority), dict.fromkeys("RS", SCHEMA), slacks, Leaving(validity=("from", "to")))
    running, both = InProcess(plan), {"R": [rows(READ)], "S": [rows(PARTNERS)]}
    left = [*running.micro_batch(both), *running.end()] if any(each is not None for each in slacks.values()) else None
    return counted(running.batch(both) if left is None else left)


@pytest.mark.parametrize("by", [(), ("k",)], ids=["of all", "of each group"])
@pytest.mark.parametrize("slacks", [{"R": None, "S": None}, {"R": None, "S": 0}, {"R": 0, "S": 0}], ids=WHERE)
def test_the_newest_rows_are_the_same_with_and_without_priorities(by: tuple[str, ...], slacks: Any) -> None:
    plain = found(by, None, {"R": None, "S": None})
    assert {one for one, *_ in plain} == {2, 4, 5}, "1 and 3 end where they begin"
    assert found(by, "`p`", slacks) == plain
