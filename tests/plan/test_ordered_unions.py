"""UNION ALL in order: whatever leaves waits for its turn, rows that no operator reads too."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Equals, Range, Rows
from streamjoin.plan.explaining import explain_plan
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Join, Projection, Relation, Stream, Union, streams_of
from tests.in_process import Troubled, plan_of
from tests.interpreter import InProcess

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k", "p")])
SLACKS: dict[str, int | None] = {"R": 5, "S": 5, "T": 5, "U": 5}


def stream(name: str, window: Any = Range(5), priority: str | None = None) -> Stream:  # noqa: B008
    return Stream(name, ((f"{name}.id", "id"), (f"{name}.k", "k")), "ts", window, priority)


def part(relation: Relation, name: str) -> Relation:
    return Projection(relation, (("id", f"`{name}.id`"), ("k", f"`{name}.k`")))


PAIRS = part(Join(stream("R"), stream("S"), (Equals("R.k", "S.k"),)), "R")
CASES: dict[str, Relation] = {
    "a join and a stream": Union((PAIRS, part(stream("T"), "T"))),
    "a stream and a join": Union((part(stream("T"), "T"), PAIRS)),
    "a join and two streams": Union((PAIRS, part(stream("T"), "T"), part(stream("U"), "U"))),
    "a row window and a stream": Union((part(stream("R", Rows(2)), "R"), part(stream("T"), "T"))),
}


def planned(relation: Relation, *, slacks: Any = SLACKS) -> PhysicalPlan:
    names = sorted({leaf.source for leaf in streams_of(relation)})
    leaving = Leaving(validity=("from", "to"), emit="ordered")
    known = None if slacks is None else {name: slacks[name] for name in names}
    return plan_of(relation, dict.fromkeys(names, SCHEMA), known, leaving)


def table(*rows: tuple[int, int], priority: int = 0) -> pa.Table:
    """Rows of (id, ts)."""
    return pa.Table.from_pylist([{"id": number, "ts": ts, "k": 0, "p": priority} for number, ts in rows], schema=SCHEMA)


def ids(tables: Any) -> list[int]:
    return [each["id"] for part in tables for each in part.to_pylist()]


@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_stream_wait_for_their_turn_beside_results(name: str) -> None:
    running = InProcess(planned(CASES[name]))
    first = {each.name: [] for each in running.plan.sources} | {"T": [table((1, 9), (2, 7), (3, 8))]}
    left = [ids(running.micro_batch(first))]
    both = {"T": [table((4, 14))], "U": [table((5, 15))]}
    left.append(ids(running.micro_batch({each.name: both.get(each.name, []) for each in running.plan.sources})))
    left.append(ids(running.end()))
    assert left[0] == [], "4 is the bound"
    assert left[1] == [2, 3]
    assert left[2] == ([1, 4, 5] if "two" in name else [1, 4])


@pytest.mark.parametrize("name", CASES)
def test_they_are_in_order_over_all_micro_batches_and_nothing_is_lost(name: str) -> None:
    for seed in range(4):
        rng = random.Random(seed)
        plan = planned(CASES[name])
        passing = {"T": 1000, "U": 2000}  # their ids, by which they are told from results
        rows = {
            source.name: [(passing.get(source.name, 0) + number, number // 2) for number in range(30)]
            for source in plan.sources
        }
        for some in rows.values():
            some.sort(key=lambda each: each[1] + rng.randint(0, 5))
        running, left = Troubled(plan, rng=rng, trouble=0.3), []
        for start in range(0, 30, 6):
            left += running.rows({each: table(*some[start : start + 6]) for each, some in rows.items()})
        left += running.end()
        times = [(each["from"], each["to"]) for part in left for each in part.to_pylist() if each["id"] >= 1000]
        assert times == sorted(times)
        whole = InProcess(planned(CASES[name], slacks=None)).batch(
            {each: [table(*some)] for each, some in rows.items()}
        )
        assert sorted(ids(left)) == sorted(ids(whole))
        assert len(times) >= 30


def test_over_finite_inputs_too() -> None:
    running = InProcess(planned(CASES["a join and a stream"], slacks=None))
    some = table((1, 9), (2, 7), (3, 8))
    assert ids(running.batch({"R": [some.slice(0, 0)], "S": [some.slice(0, 0)], "T": [some]})) == [2, 3, 1]


def test_urgent_rows_of_such_a_stream_do_not_wait() -> None:
    running = InProcess(planned(Union((PAIRS, part(stream("T", priority="`p`"), "T")))))
    left = ids(running.micro_batch({"T": [table((1, 9), (2, 7)), table((3, 30), priority=8)]}))
    assert left == [3]
    assert ids(running.end()) == [2, 1]


def test_a_row_that_is_too_late_for_its_turn_is_late() -> None:
    running = InProcess(planned(CASES["a join and a stream"]))
    list(running.micro_batch({"T": [table((1, 30))]}))
    assert ids(running.micro_batch({"T": [table((2, 3))]})) == []
    assert sum(figures.get("late", 0) for figures in running.figures) == 1
    assert ids(running.end()) == [1]


def test_the_plan_says_so() -> None:
    said = "\n".join(explain_plan(planned(CASES["a join and a stream"])))
    assert "union of input 0: rows that are brought into order" in said
    beside = explain_plan(planned(CASES["a join and a stream"], slacks=SLACKS | {"T": None}))
    assert "a table beside a stream" in "\n".join(beside)
