"""How a join of two inputs will run: each decision, and why."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Band, Equals, Overlaps, Predicate, Range, Rows, Similar, Validity, Within
from streamjoin.errors import CallError, UnsupportedError
from streamjoin.plan.lowering.joining import ExpressionTest, choose_partitioning, order_of, value_tests
from streamjoin.plan.naming import name_columns
from streamjoin.plan.physical import Filter, PhysicalPlan
from streamjoin.plan.relation import IntervalJoin, Join, Projection, Relation
from streamjoin.runtime.placing import (
    HomePartitioning,
    MatrixPartitioning,
    Partitioning,
    ReferencePartitioning,
    ReferencePoint,
)
from streamjoin.state import Batch, KeyTest, ValueTest
from tests.interpreter import InProcess
from tests.plan.trees import SCHEMA, lowered, stream

BAND, BOX = Band("0.v", "1.v", 1.0, 1.0), Overlaps(("0.lo", "0.hi"), ("1.lo", "1.hi"))
NEAR = Within(("0.x",), ("1.x",), 1.0)
EVENTS = stream("0", None), stream("1", None)
TIMES = ("0.ts", "1.ts")


def join(*predicates: Predicate, keys: tuple[str, ...] = (), windowed: bool = True, **options: Any) -> Join:
    sides = (stream("0"), stream("1")) if windowed else EVENTS
    equal = tuple(Equals(f"0.{key}", f"1.{key}") for key in keys)
    return Join(*sides, (*equal, *predicates), timed=windowed, **{"outer": "row", **options})


def interval(*predicates: Predicate, closed: str = "both", **options: Any) -> IntervalJoin:
    return IntervalJoin(*EVENTS, TIMES, -2, 5, closed, predicates, **options)


def config(relation: Relation, buckets: int = 1, **leaving: Any) -> Any:
    return lowered(relation, buckets, **leaving).stages[0].nodes[-1].config


def bindings(plan: PhysicalPlan) -> list[Any]:
    return [source.target.binding for source in plan.sources]


def placed(relation: Relation, buckets: int) -> Partitioning:
    (one, two) = (source.target.partitioning for source in lowered(relation, buckets, validity=None).sources)
    assert one == two
    return one


@pytest.mark.parametrize(
    ("predicates", "first"),
    [((), None), ((BOX,), BOX), ((BOX, BAND), BAND), ((BAND, NEAR), NEAR), ((BOX, BAND, NEAR), NEAR)],
)
def test_the_most_selective_predicate_sorts_the_runs(predicates: tuple, first: Predicate | None) -> None:
    plan = lowered(join(*predicates), 1)
    assert plan.stages[0].nodes[0].config.matching.first == first
    one, two = bindings(plan)
    assert one.predicates == two.predicates == tuple(sorted(predicates, key=order_of))


def test_the_other_predicates_are_tested_where_their_values_lie() -> None:
    other = Overlaps(("0.lo", "0.hi"), ("1.x", "1.v"))
    tests = config(join(BOX, BAND, NEAR, other)).matching.tests
    assert tests == (ValueTest(BAND, 1), ValueTest(BOX, 2), ValueTest(other, 4))
    assert value_tests([]) == value_tests([BAND]) == []


def test_an_event_join_is_a_band_over_the_times() -> None:
    made = config(interval(NEAR, closed="left"))
    assert made.matching.first == Band(*TIMES, 2, 5, "left")
    assert made.matching.tests == (ValueTest(NEAR, 1),)
    assert (made.matching.timed, made.validity, made.outer) == (False, False, "row")


@pytest.mark.parametrize(
    ("closed", "left", "right"), [("both", 6, 3), ("left", 5, 3), ("right", 6, 2), ("neither", 5, 2)]
)
def test_events_are_forgotten_when_no_partner_can_come(closed: str, left: int, right: int) -> None:
    """A left row at 0 has partners up to 5: it goes when the right progress is above 5, if 5 itself belongs to it."""
    found = bindings(lowered(interval(closed=closed), 1))
    assert [binding.forget_after for binding in found] == [left, right]


def test_a_join_without_time_keeps_its_rows_for_ever() -> None:
    plan = lowered(join(BAND, windowed=False), 1, validity=None)
    made = plan.stages[0].nodes[0].config
    assert (made.validity, made.matching.timed, plan.sink.shape.validity) == (False, False, None)
    source = plan.sources[0]
    read = source.reading.read(rows("0", v=[0.5]))
    assert source.target.binding.bind(read.elements).te.tolist() == [FOREVER]


@pytest.mark.parametrize(
    ("keys", "proof"), [((), False), (("k",), False), (("s",), True), (("k", "s"), True), (("k", "k"), True)]
)
def test_keys_are_proved_where_their_codes_are_hashes(keys: tuple[str, ...], proof: bool) -> None:
    assert (KeyTest() in config(join(keys=keys)).matching.tests) == proof


@pytest.mark.parametrize(
    ("made", "buckets", "partitioning"),
    [
        (join(cell=1.0), 1, Partitioning(1)),
        (join(BAND), 1, Partitioning(1)),
        (join(keys=("k",)), 4, Partitioning(4)),
        (join(BAND, keys=("k",)), 4, Partitioning(4)),
        (join(BAND), 4, HomePartitioning(4, BAND, 16.0, 0)),
        (join(BAND, cell=2.0), 4, HomePartitioning(4, BAND, 2.0, 0)),
        (join(BOX, NEAR), 4, HomePartitioning(4, NEAR, 16.0, 0)),
        (join(BAND, how="right"), 4, HomePartitioning(4, BAND, 16.0, 1)),
        (join(BAND, how="full"), 4, HomePartitioning(4, BAND, 16.0, 0)),
        (join(BOX), 4, MatrixPartitioning(4)),
        (join(BOX, cell=2.0), 4, ReferencePartitioning(4, 2.0, on_time=False)),
        (join(), 4, MatrixPartitioning(4)),
        (join(cell=2.0), 4, ReferencePartitioning(4, 2.0, on_time=True)),
        (interval(), 4, HomePartitioning(4, Band(*TIMES, 2, 5), 56.0, 0)),
        (interval(NEAR, cell=3.0), 4, HomePartitioning(4, Band(*TIMES, 2, 5), 3.0, 0)),
        (interval(Equals("0.k", "1.k")), 4, Partitioning(4)),
    ],
)
def test_which_rows_meet_where(made: Relation, buckets: int, partitioning: Partitioning) -> None:
    assert placed(made, buckets) == partitioning


def test_a_function_decides_which_rows_meet_where() -> None:
    assert choose_partitioning((), BAND, "right", 3, None, timed=True) == HomePartitioning(3, BAND, 16.0, 1)
    assert choose_partitioning((), None, "inner", 3, None, timed=False) == MatrixPartitioning(3)


@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize(
    ("made", "why"),
    [
        (join(windowed=False, cell=2.0), "no grid lies over what this join compares"),
        (join(Similar("0.s", "1.s", "edit", 1), windowed=False, cell=2.0), "no grid lies over what this join compares"),
        (join(keys=("k",), cell=2.0), "here they meet by key"),
        (join(Equals("0.k", "1.k"), BOX, cell=2.0), "here they meet by key"),
        (interval(Equals("0.k", "1.k"), cell=3.0), "here they meet by key"),
    ],
)
def test_cells_are_refused_where_there_is_no_grid(made: Relation, why: str, buckets: int) -> None:
    """Whatever the number of buckets: it may be another one next time."""
    with pytest.raises(CallError, match=rf"(?s){why}.*leave out cell="):
        placed(made, buckets)


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
    plan = lowered(join(BAND, how=how), 4)
    made = plan.stages[0].nodes[0]
    assert made.partitioning.home == home
    assert made.config.replicated == copied
    assert tuple(source.target.follow for source in plan.sources) == copied
    assert [verdict.number for verdict in verdicts(plan)] == [number for number in (0, 1) if copied[number]]


def verdicts(plan: PhysicalPlan) -> tuple[Any, ...]:
    return plan.stages[1].nodes[0].config.verdicts if len(plan.stages) > 1 else ()


@pytest.mark.parametrize(
    ("how", "numbers"), [("inner", []), ("left", [0]), ("right", [1]), ("full", [0, 1]), ("semi", [0]), ("anti", [0])]
)
def test_where_both_sides_are_copied_a_verdict_is_needed(how: str, numbers: list[int]) -> None:
    plan = lowered(join(how=how, outer="snapshot"), 4)
    found, made = verdicts(plan), plan.stages[0].nodes[0].config
    assert [verdict.number for verdict in found] == numbers
    assert all((one.how, one.outer, one.schemas) == (how, "snapshot", made.schemas) for one in found)
    assert verdicts(lowered(join(how=how), 1)) == ()


def test_a_copied_row_is_told_from_its_copies_to_decide_about_it() -> None:
    def followed(relation: Relation, buckets: int, **sources: Any) -> tuple[bool, ...]:
        return tuple(source.target.follow for source in lowered(relation, buckets, 0, sources=sources).sources)

    assert followed(join(), 4) == (False, False)
    assert followed(join(how="left"), 4) == (True, False)
    assert followed(join(), 4, late={"0": "drop", "1": "output"} | dict.fromkeys("RST", "drop")) == (False, False)
    assert followed(join(how="full"), 1, late="output") == (False, False)


def test_a_copied_row_that_is_late_is_shown_and_counted_once() -> None:
    plan = lowered(join(), 4, 0, sources={"late": "output"}, flagged=True)
    running = InProcess(plan)
    list(running.micro_batch({"0": [rows("0", ts=[100], as_frame=True)], "1": [rows("1", ts=[100], as_frame=True)]}))
    late = rows("0", ts=[3, 4], as_frame=True)
    shown = [row for table in running.micro_batch({"0": [late]}) for row in table.to_pylist()]
    assert [(row["0.ts"], row["_late"]) for row in sorted(shown, key=lambda row: row["0.ts"])] == [(3, True), (4, True)]
    assert sum(figures.get("late", 0) for figures in running.figures) == 2


@pytest.mark.parametrize(
    ("made", "hold"),
    [
        (join(), "inputs"),
        (join(BAND), "outputs"),
        (join(keys=("k",)), "outputs"),
        (join(hold="outputs"), "outputs"),
        (join(BAND, hold="inputs"), "inputs"),
    ],
)
def test_inputs_are_held_where_rows_have_many_partners(made: Relation, hold: str) -> None:
    assert config(made, emit="ordered").hold == hold


def test_inputs_whose_ends_become_known_later_cannot_be_held() -> None:
    counted = replace(join(BAND), left=stream("0", Rows(3)))
    with pytest.raises(CallError, match="over row windows or other operators, whose ends become known later"):
        lowered(replace(counted, hold="inputs"), emit="ordered")
    plans = [lowered(replace(counted, hold=hold), emit="ordered") for hold in ("auto", "outputs")]
    assert all(plan.stages[-1].outlet.ordered for plan in plans), "results wait where they leave"


def test_only_a_partitioning_that_lets_pairs_meet_twice_tests_the_owner() -> None:
    (node,) = lowered(join(cell=2.0), 4).stages[0].nodes
    owners = [node.build(bucket).context.owner for bucket in range(4)]
    assert owners == [ReferencePoint(bucket, 4, 2.0, True) for bucket in range(4)]
    (matrix,) = lowered(join(), 4).stages[0].nodes
    assert matrix.build(3).context.owner is None


# -- theta -------------------------------------------------------------------------------------------------------------

LESS = "`0.v` < `1.v`"


def test_theta_is_left_to_spark_in_an_inner_join_and_evaluated_here_in_the_others() -> None:
    inner, outer = lowered(join(theta=LESS), 1), lowered(join(theta=LESS, how="left"), 1)
    assert [edge.steps for edge in inner.edges] == [(Filter(LESS),)]
    assert inner.stages[0].nodes[0].config.matching.tests == ()
    assert outer.edges == ()
    (test,) = outer.stages[0].nodes[0].config.matching.tests
    assert isinstance(test, ExpressionTest)
    assert test.text == LESS


def test_cheap_tests_come_before_theta() -> None:
    made = config(join(BOX, BAND, keys=("s",), theta=LESS, how="full"))
    assert [type(test) for test in made.matching.tests] == [ValueTest, KeyTest, ExpressionTest]


def test_a_theta_that_cannot_be_evaluated_here_is_refused_outside_inner_joins() -> None:
    condition = "upper(`0.s`) = `1.s`"
    with pytest.raises(
        UnsupportedError, match=r"theta in a join with how='anti' .* does not evaluate the function upper\(\)"
    ):
        lowered(join(theta=condition, how="anti"))
    assert lowered(join(theta=condition)).edges[0].steps == (Filter(condition),)


def theta_test(text: str) -> tuple[Any, Batch, Batch]:
    plan = lowered(join(theta=text, how="left"), 1)
    (test,) = plan.stages[0].nodes[0].config.matching.tests
    read = [source.reading.read(rows(source.name, v=[1.0, 2.0, None])).elements for source in plan.sources]
    one, two = (binding.bind(some) for binding, some in zip(bindings(plan), read, strict=True))
    return test, one, two


def test_a_theta_test_reads_the_payload_of_its_pairs() -> None:
    test, one, two = theta_test(LESS)
    assert test.holds(one, np.array([0, 1, 2, 0]), two, np.array([1, 0, 0, 2])).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`0.v` > 1", [False, True, True]),
        ("`1.v` > 1", [True, False, True]),
        ("true", [True] * 3),
        ("`0.v` IS NULL", [False] * 3),
    ],
)
def test_a_theta_may_read_one_input_or_none(text: str, expected: list[bool]) -> None:
    test, one, two = theta_test(text)
    assert test.holds(one, np.array([0, 1, 1]), two, np.array([1, 0, 1])).tolist() == expected


def test_what_an_expression_reads_tells_copies_of_a_row_from_another_row() -> None:
    plan = lowered(join(theta="`0.v` < `1.x`", how="full"), 4)
    assert [source.target.judged_by for source in plan.sources] == [("0.v",), ("1.x",)]
    assert [source.target.judged_by for source in lowered(join(how="full"), 4).sources] == [(), ()]


def test_oracle_rows_that_only_an_expression_tells_apart_have_fates_of_their_own() -> None:
    """Spread over buckets, with a verdict: the row with NaN must not take the row with NULL for itself."""
    plan = lowered(join(theta="`0.v` IS NULL", how="left"), 4)
    left = rows("0", id=[1, 2], v=[None, math.nan], as_frame=True)
    right = rows("1", id=list(range(10, 18)), v=[0.0] * 8, as_frame=True)
    found = [row for table in InProcess(plan).batch({"0": [left], "1": [right]}) for row in table.to_pylist()]
    expected = [*((1, partner) for partner in range(10, 18)), (2, None)]
    assert Counter((row["0.id"], row["1.id"]) for row in found) == Counter(expected)


# -- columns, and what passes through ----------------------------------------------------------------------------------


def test_the_result_has_only_the_columns_that_were_asked_for() -> None:
    narrow = [Projection(stream(n), tuple((f"{n}.{c}", f"`{n}.{c}`") for c in ("id", "ts", "v"))) for n in "01"]
    types = {name: SCHEMA.field(name).type for name in ("id", "ts", "v")}
    columns = name_columns(
        [["id", "ts", "v"]] * 2, [types] * 2, by=("ts",), how="inner", suffix="_2", validity=("a", "b")
    )
    plan = lowered(Join(*narrow), 1, columns=columns, validity=("a", "b"), flagged=True, sources={"invalid": "output"})
    assert plan.sink.shape.schema.names == ["ts", "id", "v", "id_2", "v_2", "a", "b", "_invalid"]
    assert [field.name for field in plan.sink.fields] == plan.sink.shape.schema.names
    (node,) = plan.stages[0].nodes
    assert [schema.names for schema in node.config.schemas] == [[f"{n}.{c}" for c in ("id", "ts", "v")] for n in "01"]
    assert plan.sources[0].reading.invalid == "output"


def test_everything_else_passes_through() -> None:
    late = {"0": "fail", "1": "output"} | dict.fromkeys("RST", "drop")
    plan = lowered(join(how="full", outer="snapshot"), 1, 0, emit="ordered", sources={"late": late})
    made = plan.stages[0].nodes[0].config
    assert (made.how, made.outer, made.emit) == ("full", "snapshot", "ordered")
    assert [channel.late for each in plan.stages[0].inputs for channel in each.channels] == ["fail", "output"]
    assert made.late == ("drop", "drop"), "the intake finds late rows; an operator only hears that some will come"
    assert config(join(), 1, lateness=0, sources={"late": "join"}).late == ("join", "join")


def test_each_input_has_its_own_window() -> None:
    plan = lowered(Join(stream("0", Range(5)), stream("1", Validity("ts", "until"), time=None)), 1)
    one, two = plan.sources
    assert (one.reading.window, one.reading.time) == (Range(5), "__sjh_t0")
    assert (two.reading.window, two.reading.time) == (Validity("__sjh_t0", "__sjh_t1"), None)
    assert (one.reading.called, two.reading.called) == (("ts",), ("ts", "until"))
    assert [binding.number for binding in bindings(plan)] == [0, 1]


def test_bindings_know_the_columns_of_their_side() -> None:
    one, two = bindings(lowered(join(BAND, keys=("k", "s")), 4))
    assert (one.keys, two.keys) == (("0.k", "0.s"), ("1.k", "1.s"))
    assert (one.placed_by, two.placed_by) == (one.keys, two.keys)
    assert replace(one, payload=(), keys=(), placed_by=(), number=1) == replace(two, payload=(), keys=(), placed_by=())


def rows(name: str, *, as_frame: bool = False, **columns: list[Any]) -> pa.Table:
    """Rows with these columns, zeros elsewhere: as a frame has them, or as they are read."""
    count = len(next(iter(columns.values())))
    nothing = {"s": ""}
    values = [pa.array(columns.get(field.name, [nothing.get(field.name, 0)] * count), field.type) for field in SCHEMA]
    if as_frame:
        return pa.table(values, schema=SCHEMA)
    table = pa.table(values, names=[f"{name}.{each}" for each in SCHEMA.names])
    return table.append_column("__sjh_t0", table[f"{name}.ts"])
