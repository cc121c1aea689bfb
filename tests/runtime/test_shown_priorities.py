"""Late rows that are shown: beside their own columns they say how urgent they are, like any result."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Equals, Range
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Join, Relation, Stream
from streamjoin.runtime.naming import OutputColumn
from streamjoin.runtime.packets import Packet
from streamjoin.spark.running.urgent import telling
from tests.in_process import plan_of
from tests.interpreter import InProcess

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k", "priority")])


def rows(*some: tuple[int, int, int | None]) -> list[pa.Table]:
    """Rows (id, ts, priority)."""
    named = [{"id": number, "ts": ts, "k": 0, "priority": priority} for number, ts, priority in some]
    return [pa.Table.from_pylist(named, schema=SCHEMA)]


def planned(*, both: bool = True, theta: str | None = None, buckets: int = 1) -> PhysicalPlan:
    """As `sj.join` asks for it: the inputs' own columns `priority` give way to the result's."""
    streams: list[Relation] = [
        Stream(
            str(number),
            tuple((f"{number}.{name}", name) for name in ("id", "ts", "k", "priority")),
            "ts",
            Range(5),
            "`priority`" if both or not number else None,
        )
        for number in (0, 1)
    ]
    columns = tuple(OutputColumn(f"{side}{name}", (f"{number}.{name}",), pa.int64())
                    for number, side in enumerate("lr") for name in ("id", "k"))  # fmt: skip
    leaving = Leaving(columns, ("from", "to"), flagged=True, buckets=buckets, priority="priority")
    relation = Join(*streams, (Equals("0.k", "1.k"),), theta)
    return plan_of(relation, dict.fromkeys("01", SCHEMA), {"0": 0, "1": 0}, leaving, late="output")


def shown(running: InProcess, **late: list[pa.Table]) -> list[tuple[Any, ...]]:
    """What is shown of late rows."""
    left = [row for part in running.micro_batch({name[1:]: part for name, part in late.items()})
            for row in part.to_pylist()]  # fmt: skip
    assert all(row["_late"] for row in left)
    return sorted((row["lid"] or row["rid"], row["priority"]) for row in left)


@pytest.mark.parametrize("theta", [None, "`0.id` * 2 <> `1.id`"], ids=["of a worker", "computed with by Spark"])
def test_a_late_row_has_its_own_priority(theta: str | None) -> None:
    for buckets in (1, 3):
        running = InProcess(planned(theta=theta, buckets=buckets))
        list(running.micro_batch({"0": rows((1, 100, 0)), "1": rows((2, 100, 0))}))
        found = shown(running, _0=rows((3, 50, 9), (4, 51, 0), (5, 52, None), (6, 53, -2)), _1=rows((7, 50, 3)))
        assert found == [(3, 9), (4, 0), (5, 0), (6, 0), (7, 3)]


def test_a_late_row_of_an_input_without_priorities_has_none() -> None:
    running = InProcess(planned(both=False))
    list(running.micro_batch({"0": rows((1, 100, 0)), "1": rows((2, 100, 0))}))
    assert shown(running, _0=rows((3, 50, 9)), _1=rows((7, 50, 3))) == [(3, 9), (7, 0)]


def test_a_handler_hears_of_results_and_not_of_late_rows() -> None:
    stage = planned().stages[0]
    schema = pa.schema([("lid", pa.int64()), ("priority", pa.int64()), ("_late", pa.bool_())])
    tables = [
        pa.table({"lid": [1, 2], "priority": [9, 0], "_late": [False, False]}, schema=schema),
        pa.table({"lid": [3], "priority": [9], "_late": [True]}, schema=schema),
    ]
    heard: list[list[int]] = []
    packets = [Packet(0, 0, "final", each) for each in tables]
    left = list(telling(packets, stage, lambda told, *_: heard.append(told["lid"].to_pylist()), 0))
    assert left == packets
    assert heard == [[1]]
