"""The machine room in cases made by hand: where buffers stand, who is taken next, whose turn it is, when all leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.errors import UnequalResultsError
from benchmarks.priority_room import buffers, clock, experiment, questions, schedulers, sweeps
from benchmarks.priority_room.claims import CLAIMS, Found
from benchmarks.priority_room.elements import DELIVERED, Elements, draw_elements
from benchmarks.priority_room.experiment import Latency, Measured, Room, Variant, check_delivered, document_room
from benchmarks.priority_room.join_formula import Case, mean_gain, with_plan
from benchmarks.priority_room.plan import NO_BUFFER, SINK, Operator, Plan, document_plan, place_buffers
from streamjoin.cli import app

# Two sources with a priority operator each, a join of both, and a unary operator above it.
JOINED = Plan(
    (
        Operator("priority", 2, 1.0),
        Operator("priority", 2, 1.0),
        Operator("binary", 3, 2.0),
        Operator("unary", SINK, 3.0),
    ),
    (0, 1),
)
FREE = clock.Overhead(0.0, 0.0, 0.0, 0.0)


class TestPlan:
    def test_the_documents_plan_has_its_size(self) -> None:
        plan = document_plan()
        assert len(plan.operators) == 61
        assert {len(plan.path(source)) for source in plan.sources} == {9}
        assert len(plan.sources) == 16
        assert len(place_buffers(plan)) == 62

    def test_buffers_stand_above_sources_and_priorities_and_below_joins(self) -> None:
        made = place_buffers(JOINED)
        assert made.of_source.tolist() == [0, 1]
        assert made.above_operator.tolist() == [2, 3, NO_BUFFER, NO_BUFFER]  # none from the join to the unary
        assert made.feeds.tolist() == [0, 1, 2, 2]

    def test_buffers_are_numbered_from_the_bottom_up(self) -> None:
        plan = document_plan()
        made = place_buffers(plan)
        heights = [plan.height(operator) for operator in made.feeds]
        assert heights == sorted(heights, reverse=True)

    def test_work_is_what_an_element_costs_with_those_that_are_dropped(self) -> None:
        plan = Plan((Operator("unary", 1, 2.0, 0.5), Operator("unary", SINK, 4.0)), (0,))
        assert plan.work == 2.0 + 0.5 * 4.0


class TestElements:
    def test_shares_rates_and_ends_are_those_declared(self) -> None:
        plan = document_plan()
        elements = draw_elements(plan, per_source=2_000)
        assert np.diff(elements.arrival) == pytest.approx(1 / 160_000)
        shares = np.bincount(elements.rank) / len(elements)
        assert shares == pytest.approx([0.7, 0.1, 0.1, 0.1], abs=0.01)
        alive = np.mean([np.prod([plan.operators[n].selectivity for n in plan.path(s)]) for s in plan.sources])
        assert (elements.ends_at == DELIVERED).mean() == pytest.approx(alive, abs=0.02)

    def test_they_are_the_same_every_time(self) -> None:
        one, two = (draw_elements(document_plan(), per_source=50) for _ in range(2))
        assert np.array_equal(one.rank, two.rank)
        assert np.array_equal(one.ends_at, two.ends_at)


def order_and_steps(kind: str, ranks: list[int]) -> tuple[list[int], list[int]]:
    """Put elements 0, 1, ... of these ranks into one buffer, then take all: their order, and the steps of each put."""
    waiting = buffers.empty(1, 4, len(ranks))
    number = buffers.KINDS.index(kind)
    steps = [buffers.put(waiting, number, 0, element, rank) for element, rank in enumerate(ranks)]
    assert waiting.top[0] == max(ranks)
    taken = [buffers.take(waiting, 0, np.array(ranks)) for _ in ranks]
    assert waiting.size[0] == 0
    assert waiting.top[0] == buffers.NOBODY
    return taken, steps


class TestBuffers:
    RANKS = (0, 2, 0, 3, 1, 2, 0)

    @pytest.mark.parametrize(
        ("kind", "order", "steps"),
        [
            ("normal", [0, 1, 2, 3, 4, 5, 6], [0] * 7),
            ("weak", [5, 4, 3, 1, 0, 2, 6], [0] * 7),
            ("strong", [3, 1, 5, 4, 0, 2, 6], [0, 0, 0, 0, 2, 2, 0]),
            ("single", [3, 1, 5, 4, 0, 2, 6], [0, 0, 2, 0, 2, 2, 6]),
            ("lists", [3, 1, 5, 4, 0, 2, 6], [0] * 7),
        ],
    )
    def test_order_and_steps(self, kind: str, order: list[int], steps: list[int]) -> None:
        assert order_and_steps(kind, list(self.RANKS)) == (order, steps)

    def test_the_top_is_what_still_waits(self) -> None:
        waiting = buffers.empty(1, 4, 3)
        ranks = np.array([3, 0, 1])
        for element, rank in enumerate(ranks):
            buffers.put(waiting, buffers.NORMAL, 0, element, rank)
        tops = []
        for _ in ranks:
            tops.append(int(waiting.top[0]))
            buffers.take(waiting, 0, ranks)
        assert tops == [3, 1, 1]
        assert waiting.most[0] == 3


def waiting_with(*ranks_by_buffer: list[int]) -> buffers.Waiting:
    waiting = buffers.empty(len(ranks_by_buffer), 4, sum(map(len, ranks_by_buffer)))
    element = 0
    for buffer, ranks in enumerate(ranks_by_buffer):
        for rank in ranks:
            buffers.put(waiting, buffers.LISTS, buffer, element, rank)
            element += 1
    return waiting


class TestSchedulers:
    def test_a_fixed_order_passes_what_is_empty_and_goes_on_where_it_stood(self) -> None:
        waiting = waiting_with([0], [], [0], [0])
        turn = np.zeros(1, np.int64)
        picked = [schedulers.next_in_order(waiting, np.array([2, 1, 0, 3]), turn) for _ in range(4)]
        assert picked == [(2, 1), (0, 2), (3, 1), (2, 1)]

    def test_biggest_queue(self) -> None:
        assert schedulers.biggest_queue(waiting_with([3], [0, 0], [0, 0], []))[0] == 1

    def test_highest_priority_and_of_several_the_lowest(self) -> None:
        assert schedulers.highest_priority(waiting_with([], [0], [1, 3], [3]))[0] == 2
        assert schedulers.highest_priority(waiting_with([], [0, 0], [0], [0]))[0] == 1

    def test_the_proposal_goes_by_order_only_if_nobody_is_prioritised(self) -> None:
        order, turn = np.array([2, 0, 1]), np.zeros(1, np.int64)
        assert schedulers.priority_then_order(waiting_with([0], [1], [0]), order, turn) == (1, 3)
        assert turn[0] == 0
        assert schedulers.priority_then_order(waiting_with([0], [0], [0]), order, turn) == (2, 4)

    def test_orders(self) -> None:
        made = place_buffers(JOINED)
        assert schedulers.order_of(schedulers.MIN_COST, JOINED, made).tolist() == [0, 1, 2, 3]
        # The cheapest paths begin below the join; from a source a path goes on through the buffer below the join.
        assert schedulers.order_of(schedulers.MIN_LATENCY, JOINED, made).tolist() == [2, 3, 0, 2, 1, 3]
        assert sorted(schedulers.order_of(schedulers.ROUND_ROBIN, JOINED, made)) == [0, 1, 2, 3]


def by_hand(ranks: list[int], arrivals: list[float], overhead: clock.Overhead = FREE, ends_at: Any = None) -> Room:
    """Elements of the first source; costs in seconds are those of the plan."""
    count = len(ranks)
    ends = np.full(count, DELIVERED) if ends_at is None else np.array(ends_at)
    elements = Elements(np.array(arrivals), np.zeros(count, np.int64), np.array(ranks), ends, ranks=4)
    # A load of `work` at one element per second for both sources leaves declared costs as they are.
    return Room(JOINED, elements, rate=0.5, overhead=overhead)


def leaves(room: Room, scheduler: str, kind: str, train: int = 1, known: bool = False) -> list[float]:
    left, _, _ = room.leave(Variant(JOINED.work, scheduler, kind, train, known))
    return left.tolist()  # type: ignore[no-any-return]


class TestClock:
    """An element costs 1 second for its priority, then 2 + 3 for join and unary, between which there is no buffer."""

    def test_one_by_one(self) -> None:
        room = by_hand([0, 0], [0.0, 0.0])
        assert leaves(room, "min-cost", "normal") == [6.0, 12.0]
        assert leaves(room, "highest priority", "normal") == [7.0, 12.0], "ties: lowest in the plan first"
        assert leaves(room, "min-cost", "normal", train=2) == [7.0, 12.0]

    def test_prioritised_elements_skip_direct_buffers(self) -> None:
        room = by_hand([0, 3], [0.0, 0.0])
        assert leaves(room, "min-cost", "direct", train=2) == [12.0, 7.0]
        assert leaves(room, "highest priority", "direct") == [12.0, 7.0]

    def test_prioritised_elements_overtake_in_a_weak_buffer(self) -> None:
        room = by_hand([0, 1, 3], [0.0, 0.0, 0.0])
        assert leaves(room, "min-cost", "weak", train=3) == [18.0, 13.0, 8.0]
        assert leaves(room, "min-cost", "strong", train=3) == [18.0, 13.0, 8.0]
        other = by_hand([0, 3, 1], [0.0, 0.0, 0.0])
        assert leaves(other, "min-cost", "weak", train=3) == [18.0, 13.0, 8.0], "last in, first out"
        assert leaves(other, "min-cost", "strong", train=3) == [18.0, 8.0, 13.0]

    def test_above_a_source_priorities_count_only_if_they_are_known_there(self) -> None:
        room = by_hand([0, 3], [0.0, 0.0])
        assert leaves(room, "min-cost", "weak") == [6.0, 12.0]
        assert leaves(room, "min-cost", "weak", known=True) == [12.0, 6.0]
        # A direct buffer above a source is a normal one, whatever is known: nobody overtakes there.
        assert leaves(room, "min-cost", "direct", known=True) == [6.0, 12.0]

    def test_time_passes_between_arrivals_and_in_overheads(self) -> None:
        room = by_hand([0, 0], [0.0, 100.0], clock.Overhead(dispatch=0.5, look=0.1, insert=0.25, step=7.0))
        # First: a turn at buffer 0 (0.5 + 0.1), 1 s, an insertion (0.25), a turn at 2 (0.5 + 0.2: 1 is empty), 5 s.
        # Second: the order goes on at 3, which is empty, so 0 is found at the second look.
        assert leaves(room, "min-cost", "normal") == pytest.approx([7.55, 107.65])

    def test_steps_of_sorted_lists_cost_time(self) -> None:
        room = by_hand([0, 0], [0.0, 0.0], clock.Overhead(0.0, 0.0, 0.0, step=10.0))
        assert leaves(room, "highest priority", "lists") == [7.0, 12.0]
        assert leaves(room, "highest priority", "single") == [17.0, 22.0]

    def test_dropped_elements_cost_time_and_do_not_leave(self) -> None:
        room = by_hand([0, 0], [0.0, 0.0], ends_at=[1, DELIVERED])  # the join drops the first
        assert leaves(room, "min-cost", "normal") == [-1.0, 9.0]


class TestExperiment:
    @pytest.mark.parametrize("known", [False, True])
    def test_contract_every_variant_delivers_the_same_and_conserves_work(self, known: bool) -> None:
        room = replace(document_room(30), overhead=FREE)
        seconds = set()
        for variant in experiment.everything(1.2):
            measured = room.run(replace(variant, known_at_source=known))
            assert measured.results == (room.elements.ends_at == DELIVERED).sum()
            seconds.add(round(measured.seconds, 9))
        assert len(seconds) == 1, "without overhead all of them are busy until the same time"

    def test_a_lost_element_is_refused(self) -> None:
        variant = Variant(1.2, "round robin", "weak", train=100)
        everyone = np.ones(5, bool)
        check_delivered(variant, everyone, everyone)
        with pytest.raises(UnequalResultsError, match=r"round robin\+ with weak buffers at load 1.2 lost 1 of 5"):
            check_delivered(variant, np.arange(5) != 3, everyone)

    def test_overload_is_where_priorities_help(self) -> None:
        room = document_room(500)
        gains = []
        for load in (0.5, 1.5):
            plain, direct = (
                room.run(Variant(load, scheduler, kind, 100, known_at_source=True)).prioritised.mean
                for scheduler, kind in (("min-latency", "normal"), ("highest priority", "direct"))
            )
            gains.append(plain / direct)
        assert gains[0] < 3
        assert gains[1] > 30


def found_with(**latencies: float) -> Found:
    """Everything takes a second, but for what is said of prioritised elements by kind of buffer."""

    def measured(variant: Variant) -> Measured:
        one = Latency(1.0, 1.0)
        mean = latencies.get(variant.kind, 1.0)
        return Measured(variant, 10, 1.0, one, one, Latency(mean, mean), (Latency(mean, mean),) * 3, 1)

    runs = {(each.name, each.kind): measured(each) for each in experiment.everything(1.2)}
    some = runs["round robin", "normal"]
    return Found(1.2, runs, some, some, some, {(n, k): 1.0 for n in ("round robin", "round robin+") for k in (1, 9)})


class TestClaims:
    def held(self, found: Found) -> dict[str, bool]:
        return {claim.check.__name__: claim.check(found)[0] for claim in CLAIMS}

    def test_claims_can_fail(self) -> None:
        held = self.held(found_with())
        assert not any(held[each] for each in ("almost_all_improve", "improve_clearly", "more_than_fifty"))
        assert not held["one_sorted_list_multiplies"]
        assert held["priorities_do_not_differ"]
        assert held["min_latency_gains_nothing"]

    def test_claims_can_hold(self) -> None:
        held = self.held(found_with(direct=0.01, weak=0.1, single=5.0))
        assert all(held[each] for each in ("almost_all_improve", "improve_clearly", "more_than_fifty"))
        assert held["one_sorted_list_multiplies"]
        assert held["direct_beats_weak"]
        assert not held["min_latency_gains_nothing"]
        assert not self.held(found_with(direct=0.2, weak=0.1))["direct_beats_weak"]

    def test_the_best_unprioritised_scheduler_has_normal_buffers_and_knows_nothing(self) -> None:
        found = found_with(direct=0.01)
        best = found.runs["highest priority", "normal"]
        fast = replace(best, prioritised=Latency(0.001, 0.001))
        found = replace(found, runs={**found.runs, ("highest priority", "normal"): fast})
        assert found.best_unprioritised().variant.scheduler != "highest priority"
        assert found.gain_on_best(found.runs["round robin", "direct"]) == 100


class TestFormula:
    def test_terms_are_as_printed(self) -> None:
        case = Case("", w0=2.0, w1=1.0, f0=1.0, f1=3.0, sigma=0.5, x=4, t_join=10.0, t_plan=100.0)
        # sum over n = 1, 2 of (1 + n) * 2/3 is 10/3
        assert case.terms == pytest.approx((40.0, 4 / 6, 0.5 * (10 / 3 + 2) * 3 * 100))

    def test_waiting_is_what_the_formula_says(self) -> None:
        for case in (Case("", sigma=1.0, f1=10.0), Case("", sigma=1.0, f1=10.0, w0=2.0)):
            assert mean_gain(case, 2) == pytest.approx(case.terms[1], rel=0.04)

    def test_work_while_waiting_is_not_added(self) -> None:
        case = with_plan("", 0.5)
        assert mean_gain(case, 3) < 0.8 * sum(case.terms)


def test_sweeps_say_where_a_line_is_behind() -> None:
    def runs(*means: float) -> list[Measured]:
        some = found_with().runs["round robin", "direct"]
        return [replace(some, prioritised=Latency(mean, mean)) for mean in means]

    sweep = sweeps.Sweep("share", "", "", (1, 2, 3), {"direct": runs(1.0, 2.0, 30.0), "weak": runs(1.0, 1.5, 40.0)})
    assert sweep.behind("direct", "weak") == [2]
    assert sweep.collapses_from("direct") == 3
    assert sweep.collapses_from("weak") == 3


def test_the_command_prints_tables_claims_and_verdicts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(questions, "QUICK_PER_SOURCE", 50)
    monkeypatch.setattr(sweeps, "QUICK_PER_SOURCE", 20)
    monkeypatch.setattr(sweeps, "SHARES", (0.3, 0.9))
    monkeypatch.setattr(questions, "FOLDER", tmp_path)
    shown = CliRunner().invoke(app, ["bench", "priority", "--quick", "--only", "claims,share,alarms"])
    assert shown.exit_code == 0, shown.output
    assert "every variant delivered the same" in shown.output
    assert "direct almost always better than weak" in shown.output
    assert "against the best unprioritised" in shown.output
    assert "alarms among status messages" in shown.output
    assert {file.name for file in (tmp_path / "quick").iterdir()} == {"loads.svg", "share.svg", "index.html"}
    wrong = CliRunner().invoke(app, ["bench", "priority", "--only", "nobody"])
    assert "there is no question 'nobody'" in wrong.output
