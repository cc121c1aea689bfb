"""From a tree to a physical plan: which operators share a stage and why, and what is left to Spark, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, Band, Equals, Overlaps, Range, Rows, TimeAxis
from streamjoin.operators import Aggregating, Multiplicity, NegativeJoin, NegativeWindow, RowWindow, TemporalJoin
from streamjoin.operators.judging import Judging
from streamjoin.plan.lowering.joining import ExpressionTest
from streamjoin.plan.physical import Compute, Computed, Filter, Mark, PhysicalPlan
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    Difference,
    Distinct,
    Intersection,
    IntervalJoin,
    Join,
    Projection,
    Relation,
    Selection,
    Stream,
    Union,
)
from streamjoin.plan.types import Field, Type, names_of, plain_type
from streamjoin.runtime.fragment import KEEP, Entry, Inner
from streamjoin.runtime.intake import Channel
from streamjoin.runtime.lateness import Complete, Slack
from streamjoin.runtime.outlet import ToCourt, ToFrame, ToStage, ToUser
from streamjoin.runtime.placing import MatrixPartitioning, Partitioning
from streamjoin.state import KeyTest, ValueTest
from tests.interpreter import InProcess, PlainTyping
from tests.plan.trees import SCHEMA, configs, kinds, lowered, stream

R, S, T = stream("R"), stream("S"), stream("T")
COUNT = (Aggregate("count", None, "n"),)


def equal(*keys: str, left: str = "R", right: str = "S") -> tuple[Equals, ...]:
    return tuple(Equals(f"{left}.{key}", f"{right}.{key}") for key in keys)


def picked(relation: Relation, **columns: str) -> Projection:
    return Projection(relation, tuple((name, f"`{column}`") for name, column in columns.items()))


def frame(**columns: list[Any]) -> pa.Table:
    count = len(next(iter(columns.values())))
    values = [pa.array(columns.get(field.name, [None] * count), field.type) for field in SCHEMA]
    return pa.table(values, schema=SCHEMA)


def placed(plan: PhysicalPlan) -> dict[str, tuple[str, ...]]:
    return {source.name: source.target.binding.placed_by for source in plan.sources}


# -- which operators there are -----------------------------------------------------------------------------------------


def test_windows_by_method() -> None:
    window = stream("S", Rows(2, by=("k",), drain=True), "k", "s")
    assert configs(lowered(R)) == []
    (rows,) = configs(lowered(window))
    assert rows == RowWindow(2, pa.schema([("__sjh_by0", pa.int64())]), drain=True)
    (negative,) = configs(lowered(R, method="negative"))
    assert isinstance(negative, NegativeWindow)
    assert negative.size is None
    (negative,) = configs(lowered(window, method="negative"))
    assert (negative.size, negative.by.names, negative.drain) == (2, ["__sjh_by0"], True)


@pytest.mark.parametrize("method", ["direct", "negative"])
def test_set_operators_and_aggregations(method: str) -> None:
    trees = {
        "distinct": Distinct(R), "except": Difference(R, S), "except all": Difference(R, S, True),
        "intersect": Intersection(R, S), "intersect all": Intersection(R, S, True),
    }  # fmt: skip
    for operator, tree in trees.items():
        config = configs(lowered(tree, method=method))[-1]
        assert isinstance(config, Multiplicity)
        assert (config.operator, config.method) == (operator, method)
    config = configs(lowered(Aggregation(R, ("R.k",), COUNT), method=method))[-1]
    assert isinstance(config, Aggregating)
    assert (config.result_schema.names, config.method) == (["R.k", "n"], method)


def test_joins_test_what_the_order_does_not_say() -> None:
    (join,) = configs(lowered(Join(R, S, equal("k"))))
    assert isinstance(join, TemporalJoin)
    assert (join.outer, join.matching.first, join.matching.tests) == ("snapshot", None, ())
    band, second = Band("R.k", "S.k", 1, 1), Band("R.k", "S.k", 2, 0)
    (join,) = configs(lowered(Join(R, S, (*equal("s"), band, second), "`R.k` < `S.k`", "left")))
    assert join.matching.first == band
    assert [type(test) for test in join.matching.tests] == [ValueTest, KeyTest, ExpressionTest]
    negative = configs(lowered(Join(R, S, equal("k"), None, "anti"), method="negative"))[-1]
    assert isinstance(negative, NegativeJoin)
    assert negative.how == "anti"


def test_plus_and_minus_tuples_meet_in_one_bucket_where_rows_would_have_copies() -> None:
    """A minus tuple must find its plus tuple, wherever that went."""
    for join in (Join(R, S), Join(R, S, (Band("R.v", "S.v", 1, 1),), how="full")):
        assert lowered(join, method="negative").stages[-1].buckets == 1
    for join in (Join(R, S, equal("k")), Join(R, S, (Band("R.v", "S.v", 1, 1),))):
        assert lowered(join, method="negative").stages[-1].buckets == 4


def test_operators_have_numbers_of_their_own() -> None:
    tree = Distinct(Join(stream("S", Rows(2)), stream("R", Rows(3)), (Equals("S.k", "R.k"),), how="full"))
    for buckets in (1, 4):
        plan = lowered(tree, buckets)
        producers = [node.producer for stage in plan.stages for node in stage.nodes]
        assert len(set(producers)) == len(producers) == 4
    court = lowered(Join(R, S, how="full"))
    assert [node.producer for stage in court.stages for node in stage.nodes] == [0, 1]


# -- which operators share a stage -------------------------------------------------------------------------------------

RS = Join(R, S, equal("k"))
RS2 = Join(R, S, equal("k", "j"))
JOIN, AGGREGATE = "TemporalJoin", "Aggregating"


@pytest.mark.parametrize(
    ("tree", "stages"),
    [
        pytest.param(Join(RS, T, equal("k", right="T")), [[JOIN, JOIN]], id="the same key"),
        pytest.param(Join(RS, T, equal("k", left="S", right="T")), [[JOIN, JOIN]], id="the other side's key"),
        pytest.param(Join(T, RS, (Equals("T.k", "R.k"),)), [[JOIN, JOIN]], id="a join on the right"),
        pytest.param(Join(RS, T, equal("j", right="T")), [[JOIN], [JOIN]], id="another key"),
        pytest.param(Join(RS, T, equal("j", "k", right="T")), [[JOIN, JOIN]], id="more keys"),
        pytest.param(Join(RS2, T, equal("j", "k", right="T")), [[JOIN, JOIN]], id="the keys in another order"),
        pytest.param(Join(RS2, T, equal("j", right="T")), [[JOIN], [JOIN]], id="fewer keys"),
        pytest.param(Join(RS, T, (Band("R.k", "T.k", 1, 1),)), [[JOIN], [JOIN]], id="by home"),
        pytest.param(Join(RS, T), [[JOIN], [JOIN]], id="by matrix"),
        pytest.param(Join(RS, Join(T, T2 := stream("0"), (Equals("T.k", "0.k"),)), equal("k", right="T")),
                     [[JOIN, JOIN, JOIN]], id="both children"),
        pytest.param(Join(RS, Join(T, T2, (Equals("T.j", "0.j"),)), equal("k", right="T")),
                     [[JOIN], [JOIN, JOIN]], id="one of two children"),
        pytest.param(Aggregation(RS, ("R.k",), COUNT), [[JOIN, AGGREGATE]], id="groups by the key"),
        pytest.param(Aggregation(RS, ("S.v", "R.k"), COUNT), [[JOIN, AGGREGATE]], id="groups by more than the key"),
        pytest.param(Aggregation(RS2, ("R.k",), COUNT), [[JOIN], [AGGREGATE]], id="groups by less than the keys"),
        pytest.param(Aggregation(RS, ("R.v",), COUNT), [[JOIN], [AGGREGATE]], id="groups by something else"),
        pytest.param(Aggregation(RS, (), COUNT), [[JOIN], [AGGREGATE]], id="one group"),
        pytest.param(Distinct(RS), [[JOIN, "Multiplicity"]], id="whole rows have the key"),
        pytest.param(Distinct(picked(RS, a="R.v")), [[JOIN], ["Multiplicity"]], id="rows without the key"),
        pytest.param(Join(stream("R", Rows(2, by="k")), S, equal("k")), [["RowWindow", JOIN]], id="groups of rows"),
        pytest.param(Join(stream("R", Rows(2)), S, equal("k")), [["RowWindow"], [JOIN]], id="a row window of all"),
        pytest.param(Join(stream("R", Rows(2, by="j")), S, equal("k")), [["RowWindow"], [JOIN]], id="other groups"),
        pytest.param(Join(stream("R", Rows(2, by="k")), stream("S", Rows(2, by="k")), equal("k")),
                     [["RowWindow", "RowWindow", JOIN]], id="both in groups of rows"),
        pytest.param(Aggregation(stream("R", Rows(2, by="k"), "j"), ("R.j",), COUNT), [["RowWindow"], [AGGREGATE]],
                     id="groups of a column that goes no further"),
        pytest.param(Difference(Distinct(picked(R, a="R.k")), picked(S, b="S.k")), [["Multiplicity"] * 2],
                     id="a set operator of two shares the stage of one"),
        pytest.param(Aggregation(Union((RS, RS)), ("R.k",), COUNT), [[JOIN], [JOIN], [AGGREGATE]], id="a union"),
    ],
)  # fmt: skip
def test_operators_share_a_stage_where_their_rows_meet_already(tree: Relation, stages: list[list[str]]) -> None:
    assert kinds(lowered(tree)) == stages


@pytest.mark.parametrize(
    ("how", "left", "right"),
    [
        ("inner", True, True), ("left", True, False), ("right", False, True), ("full", False, False),
        ("semi", True, None), ("anti", True, None),
    ],
)  # fmt: skip
def test_padded_rows_have_no_key_of_the_other_side(how: str, left: bool, right: bool | None) -> None:
    """A row without a partner is where its own key is, and all NULLs of a group must be in one bucket."""
    join = Join(R, S, equal("k"), how=how)
    together, apart = [[JOIN, AGGREGATE]], [[JOIN], [AGGREGATE]]
    assert kinds(lowered(Aggregation(join, ("R.k",), COUNT))) == (together if left else apart)
    if right is not None:
        assert kinds(lowered(Aggregation(join, ("S.k",), COUNT))) == (together if right else apart)


def test_a_group_whose_column_only_the_window_reads_places_nothing_that_others_know() -> None:
    tree = Join(stream("R", Rows(2, by="k"), "j", "id"), S, equal("j"))
    assert kinds(lowered(tree)) == [["RowWindow"], [JOIN]]


def test_with_one_bucket_all_operators_of_one_input_and_all_joins_share_it() -> None:
    joined = Join(Join(stream("R", Rows(2)), S, equal("k")), T, equal("j", right="T"))
    assert kinds(lowered(Aggregation(joined, (), COUNT), 1)) == [["RowWindow", JOIN, JOIN, AGGREGATE]]


def test_whoever_joins_a_stage_is_placed_as_those_that_are_there() -> None:
    """By the same columns, in their order: that is what the one hash is of."""
    plan = lowered(Join(RS2, T, equal("j", "k", right="T")))
    assert placed(plan) == {"R": ("R.k", "R.j"), "S": ("S.k", "S.j"), "T": ("T.k", "T.j")}
    assert plan.sources[2].target.binding.keys == ("T.j", "T.k"), "it still joins by its keys as they were given"
    few = lowered(Join(RS, T, equal("j", "k", right="T")))
    assert placed(few)["T"] == ("T.k",)
    window = lowered(Join(stream("R", Rows(2, by="k")), S, equal("k")))
    assert placed(window) == {"R": ("__sjh_by0",), "S": ("S.k",)}


def test_new_names_are_no_reason_to_part() -> None:
    plan = lowered(Aggregation(picked(RS, a="R.k", b="S.v"), ("a",), COUNT))
    assert kinds(plan) == [[JOIN, AGGREGATE]]
    join, aggregate = plan.stages[0].nodes
    assert join.pick == (("a", "R.k"),)
    assert aggregate.feeds[0].binding.payload == ("a",)
    twice = lowered(Aggregation(picked(picked(RS, a="R.k", b="S.v"), c="a"), ("c",), COUNT))
    assert twice.stages[0].nodes[0].pick == (("c", "R.k"),)
    lost = lowered(Aggregation(picked(picked(RS, a="R.k", b="S.v"), c="b"), ("c",), COUNT))
    assert kinds(lost) == [[JOIN], [AGGREGATE]]


def test_what_spark_computes_between_parts_two_stages() -> None:
    plan = lowered(Aggregation(Selection(RS, "`R.v` < `S.v`"), ("R.k",), COUNT))
    assert kinds(plan) == [[JOIN], [AGGREGATE]]
    (edge,) = plan.edges
    assert edge.steps == (Filter("`R.v` < `S.v`"),)
    assert names_of(edge.fields) == names_of(edge.result) == ("R.k", "R.v", "S.v")
    assert plan.stages[0].outlet.way == ToFrame(edge.channel, pa.schema([
        ("R.k", pa.int64()), ("R.v", pa.float64()), ("S.v", pa.float64()),
    ]))  # fmt: skip
    assert edge.target.binding.placed_by == ("R.k",)
    assert plan.edge_of(edge.channel) is edge
    assert plan.edge_of(99) is None


class Wider(PlainTyping):
    """Knows that an int and a bigint are compared as bigints."""

    def common(self, one: Type, two: Type) -> Type | None:
        found = {one.text, two.text}
        return plain_type(pa.int64()) if found == {"int", "bigint"} else super().common(one, two)


def test_a_cast_between_parts_two_stages_and_one_at_a_source_does_not() -> None:
    above = lowered(Join(Join(R, S, equal("n")), T, (Equals("R.n", "T.k"),)), typing=Wider())
    assert kinds(above) == [[JOIN], [JOIN]]
    (edge,) = above.edges
    assert edge.steps[0].columns[-1] == Computed("__sjh_v1", "`R.n`", plain_type(pa.int64()))
    assert edge.target.binding.keys == edge.target.binding.placed_by == ("__sjh_v1",)
    assert "__sjh_v1" not in edge.target.binding.payload
    beside = lowered(Join(RS, T, (Equals("R.k", "T.n"),)), typing=Wider())
    assert kinds(beside) == [[JOIN, JOIN]]
    assert beside.sources[2].steps[0].columns[-1] == Computed("__sjh_v1", "`T.n`", plain_type(pa.int64()))


def test_set_operators_cast_their_parts_to_common_types() -> None:
    plan = lowered(Difference(picked(R, a="R.k"), picked(S, b="S.n")), typing=Wider())
    one, two = plan.sources
    assert one.steps == (Compute((Computed("a", "`R.k`"),)),)
    assert two.steps == (
        Compute((Computed("b", "`S.n`"),)), Compute((Computed("a", "`b`", plain_type(pa.int64())),)),
    )  # fmt: skip
    assert one.fields == two.fields == (Field("a", plain_type(pa.int64())),)


# -- edges, unions, courts ---------------------------------------------------------------------------------------------


def test_a_stage_sends_straight_to_the_next_one_where_spark_has_nothing_to_do() -> None:
    plan = lowered(Aggregation(RS, ("R.v",), COUNT))
    first, second = plan.stages
    assert plan.edges == ()
    assert isinstance(first.outlet.way, ToStage)
    assert first.outlet.leaves == "passed on"
    target = first.outlet.way.target
    assert (target.binding.placed_by, target.partitioning, target.follow) == (("R.v",), Partitioning(4), False)
    assert second.inputs[0].channels == (
        Channel(target.channel, buckets=4, complete=True, label="stream R and stream S"),
    )
    assert isinstance(second.outlet.way, ToUser)
    assert second.outlet.leaves == "settled"
    assert plan.sink.channels == (second.outlet.way.channel,)


def test_every_channel_has_one_reader_and_a_number_of_its_own() -> None:
    tree = Aggregation(Selection(Join(RS, Distinct(T), (Band("R.v", "T.v", 1, 1),)), "`R.v` > 1"), (), COUNT)
    plan = lowered(tree)
    sent = [source.channel for source in plan.sources] + [stage.outlet.way.channel for stage in plan.stages]
    read = [channel for stage in plan.stages for channel in plan.feeders(stage)]
    assert sorted(sent) == sorted([*read, *plan.sink.channels])
    assert len(set(sent)) == len(sent)
    assert [stage.number for stage in plan.stages] == list(range(len(plan.stages)))
    for stage in plan.stages:  # whoever is read comes first
        later = [each.outlet.way.channel for each in plan.stages[stage.number :]]
        assert not set(plan.feeders(stage)) & set(later)


def test_a_union_is_several_channels_of_its_reader() -> None:
    plan = lowered(Aggregation(Union((picked(R, a="R.k"), picked(S, b="S.k"))), ("a",), COUNT), 4, {"R": 3})
    (stage,) = plan.stages
    (given,) = stage.inputs
    assert [(channel.number, channel.lateness) for channel in given.channels] == [(0, Slack(3)), (1, Complete())]
    assert [source.target.binding for source in plan.sources] == [plan.sources[0].target.binding] * 2
    mixed = lowered(
        Aggregation(Union((R, picked(RS, **{name: f"R.{name}" for name in SCHEMA.names}))), ("R.k",), COUNT)
    )
    first, second = mixed.stages
    assert kinds(mixed) == [[JOIN], [AGGREGATE]]
    assert [channel.from_source for channel in second.inputs[0].channels] == [True, False]
    assert isinstance(first.outlet.way, ToStage)


def test_a_union_that_leaves_is_several_channels_of_the_sink() -> None:
    plan = lowered(Union((picked(R, a="R.k"), picked(RS, b="S.k"))))
    assert len(plan.sink.channels) == 2
    assert [field.name for field in plan.sink.fields] == ["a", "valid_from", "valid_to"]
    left = InProcess(plan).batch({name: [frame(ts=[1], k=[7])] for name in "RS"})
    assert [row for table in left for row in table.to_pylist()] == [{"a": 7, "valid_from": 1, "valid_to": 6}] * 2


def test_a_court_is_a_stage_with_a_channel_for_results_and_two_for_every_verdict() -> None:
    plan = lowered(Join(R, S, how="full"), emit="ordered")
    first, court = plan.stages
    way, testimony = first.outlet.way, first.outlet.testimony
    assert way == ToCourt(way.channel, 4)
    said = [(each.name, each.input, each.buckets) for each in testimony]
    stored = ("candidate", 0, 4), ("witness", 0, 4), ("candidate", 1, 4), ("witness", 1, 4)  # in checkpoints, too
    assert said == list(stored)
    channels = [channel.number for each in court.inputs for channel in each.channels]
    assert channels == [way.channel, *(each.channel for each in testimony)]
    assert all(channel.buckets == 4 and channel.complete for each in court.inputs for channel in each.channels)
    (node,) = court.nodes
    assert isinstance(node.config, Judging)
    assert node.config.ordered
    assert node.feeds == tuple(Entry(number) for number in range(5))
    assert node.names == (*R.columns, *S.columns)
    assert [source.target.follow for source in plan.sources] == [True, True]


def test_a_court_of_one_verdict_and_one_that_is_read_on() -> None:
    plan = lowered(Aggregation(Join(R, S, how="left"), ("R.k",), COUNT), 4, 0)
    assert kinds(plan) == [[JOIN], ["Judging"], [AGGREGATE]]
    first, court, _ = plan.stages
    assert len(first.outlet.testimony) == 2
    assert len(court.inputs) == 3
    assert not any(channel.complete for each in court.inputs for channel in each.channels)
    assert court.outlet.leaves == "passed on"
    assert court.outlet.way.target.binding.placed_by == ("R.k",)
    semi = lowered(Join(R, S, how="semi"))
    assert semi.stages[1].nodes[0].names == R.columns


# -- what spark computes at a source -----------------------------------------------------------------------------------


def test_functions_of_rows_are_no_operators() -> None:
    tree = Union((picked(Selection(R, "`R.k` > 1"), x="R.k", y="R.s"), picked(stream("S", Range(1)), k="S.k", s="S.s")))
    plan = lowered(tree)
    assert plan.stages == ()
    assert plan.sources[0].steps == (Filter("`R.k` > 1"), Compute((Computed("x", "`R.k`"), Computed("y", "`R.s`"))))
    table = frame(ts=[1, 2], k=[1, 2], s=["a", "b"])
    left = InProcess(plan).batch({"R": [table], "S": [table.slice(1)]})
    assert [one.to_pylist() for one in left] == [
        [{"x": 2, "y": "b", "valid_from": 2, "valid_to": 7}], [{"x": 2, "y": "b", "valid_from": 2, "valid_to": 3}],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("window", "lateness", "marked"),
    [(Range(5), None, False), (Range(5), 3, True), (Rows(2), None, True), (Rows(2, by="k"), 3, True)],
)
def test_what_a_selection_leaves_out_is_marked_where_it_still_counts(
    window: Any, lateness: int | None, marked: bool
) -> None:
    """On a stream it says how far that is, and in a row window it pushes others out."""
    tree = Aggregation(Selection(stream("R", window), "`R.v` > 1"), ("R.k",), COUNT)
    source = lowered(tree, 4, lateness).sources[0]
    assert source.steps[0] == (Mark("`R.v` > 1") if marked else Filter("`R.v` > 1"))
    assert (KEEP in names_of(source.hidden)) == marked
    assert KEEP not in names_of(source.fields)


def test_of_several_selections_a_row_has_one_mark() -> None:
    tree = Selection(picked(Selection(R, "`R.v` > 1"), a="R.k"), "`a` > 2")
    (source,) = lowered(Distinct(tree), 4, 3).sources
    assert [type(step) for step in source.steps] == [Mark, Compute, Mark]
    assert names_of(source.hidden) == ("__sjh_t0", KEEP)


def test_a_row_window_has_the_marks_of_its_rows_and_lets_go_of_them_afterwards() -> None:
    plan = lowered(Selection(stream("R", Rows(2), "k"), "`R.k` > 1"))
    (node,) = plan.stages[0].nodes
    assert node.kept
    assert node.names == ("R.k", KEEP)
    assert plan.sources[0].target.binding.payload == ("R.k", KEEP)
    assert names_of(plan.sink.fields)[0] == "R.k"
    left = InProcess(plan).batch({"R": [frame(ts=[1, 2, 3], k=[5, 0, 0])]})
    assert [row for table in left for row in table.to_pylist()] == [{"R.k": 5, "valid_from": 1, "valid_to": 3}]


def test_columns_that_are_there_already_are_not_computed() -> None:
    narrow = stream("R", Range(5), "k", "v")
    (source,) = lowered(Distinct(Projection(narrow, (("R.k", "`R.k`"), ("R.v", "`R.v`"))))).sources
    assert source.steps == ()


# -- needed columns only -----------------------------------------------------------------------------------------------


def test_a_source_reads_what_is_needed_and_a_join_takes_on_what_leaves_it() -> None:
    tree = picked(Join(R, S, (*equal("k"), Band("R.v", "S.v", 1, 1))), a="R.id")
    plan = lowered(tree)
    one, two = plan.sources
    assert one.reads == (("R.id", "id"), ("R.k", "k"), ("R.v", "v"), ("__sjh_t0", "ts"))
    assert two.reads == (("S.k", "k"), ("S.v", "v"), ("__sjh_t0", "ts"))
    assert (one.target.binding.payload, two.target.binding.payload) == (("R.id",), ())
    assert [schema.names for schema in plan.stages[0].nodes[0].config.schemas] == [["R.id"], []]
    assert names_of(one.hidden) == ("__sjh_t0",)


def test_what_spark_asks_of_the_pairs_goes_on_and_what_a_join_asks_itself_goes_along() -> None:
    inner, outer = (
        lowered(picked(Join(R, S, equal("k"), "`R.v` < `S.x`", how), a="R.id"), 4).sources for how in ("inner", "left")
    )
    for sources in (inner, outer):
        assert [source.target.binding.payload for source in sources] == [("R.id", "R.v"), ("S.x",)]


def test_ties_are_broken_by_content_so_all_of_the_right_row_goes_along() -> None:
    one, two = stream("R", None), stream("S", None, "id", "ts")
    plan = lowered(picked(AsOfJoin(one, two, ("R.ts", "S.ts")), a="R.id"), validity=None)
    assert [source.target.binding.payload for source in plan.sources] == [("R.id",), ("S.id", "S.ts")]


def test_a_stream_may_be_read_without_columns() -> None:
    plan = lowered(Aggregation(Stream("R", (), "ts", Range(5)), (), COUNT), 1, 0)
    running = InProcess(plan)
    left = [*running.micro_batch({"R": [frame(ts=[1, 3])]}), *running.micro_batch({"R": [frame(ts=[100])]})]
    rows = [row for one in left for row in one.to_pylist()]
    assert [(row["n"], row["valid_from"], row["valid_to"]) for row in rows] == [(1, 1, 3), (2, 3, 6), (1, 6, 8)]


def test_row_windows_of_batches_have_an_order_for_rows_of_one_time() -> None:
    tree = stream("R", Rows(2, by="k"), "v")
    batch, running = lowered(tree).sources[0], lowered(tree, 4, 0).sources[0]
    assert [column for name, column in batch.reads if name.startswith("__sjh_tie")] == [
        name for name in SCHEMA.names if name != "ts"
    ]
    assert running.target.binding.ties == ("__sjh_arrival",)
    assert (batch.stamped, running.stamped) == (False, True)
    assert names_of(running.hidden) == ("__sjh_t0", "__sjh_by0", "__sjh_arrival")
    assert running.groups == ("k",)
    (node,) = lowered(tree).stages[0].nodes
    assert node.feeds == (Entry(0, 1),)


# -- what is told beside the tree --------------------------------------------------------------------------------------


def test_a_plan_knows_its_time_and_whether_it_is_a_stream() -> None:
    batch, mixed = lowered(RS), lowered(RS, 4, {"S": 2}, idle_after=7, timers=True)
    assert (batch.axis, batch.time_type, batch.streaming, batch.timers) == (TimeAxis.INTEGER, pa.int64(), False, False)
    assert (mixed.streaming, mixed.timers) == (True, True)
    assert [stage.idle_after for stage in mixed.stages] == [7]
    assert [source.complete for source in mixed.sources] == [True, False]
    assert (batch.stages[0].complete, mixed.stages[0].complete) == (True, False)


def test_channels_know_how_late_rows_may_be_and_what_happens_to_those_that_are_later() -> None:
    late = dict.fromkeys("RST01", "drop") | {"S": "fail"}
    plan = lowered(RS, 4, {"R": 3, "S": 5}, sources={"late": late})
    one, two = (each.channels[0] for each in plan.stages[0].inputs)
    assert (one.lateness, one.late, one.label, one.prefix) == (Slack(3), "drop", "stream R", "R.")
    assert (two.lateness, two.late) == (Slack(5), "fail")
    assert [source.lateness for source in plan.sources] == [Slack(3), Slack(5)]


def test_results_are_held_for_order_by_the_join_that_is_last_or_by_the_outlet() -> None:
    def held(tree: Relation, **leaving: Any) -> tuple[list[str], bool]:
        plan = lowered(tree, 4, 0, emit="ordered", **leaving)
        emits = [node.config.emit for stage in plan.stages for node in stage.nodes if hasattr(node.config, "emit")]
        return emits, plan.stages[-1].outlet.ordered

    assert held(RS) == (["ordered"], False)
    assert held(picked(RS, a="R.k")) == (["ordered"], False)
    assert held(Join(RS, T, equal("k", right="T"))) == (["eager", "eager"], True)
    assert held(Aggregation(RS, ("R.k",), COUNT)) == (["eager"], True)
    assert held(Distinct(picked(R, a="R.k"))) == ([], True)
    assert lowered(Aggregation(RS, ("R.v",), COUNT), emit="ordered").stages[0].outlet.ordered is False


def test_a_changelog_of_events_is_the_joins_and_one_of_lifetimes_is_plus_and_minus_tuples() -> None:
    one, two = stream("R", None), stream("S", None)
    asof = AsOfJoin(one, two, ("R.ts", "S.ts"))
    running = lowered(asof, 4, 0, change=True, validity=None)
    assert (configs(running)[0].changelog, running.sink.shape.change) == (True, True)
    assert running.stages[-1].outlet.leaves == "settled"
    assert not configs(lowered(asof, 4, change=True, validity=None))[0].changelog, "a batch has nothing to correct"
    assert names_of(running.sink.fields)[-1] == "_change"
    negative = lowered(RS, 4, 0, change=True, method="negative")
    assert [type(config) for config in configs(negative)] == [NegativeWindow, NegativeWindow, NegativeJoin]
    assert negative.stages[-1].outlet.leaves == "told"
    assert (negative.sink.shape.validity, negative.sink.shape.time) == (None, "_time")
    assert names_of(negative.sink.fields)[-2:] == ("_change", "_time")


@pytest.mark.parametrize(("kind", "stages"), [
    ("istream", [[JOIN, "StreamOf"]]), ("dstream", [[JOIN, "StreamOf"]]), ("rstream", [[JOIN], ["StreamOf"]]),
])  # fmt: skip
def test_a_stream_of_changes_is_one_more_operator(kind: str, stages: list[list[str]]) -> None:
    plan = lowered(RS, to_stream=kind)
    assert kinds(plan) == stages
    assert (plan.sink.shape.validity, plan.sink.shape.time) == (None, "_time")
    assert plan.stages[-1].buckets == (1 if kind == "rstream" else 4)


def test_events_of_an_interval_leave_without_a_validity() -> None:
    tree = IntervalJoin(stream("R", None, "id", "ts"), stream("S", None, "id", "ts"), ("R.ts", "S.ts"), 0, 2)
    plan = lowered(tree, 4, 1, validity=None)
    assert names_of(plan.sink.fields) == ("R.id", "R.ts", "S.id", "S.ts")
    assert [(source.reading.time, source.reading.called, source.reading.timeless) for source in plan.sources] == [
        ("R.ts", ("ts",), False), ("S.ts", ("ts",), False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("policies", "flags"),
    [
        ({"late": "output"}, ("_late",)), ({"invalid": "drop"}, ()), ({"invalid": "output"}, ("_invalid",)),
        ({"late": "output", "invalid": "output"}, ("_invalid", "_late")),
    ],
)  # fmt: skip
def test_rows_that_are_shown_have_flags_where_they_are_asked_for(policies: dict, flags: Sequence[str]) -> None:
    plan = lowered(RS, 4, 1, flagged=True, sources=policies)
    assert plan.sink.shape.flags == tuple(flags)
    assert names_of(plan.sink.fields)[len(R.columns) * 2 + 2 :] == tuple(flags)
    assert lowered(RS, 4, 1, sources=policies).sink.shape.flags == ()


def test_inputs_know_their_placing_and_fused_ones_need_none() -> None:
    plan = lowered(Join(RS, T, equal("k", right="T")))
    (stage,) = plan.stages
    assert [each.partitioning for each in stage.inputs] == [Partitioning(4)] * 3
    assert [type(feed) for feed in stage.nodes[1].feeds] == [Inner, Entry]
    assert stage.nodes[1].feeds[0].binding.placed_by == ()
    matrix = lowered(Join(R, S, (Overlaps(("R.lo", "R.hi"), ("S.lo", "S.hi")),)))
    assert [(each.partitioning, each.number) for each in matrix.stages[0].inputs] == [
        (MatrixPartitioning(4), 0), (MatrixPartitioning(4), 1),
    ]  # fmt: skip
