"""From a relational tree to a physical plan: its operators, which of them share a stage, and what Spark computes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, Band, Equals, Range, Rows
from streamjoin.errors import UnsupportedError
from streamjoin.operators import Aggregating, Multiplicity, NegativeJoin, NegativeWindow, RowWindow, TemporalJoin
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.lowering.joining import ExpressionTest
from streamjoin.plan.physical import Compute, Mark, PhysicalPlan
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from streamjoin.runtime.fragment import Entry, Inner
from streamjoin.state import KeyTest, ValueTest
from tests.in_process import plan_of
from tests.interpreter import InProcess

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string())])


def stream(source: str, window: object, *names: str) -> Stream:
    return Stream(source, tuple((f"{source}.{name}", name) for name in names or ("k", "s")), "ts", window)


R, S = stream("R", Range(5)), stream("S", Rows(2, by=("k",), drain=True))


def lowered(relation: Relation, method: str = "direct", buckets: int = 1) -> PhysicalPlan:
    return plan_of(relation, {"R": SCHEMA, "S": SCHEMA}, {"R": 0, "S": 0}, Leaving(method=method, buckets=buckets))


def configs(plan: PhysicalPlan) -> list[object]:
    return [node.config for stage in plan.stages for node in stage.nodes]


# Operators -----------------------------------------------------------------------------------------------------------


def test_windows_by_method() -> None:
    assert configs(lowered(R)) == []
    (rows,) = configs(lowered(S))
    assert isinstance(rows, RowWindow)
    assert (rows.size, rows.by.types, rows.drain) == (2, [pa.int64()], True)
    (negative,) = configs(lowered(R, "negative"))
    assert isinstance(negative, NegativeWindow)
    assert negative.size is None
    (negative,) = configs(lowered(S, "negative"))
    assert (negative.size, negative.by.types, negative.drain) == (2, [pa.int64()], True)


@pytest.mark.parametrize("method", ["direct", "negative"])
def test_set_operators_and_aggregations(method: str) -> None:
    left, right = R, stream("S", Range(3))
    trees = {
        "distinct": Distinct(left), "except": Difference(left, right), "except all": Difference(left, right, True),
        "intersect": Intersection(left, right), "intersect all": Intersection(left, right, True),
    }  # fmt: skip
    for operator, tree in trees.items():
        config = configs(lowered(tree, method))[-1]
        assert isinstance(config, Multiplicity)
        assert (config.operator, config.method) == (operator, method)
    config = configs(lowered(Aggregation(left, ("R.k",), (Aggregate("count", None, "n"),)), method))[-1]
    assert isinstance(config, Aggregating)
    assert config.result_schema.names == ["R.k", "n"]


def test_functions_of_rows_are_no_operators() -> None:
    tree = Union((Projection(Selection(R, "`R.k` > 1"), (("x", "`R.k`"), ("y", "`R.s`"))), stream("S", Range(1))))
    plan = lowered(tree)
    assert (plan.stages, [source.target for source in plan.sources]) == ((), [None, None])
    assert [[type(step) for step in source.steps] for source in plan.sources] == [[Mark, Compute], [Compute]]
    table = pa.table({"ts": [1, 2], "k": [1, 2], "s": ["a", "b"]}, schema=SCHEMA)
    left = InProcess(plan).micro_batch({"R": [table], "S": [table.slice(1)]})
    assert [one.to_pylist() for one in left] == [
        [{"x": 2, "y": "b", "valid_from": 2, "valid_to": 7}], [{"x": 2, "y": "b", "valid_from": 2, "valid_to": 3}],
    ]  # fmt: skip


def test_joins_test_what_the_order_does_not_say() -> None:
    other = stream("S", Range(3))
    (join,) = configs(lowered(Join(R, other, (Equals("R.k", "S.k"),))))
    assert isinstance(join, TemporalJoin)
    assert (join.outer, join.matching.first, join.matching.tests) == ("snapshot", None, ())
    band, second = Band("R.k", "S.k", 1, 1), Band("R.k", "S.k", 2, 0)
    (join,) = configs(lowered(Join(R, other, (Equals("R.s", "S.s"), band, second), "`R.k` < `S.k`", "left")))
    assert join.matching.first == band
    assert [type(test) for test in join.matching.tests] == [ValueTest, KeyTest, ExpressionTest]
    negative = configs(lowered(Join(R, other, (Equals("R.k", "S.k"),), None, "anti"), "negative"))[-1]
    assert isinstance(negative, NegativeJoin)
    assert negative.how == "anti"


@pytest.mark.parametrize("buckets", [1, 4])
def test_operators_have_numbers_of_their_own(buckets: int) -> None:
    tree = Distinct(Join(S, stream("R", Rows(3)), (Equals("S.k", "R.k"),)))
    plan = lowered(tree, buckets=buckets)
    producers = [node.producer for stage in plan.stages for node in stage.nodes]
    assert sorted(producers) == [0, 1, 2, 3]


def test_what_is_left_to_spark() -> None:
    with pytest.raises(UnsupportedError, match=r"a computed column .* is left to Spark"):
        lowered(Projection(R, (("x", "`R.k` + 1"),)))

    class Strange(Relation):
        columns = ()
        children = ()

    with pytest.raises(UnsupportedError, match="Strange is no relation that can be run"):
        lowered(Strange())


def test_a_stream_may_be_read_without_columns() -> None:
    counted = Aggregation(Stream("R", (), "ts", Range(5)), (), (Aggregate("count", None, "n"),))
    plan = plan_of(counted, {"R": SCHEMA}, {"R": None})
    table = pa.table({"ts": [1, 3], "k": [1, 2], "s": ["a", "b"]}, schema=SCHEMA)
    left = [row for one in InProcess(plan).batch({"R": [table]}) for row in one.to_pylist()]
    assert [(row["n"], row["valid_from"], row["valid_to"]) for row in left] == [(1, 1, 3), (2, 3, 6), (1, 6, 8)]


# Stages --------------------------------------------------------------------------------------------------------------


NEWEST = stream("R", Rows(2, by=("k",)))
CHAIN = Aggregation(
    Join(NEWEST, stream("S", Range(4)), (Equals("R.k", "S.k"),)), ("R.k",), (Aggregate("count", None, "n"),)
)


def stages(relation: Relation, buckets: int = 4, method: str = "direct") -> list[list[str]]:
    """The operators of each stage."""
    plan = lowered(relation, method, buckets)
    return [[type(node.config).__name__ for node in stage.nodes] for stage in plan.stages]


def test_operators_whose_rows_meet_by_the_same_columns_are_one_stage() -> None:
    assert stages(CHAIN) == [["RowWindow", "TemporalJoin", "Aggregating"]]
    (stage,) = lowered(CHAIN, buckets=4).stages
    feeds = [[feed if isinstance(feed, Entry) else feed.node for feed in node.feeds] for node in stage.nodes]
    assert feeds == [[Entry(0, 1)], [0, Entry(1)], [1]]
    assert all(not feed.binding.placed_by for node in stage.nodes for feed in node.feeds if isinstance(feed, Inner))
    assert stages(replace(CHAIN, keys=("S.k",))) == stages(CHAIN), "of an inner join both keys are as good"
    assert stages(replace(CHAIN, keys=("R.s", "R.k"))) == stages(CHAIN), "equal in both columns is equal in one"
    renamed = Projection(CHAIN.child, (("x", "`R.k`"), ("y", "`S.s`")))
    assert stages(replace(CHAIN, child=renamed, keys=("x",))) == stages(CHAIN)


def test_operators_that_go_by_other_columns_have_stages_of_their_own() -> None:
    assert stages(replace(CHAIN, keys=("R.s",))) == [["RowWindow", "TemporalJoin"], ["Aggregating"]]
    by_text = replace(CHAIN.child, predicates=(Equals("R.s", "S.s"),))
    assert stages(replace(CHAIN, child=by_text)) == [["RowWindow"], ["TemporalJoin"], ["Aggregating"]]
    everything = replace(CHAIN, child=replace(CHAIN.child, left=stream("R", Rows(2))))
    assert stages(everything) == [["RowWindow"], ["TemporalJoin", "Aggregating"]]
    assert stages(replace(CHAIN, keys=())) == [["RowWindow", "TemporalJoin"], ["Aggregating"]]


def test_a_set_operator_shares_the_stage_of_parts_that_are_placed_alike() -> None:
    one, two = Distinct(NEWEST), Distinct(stream("S", Range(3)))
    assert stages(Difference(one, two)) == [["Multiplicity"], ["RowWindow", "Multiplicity", "Multiplicity"]]
    text = Distinct(stream("R", Rows(2, by=("s",))))
    assert stages(Difference(one, text)) == [
        ["RowWindow", "Multiplicity"],
        ["RowWindow", "Multiplicity", "Multiplicity"],
    ]
    both = Intersection(one, Distinct(stream("S", Rows(1, by=("k",)))))
    assert stages(both) == [["RowWindow", "Multiplicity", "RowWindow", "Multiplicity", "Multiplicity"]]


@pytest.mark.parametrize(
    ("how", "keys"),
    [
        ("left", ("S.k",)), ("right", ("R.k",)), ("full", ("R.k",)), ("full", ("S.k",)),
    ],
)  # fmt: skip
def test_padded_rows_lie_where_their_own_key_put_them(how: str, keys: tuple[str, ...]) -> None:
    """NULL as the other side's key is in many buckets: who groups by it needs a stage of its own."""
    joined = replace(CHAIN.child, how=how)
    assert stages(replace(CHAIN, child=joined, keys=keys)) == [["RowWindow", "TemporalJoin"], ["Aggregating"]]
    own = {"left": ("R.k",), "right": ("S.k",)}.get(how)
    assert own is None or stages(replace(CHAIN, child=joined, keys=own)) == stages(CHAIN)


def test_what_spark_computes_lies_between_stages() -> None:
    selected = replace(CHAIN, child=Selection(CHAIN.child, "`R.s` < `S.s`"))
    plan = lowered(selected, buckets=4)
    assert [len(stage.nodes) for stage in plan.stages] == [2, 1]
    assert [edge.channel for edge in plan.edges] == list(plan.feeders(plan.stages[1]))


@pytest.mark.parametrize("method", ["direct", "negative"])
@pytest.mark.parametrize(
    "relation",
    [
        CHAIN,
        replace(CHAIN, keys=("R.s",)),
        replace(CHAIN, child=replace(CHAIN.child, how="full"), keys=("S.k",)),
        Distinct(Join(CHAIN, Distinct(stream("S", Rows(3))), (Equals("n", "S.k"),), None, "left")),
        Distinct(Difference(Distinct(NEWEST), Projection(CHAIN.child, (("a", "`R.k`"), ("b", "`S.s`"))))),
        Intersection(Distinct(NEWEST), Distinct(NEWEST)),
    ],
)
def test_in_one_bucket_everything_is_one_stage(relation: Relation, method: str) -> None:
    assert len(stages(relation, 1, method)) == 1
