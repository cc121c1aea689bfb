"""The experiment of lifetimes on tiny sizes: it runs, and methods that differ are refused. No figures are checked."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from benchmarks import lifetimes, lifetimes_report
from benchmarks.contenders import lifetimes as process
from benchmarks.errors import UnequalResultsError
from benchmarks.insertion_sort import ExpiryArea, InsertionQueue, with_expiry_lists
from benchmarks.lifetimes_equality import changes_of, check_equal, results_of
from benchmarks.lifetimes_memory import memory_of
from benchmarks.lifetimes_plan import Operators, plan_of
from benchmarks.lifetimes_queries import CQL, KINDS, QUERIES, SELECTED, cql_of, tree_of, tuples_of
from benchmarks.lifetimes_run import METHODS, Effort, Lane, compare, measure, run
from streamjoin.cli import app
from streamjoin.operators import TemporalJoin
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.state import TimeQueue

TINY = Effort(batch=50, tuples=100, compared=150, repetitions=1)


class TestData:
    def test_tuples_are_one_per_millisecond_and_aligned(self) -> None:
        tables = tuples_of("join", 532, 6)
        assert tables["STRb0"].to_pylist()[0] == {"ts": 532, "ca": 532, "cb": "s0", "cc": 0}
        assert tables["STRb1"].to_pylist()[5] == {"ts": 537, "ca": 537, "cb": "s1", "cc": 1}

    def test_the_selection_keeps_the_declared_share(self) -> None:
        values = tuples_of("selection", 0, 1000)["STRu"]["cb"].to_numpy()
        assert (values > 3).mean() == SELECTED

    def test_windows_are_put_into_the_text(self) -> None:
        assert cql_of("projection", "time", 10) == "select ca, cb from STRu[RANGE 10]"
        for query in QUERIES:
            assert "WIN" in CQL[query]
            assert "WIN" not in cql_of(query, "rows", 5)


class TestEquality:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("query", QUERIES)
    def test_differential_both_methods_give_the_same(self, query: Any, kind: Any) -> None:
        assert compare(query, kind, 7, TINY) > 0

    def test_a_join_gives_one_result_per_pair_of_tuples_whatever_the_window(self) -> None:
        for kind in KINDS:
            for size in (1, 5, 60):
                out = results_of(plan_of(tree_of("join", kind, size), "direct"), "join", 100, 30)
                assert sum(table.num_rows for table in out) == 100

    def test_elements_may_be_cut_in_any_way(self) -> None:
        def elements(*validities: tuple[int, int]) -> list[pa.Table]:
            starts, ends = zip(*validities, strict=True)
            return [pa.table({"a": ["x"] * len(starts), "valid_from": starts, "valid_to": ends})]

        assert check_equal("cut", elements((0, 5), (5, 9), (3, 7)), elements((0, 7), (3, 9))) == 4
        with pytest.raises(UnequalResultsError, match="different"):
            check_equal("once less", elements((0, 9), (3, 7)), elements((0, 9), (3, 6)))
        with pytest.raises(UnequalResultsError, match="nothing"):
            check_equal("nothing", [], [])
        assert changes_of(elements((2, 2), (4, 6)))["time"].to_pylist() == [4, 6]

    def test_a_broken_twin_is_refused(self) -> None:
        def broken(tree: Any, method: Any) -> PhysicalPlan:
            plan = plan_of(tree, method)
            if method == "direct":
                return plan
            (stage,), ((node,),) = plan.stages, [stage.nodes for stage in plan.stages]
            larger = replace(node, config=replace(node.config, size=node.config.size + 1))
            return replace(plan, stages=(replace(stage, nodes=(larger,)),))

        with pytest.raises(UnequalResultsError, match="different results"):
            measure("projection", "rows", 5, TINY, broken)

    def test_a_method_that_loses_elements_later_is_refused(self) -> None:
        class Lossy(Operators):
            def changes(self, rows: Any, progress: Any) -> Any:
                return list(super().changes(rows, progress))[1:]

        plan = plan_of(tree_of("union", "time", 5), "direct")
        lanes = [Lane("direct", Operators(plan)), Lane("lossy", Lossy(plan))]
        with pytest.raises(UnequalResultsError, match="appeared"):
            run("union", 5, TINY, lanes)


class TestMeasure:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("query", QUERIES)
    def test_both_methods_are_measured(self, query: Any, kind: Any) -> None:
        found = measure(query, kind, 60, TINY)
        assert found["tuples"] == 100 * (1 if query in ("selection", "projection") else 2)
        for method in METHODS:
            assert len(found[method]["seconds"]) == TINY.repetitions
        point = lifetimes.Point(query, kind, 60, found)
        assert point.ratio > 0
        assert point.met == (point.ratio >= point.target)

    def test_a_row_window_keeps_three_numbers_per_row_and_one_is_the_holder(self) -> None:
        operators = Operators(plan_of(tree_of("selection", "rows", 100), "direct"))
        run("selection", 100, TINY, [Lane("direct", operators)])
        memory = memory_of(operators)
        assert memory.holders == 100 * 8
        assert 100 * 24 <= memory.nbytes <= 110 * 24

    def test_time_windows_of_the_direct_method_need_no_memory_and_no_holders(self) -> None:
        operators = Operators(plan_of(tree_of("projection", "time", 100), "direct"))
        run("projection", 100, TINY, [Lane("direct", operators)])
        assert memory_of(operators).nbytes == 0

    def test_holders_are_a_part_of_what_a_join_keeps(self) -> None:
        shares = []
        for kind in KINDS:
            operators = Operators(plan_of(tree_of("join", kind, 100), "direct"))
            run("join", 100, TINY, [Lane("direct", operators)])
            shares.append(memory_of(operators).share)
        assert 0 < shares[0] < 1
        assert shares[1] == 0

    def test_targets(self) -> None:
        assert [lifetimes.target("union", kind, 10_000) for kind in KINDS] == [1.4, 1.4]
        assert [lifetimes.target("union", kind, 100_000) for kind in KINDS] == [1.0, 1.0]
        assert [lifetimes.target("join", kind, 1_000_000) for kind in KINDS] == [1.0, 1.4]


class TestSorting:
    @pytest.mark.parametrize("by_halving", [False, True])
    def test_differential_insertion_gives_rows_as_lazy_sorting_does(self, by_halving: bool) -> None:
        rng = np.random.default_rng(7)
        eager, lazy, now = InsertionQueue(by_halving=by_halving), TimeQueue(), 0
        for step in range(60):
            came = np.sort(now + rng.integers(0, 10, 40))
            times = came + rng.integers(1, 90, 40)
            rows = pa.table({"row": 100 * step + np.arange(40)})
            eager.add(times, rows, came)
            lazy.add(times, rows)
            now += int(rng.integers(10, 20))
            taken = [_rows(queue.take(now)) for queue in (eager, lazy)]
            assert taken[0] == taken[1]
            assert len(eager) == len(lazy)

    @pytest.mark.parametrize("sorting", ["lazy", "walking", "halving"])
    def test_lists_beside_areas_follow_what_expires(self, sorting: Any) -> None:
        operators = with_expiry_lists(Operators(plan_of(tree_of("join", "time", 20), "direct")), sorting)
        run("join", 20, TINY, [Lane("direct", operators)])
        areas = [area for operator in operators.running for area in operator.areas]  # type: ignore[attr-defined]
        for area in areas:
            assert isinstance(area, ExpiryArea)
            assert area.numbered - area.reached == len(area.queue) == 20  # type: ignore[arg-type]

    def test_the_process_measures_all_ways(self) -> None:
        asked = {"job": "sorting", "size": 20, "sortings": ["none", "lazy", "walking"], "effort": asdict(TINY)}
        answered = process.do(asked)
        assert all(len(answered[name]) == 1 for name in asked["sortings"])


def _rows(due: Any) -> list[tuple[int, int]]:
    return [] if due is None else sorted(zip(due[0].tolist(), due[1]["row"].to_pylist(), strict=True))


class TestReport:
    def outcome(self) -> lifetimes.QueryOutcome:
        def point(kind: Any, tuples: int) -> lifetimes.Point:
            measured = {"tuples": 100}
            for method, seconds in (("direct", 1.0), ("negative", 2.0)):
                measured[method] = {"seconds": [seconds], "cpu": [seconds], "nbytes": 9, "holder_share": 0.5}  # type: ignore[assignment]
            return lifetimes.Point("union", kind, tuples, measured)

        return lifetimes.QueryOutcome("union", [point(kind, size) for kind in KINDS for size in (10, 10**5)])

    def test_verdicts_name_the_worst_size_for_each_target(self) -> None:
        verdicts = self.outcome().verdicts
        assert [(verdict.target, verdict.met) for verdict in verdicts] == [(1.4, True), (1.0, True)] * 2

    def test_plots_are_well_formed_and_have_the_claim(self, tmp_path: Path) -> None:
        outcome = self.outcome()
        file = lifetimes_report.write_plot("union", lifetimes_report.query_plot(outcome), tmp_path)
        sorting = lifetimes.SortingOutcome({10: {"lazy": 9.0, "walking": 3.0}, 100: {"lazy": 8.0}})
        lifetimes_report.write_plot("sorting", lifetimes_report.sorting_plot(sorting), tmp_path)
        words = "".join(ElementTree.parse(file).getroot().itertext())
        assert "Document: row windows 1.4 to 2.0" in words
        assert "union.svg" in (tmp_path / "index.html").read_text()
        assert lifetimes_report.query_table(outcome).row_count == 4
        assert lifetimes_report.sorting_table(sorting).row_count == 2

    def test_a_question_that_is_not_there_is_refused_with_those_that_are(self) -> None:
        result = CliRunner().invoke(app, ["bench", "lifetimes", "--only", "aggregation"])
        assert result.exit_code == 1
        assert "selection, projection, union, join, sorting, large" in " ".join(result.output.split())


def test_a_large_window_runs_and_says_how_much_memory_it_took() -> None:
    asked = {"job": "large", "query": "join", "method": "direct", "size": 200, "effort": asdict(TINY)}
    answered = process.do(asked)
    large = lifetimes.LargeOutcome(400, {("join", "direct"): answered})
    assert answered["peak"] >= answered["before"] > 0
    assert [verdict.at_most for verdict in large.verdicts] == [True]
    assert lifetimes_report.large_table(large).row_count == 1


def test_both_methods_are_of_one_tree() -> None:
    plans = {method: plan_of(tree_of("join", "time", 5), method) for method in METHODS}
    nodes = {method: [node for stage in plan.stages for node in stage.nodes] for method, plan in plans.items()}
    assert len(nodes["negative"]) == len(nodes["direct"]) + 2  # a window of its own for each stream
    (join,) = nodes["direct"]
    assert isinstance(join.config, TemporalJoin)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", QUERIES)
def test_stages_read_nothing_but_sources(query: Any, kind: Any) -> None:
    """So their operators can be run one after the other, without anything between."""
    for method in METHODS:
        plan = plan_of(tree_of(query, kind, 5), method)
        channels = [channel for stage in plan.stages for given in stage.inputs for channel in given.channels]
        assert all(channel.from_source for channel in channels)
        assert not any(edge.steps for edge in plan.edges)
