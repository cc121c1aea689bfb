"""With which plans a query may go on from its state: with no other, but for lateness."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Equals, Range, Rows, Unbounded
from streamjoin.algebra.aggregate import Aggregate
from streamjoin.algebra.merging import Greedy, MaxFanIn, MergeStrategy
from streamjoin.errors import SnapshotError
from streamjoin.plan.identity import identity_of
from streamjoin.plan.lowering import Leaving, lower
from streamjoin.plan.multi_join import Between, MultiJoin
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Aggregation, Difference, Intersection, Join, Projection, Relation, Stream
from tests.in_process import source
from tests.interpreter import PlainTyping
from tests.plane import Plane, own_cache

__all__ = ["own_cache"]
SCHEMA = pa.schema([(name, pa.int64()) for name in ("a", "b", "c", "ts")])
TABLES = {"T": None, "U": None}


def stream(name: str, window: Any = Range(5)) -> Stream:  # noqa: B008
    return Stream(name, tuple((f"{name}.{column}", column) for column in SCHEMA.names), "ts", window)


def renamed(child: Relation, **columns: str) -> Projection:
    return Projection(child, tuple((name, f"`{column}`") for name, column in columns.items()))


def planned(relation: Relation, slack: int = 0, **leaving: Any) -> PhysicalPlan:
    infos = {name: source(name, SCHEMA, TABLES.get(name, slack)) for name in "RSTUV"}
    return lower(relation, infos, PlainTyping(), Leaving(buckets=2, **leaving))


def identities(plan: PhysicalPlan) -> list[dict[str, str]]:
    return [identity_of(plan, stage) for stage in plan.stages if not stage.complete]


def both(window: Any = Range(5)) -> Join:  # noqa: B008
    return Join(stream("R", window), stream("S"), (Equals("R.a", "S.a"),))


def thrice(column: str) -> Join:
    return Join(both(), stream("V"), (Equals("R.a", "V.a"), Equals(column, "V.b")))


def grouped(v: str, w: str) -> Aggregation:
    aggregates = Aggregate("sum", "v", "sum_v"), Aggregate("max", "w", "max_w")
    return Aggregation(renamed(both(), g="R.a", v=v, w=w), ("g",), aggregates)


def with_table(function: str) -> Join:
    table = Aggregation(stream("T", Unbounded()), ("T.a",), (Aggregate(function, "T.b", "x"),))
    return Join(stream("R"), table, (Equals("R.a", "x"),))


def with_tables(operator: type[Difference] | type[Intersection]) -> Join:
    parts = (renamed(stream(name, Unbounded()), a=f"{name}.a", b=f"{name}.b") for name in "TU")
    return Join(stream("R"), operator(*parts), (Equals("R.a", "a"),))


def picked(window: Any, x: str, y: str) -> Projection:
    return renamed(both(window), x=x, y=y)


PAIRS: dict[str, tuple[Relation, Relation, dict[str, Any]]] = {
    "the key of a join within a stage": (thrice("R.b"), thrice("R.c"), {}),
    "columns below a GROUP BY within a stage": (grouped("R.b", "R.c"), grouped("R.c", "R.b"), {}),
    "an aggregate of a table": (with_table("sum"), with_table("max"), {}),
    "a set operator of tables": (with_tables(Difference), with_tables(Intersection), {}),
    "columns that wait for their ends": (picked(Rows(2), "R.b", "R.c"), picked(Rows(2), "R.c", "R.b"), {}),
    "columns that wait for order": (
        picked(Range(5), "R.b", "R.c"), picked(Range(5), "R.c", "R.b"), {"emit": "ordered"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", PAIRS)
def test_another_query_is_told_from_the_one_that_made_the_state(what: str) -> None:
    one, other, leaving = PAIRS[what]
    assert identities(planned(one, **leaving)) != identities(planned(other, **leaving))


@pytest.mark.parametrize("what", PAIRS)
def test_lateness_and_names_of_results_may_change(what: str) -> None:
    relation, _, leaving = PAIRS[what]
    options: Any = {"idle_after": 9, "timers": True, "validity": ("since", "until")}
    assert identities(planned(relation, **leaving)) == identities(planned(relation, 7, **leaving, **options))


def test_merge_strategy_and_memory_may_change() -> None:
    def of(merge: MergeStrategy, memory: int) -> list[Any]:
        between = Between(0, 1, Equals("R.b", "S.b")), Between(1, 2, Equals("S.b", "V.b"))
        join = MultiJoin(tuple(stream(name) for name in "RSV"), between, merge=merge)
        return identities(planned(join, emit="ordered", memory=memory))

    assert of(Greedy(), 1 << 26) == of(MaxFanIn(3), 1 << 28)


@pytest.mark.usefixtures("own_cache")
def test_a_changed_key_is_refused_before_it_meets_old_rows() -> None:
    def rows(*values: tuple[int, ...]) -> pa.Table:
        return pa.table([pa.array(column, pa.int64()) for column in zip(*values, strict=True)], SCHEMA.names)

    before = Plane(planned(thrice("R.b"), 100), random.Random(0))
    list(before.micro_batch({"R": rows((1, 2, 3, 0)), "S": rows((1, 0, 0, 0))}))
    after = Plane(planned(thrice("R.c"), 100), random.Random(0))
    after.stores = before.stores
    with pytest.raises(SnapshotError, match="this state was made by another query"):
        list(after.micro_batch({"V": rows((1, 2, 0, 0))}))
