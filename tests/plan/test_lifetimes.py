"""From a relational tree to a graph: which nodes it has, and what it leaves to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, Band, Equals, Range, Rows
from streamjoin.errors import UnsupportedError
from streamjoin.operators import Aggregating, Multiplicity, NegativeJoin, NegativeWindow, RowWindow, TemporalJoin
from streamjoin.plan.lifetimes import build_graph
from streamjoin.plan.planner import ExpressionTest
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
from streamjoin.runtime.graph import Graph, PerRowNode, SourceNode, UnionNode
from streamjoin.state import KeyTest, ValueTest

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string())])


def stream(source: str, window: object, *names: str) -> Stream:
    return Stream(source, tuple((f"{source}.{name}", name) for name in names or ("k", "s")), "ts", window)


R, S = stream("R", Range(5)), stream("S", Rows(2, by=("k",), drain=True))


def graph_of(relation: Relation, method: str = "direct") -> Graph:
    return build_graph(relation, {"R": SCHEMA, "S": SCHEMA}, method)


def configs(graph: Graph) -> list[object]:
    return [operator.config for operator in graph.operators.values()]


def test_windows_by_method() -> None:
    assert configs(graph_of(R)) == []
    (rows,) = configs(graph_of(S))
    assert rows == RowWindow(2, pa.schema([SCHEMA.field("k")]), drain=True, producer=0)
    (negative,) = configs(graph_of(R, "negative"))
    assert isinstance(negative, NegativeWindow)
    assert negative.size is None
    (negative,) = configs(graph_of(S, "negative"))
    assert (negative.size, negative.by.names, negative.drain) == (2, ["k"], True)


@pytest.mark.parametrize("method", ["direct", "negative"])
def test_set_operators_and_aggregations(method: str) -> None:
    left, right = R, stream("S", Range(3))
    trees = {
        "distinct": Distinct(left), "except": Difference(left, right), "except all": Difference(left, right, True),
        "intersect": Intersection(left, right), "intersect all": Intersection(left, right, True),
    }  # fmt: skip
    for operator, tree in trees.items():
        config = configs(graph_of(tree, method))[-1]
        assert isinstance(config, Multiplicity)
        assert (config.operator, config.method) == (operator, method)
    config = configs(graph_of(Aggregation(left, ("R.k",), (Aggregate("count", None, "n"),)), method))[-1]
    assert isinstance(config, Aggregating)
    assert config.result_schema.names == ["R.k", "n"]


def test_functions_of_rows_are_no_operators() -> None:
    tree = Union((Projection(Selection(R, "`R.k` > 1"), (("x", "`R.k`"), ("y", "`R.s`"))), stream("S", Range(1))))
    graph = graph_of(tree)
    assert [type(node) for node in graph.nodes] == [SourceNode, PerRowNode, PerRowNode, SourceNode, UnionNode]
    table = pa.table({"ts": [1, 2], "k": [1, 2], "s": ["a", "b"]}, schema=SCHEMA)
    left = graph.micro_batch({"R": table, "S": table.slice(1)}, {})
    assert [one.to_pylist() for one in left] == [
        [{"x": 2, "y": "b", "valid_from": 2, "valid_to": 7}], [{"x": 2, "y": "b", "valid_from": 2, "valid_to": 3}],
    ]  # fmt: skip


def test_joins_test_what_the_order_does_not_say() -> None:
    other = stream("S", Range(3))
    (join,) = configs(graph_of(Join(R, other, (Equals("R.k", "S.k"),))))
    assert isinstance(join, TemporalJoin)
    assert (join.outer, join.matching.first, join.matching.tests) == ("snapshot", None, ())
    band, second = Band("R.k", "S.k", 1, 1), Band("R.k", "S.k", 2, 0)
    (join,) = configs(graph_of(Join(R, other, (Equals("R.s", "S.s"), band, second), "`R.k` < `S.k`", "left")))
    assert join.matching.first == band
    assert [type(test) for test in join.matching.tests] == [ValueTest, KeyTest, ExpressionTest]
    negative = configs(graph_of(Join(R, other, (Equals("R.k", "S.k"),), None, "anti"), "negative"))[-1]
    assert isinstance(negative, NegativeJoin)
    assert negative.how == "anti"


def test_operators_have_numbers_of_their_own() -> None:
    tree = Distinct(Join(S, stream("R", Rows(3)), (Equals("S.k", "R.k"),)))
    producers = [config.producer for config in configs(graph_of(tree))]
    assert len(set(producers)) == len(producers) == 4


def test_what_is_left_to_spark() -> None:
    with pytest.raises(UnsupportedError, match=r"a computed column .* is left to Spark"):
        graph_of(Projection(R, (("x", "`R.k` + 1"),)))

    class Strange(Relation):
        columns = ()
        children = ()

    with pytest.raises(UnsupportedError, match="Strange is no relation over lifetimes"):
        graph_of(Strange())


def test_a_stream_may_be_read_without_columns() -> None:
    counted = Aggregation(Stream("R", (), "ts", Range(5)), (), (Aggregate("count", None, "n"),))
    graph = graph_of(counted)
    table = pa.table({"ts": [1, 3], "k": [1, 2], "s": ["a", "b"]}, schema=SCHEMA)
    left = [row for one in graph.micro_batch({"R": table}, {"R": 100}) for row in one.to_pylist()]
    assert [(row["n"], row["valid_from"], row["valid_to"]) for row in left] == [(1, 1, 3), (2, 3, 6), (1, 6, 8)]
