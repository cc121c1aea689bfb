"""Where no result can be urgent nobody waits for one: what is said of a query is what comes of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Equals, Range
from streamjoin.language import parse_cql
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.lowering.priorities import PriorityExpression, why_never_urgent
from streamjoin.plan.relation import IntervalJoin, Join, Query, Relation, Stream
from tests.in_process import plan_of
from tests.interpreter import InProcess

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k", "p")])

URGENT = (
    "SELECT R.id FROM R [RANGE 5] PRIORITY BY p",
    "SELECT R.id FROM R [ROWS 2] PRIORITY BY p",
    "SELECT R.id FROM R [RANGE 5], S [RANGE 5] PRIORITY BY p WHERE R.k = S.k",
    "SELECT R.id FROM R [RANGE 5] PRIORITY BY p LEFT JOIN S [RANGE 5] ON R.k = S.k",
    "SELECT R.id FROM R [RANGE 5] UNION ALL SELECT S.id FROM S [RANGE 5] PRIORITY BY p",
    "SELECT g.n FROM (SELECT k, COUNT(*) AS n FROM R [RANGE 5] GROUP BY k) AS g, S [RANGE 5] PRIORITY BY p "
    "WHERE g.k = S.k",
)
NEVER = {
    "SELECT DISTINCT R.id FROM R [RANGE 5] PRIORITY BY p": "DISTINCT",
    "SELECT R.k, COUNT(*) AS n FROM R [RANGE 5] PRIORITY BY p GROUP BY R.k": "GROUP BY",
    "SELECT R.id FROM R [RANGE 5] PRIORITY BY p EXCEPT SELECT S.id FROM S [RANGE 5]": "EXCEPT",
    "SELECT R.id FROM R [RANGE 5] PRIORITY BY p INTERSECT SELECT S.id FROM S [RANGE 5]": "INTERSECT",
    "SELECT R.id FROM R [RANGE 5] PRIORITY BY p LEFT SEMI JOIN S [RANGE 5] ON R.k = S.k": "the semi join by snapshot",
    "SELECT R.id FROM R [RANGE 5] PRIORITY BY p LEFT ANTI JOIN S [RANGE 5] ON R.k = S.k": "the anti join by snapshot",
    "SELECT ISTREAM(R.id) FROM R [RANGE 5] PRIORITY BY p": "ISTREAM",
    "SELECT DSTREAM(R.id) FROM R [RANGE 5] PRIORITY BY p": "DSTREAM",
    "SELECT RSTREAM(R.id) FROM R [RANGE 5] PRIORITY BY p": "RSTREAM",
}


def table(*rows: tuple[int, int, int, int]) -> list[pa.Table]:
    return [pa.table(dict(zip(SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True)), schema=SCHEMA)]


def priorities(query: Query, new: str | None = None, *, events: bool = False) -> set[int]:
    """Those of the results of a few rows, urgent ones among them: 1 and 3 have partners, and 2 has none."""
    leaving = Leaving(
        validity=None if events or query.to_stream is not None else ("since", "until"),
        to_stream=query.to_stream,
        priority="priority",
        new_priority=None if new is None else PriorityExpression(new, 2),
    )
    running = InProcess(plan_of(query.relation, dict.fromkeys("RS", SCHEMA), {"R": 0, "S": 0}, leaving))
    left: list[Any] = [
        *running.micro_batch({"R": table((1, 1, 1, 5), (2, 1, 2, 7)), "S": table((1, 1, 1, 4), (7, 1, 9, 0))}),
        *running.micro_batch({"R": table((3, 50, 1, 0)), "S": table((4, 50, 1, 0))}),
        *running.end(),
    ]
    found = [row["priority"] for part in left for row in part.to_pylist()]
    assert found, "something comes of it"
    return set(found)


def asked(text: str) -> Query:
    return parse_cql(text, dict.fromkeys("RS", SCHEMA), times=dict.fromkeys("RS", "ts"))


@pytest.mark.parametrize("text", URGENT)
def test_a_query_with_urgent_results(text: str) -> None:
    assert why_never_urgent(asked(text)) is None
    assert max(priorities(asked(text))) > 0


@pytest.mark.parametrize("text", NEVER)
def test_a_query_without_urgent_results_says_why(text: str) -> None:
    assert why_never_urgent(asked(text)) == f"{NEVER[text]} follows snapshots, and so what leaves has priority 0"
    assert priorities(asked(text)) == {0}


def stream(name: str, *, prioritised: bool, timed: bool = True) -> Relation:
    reads = tuple((f"{name}.{each}", each) for each in SCHEMA.names)
    window = Range(5) if timed else None
    return Stream(name, reads, "ts" if timed else None, window, "`p`" if prioritised else None)


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_a_row_that_leaves_alone_has_its_own_priority(how: Any) -> None:
    for left, right in ((True, False), (False, True), (True, True)):
        query = Query(
            Join(
                stream("R", prioritised=left), stream("S", prioritised=right), (Equals("R.k", "S.k"),), None, how, "row"
            )
        )
        why = "only rows of stream R leave, and nothing says which of them are urgent"
        assert why_never_urgent(query) == (None if left else why)
        assert (max(priorities(query)) > 0) == left
        assert why_never_urgent(query, raised=True) is None
        assert max(priorities(query, "p0 + 3")) > 0, "also without an urgent member"


def test_events_are_urgent_by_row() -> None:
    both = (stream(name, prioritised=name == "R", timed=False) for name in "RS")
    query = Query(IntervalJoin(*both, ("R.ts", "S.ts"), -1, 1, predicates=(Equals("R.k", "S.k"),), how="semi"))
    assert why_never_urgent(query) is None
    assert max(priorities(query, events=True)) > 0
