"""Joins to a recall target as they run: in this process, through bytes, with buckets that are moved elsewhere."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import NEVER, Equals, Fixed, Now, Range, Rows, Validity
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.delay import output_delay
from streamjoin.plan.explaining import explain_plan
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Aggregation, Projection, Query, Relation, Selection, Stream
from streamjoin.plan.relation import Join as JoinRelation
from streamjoin.plan.stored import from_stored, to_stored
from streamjoin.runtime.lateness import LargestDelay
from streamjoin.runtime.recall import RecallSide, ToRecall
from tests.function_trees import SCHEMA, plan_of, stream, tree
from tests.in_process import Troubled
from tests.in_process import plan_of as plan_of_tree
from tests.interpreter import InProcess
from tests.operators.recall.streams import Streams

WINDOW, PERIOD = 40, 1000
SIZE = 100  # of a micro-batch
TARGET = ToRecall(0.9, PERIOD, 50)
Batches = list[tuple[pa.Table, pa.Table]]


def late_rows(seed: int, rows: int = 800, delay: int = 400, size: int = SIZE) -> Batches:
    """Both inputs by micro-batch; numbers of rows make each row one of its own."""
    drawn = Streams.drawn(np.random.default_rng(seed), rows, 4000, delay, size)
    numbers, batches = [0, 0], []
    for both in drawn.batches:
        made = []
        for number, some in enumerate(both):
            listed = [
                {"id": numbers[number] + at, "ts": ts, "k": key, "v": float(ts % 5), "lo": 0.0, "hi": 1.0}
                for at, (ts, key) in enumerate(some)
            ]
            numbers[number] += len(some)
            made.append(pa.Table.from_pylist(listed, schema=SCHEMA))
        batches.append((made[0], made[1]))
    return batches


def planned(
    shape: str = "keys", target: Any = TARGET, *, buckets: int = 1, late: Any = "join", **form: Any
) -> PhysicalPlan:
    if shape.startswith("interval"):
        form = {"lower": -WINDOW, "upper": WINDOW // 2} | form
    relation = tree(shape, windows=(Range(WINDOW), Range(WINDOW)), **form)
    return plan_of(relation, {"0": target, "1": target}, late=(late, late), buckets=buckets)


def played(
    plan: PhysicalPlan, batches: list[tuple[pa.Table, pa.Table]], trouble: float = 0.0
) -> tuple[list[Counter], list[int]]:
    """What leaves in each micro-batch, and how many rows are kept after it."""
    running = Troubled(plan, rng=random.Random(1), trouble=trouble)
    left, kept = [], []
    for one, two in batches:
        left.append(_rows(running.rows({"0": one, "1": two})))
        kept.append(running.state_rows)
    left.append(_rows(running.finished()))
    return left, kept


def _rows(tables: list[pa.Table]) -> Counter:
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


def total(left: list[Counter]) -> Counter:
    whole: Counter = Counter()
    for each in left:
        whole.update(each)
    return whole


@pytest.mark.parametrize("shape", ["keys", "band", "interval", "interval without keys", "within", "overlap"])
def test_any_number_of_buckets_gives_the_result_of_one(shape: str) -> None:
    batches = late_rows(1, 400 if shape in ("keys", "interval") else 250)
    one, _ = played(planned(shape), batches)
    assert sum(map(sum, (each.values() for each in one))) > 100
    for buckets, trouble in ((2, 0.0), (5, 0.3)) if shape == "keys" else ((5, 0.3),):
        assert played(planned(shape, buckets=buckets), batches, trouble)[0] == one


@pytest.mark.parametrize("how", ["left", "full", "anti", "semi"])
def test_outer_joins_that_are_decided_in_one_bucket(how: str) -> None:
    batches = late_rows(2, 400)
    one, _ = played(planned(how=how), batches)
    assert played(planned(how=how, buckets=5), batches, 0.2)[0] == one
    inner = total(played(planned(), batches)[0])
    if how == "full":
        ids = Counter(row[0] for row in total(one))
        assert set(ids) - {None} == set(range(400)), "each row leaves, with a partner or without"
        assert all(total(one)[row] for row in inner)


def test_moved_after_every_micro_batch_it_goes_on_the_same() -> None:
    batches = late_rows(3)
    assert played(planned(buckets=2), batches, trouble=1.0) == played(planned(buckets=2), batches)


def test_the_prediction_is_near_the_truth_and_the_target_is_reached() -> None:
    batches = late_rows(4, 3000)
    true = sum(total(played(planned(target=30_000, late="drop"), batches)[0]).values())
    for target in (0.8, 0.95):
        running = Troubled(planned(target=replace(TARGET, target=target)))
        found = sum(sum(_rows(running.rows({"0": one, "1": two})).values()) for one, two in batches)
        (both,) = running.running[0, 0].intake.shared.values()
        groups = both.recall.controller.groups
        predicted = 1 - sum(each.lost for each in groups) / sum(each.pairs for each in groups)
        figures = running.running[0, 0].figures()
        assert figures["target_ppm"] == round(target * 1e6)
        assert [figures["slack_0"], figures["slack_1"]] == both.recall.slack
        assert found / true >= target
        assert predicted == pytest.approx(found / true, abs=0.01)


@pytest.mark.parametrize(
    ("target", "max_delay"),
    [(0.0, None), (0.5, None), (0.8, None), (0.95, None), (0.95, 50), (1.0, 50), (1.0, 100), (1.0, 350), (1.0, 500)],
)
def test_what_is_expected_is_near_the_truth_with_every_target(target: float, max_delay: int | None) -> None:
    """The figures of all micro-batches after the first period, in which slack is still sought; before a sixth of it
    there are none. Results count that leave in the same micro-batches.
    """
    batches, begun = late_rows(6, 2000), PERIOD // SIZE
    true = total(played(planned(target=30_000, late="drop"), batches)[0][begun:]).total()
    running = Troubled(planned(target=replace(TARGET, target=target, max_delay=max_delay)))
    found, expected = 0, []
    for number, (one, two) in enumerate(batches):
        left = _rows(running.rows({"0": one, "1": two})).total()
        figures = running.running[0, 0].figures()
        assert ("recall_ppm" in figures) == (number >= 2), number
        if number >= begun:
            found += left
            expected.append(figures["recall_ppm"] / 1e6)
    assert np.mean(expected) == pytest.approx(found / true, abs=0.03)


@pytest.mark.parametrize("shape", ["keys", "band", "interval", "interval without keys", "within", "overlap"])
def test_every_join_reaches_its_target_and_keeps_less_than_it_may_need(shape: str) -> None:
    """A target of 0.9 is met, not all is found, and less is kept than for the largest delay."""
    batches = late_rows(12, 900 if shape in ("keys", "interval") else 350)
    true = total(played(planned(shape, target=30_000, late="drop"), batches)[0])
    left, kept = played(planned(shape), batches)
    found = total(left)
    assert found <= true, "nothing is made up"
    assert 0.9 <= found.total() / true.total() < 1
    bare = total(played(planned(shape, target=0), batches)[0])
    assert bare.total() / true.total() < 0.9, "the target asks for something"
    _, most = played(planned(shape, target=LargestDelay()), batches)
    assert np.mean(kept) < 0.95 * np.mean(most)


def test_it_keeps_less_than_everything_that_may_come() -> None:
    batches = late_rows(5)
    (_, little), (_, much) = (
        played(planned(target=each), batches) for each in (replace(TARGET, target=0.8), LargestDelay())
    )
    assert np.mean(little) < 0.7 * np.mean(much)


def test_a_target_of_1_with_enough_delay_is_the_exact_join() -> None:
    batches = late_rows(6, 600)
    target = replace(TARGET, target=1.0, max_delay=500)
    exact = total(played(planned(target=30_000, late="drop"), batches)[0])
    left, kept = played(planned(target=target, buckets=2), batches)
    assert total(left) == exact
    assert max(kept[10:-1]) < 0.5 * 1200, "and forgets"


def test_a_target_of_0_keeps_the_bare_window() -> None:
    batches = late_rows(7, 600)
    left, kept = played(planned(target=replace(TARGET, target=0.0)), batches)
    bare, kept_bare = played(planned(target=0, late="join"), batches)
    assert (left, kept) == (bare, kept_bare)


@pytest.mark.parametrize("prior", [False, True])
def test_an_input_that_is_silent_and_idle_holds_nothing_back(prior: bool) -> None:
    """Whether it has ever delivered or not: padded rows leave, and hardly any are kept."""
    plan = planned(how="left")
    running = InProcess(replace(plan, stages=tuple(replace(stage, idle_after=5) for stage in plan.stages)))
    batches, left = late_rows(10, 600, delay=0), 0
    if prior:
        list(running.micro_batch({"1": [batches[0][1]]}, clock=0))
    for number, (one, _) in enumerate(batches):
        left += sum(table.num_rows for table in running.micro_batch({"0": [one]}, clock=3 * number))
    assert left > 550
    assert running.running[0, 0].figures()["state_rows"] < 50


def test_rows_that_a_selection_leaves_out_say_how_far_a_stream_is_and_are_not_counted() -> None:
    batches = late_rows(8, 600)
    names = dict.fromkeys(("id", "ts", "k"), None)
    sides = [Stream(name, tuple((f"{name}.{each}", each) for each in names), "ts", Range(WINDOW)) for name in "RS"]
    chosen = Selection(sides[0], "`R.id` < 300")
    join = JoinRelation(chosen, sides[1], (Equals("R.k", "S.k"),))
    relation: Relation = Projection(join, (("r", "`R.id`"), ("s", "`S.id`")))
    schemas = {"R": SCHEMA, "S": SCHEMA}
    results = []
    for buckets in (1, 3):
        plan = plan_of_tree(relation, schemas, dict.fromkeys("RS", TARGET), Leaving(buckets=buckets), late="join")
        running = Troubled(plan)
        results.append(total([_rows(running.rows({"R": one, "S": two})) for one, two in batches]))
        (both,) = running.running[0, 0].intake.shared.values()
    assert results[0] == results[1]
    assert sum(results[0].values()) > 50
    counted = [sum(part.total for _, part in seen.parts) for seen in both.recall.seen]
    assert counted[0] <= 300 < counted[1]


def test_a_cut_does_not_depend_on_tasks() -> None:
    """Partitions of any size report; what is decided is that of one task."""
    batches = late_rows(9, 600)
    runs = []
    for seed in range(3):
        running = Troubled(planned(buckets=2), rng=random.Random(seed))
        runs.append([_rows(running.rows({"0": one, "1": two})) for one, two in batches])
    assert runs[0] == runs[1] == runs[2]


def test_a_plan_with_a_target_is_stored_and_read() -> None:
    plan = planned()
    assert from_stored(to_stored(plan)) == plan
    side = plan.sources[1].lateness
    assert isinstance(side, RecallSide)
    assert (side.number, side.model.windows, side.model.aim.step, side.bits) == (1, (WINDOW, WINDOW), 2, 16)
    assert "kept as long as 0.9 of all results need" in "\n".join(explain_plan(plan))


def test_intervals_are_windows_and_joins_without_keys_have_one_class() -> None:
    side: Any = planned("interval without keys").sources[0].lateness
    assert (side.model.windows, side.bits) == ((WINDOW // 2 + 1, WINDOW + 1), 0)
    now: Any = plan_of(tree("keys", windows=(Now(), Range(9))), {"0": TARGET, "1": TARGET}, late=("join", "join"))
    assert now.sources[0].lateness.model.windows == (1, 9)


def test_the_largest_delay_is_the_slack() -> None:
    """Of 0, 9 | 4, 12 | 5 | 30: delays of 0, 5, 7."""
    plan = planned(target=LargestDelay(), late="drop")
    running = Troubled(plan)
    reached = []
    for times in ([0, 9], [4, 12], [5], [30]):
        table = pa.Table.from_pylist([{"id": at, "ts": ts, "k": 0} for at, ts in enumerate(times)], schema=SCHEMA)
        running.rows({"0": table, "1": table})
        reached.append(running.running[0, 0].intake.progress()[0])
        running.move()
    assert reached == [9, 9, 9, 23]
    assert NEVER not in reached


REFUSED: dict[str, tuple[Any, str]] = {
    "one input": (
        lambda: plan_of(tree("keys"), {"0": TARGET, "1": 5}, late=("join", "join")),
        "for both inputs of a join",
    ),
    "two targets": (
        lambda: plan_of(tree("keys"), {"0": TARGET, "1": replace(TARGET, target=0.5)}, late=("join", "join")),
        "for both inputs of a join",
    ),
    "late": (lambda: planned(late="output"), 'late="output" beside a recall target'),
    "late, dropped": (lambda: planned(late="drop"), 'late="drop" beside a recall target'),
    "late, failing": (lambda: planned(late="fail"), 'late="fail" beside a recall target'),
    "as of": (lambda: plan_of(tree("as of"), {"0": TARGET, "1": TARGET}, late=("join", "join")), "rows choose"),
    "best match": (lambda: plan_of(tree("best match"), {"0": TARGET, "1": TARGET}), "rows choose"),
    "nearest": (lambda: plan_of(tree("nearest"), {"0": TARGET, "1": TARGET}), "rows choose"),
    "priorities": (lambda: planned_with_priorities(), "a recall target beside priorities"),
    "row window": (
        lambda: plan_of(tree("keys", windows=(Rows(3), Range(5))), {"0": TARGET, "1": TARGET}, late=("join", "join")),
        "a row window",
    ),
    "fixed": (
        lambda: plan_of(tree("keys", windows=(Fixed(3), Range(5))), {"0": TARGET, "1": TARGET}, late=("join", "join")),
        "not all valid for as long",
    ),
    "validity": (
        lambda: plan_of(
            tree("keys", windows=(Validity("ts", "id"), Range(5))), {"0": TARGET, "1": TARGET}, late=("join", "join")
        ),
        "not all valid for as long",
    ),
    "ordered": (
        lambda: plan_of(tree("keys"), {"0": TARGET, "1": TARGET}, late=("join", "join"), emit="ordered"),
        'emit="ordered"',
    ),
    "second stage": (lambda: planned("overlap", how="left", buckets=3), "a left join whose rows go to several buckets"),
    "three streams": (
        lambda: plan_of_tree(
            JoinRelation(
                JoinRelation(stream(0, Range(5)), stream(1, Range(5)), (Equals("0.k", "1.k"),)), stream(2, Range(5)),
                (Equals("1.k", "2.k"),),
            ),
            dict.fromkeys("012", SCHEMA), dict.fromkeys("012", TARGET), late="join",
        ),
        "one join of two streams",
    ),
    "granularity": (lambda: planned(target=replace(TARGET, granularity=3)), "a fortieth of both windows"),
    "aggregation": (
        lambda: plan_of_tree(
            Aggregation(tree("keys"), ("0.k",), ()), dict.fromkeys("01", SCHEMA), dict.fromkeys("01", TARGET)
        ),
        "one join of two streams",
    ),
}  # fmt: skip


def planned_with_priorities() -> PhysicalPlan:
    joined = tree("keys")
    assert isinstance(joined, JoinRelation)
    urgent = replace(joined, left=replace(stream(0, Range(5)), priority="`id`"))
    return plan_of(urgent, {"0": TARGET, "1": TARGET}, late=("join", "join"))


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_reason(what: str) -> None:
    call, reason = REFUSED[what]
    with pytest.raises((CallError, UnsupportedError), match=reason):
        call()


def test_a_stream_beside_a_table_is_told_what_to_write() -> None:
    with pytest.raises(CallError) as refused:
        plan_of(tree("keys"), {"0": TARGET, "1": None}, late=("join", "drop"))
    assert 'lateness=sj.Grace("0 seconds")' in str(refused.value)


@pytest.mark.parametrize("policy", [TARGET, LargestDelay()])
def test_nobody_knows_how_late_results_are(policy: Any) -> None:
    relation = tree("keys")
    plan = plan_of(relation, {"0": policy, "1": policy}, late=("join", "join"))
    with pytest.raises(CallError, match="input 0 has a slack that adapts"):
        output_delay(Query(relation), plan)
