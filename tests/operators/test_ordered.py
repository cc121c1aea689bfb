"""Ordered emission: sorted by (ts, te), held until progress is strictly past, in two ways that give the same."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from streamjoin.algebra import FOREVER, Band
from streamjoin.operators import Results, TemporalJoin
from streamjoin.operators.ordering import HeldResults, HeldRows
from streamjoin.operators.temporal_join import RunningTemporalJoin
from streamjoin.state import Matching
from tests.contract import call, calls, seen
from tests.operators.driving import end, progress, put, rows, temporal
from tests.operators.subjects import SUBJECTS

HOLDS = ("outputs", "inputs")


def crosswise(join: RunningTemporalJoin) -> list[tuple]:
    """The semantics' example: R [3,10), [3,20) against S [1,9), [2,5), the first with the first, the second so too."""
    made = put(join, 1, (1, 1, 9), (2, 2, 5), group=[1, 2])
    made += put(join, 0, (1, 3, 10), group=[1])
    return made + put(join, 0, (2, 3, 20), group=[2])


def test_intersections_do_not_keep_the_order_of_their_inputs() -> None:
    """Both inputs arrive in (ts, te) order, and the eager join makes [3,9) before [3,5)."""
    assert crosswise(temporal()) == [(1, 1, 3, 9), (2, 2, 3, 5)]


@pytest.mark.parametrize("hold", HOLDS)
def test_results_wait_until_progress_is_strictly_past_their_start(hold: str) -> None:
    join = temporal(emit="ordered", hold=hold)
    assert crosswise(join) == []
    assert progress(join, 3, 3) == [], "another row with ts = 3 could still come, and end earlier"
    assert progress(join, 3, 100) == []
    assert progress(join, 4, 100) == [(2, 2, 3, 5), (1, 1, 3, 9)]


@pytest.mark.parametrize("hold", HOLDS)
def test_the_end_lets_everything_go_in_order(hold: str) -> None:
    join = temporal(emit="ordered", hold=hold)
    crosswise(join)
    assert end(join) == [(2, 2, 3, 5), (1, 1, 3, 9)]
    assert join.state_rows == 0


@pytest.mark.parametrize("hold", HOLDS)
def test_what_an_undecided_row_could_precede_waits_for_it(hold: str) -> None:
    join = temporal(how="left", emit="ordered", hold=hold)
    put(join, 0, (1, 0, 30), (2, 5, 9), group=[1, 2])
    put(join, 1, (7, 6, 8), group=[2])
    assert progress(join, 20, 20) == [], "row 1 may yet be padded, with ts = 0"
    assert join.progress == 0
    assert progress(join, 30, 30) == [(1, None, 0, 30), (2, 7, 6, 8)]


@pytest.mark.parametrize("hold", HOLDS)
def test_a_semi_row_that_may_still_find_a_partner_holds_back_the_others(hold: str) -> None:
    join = temporal(how="semi", emit="ordered", hold=hold)
    put(join, 0, (1, 0, 30), (2, 5, 9), group=[1, 2])
    put(join, 1, (7, 6, 8), group=[2])
    assert progress(join, 20, 20) == []
    put(join, 1, (8, 25, 26), group=[1])
    assert progress(join, 26, 26) == [(1, None, 0, 30), (2, None, 5, 9)]


def test_progress_is_honest_about_results_that_still_wait() -> None:
    """The undecided row that held back the others is decided by a batch: nothing leaves before progress moves again."""
    join = temporal(how="left", emit="ordered")
    put(join, 0, (1, 0, 30), (2, 5, 9), group=[1, 2])
    put(join, 1, (7, 6, 8), group=[2])
    progress(join, 20, 20)
    put(join, 1, (8, 21, 22), group=[1])
    assert join.progress == 6
    assert progress(join, 20, 20) == [(2, 7, 6, 8)]
    assert join.progress == 20


TEMPORAL = [subject for subject in SUBJECTS if isinstance(subject.config, TemporalJoin)]
ORDERED = [subject for subject in TEMPORAL if subject.ordered and subject.config.hold == "outputs"]


@pytest.mark.parametrize("subject", ORDERED, ids=lambda subject: subject.name)
@pytest.mark.parametrize("seed", range(6))
def test_differential_holding_inputs_gives_what_holding_outputs_gives(subject: object, seed: int) -> None:
    rng = random.Random(seed)
    made = calls(rng, subject, subject.arrivals(rng), 4)
    whole = []
    for hold in HOLDS:
        join = temporal(
            subject.config.matching, how=subject.config.how, outer=subject.config.outer, emit="ordered", hold=hold,
            validity=subject.config.validity,
        )  # fmt: skip
        whole.append([row for kind, arguments in made for row in seen(call(join, kind, arguments))])
    by_outputs, by_inputs = whole
    assert [row[1:3] for row in by_outputs] == [row[1:3] for row in by_inputs] == sorted(row[1:3] for row in by_inputs)
    assert Counter(by_outputs) == Counter(by_inputs), f"seed {seed}"


@pytest.mark.parametrize("seed", range(6))
def test_differential_inner_results_leave_at_the_same_call_either_way(seed: int) -> None:
    subject = next(one for one in ORDERED if one.config.how == "inner")
    rng = random.Random(seed)
    made = calls(rng, subject, subject.arrivals(rng), 4)
    one, two = (temporal(subject.config.matching, emit="ordered", hold=hold) for hold in HOLDS)
    for place, (kind, arguments) in enumerate(made):
        outputs, inputs = seen(call(one, kind, arguments)), seen(call(two, kind, arguments))
        assert Counter(outputs) == Counter(inputs), f"seed {seed}, call {place}"


def test_holding_inputs_keeps_rows_not_results() -> None:
    """Ten rows that all match ten others: a hundred results, or twenty rows."""
    kept = {}
    for hold in HOLDS:
        join = temporal(emit="ordered", hold=hold)
        for number in (0, 1):
            put(join, number, *((row, 0, 5) for row in range(10)))
        kept[hold] = join.state_rows
        assert len(end(join)) == 100
    assert kept == {"outputs": 120, "inputs": 20}


def test_held_results_leave_sorted_and_strictly_before_the_bound() -> None:
    held, empty = HeldResults(), HeldResults()
    join = temporal(Matching(Band("v", "v", 9, 9)))
    list(join.on_batch(1, rows((7, 0, 50), values=[[0]])))
    for output in join.on_batch(0, rows((1, 5, 9), (2, 3, 9), (3, 3, 4), values=[[0, 1, 2]])):
        assert isinstance(output, Results)
        held.add(output)
    assert (held.footprint.rows, held.first, empty.first) == (3, 3, FOREVER)
    assert list(held.release(3)) == []
    (released,) = held.release(4)
    assert list(zip(released.ts.tolist(), released.te.tolist(), strict=True)) == [(3, 4), (3, 9)]
    again = HeldResults()
    again.restore(held.snapshot("held"))
    assert (again.footprint.rows, again.first) == (1, 5)
    assert set(again.snapshot("held").blobs) == set(held.snapshot("held").blobs), "a part keeps its name"
    assert len(empty.snapshot("held").blobs) == 0
    assert list(empty.release(100)) == []


def test_held_rows_go_when_they_are_ready() -> None:
    held, empty = HeldRows(), HeldRows()
    for some in (rows((1, 5, 9), (2, 3, 9)), rows((3, 4, 9)), rows()):
        held.add(some)
    assert held.footprint.rows == 3
    assert held.release(lambda some: some.ts < 3) is None
    released = held.release(lambda some: some.ts < 5)
    assert released is not None
    assert sorted(released.ts.tolist()) == [3, 4]
    again = HeldRows()
    again.restore(held.snapshot("waiting"))
    assert again.footprint.rows == held.footprint.rows == 1
    assert len(empty.snapshot("waiting").blobs) == 0
    assert empty.release(lambda some: some.ts < 100) is None
