"""A plan as JSON: written and read, it is the same plan."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import (
    Aggregate,
    Band,
    BestOf,
    Equals,
    Fixed,
    NearestOf,
    Now,
    Overlaps,
    Range,
    Rows,
    TimeAxis,
    Unbounded,
    Validity,
    Within,
)
from streamjoin.errors import SnapshotError
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import (
    Aggregation,
    AsOfJoin,
    BestMatchJoin,
    Difference,
    Distinct,
    Intersection,
    IntervalJoin,
    Join,
    NearestJoin,
    Projection,
    Relation,
    Selection,
    Union,
)
from streamjoin.plan.stored import from_stored, plan_name, to_stored
from streamjoin.plan.types import plain_type
from streamjoin.runtime.lateness import Complete, Slack, Timeless
from streamjoin.runtime.naming import MarkedColumn, Shape
from tests.interpreter import InProcess
from tests.plan.test_lowering import Wider
from tests.plan.trees import SCHEMA, lowered, stream

R, S, T = stream("R"), stream("S"), stream("T")
EVENTS = stream("R", None), stream("S", None)
TIMES, KEY, KEYS = ("R.ts", "S.ts"), (Equals("R.k", "S.k"),), (("R.k", "S.k"),)
BAND, BOX = Band("R.v", "S.v", 1, 1), Overlaps(("R.lo", "R.hi"), ("S.lo", "S.hi"))
WITHIN = Within(("R.x", "R.v"), ("S.x", "S.v"), 2.0, "manhattan")
AGGREGATES = (Aggregate("count", None, "n"), Aggregate("sum", "R.v", "t"), Aggregate("max", "R.s", "m"))


def strange(one: Any, two: Any) -> Any:
    return np.abs(one - two)


def plans() -> dict[str, PhysicalPlan]:
    def events(relation: Relation, **options: Any) -> PhysicalPlan:
        return lowered(relation, 4, 2, validity=None, **options)

    shown = {"late": "output", "invalid": "output", "made_by": "other", "derived": ("ts",)}
    selected = Selection(Join(R, S, KEY), "`R.v` < `S.v`")
    return {
        "source alone": lowered(Selection(R, "`R.v` > 1")),
        "marks": lowered(Distinct(Selection(R, "`R.v` > 1")), 4, 3),
        "temporal": lowered(Join(R, S, (*KEY, BAND, BOX), how="left"), 4, 3),
        "by value alone": lowered(Join(*EVENTS, KEY, timed=False, outer="row"), validity=None),
        "by home": lowered(Join(R, S, (WITHIN, Equals("R.s", "S.s"))), 4, 3),
        "by reference": lowered(Join(R, S, (BOX,), cell=2.0), 4, 3),
        "by matrix": lowered(Join(R, S), 4, 3),
        "court": lowered(Join(R, S, (), "`R.v` < `S.v`", "full"), 4, 3, emit="ordered"),
        "theta": lowered(Join(R, S, KEY, "upper(`R.s`) = `S.s`"), 4, 3),
        "shown": lowered(Join(R, S, KEY), 4, 3, flagged=True, sources=shown, idle_after=5, timers=True),
        "interval": events(IntervalJoin(*EVENTS, TIMES, -2, 5, "left", KEY)),
        "as-of": events(AsOfJoin(*EVENTS, TIMES, KEYS, "nearest", False, 3, tie_break=("S.v",))),
        "as-of changelog": events(AsOfJoin(*EVENTS, TIMES, tolerance=3), change=True),
        "as-of of as-of": events(AsOfJoin(AsOfJoin(*EVENTS, TIMES, KEYS, tolerance=1), stream("T", None),
                                          ("S.ts", "T.ts"), (("R.k", "T.k"),), tolerance=2)),
        "nearest": events(NearestJoin(*EVENTS, WITHIN, NearestOf(2, 3, ("S.v",)), TIMES, KEYS)),
        "best match": events(BestMatchJoin(*EVENTS, (("R.ts", "S.ts", 2), ("R.x", "S.x", 0.5)), how="full")),
        "best match in steps": events(BestMatchJoin(*EVENTS, (("R.x", "S.x", 0.5),), choice=BestOf("pareto", 7),
                                                    times=TIMES)),
        "row windows": lowered(Join(stream("R", Rows(2, by="k", drain=True)), stream("S", Rows(3)), KEY), 4, 3),
        "windows": lowered(Union(tuple(Projection(stream("R", each, time=time), (("a", "`R.k`"),)) for each, time in (
            (Range(5, slide=2), "ts"), (Fixed(5), "ts"), (Now(), "ts"), (Unbounded(), "ts"),
            (Validity("ts", "until"), None),
        ))), 4, 3),
        "aggregation": lowered(Aggregation(selected, ("R.k",), AGGREGATES), 4, 3),
        "distinct": lowered(Distinct(R), 4, 3),
        "except": lowered(Difference(R, S, True), 4, 3),
        "intersect": lowered(Intersection(Distinct(R), S), 4, 3),
        "rstream": lowered(Join(R, S, KEY), 4, 3, to_stream="rstream"),
        "istream": lowered(Join(R, S, KEY), 4, 3, to_stream="istream"),
        "plus and minus tuples": lowered(
            Aggregation(Join(stream("R", Rows(2)), S, KEY), ("R.k",), AGGREGATES), 4, 3, method="negative", change=True
        ),
        "casts": lowered(Join(Join(R, S, (Equals("R.n", "S.n"),)), T, (Equals("R.n", "T.k"),)), 4, 3, typing=Wider()),
    }  # fmt: skip


PLANS = plans()


def through(value: Any) -> Any:
    return from_stored(json.loads(json.dumps(to_stored(value))))


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_comes_back_as_it_was(name: str) -> None:
    again = through(PLANS[name])
    assert again == PLANS[name]
    assert plan_name(to_stored(again)) == plan_name(to_stored(PLANS[name]))
    assert repr(again) == repr(PLANS[name])


def test_a_plan_that_came_back_runs() -> None:
    numbers = {"k": [1, 1]}
    columns = [pa.array(numbers.get(field.name, [1, 2]), pa.int64()).cast(field.type) for field in SCHEMA]
    rows = {source: [pa.table(columns, schema=SCHEMA)] for source in "RS"}
    for name in ("temporal", "court", "aggregation", "best match"):
        one, two = (list(InProcess(plan).batch(rows)) for plan in (PLANS[name], through(PLANS[name])))
        assert one == two
        assert one


def test_types_and_numbers_come_back() -> None:
    for kind in (pa.timestamp("us", tz="UTC"), pa.date32(), pa.int64(), None):
        assert through(kind) == kind
    schema = pa.schema([("a", pa.decimal128(10, 2)), ("b", pa.struct([("c", pa.list_(pa.string()))]))])
    assert through(schema) == schema
    for value in (TimeAxis.DATE, Decimal("1.50"), Fraction(1, 3), plain_type(pa.binary()), (), (1, ("a", None)), 0.1):
        assert through(value) == value
    for policy in (Slack(5), Complete(), Timeless()):
        assert through(policy) == policy
    shape = Shape((), marked=(MarkedColumn("R_late", "late", (1,), pa.struct([("x", pa.int64())])),))
    assert through(shape) == shape


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(TypeError, match="set is no value of a plan"):
        to_stored({1})
    with pytest.raises(SnapshotError, match="'TreeWindow', which this version does not know"):
        from_stored({"@": "TreeWindow", "rows": 5})


@pytest.mark.parametrize("kind", ["errors:CallError", "plan.stored:to_stored", "algebra.window:Nobody", "os:getcwd"])
def test_only_dataclasses_of_this_package_are_read_back(kind: str) -> None:
    with pytest.raises(SnapshotError, match="which this version does not know"):
        from_stored({"@": kind})


def test_functions_are_named_and_cannot_be_read_back() -> None:
    compared = BestMatchJoin(*EVENTS, (("R.ts", "S.ts", 2), ("R.x", "S.x", 0.5)), compare=((1, strange),))
    dominated = BestMatchJoin(*EVENTS, (("R.ts", "S.ts", 2),), choice=BestOf(strange))
    for join in (compared, dominated):
        stored = json.loads(json.dumps(to_stored(lowered(join, 4, 2, validity=None))))
        with pytest.raises(SnapshotError, match="the stored join calls the function 'strange', which is not in the"):
            from_stored(stored)


# -- names -------------------------------------------------------------------------------------------------------------


def named(relation: Relation, lateness: int = 3, **options: Any) -> str:
    plan = lowered(relation, options.pop("buckets", 4), lateness, **options)
    return plan_name(json.loads(json.dumps(to_stored(plan))))


def test_with_other_lateness_a_query_may_go_on() -> None:
    join = Join(R, S, KEY)
    assert named(join) == named(join, 30) == named(join, 3, idle_after=9)


@pytest.mark.parametrize(
    ("relation", "options"),
    [
        (Join(R, stream("S", Range(6)), KEY), {}),
        (Join(R, S, (Equals("R.j", "S.j"),)), {}),
        (Join(R, S, KEY, how="left"), {}),
        (Join(R, S, (*KEY, BAND)), {}),
        (Join(R, T, (Equals("R.k", "T.k"),)), {}),
        (Join(R, stream("S", Range(5), "k"), KEY), {}),
        (Selection(Join(R, S, KEY), "`R.v` > 1"), {}),
        (Join(Selection(R, "`R.v` > 1"), S, KEY), {}),
        (Join(R, S, KEY), {"buckets": 5}),
        (Join(R, S, KEY), {"emit": "ordered"}),
        (Join(R, S, KEY), {"to_stream": "istream"}),
        (Join(R, S, KEY), {"sources": {"late": "fail"}}),
        (Join(R, S, KEY), {"sources": {"invalid": "drop"}}),
        (Join(R, S, KEY), {"validity": ("a", "b")}),
    ],
)
def test_another_plan_has_another_name(relation: Relation, options: dict[str, Any]) -> None:
    assert named(relation, **options) != named(Join(R, S, KEY))


def test_a_stream_beside_a_table_is_another_plan() -> None:
    join = Join(R, S, KEY)
    assert plan_name(to_stored(lowered(join, 4, {"R": 3}))) != named(join)
    plan = lowered(join, 4, 3)
    assert plan_name(to_stored(replace(plan, timers=True))) != plan_name(to_stored(plan))
