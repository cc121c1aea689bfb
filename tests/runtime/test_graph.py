"""A graph of operators: what leaves when, what is late, and that it goes on elsewhere as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators import Multiplicity, Results, Rows, RowWindow
from streamjoin.runtime.graph import Graph, OperatorNode, PerRowNode, SourceNode, UnionNode, as_batch
from streamjoin.state import Batch
from tests.state.storing import Store

SCHEMA = pa.schema([("a", pa.string())])


def read(window: int) -> Callable[[pa.Table], Batch]:
    """Elements that last so long."""

    def reader(table: pa.Table) -> Batch:
        ts = table["ts"].to_numpy()
        return Batch(table.select(["a"]), ts, ts + window, np.zeros(len(ts), np.int64))

    return reader


def rows(*some: tuple[str, int]) -> pa.Table:
    return pa.table({"a": [name for name, _ in some], "ts": pa.array([ts for _, ts in some], pa.int64())})


def shown(tables: Iterable[pa.Table]) -> list[tuple[str, int, int]]:
    return sorted((row["a"], row["valid_from"], row["valid_to"]) for table in tables for row in table.to_pylist())


def same(results: Results) -> Results:
    return results


def without_x(results: Results) -> Results:
    return results.take(np.array([name != "x" for name in results.payload["a"].to_pylist()], np.bool_))


def rows_window(child: int, size: int) -> OperatorNode:
    return OperatorNode((child,), RowWindow(size, producer=child).build, (as_batch,), same)


def distinct(child: int) -> OperatorNode:
    return OperatorNode((child,), Multiplicity("distinct", SCHEMA, producer=child).build, (as_batch,), same)


def test_results_without_state_leave_at_once() -> None:
    graph = Graph([SourceNode("R", read(5)), PerRowNode(0, without_x)])
    assert shown(graph.micro_batch({"R": rows(("p", 1), ("x", 2))}, {})) == [("p", 1, 6)]
    assert shown(graph.micro_batch({"R": rows(("x", 2))}, {})) == []
    assert shown(graph.micro_batch({}, {})) == []
    assert graph.end() == []


def test_a_result_waits_for_its_end() -> None:
    graph = Graph([SourceNode("R", read(99)), rows_window(0, 1), PerRowNode(1, without_x)])
    assert graph.micro_batch({"R": rows(("p", 1), ("x", 2))}, {"R": 1}) == []
    assert graph.state_rows > 0
    assert shown(graph.micro_batch({}, {"R": 2})) == [("p", 1, 2)]
    assert shown(graph.micro_batch({"R": rows(("q", 5))}, {"R": 5})) == []
    assert [row[0] for row in shown(graph.end())] == ["q"]
    assert graph.state_rows == 0


def test_changes_are_told_as_they_are() -> None:
    graph = Graph([SourceNode("R", read(99)), rows_window(0, 1)])
    said = graph.changes({"R": rows(("p", 1))}, {"R": 1})
    assert [results.holder.tolist() for results in said.results] == [[0]]
    said = graph.changes({"R": rows(("q", 4))}, {"R": 4})
    assert [(ends.holder.tolist(), ends.te.tolist()) for ends in said.ends] == [([0], [4])]
    assert said.progress == 4


def test_a_union_has_the_rows_of_all_and_the_least_progress() -> None:
    nodes = [SourceNode("R", read(5)), SourceNode("S", read(2)), UnionNode((0, 1), (same, same)), distinct(2)]
    graph = Graph(nodes)
    assert graph.micro_batch({"R": rows(("p", 1)), "S": rows(("p", 5))}, {"R": 50}) == []
    assert shown(graph.micro_batch({}, {"S": 50})) == [("p", 1, 7)]


def test_rows_behind_the_progress_of_earlier_micro_batches_are_late_once() -> None:
    """A stream that is read twice has its late rows once."""
    graph = Graph([SourceNode("R", read(5)), SourceNode("R", read(3)), UnionNode((0, 1), (same, same))])
    graph.micro_batch({"R": rows(("p", 10))}, {"R": 10})
    left = graph.micro_batch({"R": rows(("q", 9), ("r", 10), ("s", 1))}, {"R": 20})
    assert shown(left) == [("r", 10, 13), ("r", 10, 15)]
    assert [table["a"].to_pylist() for table in graph.late["R"]] == [["q", "s"]]


def test_progress_never_goes_back() -> None:
    graph = Graph([SourceNode("R", read(5)), distinct(0)])
    graph.micro_batch({"R": rows(("p", 10))}, {"R": 10})
    graph.micro_batch({}, {"R": 3})
    assert graph.progress == {"R": 10}


def test_contract_a_restored_graph_goes_on_alike() -> None:
    nodes = [SourceNode("R", read(5)), rows_window(0, 2), distinct(1)]
    steady, restarted, store = Graph(nodes), Graph(nodes), Store()
    for time in range(12):
        news = {"R": rows((f"{time % 3}", time), (f"{time % 2}", time + 1))}
        assert shown(steady.micro_batch(news, {"R": time})) == shown(restarted.micro_batch(news, {"R": time}))
        store.save(restarted.snapshot())
        restarted = Graph(nodes)
        restarted.restore(store.load())
        assert restarted.state_rows == steady.state_rows
    assert shown(steady.end()) == shown(restarted.end())


def test_no_operator_of_a_graph_has_late_rows() -> None:
    class Wrong(type(RowWindow(1).build())):
        def on_progress(self, number: int, time: int) -> Iterable[Rows]:
            yield Rows("late", 0, Batch(pa.table({}), *(np.empty(0, np.int64) for _ in range(3))))

    node = replace(rows_window(0, 1), build=lambda: Wrong(RowWindow(1)))
    with pytest.raises(AssertionError, match="late at its sources"):
        Graph([SourceNode("R", read(5)), node]).micro_batch({}, {"R": 1})


def test_ends_alone_travel_through_selections() -> None:
    graph = Graph([SourceNode("R", read(99)), rows_window(0, 1), PerRowNode(1, without_x), distinct(2)])
    graph.micro_batch({"R": rows(("p", 1))}, {"R": 1})
    assert shown(graph.micro_batch({"R": rows(("x", 3))}, {"R": 4})) == [("p", 1, 3)]
