"""Results that are not urgent though a member is: they wait until progress has passed them, also with eager emission.

Otherwise the next call, which goes by results that are not urgent, would take those that follow for late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Equals, Range, Validity
from streamjoin.operators.urgency import WAITS, priority_of
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.lowering.priorities import PriorityExpression
from streamjoin.plan.multi_join import Between, MultiJoin
from streamjoin.plan.relation import AsOfJoin, Join, Relation, Stream, streams_of
from tests.in_process import plan_of
from tests.interpreter import InProcess
from tests.priority_simulator import SCHEMA, table

KEYS = (Equals("R.k", "S.k"),)
LEAST = "least(p0, p1)"
URGENT = 1000  # when the urgent row of R is; its other rows come at 10, 20, 30 and 1,500


def stream(name: str, window: Any = None) -> Stream:
    reads = ((f"{name}.id", "id"), (f"{name}.ts", "ts"), (f"{name}.k", "k"))
    return Stream(name, reads, None if isinstance(window, Validity) else "ts", window, "`p`")


def row(ts: int, *, priority: int = 0, te: int | None = None, key: int | None = 0) -> dict[str, Any]:
    return {"id": ts, "ts": ts, "te": te or ts + 5, "k": key, "v": 0, "p": priority}


R, S, T = stream("R", Range(5)), stream("S", Validity("ts", "te")), stream("T", Validity("ts", "te"))
CASES: dict[str, tuple[Relation, str | None, int | None]] = {  # with the key of R's rows: S has 0, from 0 to 9,000
    "pairs": (Join(R, S, KEYS), LEAST, 0),
    "tuples": (MultiJoin((R, S, T), (Between(0, 1, KEYS[0]), Between(1, 2, Equals("S.k", "T.k")))), LEAST, 0),
    "padded rows": (Join(R, S, KEYS, None, "left"), LEAST, 7),
    "padded rows without a key": (Join(R, S, KEYS, None, "left"), LEAST, None),
    "anti rows": (Join(R, S, KEYS, None, "anti"), LEAST, 7),
    "padded parts": (Join(R, S, KEYS, None, "left", "snapshot"), None, 7),
    "semi parts": (Join(R, S, KEYS, None, "semi", "snapshot"), None, 0),
    "as of": (AsOfJoin(stream("R"), stream("S"), ("R.ts", "S.ts"), (("R.k", "S.k"),), "backward"), LEAST, 0),
}


@pytest.mark.parametrize("emit", ["eager", "ordered"])
@pytest.mark.parametrize("name", CASES)
def test_a_result_that_is_no_longer_urgent_waits_so_that_the_next_call_loses_nothing(name: str, emit: Any) -> None:
    relation, new, key = CASES[name]
    names = [leaf.source for leaf in streams_of(relation)]
    expression = None if new is None else PriorityExpression(new, len(names))
    validity = None if name == "as of" else ("from", "to")
    leaving = Leaving(validity=validity, emit=emit, new_priority=expression)
    running = InProcess(plan_of(relation, dict.fromkeys(names, SCHEMA), dict.fromkeys(names, 0), leaving))
    others = {each: [table([row(0, te=9000), row(5000)])] for each in names[1:]}
    later = [[row(10, key=key), row(URGENT, priority=9, key=key)]]
    later += [[row(ts, key=key)] for ts in (20, 30, 1500)]
    left: list[pa.Table] = []
    for number, rows in enumerate(later):
        left.append(times_of(running.micro_batch({"R": [table(rows)]} | (others if number == 0 else {}))))
    left.append(times_of(running.end()))
    assert [part["ts"].to_pylist().count(URGENT) for part in left] == [0, 0, 0, 1, 0], "when R has passed it"
    found, late = in_the_next_call(left)
    assert (sorted(found), late) == ([10, 20, 30, URGENT, 1500], 0)


@pytest.mark.parametrize("emit", ["eager", "ordered"])
def test_where_rows_choose_it_also_waits_for_the_input_that_it_takes_nobody_of(emit: Any) -> None:
    relation, new, _ = CASES["as of"]
    assert new is not None
    leaving = Leaving(validity=None, emit=emit, buckets=2, new_priority=PriorityExpression(new, 2))
    running = InProcess(plan_of(relation, dict.fromkeys("RS", SCHEMA), dict.fromkeys("RS", 0), leaving))
    batches: list[dict[str, list[dict[str, Any]]]] = [
        {"R": [row(10), row(URGENT, priority=9, key=None)]},  # 10 waits for S, in another bucket
        {"R": [row(1500)]},
        {"S": [row(5000)]},
    ]
    left = [times_of(running.micro_batch({name: [table(rows)] for name, rows in each.items()})) for each in batches]
    left.append(times_of(running.end()))
    assert [part["ts"].to_pylist().count(URGENT) for part in left] == [0, 0, 1, 0], "when S has passed it too"
    found, late = in_the_next_call(left)
    assert (sorted(found), late) == ([10, URGENT, 1500], 0)


def times_of(tables: Any) -> pa.Table:
    """When the results are for R, all of which have priority 0."""
    rows = [each for part in tables for each in part.to_pylist()]
    rows = [each for each in rows if each["R.ts"] is not None]
    assert not any(each["priority"] for each in rows)
    return pa.table({each: pa.array([row["R.ts"] for row in rows], pa.int64()) for each in ("ts", "id")}).append_column(
        "p", pa.array([0] * len(rows), pa.int64())
    )


def in_the_next_call(parts: list[pa.Table]) -> tuple[list[int], int]:
    """A call that brings results in order: what it gives, and how many it took for late."""
    relation = Stream("J", (("J.id", "id"), ("J.ts", "ts")), "ts", Range(5), "`p`")
    running = InProcess(plan_of(relation, {"J": parts[0].schema}, {"J": 0}, Leaving(emit="ordered", reordered=True)))
    found, late = [], 0
    for part in parts:
        found += [each["J.id"] for out in running.micro_batch({"J": [part]}) for each in out.to_pylist()]
        late += sum(figures.get("late", 0) for figures in running.figures)
    return [*found, *(each["J.id"] for out in running.end() for each in out.to_pylist())], late


def test_the_mark_of_what_waits_is_no_priority() -> None:
    members = [np.array([5, 0, 5, 0]), np.array([0, 0, 3, 4])]
    found = priority_of(members, 4, PriorityExpression("least(p0, p1)", 2))
    assert found is not None
    assert found.tolist() == [WAITS, 0, 3, WAITS]
    assert priority_of([members[1] * 0, None], 4, PriorityExpression("p0", 2)) is None
