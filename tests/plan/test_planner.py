"""The planner: each decision, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Band, Overlaps, Predicate, Range, Validity, Within
from streamjoin.errors import UnsupportedError
from streamjoin.operators import Output, Results
from streamjoin.plan.expression import Expression
from streamjoin.plan.nodes import InputNode, IntervalBounds, JoinNode
from streamjoin.plan.partition import HomePartitioning, MatrixPartitioning, Partitioning, ReferencePartitioning
from streamjoin.plan.planner import ExpressionTest, order_predicates, plan_join
from streamjoin.state import KeyTest, ValueTest

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("k", pa.int32()), ("s", pa.string()), ("v", pa.float64()),
                    ("lo", pa.float64()), ("hi", pa.float64()), ("x", pa.float64())])  # fmt: skip
BAND, BOX, NEAR = Band("v", "v", 1, 1), Overlaps(("lo", "hi"), ("lo", "hi")), Within(("x",), ("x",), 1.0)


def node(*predicates: Predicate, keys: tuple[str, ...] = (), windowed: bool = True, **options: object) -> JoinNode:
    part = InputNode(SCHEMA, ("id", "ts", "v"), keys, "ts", Range(5) if windowed else None)
    return JoinNode((part, part), predicates=predicates, time_type=pa.int64(), **options)


@pytest.mark.parametrize(
    ("predicates", "first"),
    [((), None), ((BOX,), BOX), ((BOX, BAND), BAND), ((BAND, NEAR), NEAR), ((BOX, BAND, NEAR), NEAR)],
)
def test_the_most_selective_predicate_sorts_the_runs(predicates: tuple, first: Predicate | None) -> None:
    plan = plan_join(node(*predicates))
    assert plan.join.matching.first == first
    assert plan.bindings[0].predicates == plan.bindings[1].predicates == order_predicates(plan.node)


def test_the_other_predicates_are_tested_where_their_values_lie() -> None:
    other = Overlaps(("lo", "hi"), ("x", "v"))
    plan = plan_join(node(BOX, BAND, NEAR, other))
    assert plan.join.matching.tests == (ValueTest(BAND, 1), ValueTest(BOX, 2), ValueTest(other, 4))


def test_an_event_join_is_a_band_over_the_times() -> None:
    plan = plan_join(node(NEAR, windowed=False, interval=IntervalBounds(-2, 5, "left")))
    assert plan.join.matching.first == Band("ts", "ts", 2, 5, "left")
    assert plan.join.matching.tests == (ValueTest(NEAR, 1),)
    assert not plan.join.matching.timed
    assert not plan.join.validity


@pytest.mark.parametrize(
    ("closed", "left", "right"), [("both", 6, 3), ("left", 5, 3), ("right", 6, 2), ("neither", 5, 2)]
)
def test_events_are_forgotten_when_no_partner_can_come(closed: str, left: int, right: int) -> None:
    """A left row at 0 has partners up to 5: it goes when the right progress is above 5, if 5 itself belongs to it."""
    plan = plan_join(node(windowed=False, interval=IntervalBounds(-2, 5, closed)))
    assert [binding.forget_after for binding in plan.bindings] == [left, right]


def test_a_join_without_time_keeps_its_rows_for_ever() -> None:
    part = InputNode(SCHEMA, ("id", "v"))
    plan = plan_join(JoinNode((part, part), predicates=(BAND,)))
    assert (plan.join.validity, plan.join.matching.timed, plan.naming.validity) == (False, False, None)
    batch = plan.bindings[0].bind(pa.table({"id": [1], "v": [0.5]})).batch
    assert batch.te.tolist() == [FOREVER]


@pytest.mark.parametrize(
    ("keys", "proof"), [((), False), (("k",), False), (("s",), True), (("k", "s"), True), (("k", "k"), True)]
)
def test_keys_are_proved_where_their_codes_are_hashes(keys: tuple[str, ...], proof: bool) -> None:
    plan = plan_join(node(keys=keys))
    assert (KeyTest() in plan.join.matching.tests) == proof


@pytest.mark.parametrize(
    ("made", "partitioning"),
    [
        (node(buckets=1, cell=1.0), Partitioning(1)),
        (node(BAND, buckets=1), Partitioning(1)),
        (node(keys=("k",), buckets=4), Partitioning(4)),
        (node(BAND, keys=("k",), buckets=4), Partitioning(4)),
        (node(BAND, buckets=4), HomePartitioning(4, BAND, 16.0, 0)),
        (node(BAND, buckets=4, cell=2.0), HomePartitioning(4, BAND, 2.0, 0)),
        (node(BOX, NEAR, buckets=4), HomePartitioning(4, NEAR, 16.0, 0)),
        (node(BAND, buckets=4, how="right"), HomePartitioning(4, BAND, 16.0, 1)),
        (node(BAND, buckets=4, how="full"), HomePartitioning(4, BAND, 16.0, 0)),
        (node(BOX, buckets=4), MatrixPartitioning(4)),
        (node(BOX, buckets=4, cell=2.0), ReferencePartitioning(4, 2.0, on_time=False)),
        (node(buckets=4), MatrixPartitioning(4)),
        (node(buckets=4, cell=2.0), ReferencePartitioning(4, 2.0, on_time=True)),
        (JoinNode((InputNode(SCHEMA, ("id",)),) * 2, buckets=4, cell=2.0), MatrixPartitioning(4)),
    ],
)
def test_which_rows_meet_where(made: JoinNode, partitioning: Partitioning) -> None:
    assert plan_join(made).partitioning == partitioning


@pytest.mark.parametrize(
    ("how", "home", "copied"),
    [
        ("inner", 0, (False, False)),
        ("left", 0, (False, False)),
        ("semi", 0, (False, False)),
        ("anti", 0, (False, False)),
        ("right", 1, (False, False)),
        ("full", 0, (False, True)),
    ],
)
def test_who_must_know_its_partners_stays_at_home(how: str, home: int, copied: tuple[bool, bool]) -> None:
    plan = plan_join(node(BAND, buckets=4, how=how))
    assert plan.partitioning.home == home
    assert plan.followed == plan.join.replicated == copied
    assert [verdict.number for verdict in plan.verdicts()] == [number for number in (0, 1) if copied[number]]


@pytest.mark.parametrize(
    ("how", "verdicts"), [("inner", []), ("left", [0]), ("right", [1]), ("full", [0, 1]), ("semi", [0]), ("anti", [0])]
)
def test_where_both_sides_are_copied_a_verdict_is_needed(how: str, verdicts: list[int]) -> None:
    plan = plan_join(node(buckets=4, how=how, outer="snapshot"))
    assert [verdict.number for verdict in plan.verdicts()] == verdicts
    assert all((one.how, one.outer, one.schemas) == (how, "snapshot", plan.join.schemas) for one in plan.verdicts())
    assert plan_join(node(buckets=1, how=how)).verdicts() == ()


def test_a_copied_row_is_told_from_its_copies_to_decide_or_to_show_it_once() -> None:
    assert plan_join(node(buckets=4)).homed == (False, False)
    assert plan_join(node(buckets=4, how="left")).homed == (True, False)
    assert plan_join(node(buckets=4, late=("drop", "output"))).homed == (False, True)
    assert plan_join(node(buckets=1, how="full", late=("output", "output"))).homed == (False, False)


@pytest.mark.parametrize(
    ("made", "hold"),
    [
        (node(), "inputs"),
        (node(BAND), "outputs"),
        (node(keys=("k",)), "outputs"),
        (node(hold="outputs"), "outputs"),
        (node(BAND, hold="inputs"), "inputs"),
    ],
)
def test_inputs_are_held_where_rows_have_many_partners(made: JoinNode, hold: str) -> None:
    assert plan_join(replace(made, emit="ordered")).join.hold == hold


def test_only_a_partitioning_that_lets_pairs_meet_twice_tests_the_owner() -> None:
    plan = plan_join(node(buckets=4, cell=2.0))
    tests = [plan.join_in(bucket).matching.tests for bucket in range(4)]
    assert [len(one) for one in tests] == [1] * 4
    assert len({plan.join_in(bucket).fingerprint for bucket in range(4)}) == 4
    matrix = plan_join(node(buckets=4))
    assert matrix.join_in(3) is matrix.join


def theta(text: str) -> Expression:
    return Expression.parse(text, [SCHEMA, SCHEMA])


def test_theta_is_left_to_spark_in_an_inner_join_and_evaluated_here_in_the_others() -> None:
    condition = theta("l.v < r.v")
    inner, outer = plan_join(node(theta=condition)), plan_join(node(theta=condition, how="left"))
    assert (inner.residual, inner.join.matching.tests) == (condition, ())
    assert (outer.residual, outer.join.matching.tests) == (None, (ExpressionTest(condition),))


def test_cheap_tests_come_before_theta() -> None:
    plan = plan_join(node(BOX, BAND, keys=("s",), theta=theta("l.v < r.v"), how="full"))
    assert [type(test) for test in plan.join.matching.tests] == [ValueTest, KeyTest, ExpressionTest]


def test_a_theta_that_cannot_be_evaluated_here_is_refused_outside_inner_joins() -> None:
    condition = theta("upper(l.s) = r.s")
    with pytest.raises(
        UnsupportedError, match=r"theta in a join with how='anti' .* does not evaluate the function upper\(\)"
    ):
        plan_join(node(theta=condition, how="anti"))
    assert plan_join(node(theta=condition)).residual == condition


def test_a_theta_test_reads_the_payload_of_its_pairs() -> None:
    plan = plan_join(node(theta=theta("l.v < r.v"), how="left"))
    rows = plan.bindings[0].bind(pa.table({"id": [1, 2, 3], "ts": [0, 0, 0], "v": [1.0, 2.0, None]})).batch
    (test,) = plan.join.matching.tests
    i, j = np.array([0, 1, 2, 0]), np.array([1, 0, 0, 2])
    assert test.holds(rows, i, rows, j).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l.v > 1", [False, True, True]),
        ("r.v > 1", [True, False, True]),
        ("true", [True] * 3),
        ("l.v IS NULL", [False] * 3),
    ],
)
def test_a_theta_may_read_one_input_or_none(text: str, expected: list[bool]) -> None:
    plan = plan_join(node(theta=theta(text), how="left"))
    rows = plan.bindings[0].bind(pa.table({"id": [1, 2], "ts": [0, 0], "v": [1.0, 2.0]})).batch
    (test,) = plan.join.matching.tests
    assert test.holds(rows, np.array([0, 1, 1]), rows, np.array([1, 0, 1])).tolist() == expected


def test_oracle_rows_that_only_an_expression_tells_apart_have_fates_of_their_own() -> None:
    """Spread over buckets, with a verdict: the row with NaN must not take the row with NULL for itself."""
    plan = plan_join(node(theta=theta("l.v IS NULL"), how="left", buckets=4))
    left = pa.table({"id": [1, 2], "ts": [0, 0], "v": [None, math.nan]})
    right = pa.table({"id": list(range(10, 18)), "ts": [0] * 8, "v": [0.0] * 8})
    joins, (verdict,) = [plan.join_in(bucket).build() for bucket in range(4)], plan.verdicts()
    judge, found = verdict.build(), []

    def collect(outputs: Iterator[Output]) -> None:
        for output in outputs:
            if isinstance(output, Results):
                found.extend(zip(output.payload["0.id"].to_pylist(), output.payload["1.id"].to_pylist(), strict=True))
            else:
                collect(judge.on_batch(0 if output.name == "candidate" else 1, output.batch))

    for number, table in enumerate((left, right)):
        for bucket, part in plan.distribute(number, plan.bindings[number].bind(table).batch):
            collect(joins[bucket].on_batch(number, part))
    for operator in (*joins, judge):
        collect(operator.on_end())
    assert Counter(found) == Counter([*((1, partner) for partner in range(10, 18)), (2, None)])


def test_the_result_has_only_the_columns_that_were_asked_for() -> None:
    plan = plan_join(node(by=("ts",), suffix="_2", validity=("a", "b"), invalid="output"))
    assert plan.naming.schema.names == ["ts", "id", "v", "id_2", "v_2", "a", "b", "_invalid"]
    assert [schema.names for schema in plan.join.schemas] == [["id", "ts", "v"]] * 2
    assert plan.bindings[0].invalid == "output"


def test_everything_else_passes_through() -> None:
    plan = plan_join(node(how="full", outer="snapshot", emit="ordered", late=("fail", "output")))
    join = plan.join
    assert (join.how, join.outer, join.emit, join.late) == ("full", "snapshot", "ordered", ("fail", "output"))


def test_each_input_has_its_own_window() -> None:
    one, two = InputNode(SCHEMA, ("id",), (), "ts", Range(5)), InputNode(SCHEMA, ("id",), (), None, Validity("ts", "k"))
    plan = plan_join(JoinNode((one, two), time_type=pa.int64()))
    assert [binding.window for binding in plan.bindings] == [Range(5), Validity("ts", "k")]
    assert [binding.number for binding in plan.bindings] == [0, 1]
