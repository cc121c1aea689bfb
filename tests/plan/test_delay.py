"""How late results can be: never later than is said, and as late somewhere."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, BestOf, Equals, Fixed, Now, Range, Rows, Unbounded, Validity
from streamjoin.errors import CallError
from streamjoin.plan.delay import output_delay
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Query,
    Relation,
    Selection,
    Stream,
    Union,
    streams_of,
)
from tests import in_process
from tests.function_trees import SCHEMA, SLACK, plan_of, rows, table, tree

COUNT = 45


def worst(plan: PhysicalPlan, column: str, slacks: Mapping[str, int | None], seed: int) -> int:
    """By how much a result's time was behind what left in earlier micro-batches, at worst. In some runs one of the
    sources is far behind the others.
    """
    rng = random.Random(seed)
    sides = {name: rows(rng, COUNT, slack or 0) for name, slack in slacks.items()}
    for each in (each for side in sides.values() for each in side if rng.random() < 0.1):
        each["k"] = None  # by keys it can meet nobody, and must still not leave before its time
    run, largest, late = in_process.Troubled(plan, rng=rng, trouble=0.05), None, 0
    at = {name: 0 for name, slack in slacks.items() if slack is not None}
    behind = rng.choice([None, *at])
    waiting = {name: table(side) for name, side in sides.items() if name not in at}  # tables come first
    while min(at.values()) < COUNT:
        others = min((place for name, place in at.items() if name != behind), default=COUNT)
        for name in at:
            step = rng.choice([0, 0, 0, 1] if name == behind and others < COUNT else [0, 1, 4, 15])
            waiting[name] = table(sides[name][at[name] : at[name] + step])
            at[name] += step
        times = [time for part in run.rows(waiting) for time in part[column].to_pylist() if time is not None]
        late = max([late, *(0 if largest is None else largest - time for time in times)])
        largest = max([*times, *([] if largest is None else [largest])], default=None)
        waiting = {}
    return late


# -- joins of two frames -----------------------------------------------------------------------------------------------

BOTH = {"0": SLACK, "1": SLACK}


@pytest.mark.parametrize(
    ("shape", "how", "column", "emit"),
    [
        ("keys", "inner", "valid_from", "eager"),
        ("keys", "inner", "valid_to", "eager"),
        ("keys", "inner", "ts", "eager"),
        ("keys", "full", "valid_from", "eager"),
        ("keys", "semi", "valid_from", "eager"),
        ("theta", "left", "valid_from", "eager"),
        ("keys", "anti", "valid_from", "ordered"),
        ("interval", "inner", "ts", "eager"),
        ("interval", "left", "ts", "ordered"),
        ("interval", "inner", "ts_right", "eager"),
        ("as of", "left", "ts", "eager"),
        ("as of, near, without keys", "left", "ts_right", "eager"),
        ("best match", "left", "ts", "eager"),
        ("best match without keys", "full", "ts_right", "eager"),
        ("best match", "right", "ts_right", "eager"),
        ("nearest", "left", "ts", "eager"),
        ("nearest", "inner", "ts_right", "eager"),
        ("as of", "left", "ts", "ordered"),
        ("best match", "left", "ts", "ordered"),
        ("best match", "full", "ts_right", "ordered"),
        ("nearest", "left", "ts", "ordered"),
    ],
)
def test_results_are_never_later_than_is_said(shape: str, how: str, column: str, emit: Any) -> None:
    relation = tree(shape, how=how)
    plan = plan_of(relation, BOTH, buckets=2, emit=emit)
    found = [worst(plan, column, BOTH, seed) for seed in range(6)]
    assert max(found) <= output_delay(Query(relation), plan, column)
    assert max(found) > 0 or emit == "ordered", "results are late at all"


@pytest.mark.parametrize("emit", ["eager", "ordered"])
@pytest.mark.parametrize("shape", ["as of", "best match", "nearest"])
def test_a_row_without_a_key_waits_for_the_other_input_where_nobody_else_waits(shape: str, emit: Any) -> None:
    relation = tree(shape, how="left", keys=(("0.k", "1.k"),))
    plan = plan_of(relation, {"0": 0, "1": 0}, buckets=2, emit=emit)
    run, left = in_process.Troubled(plan, rng=random.Random(0), trouble=0.0), []
    first = [{"id": ts, "ts": ts, "k": k, "v": 0, "lo": 0, "hi": 0} for ts, k in ((3, 0), (17, None), (19, 0))]
    for waiting in ({"0": table(first)}, {"1": table([first[0] | {"ts": 30}])}, {"0": table([first[0] | {"ts": 31}])}):
        left.append([time for part in run.rows(waiting) for time in part["ts"].to_pylist()])
    assert left[0] == [], "17 is in a bucket of its own, and 3 will be behind it"
    assert sorted(left[1] + left[2]) == [3, 17, 19]
    largest = max(left[1])
    assert all(largest - time <= output_delay(Query(relation), plan, "ts") for time in left[2])


def said(relation: Relation, column: str | None = None, lateness: Any = None, **options: Any) -> int:
    return output_delay(Query(relation), plan_of(relation, lateness or BOTH, **options), column)


def test_the_bounds_by_hand() -> None:
    assert said(tree("keys")) == 5 + SLACK
    assert said(tree("keys"), "valid_to") == 5 + SLACK
    assert said(tree("keys"), "ts_right") == 5 + SLACK + 5
    assert said(tree("keys", how="left")) == 5 + 5 + SLACK
    assert said(tree("interval")) == 3 + 2 + SLACK
    assert said(tree("keys"), lateness={"0": SLACK}) == 5 + SLACK
    assert said(tree("keys", windows=(Range(5), Validity("ts", "id"))), lateness={"0": SLACK}) == 5 + SLACK
    assert said(tree("as of", tolerance=9), "ts_right") == SLACK + 9
    assert said(tree("nearest"), "ts_right", {"0": 1, "1": 9}) == 3 + 3 + 3
    assert said(tree("best match", how="right")) == SLACK + 3 + 3 + 1


@pytest.mark.parametrize("how", ["left", "semi", "anti"])
@pytest.mark.parametrize(("shape", "bound"), [("keys", 5 + SLACK), ("theta", 5 + 5 + SLACK)])
def test_beside_a_table_that_is_valid_for_any_time_rows_wait_for_nobody(shape: str, bound: int, how: str) -> None:
    relation = tree(shape, how=how, windows=(Range(5), Unbounded()))
    plan = plan_of(relation, {"0": SLACK, "1": None}, buckets=2)
    assert output_delay(Query(relation), plan) == bound
    found = [worst(plan, "valid_from", {"0": SLACK, "1": None}, seed) for seed in range(4)]
    assert max(found) <= bound


def test_where_a_second_stage_decides_a_row_waits_for_its_own_input_too() -> None:
    relation = tree("theta", how="left", windows=(Range(10), Now()))
    assert said(relation, lateness={"0": 0, "1": 0}) == 10 + 1
    plan = plan_of(relation, {"0": 0, "1": 0}, buckets=4)
    assert output_delay(Query(relation), plan) == 10 + 10
    found = [worst(plan, "valid_from", {"0": 0, "1": 0}, seed) for seed in range(4)]
    assert 10 + 1 < max(found) <= 10 + 10


@pytest.mark.parametrize(
    ("relation", "options", "message"),
    [
        (tree("keys"), {"late": ("join", "drop")}, 'late="join" lets rows of any age through'),
        (tree("keys"), {"column": "id"}, "'id' is no time column of this join's result"),
        (tree("keys", windows=(Unbounded(), Now())), {}, "rows of input 0 may be valid for any length of time"),
        (
            tree("keys", windows=(Now(), Unbounded()), how="full"),
            {"lateness": {"0": 1}},
            "rows of input 1 may be valid for any length of time",
        ),
        (tree("keys", timed=False), {"lateness": {}}, "this join has no time"),
        (tree("as of, ahead"), {}, "may wait for ever for its answer"),
        (tree("as of"), {"column": "ts_right"}, "any distance before the left row's"),
        (tree("as of, near, without keys"), {"change": True}, "corrects rows of any age"),
        (tree("best match", choice=BestOf(reach=66), times=("0.ts", "1.ts")), {}, "not ordered by a time"),
        (tree("best match", dimensions=(("0.v", "1.v", 3),)), {"lateness": {}}, "this join has no time"),
    ],
)
def test_what_has_no_bound_is_refused(relation: Relation, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CallError, match=message):
        said(relation, **options)


def test_what_there_is_instead_of_a_column() -> None:
    with pytest.raises(CallError) as refused:
        said(tree("keys"), "v")
    assert refused.value.hint == "there is valid_from, valid_to, ts, ts_right"
    with pytest.raises(CallError) as refused:
        said(tree("interval"), "v")
    assert refused.value.hint == "there is ts, ts_right"


def test_values_that_are_ordered_by_are_a_time_where_they_count() -> None:
    assert said(tree("best match")) == SLACK  # above the epsilon of 3
    wide = tree("best match", dimensions=(("0.ts", "1.ts", 7),))
    assert (said(wide), said(wide, "ts_right")) == (7, 7 + 15)


# -- queries -----------------------------------------------------------------------------------------------------------


def stream(name: str, window: Any, *columns: str) -> Stream:
    reads = tuple((f"{name}.{column}", column) for column in columns or ("k", "ts"))
    return Stream(name, reads, None if window is None else "ts", window)


def joined(left: Relation, right: Relation, how: Any = "inner") -> Join:
    return Join(left, right, (Equals(left.columns[0], right.columns[0]),), how=how)


def counted(child: Relation, *keys: str) -> Aggregation:
    return Aggregation(child, keys, (Aggregate("count", None, "n"),))


R, S, T = stream("R", Range(5)), stream("S", Range(8)), stream("T", Fixed(6))
NEWEST = stream("S", Rows(2))
SLACKS = {"R": 2, "S": 3, "T": 1}
ONE, TWO = Projection(R, (("k", "`R.k`"), ("ts", "`R.ts`"))), Projection(S, (("j", "`S.k`"), ("time", "`S.ts`")))


def planned(relation: Relation, **leaving: Any) -> PhysicalPlan:
    names = [leaf.source for leaf in streams_of(relation)]
    return in_process.plan_of(relation, dict.fromkeys(names, SCHEMA), SLACKS, Leaving(**{"buckets": 2} | leaving))


@pytest.mark.parametrize(
    ("relation", "column", "delay"),
    [
        # A join of joins: what is behind a pair ends within the longest row and its slack.
        (joined(joined(R, S), T), "valid_from", 8 + 3),
        (joined(joined(R, S), T), "S.ts", 8 + 3 + 8),
        # Aggregates say what has ended, so they wait for the longest piece, and for nothing else.
        (counted(joined(R, S), "R.k"), "valid_from", 5),
        (counted(joined(R, S), "R.ts"), "R.ts", 5 + 5),
        (joined(counted(R, "R.k"), S), "valid_from", 8 + 3 + 5),
        # Rows of EXCEPT may be there for ever, because equal ones follow one another; not so within those of a join.
        (joined(Difference(ONE, TWO), T), "valid_from", 6 + 1 + 5),
        (joined(Difference(Projection(R, (("k", "`R.k`"),)), stream("S", Now(), "k")), T), "valid_from", 6 + 1 + 6),
        # By snapshot rows leave in parts, when all is known of them.
        (joined(R, S, "left"), "valid_from", 8 + 3 + 5),
        (joined(R, S, "full"), "valid_from", 8 + 3 + 5),
        (joined(R, S, "anti"), "R.ts", 8 + 3 + 5 + 5),
        (Join(R, T, (), "`R.k` < `T.k`", how="full"), "valid_from", 7 + 6),
        (joined(joined(R, S, "left"), T), "valid_from", 11 + 5),
        (counted(joined(R, S, "left"), "R.k"), "valid_from", 5 + 5),
        # An aggregation waits for the last of several streams.
        (counted(Union((ONE, TWO)), "k"), "valid_from", 8),
        # The end of a row window's rows is learned, and that of a pair is no later than the other's.
        (joined(R, NEWEST), "valid_from", 5 + 2 + 5),
        (joined(counted(R, "R.k"), joined(NEWEST, T)), "valid_from", 6 + 1 + 5),
        # Rows that pass as they come.
        (Selection(S, "`S.k` >= 0"), "valid_from", 3),
        (Selection(S, "`S.k` >= 0"), "S.ts", 3),
        (stream("S", Fixed(6)), "valid_to", 6 + 3),
    ],
)
def test_queries_are_never_later_than_is_said(relation: Relation, column: str, delay: int) -> None:
    plan = planned(relation)
    assert output_delay(Query(relation), plan, column) == delay
    slacks = {leaf.source: SLACKS[leaf.source] for leaf in streams_of(relation)}
    found = [worst(plan, column, slacks, seed) for seed in range(5)]
    assert 0 < max(found) <= delay


@pytest.mark.parametrize(
    ("relation", "options", "column", "delay"),
    [
        # Whatever ends in the order in which it began is never late, though nothing says so beforehand.
        (counted(joined(R, S)), {}, "valid_from", 5),
        (Difference(ONE, TWO), {}, "valid_from", 5),
        (Difference(ONE, TWO, every=True), {}, "ts", 5 + 5),
        (Intersection(TWO, ONE), {}, "time", 8 + 8),
        (Distinct(S), {}, "valid_from", 8),
        (Distinct(joined(R, NEWEST)), {"to_stream": "istream"}, "_time", 0),
        (Distinct(joined(R, NEWEST)), {"to_stream": "dstream"}, "R.ts", 5),
        (Union((ONE, TWO)), {"to_stream": "istream"}, "_time", 0),
        (counted(joined(R, S, "left"), "R.k"), {"to_stream": "istream"}, "_time", 5),
        (counted(joined(R, S, "left"), "R.k"), {"to_stream": "istream", "buckets": 1}, "_time", 0),
        (joined(R, NEWEST), {"method": "negative", "change": True}, "_time", 0),
        (NEWEST, {"method": "negative", "change": True}, "_time", 3),
        (joined(R, S), {"method": "negative"}, "valid_from", 5),
    ],
)
def test_streams_and_changes_go_by_progress(
    relation: Relation, options: dict[str, Any], column: str, delay: int
) -> None:
    plan = planned(relation, **options)
    query = Query(relation, options.get("to_stream"))
    assert output_delay(query, plan, column) == delay
    slacks = {leaf.source: SLACKS[leaf.source] for leaf in streams_of(relation)}
    assert max(worst(plan, column, slacks, seed) for seed in range(4)) <= delay
    if column == "_time":
        assert output_delay(query, plan) == delay


@pytest.mark.parametrize(
    ("relation", "column", "message"),
    [
        (Distinct(stream("R", Range(5), "k")), None, "DISTINCT: a row may be there for ever"),
        (counted(Distinct(joined(R, S, "full"))), None, "DISTINCT: a row may be there for ever"),
        (Difference(stream("R", Range(5), "k"), stream("S", Now(), "k")), None, "EXCEPT: a row may be there for ever"),
        (NEWEST, None, "a row of stream S is valid until later ones push it out"),
        (joined(R, NEWEST, "left"), None, "a row of stream S is valid until later ones push it out"),
        (joined(R, NEWEST), "S.ts", "a row of stream S is valid until later ones push it out"),
        (Union((ONE, TWO)), None, "UNION: one of its parts may be any time behind the others"),
        (joined(Union((ONE, TWO)), T), None, "UNION: one of its parts may be any time behind the others"),
        (joined(R, stream("S", Unbounded())), None, "rows of stream S may be valid for any length of time"),
        (counted(joined(joined(R, S), T), "R.k"), "n", "'n' is no time column of this query's result"),
    ],
)
def test_queries_without_a_bound_say_why(relation: Relation, column: str | None, message: str) -> None:
    with pytest.raises(CallError, match=message):
        output_delay(Query(relation), planned(relation), column)


def asof(left: Relation, right: Relation, times: tuple[str, str], **options: Any) -> AsOfJoin:
    return AsOfJoin(left, right, times, ((f"{times[0][0]}.k", f"{times[1][0]}.k"),), **options)


EVENTS = {name: stream(name, None) for name in SLACKS}
INNER = asof(EVENTS["R"], EVENTS["S"], ("R.ts", "S.ts"), direction="nearest", tolerance=3)


@pytest.mark.parametrize(("column", "delay"), [("R.ts", 6), ("S.ts", 6 + 3 + 3), ("T.ts", 6 + 6)])
def test_a_join_of_events_over_another_one(column: str, delay: int) -> None:
    relation = asof(Selection(INNER, "`R.k` >= 0"), EVENTS["T"], ("R.ts", "T.ts"), direction="forward", tolerance=6)
    plan = planned(relation, validity=None)
    assert output_delay(Query(relation), plan, column) == delay
    assert max(worst(plan, column, SLACKS, seed) for seed in range(4)) <= delay


def test_buckets_of_a_join_of_events_are_any_time_apart() -> None:
    relation = asof(EVENTS["T"], INNER, ("T.ts", "R.ts"), tolerance=2)
    with pytest.raises(CallError, match="whose buckets may be any time apart"):
        output_delay(Query(relation), planned(relation, validity=None))
    plan = planned(relation, validity=None, buckets=1)
    assert output_delay(Query(relation), plan) == 1
    assert max(worst(plan, "T.ts", SLACKS, seed) for seed in range(4)) <= 1


def test_a_column_of_both_inputs_is_as_late_as_the_later_one() -> None:
    relation = tree("keys", windows=(Range(5), Range(9)), how="full")
    plan = plan_of(relation, BOTH)
    shape = plan.sink.shape
    first = shape.columns[1]
    assert first.name == "ts"
    both = type(first)("ts", ("0.ts", "1.ts"), pa.int64())
    merged = type(plan.sink)(type(shape)((both,), shape.validity), plan.sink.fields, plan.sink.channels)
    plan = PhysicalPlan(plan.sources, plan.stages, plan.edges, merged, plan.axis)
    assert output_delay(Query(relation), plan, "ts") == 5 + 9 + SLACK + 9
