"""The plan that a call makes on Spark is equal to the one that the simulators run for it.

A call is made on Spark; beside it stands what a simulator would draw for the same call: an object of its own, which
knows nothing of Spark, and from which it makes the plan that it runs. Nothing of one is taken for the other, and both
plans are compared as they are: nothing is left out, renamed or put in order first.

Of a query the simulator of trees draws the tree, and no text. There the tree is the query's, and everything else the
simulator's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import streamjoin as sj
from streamjoin.algebra import AsOf, Band, BestOf, Equals, NearestOf, Overlaps, Similar, Within
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.multi_join import for_all
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import streams_of
from streamjoin.plan.stored import from_stored, to_stored
from streamjoin.runtime.lateness import Complete, Lateness, Slack
from streamjoin.runtime.recall import ToRecall
from streamjoin.spark.marks import CallPlan, plan_of
from tests import function_trees, many_simulator, priority_simulator, relational_simulator, tpmj_simulator
from tests.joins import Bounds, JoinCall
from tests.plan import test_reorder

WIDE = many_simulator.WIDE  # columns for every kind of predicate
SLACK = 2
GRACE = sj.Grace(SLACK)
TWO, RANGE = (sj.Range(5), sj.Range(5)), sj.Range(5)


@dataclass(frozen=True)
class Same:
    """A call on Spark, and the plan that is simulated for it. `simulated` gets how late rows may be, and the call for
    those simulators that draw trees.
    """

    call: Callable[..., DataFrame]
    simulated: Callable[[Lateness, CallPlan], PhysicalPlan]
    schema: pa.Schema = field(default_factory=lambda: WIDE)
    streaming: tuple[bool, ...] = (False, True)
    lateness: Any = GRACE


# -- joins of two frames: `tests.simulator` and, with a budget, `tests.batch_simulator` and `tests.spilled_simulator` --


def two(call: Callable[..., DataFrame], **drawn: Any) -> Same:
    more = {name: drawn.pop(name) for name in ("streaming", "lateness") if name in drawn}

    def simulated(lateness: Lateness, _: CallPlan) -> PhysicalPlan:
        return JoinCall((WIDE, WIDE), lateness=(lateness, lateness), **drawn).plan()

    return Same(call, simulated, **more)


K = {"keys": ("k",), "by": ("k",)}
PAIRS: dict[str, Same] = {
    "keys": two(
        lambda a, b, **o: sj.join([a, b], time="ts", window=sj.Range(5), by="k", how="full", buckets=3, **o),
        **K, windows=TWO, how="full", buckets=3,
    ),
    "keys that both keep": two(
        lambda a, b, **o: sj.join(a, b, time="ts", window=RANGE, left_by="s", right_by="s", buckets=2, **o),
        keys=("s",), windows=TWO, buckets=2,
    ),
    "validity": two(
        lambda a, b, **o: sj.join([a, b], window=sj.Validity("ts", "te"), how="left", buckets=4, **o),
        windows=(sj.Validity("ts", "te"),) * 2, how="left", buckets=4,
    ),
    "order, inputs held": two(
        lambda a, b, **o: sj.join(
            [a, b], time="ts", window=sj.Fixed(4), by="s", emit="ordered", hold="inputs", buckets=2, **o
        ),
        keys=("s",), by=("s",), windows=(sj.Fixed(4),) * 2, emit="ordered", hold="inputs", buckets=2,
    ),
    "row windows": two(
        lambda a, b, **o: sj.join([a, b], time="ts", window=sj.Rows(3), by="k", how="left", buckets=2, **o),
        **K, windows=(sj.Rows(3),) * 2, how="left", buckets=2,
    ),
    "by snapshot": two(
        lambda a, b, **o: sj.join(a, b, time="ts", window=RANGE, by="k", how="left", outer="snapshot", buckets=2, **o),
        **K, windows=TWO, how="left", outer="snapshot", buckets=2,
    ),
    "values alone": two(
        lambda a, b, **o: sj.join(a, b, by="k", where=sj.band("v", below=1, above=2), buckets=3, **o),
        **K, predicates=(Band("v", "v", 1, 2),), time=None, buckets=3, streaming=(False,), lateness=None,
    ),
    "a further condition": two(
        lambda a, b, **o: sj.join(a, b, time="ts", window=RANGE, where="l.v < r.v", buckets=2, **o),
        windows=TWO, theta="l.v < r.v", buckets=2,
    ),
    "a further condition of an outer join": two(
        lambda a, b, **o: sj.join(a, b, time="ts", window=RANGE, where="l.v < r.v", how="anti", buckets=2, **o),
        windows=TWO, theta="l.v < r.v", how="anti", buckets=2,
    ),
    "late and invalid rows are shown": two(
        lambda a, b, **o: sj.join(
            [a, b], time="ts", window=RANGE, by="k", late=["output", "drop"], invalid="output", buckets=2, **o
        ),
        **K, windows=TWO, late=("output", "drop"), invalid="output", buckets=2,
    ),
    "late rows join": two(
        lambda a, b, **o: sj.join(a, b, time="ts", window=RANGE, by="k", late="join", buckets=2, **o),
        **K, windows=TWO, late=("join", "join"), buckets=2,
    ),
    "a recall target": two(
        lambda a, b, **o: sj.join(a, b, time="ts", window=RANGE, by="k", buckets=2, **o),
        **K, windows=TWO, late=("join", "join"), buckets=2, streaming=(True,),
        lateness=sj.Recall(0.9, period=60, interval=5, max_delay=40),
    ),
    "a recall target of an interval join": two(
        lambda a, b, **o: sj.join_interval(a, b, on="ts", by="k", lower=-1, upper=4, buckets=2, **o),
        **K, interval=Bounds(-1, 4), late=("join", "join"), buckets=2, streaming=(True,),
        lateness=sj.Recall(0.5, period=60, interval=5),
    ),
    "idle inputs": two(
        lambda a, b, **o: sj.join(a, b, time="ts", window=RANGE, by="k", idle_after="3 s", timers=True, buckets=2, **o),
        **K, windows=TWO, idle_after=3_000_000, timers=True, buckets=2, streaming=(True,),
    ),
    "a budget": two(
        lambda a, b, **o: sj.join(a, b, time="ts", window=RANGE, by="k", memory="64 MB", buckets=2, **o),
        **K, windows=TWO, memory=64 << 20, buckets=2,
    ),
    "interval": two(
        lambda a, b, **o: sj.join_interval(a, b, on="ts", by="k", lower=-1, upper=4, how="left", buckets=2, **o),
        **K, interval=Bounds(-1, 4), how="left", buckets=2,
    ),
    "interval without keys": two(
        lambda a, b, **o: sj.join_interval(a, b, on="ts", lower=0, upper=2, closed="left", cell=20, buckets=4, **o),
        interval=Bounds(0, 2, "left"), cell=20.0, buckets=4,
    ),
    "band": two(
        lambda a, b, **o: sj.join_band(a, b, on="v", below=1, above=1, time="ts", window=sj.Range(3), buckets=3, **o),
        predicates=(Band("v", "v", 1, 1),), windows=(sj.Range(3),) * 2, buckets=3,
    ),
    "overlap": two(
        lambda a, b, **o: sj.join_overlap(
            a, b, on=("lo", "hi"), time="ts", window=sj.Now(), how="semi", buckets=4, **o
        ),
        predicates=(Overlaps(("lo", "hi"), ("lo", "hi")),), windows=(sj.Now(),) * 2, how="semi", buckets=4,
    ),
    "within": two(
        lambda a, b, **o: sj.join_within(
            a, b, on=("x", "y"), radius=2, time="ts", window=sj.Now(), cell=3, buckets=3, **o
        ),
        predicates=(Within(("x", "y"), ("x", "y"), 2),), windows=(sj.Now(),) * 2, cell=3.0, buckets=3,
    ),
    "similar": two(
        lambda a, b, **o: sj.join(
            a, b, where=sj.similar("words", jaccard=0.75), time="ts", window=RANGE, how="left", buckets=3, **o
        ),
        predicates=(Similar("words", "words", "jaccard", 0.75),), windows=TWO, how="left", buckets=3,
    ),
    "few changes of a text": two(
        lambda a, b, **o: sj.join(a, b, where=sj.similar("name", edit=2), time="ts", window=RANGE, buckets=3, **o),
        predicates=(Similar("name", "name", "edit", 2),), windows=TWO, buckets=3,
    ),
    "as of": two(
        lambda a, b, **o: sj.join_asof(a, b, on="ts", by="s", tolerance=4, tie_break="v", buckets=3, **o),
        keys=("s",), by=("s",), choice=AsOf(tolerance=4, tie_break=("v",)), how="left", buckets=3,
    ),
    "as of, ahead": two(
        lambda a, b, **o: sj.join_asof(
            a, b, on="ts", direction="forward", allow_exact_matches=False, how="inner", emit="ordered", buckets=2, **o
        ),
        choice=AsOf("forward", exact=False), how="inner", emit="ordered", buckets=2,
    ),
    "nearest": two(
        lambda a, b, **o: sj.join_nearest(
            a, b, on=("x", "y"), within=3, k=2, time="ts", tolerance=2, output="changelog", buckets=3, **o
        ),
        predicates=(Within(("x", "y"), ("x", "y"), 3),), choice=NearestOf(2, 2), how="left", output="changelog",
        buckets=3,
    ),
    "nearest without time": two(
        lambda a, b, **o: sj.join_nearest(a, b, on=("x", "y"), within=3, how="inner", buckets=3, **o),
        predicates=(Within(("x", "y"), ("x", "y"), 3),), choice=NearestOf(), time=None, how="inner", buckets=3,
        streaming=(False,), lateness=None,
    ),
    "best match": two(
        lambda a, b, **o: sj.join_best_match(a, b, on={"ts": 3, "v": 1.0}, how="full", buckets=3, **o),
        predicates=(Band("ts", "ts", 3, 3), Band("v", "v", 1.0, 1.0)), choice=BestOf(), how="full", buckets=3,
    ),
    "best match by a double": two(
        lambda a, b, **o: sj.join_best_match(a, b, on={"v": 1.0}, by="k", dominance="strict", buckets=3, **o),
        **K, predicates=(Band("v", "v", 1.0, 1.0),), choice=BestOf("strict"), time=None, how="left", buckets=3,
        streaming=(False,), lateness=None,
    ),
}  # fmt: skip


# -- trees of functions: `tests.function_trees` ------------------------------------------------------------------------


def shape(name: str, call: Callable[..., DataFrame], leaving: dict[str, Any] | None = None, **options: Any) -> Same:
    def simulated(lateness: Lateness, _: CallPlan) -> PhysicalPlan:
        known = dict.fromkeys(("0", "1"), lateness)
        return function_trees.plan_of(function_trees.tree(name, **options), known, buckets=2, **leaving or {})

    return Same(call, simulated, function_trees.SCHEMA)


W = {"time": "ts", "window": RANGE, "buckets": 2}
SHAPES: dict[str, Same] = {
    "keys": shape("keys", lambda a, b, **o: sj.join(a, b, left_by="k", right_by="k", how="left", **W, **o), how="left"),
    "time": shape("time", lambda a, b, **o: sj.join(a, b, **W, **o)),
    "band": shape("band", lambda a, b, **o: sj.join_band(a, b, on="v", below=1, above=2, **W, **o)),
    "overlap": shape("overlap", lambda a, b, **o: sj.join_overlap(a, b, on=("lo", "hi"), **W, **o)),
    "overlap in cells": shape(
        "overlap in cells", lambda a, b, **o: sj.join_overlap(a, b, on=("lo", "hi"), cell=3, **W, **o)
    ),
    "within": shape("within", lambda a, b, **o: sj.join_within(a, b, on=("v", "lo"), radius=1.5, **W, **o)),
    "theta": shape("theta", lambda a, b, **o: sj.join(a, b, where="l.v < r.v", **W, **o)),
    "interval": shape(
        "interval",
        lambda a, b, **o: sj.join_interval(
            a, b, on="ts", left_by="k", right_by="k", lower=-2, upper=3, buckets=2, memory="64 MB", **o
        ),
        {"memory": 64 << 20},
    ),
    "interval without keys": shape(
        "interval without keys", lambda a, b, **o: sj.join_interval(a, b, on="ts", lower=0, upper=2, buckets=2, **o)
    ),
    "as of": shape("as of", lambda a, b, **o: sj.join_asof(a, b, on="ts", left_by="k", right_by="k", buckets=2, **o)),
    "as of, ahead": shape(
        "as of, ahead",
        lambda a, b, **o: sj.join_asof(
            a, b, on="ts", left_by="k", right_by="k", direction="forward", allow_exact_matches=False, buckets=2, **o
        ),
    ),
    "as of, near, without keys": shape(
        "as of, near, without keys",
        lambda a, b, **o: sj.join_asof(a, b, on="ts", direction="nearest", tolerance=2, buckets=2, **o),
    ),
    "best match": shape(
        "best match",
        lambda a, b, **o: sj.join_best_match(a, b, on={"ts": 3, "v": 2}, left_by="k", right_by="k", buckets=2, **o),
    ),
    "best match without keys": shape(
        "best match without keys", lambda a, b, **o: sj.join_best_match(a, b, on={"ts": 3, "v": 1}, buckets=2, **o)
    ),
    "nearest": shape(
        "nearest",
        lambda a, b, **o: sj.join_nearest(
            a, b, on=("v", "lo"), within=2.0, k=2, time="ts", tolerance=3, buckets=2, **o
        ),
    ),
}


# -- joins of many frames: `tests.many_simulator`, and in sorted runs `tests.tpmj_simulator` ---------------------------


def many(call: Callable[..., DataFrame], case: type[many_simulator.Case] = many_simulator.Case, **drawn: Any) -> Same:
    """Its cases are streams."""

    def simulated(lateness: Lateness, _: CallPlan) -> PhysicalPlan:
        assert lateness == Slack(SLACK)
        inputs = len(drawn["windows"])
        usual = {"seed": 0, "slack": [SLACK] * inputs, "arrivals": [[] for _ in range(inputs)], "trouble": 0}
        usual |= {"emit": "eager", "hold": "auto", "late": ["drop"] * inputs, "buckets": 3, "cell": None}
        return case(**usual | {"regime": "", "kind": "", "schema": WIDE} | drawn).plan()

    return Same(call, simulated, streaming=(True,))


def between(predicate: Any, ends: list[tuple[int, int]]) -> list[Any]:
    return [(*each, predicate, None) for each in ends]


KEY_OF_ALL = between(Equals("k", "k"), [(0, 1), (1, 2)])
V_OF_ALL = between(Band("v", "v", 1, 2), for_all(3))
MANY: dict[str, Same] = {
    "keys": many(
        lambda a, **o: sj.join([a, a, a], where=sj.equals("k"), time="ts", window=RANGE, buckets=3, **o),
        between=KEY_OF_ALL, windows=[RANGE] * 3,
    ),
    "a band of all": many(
        lambda a, **o: sj.join(
            [a, a, a], where=sj.band("v", below=1, above=2), time="ts", window=RANGE, cell=3, buckets=3, **o
        ),
        between=V_OF_ALL, windows=[RANGE] * 3, cell=3.0,
    ),
    "links between two": many(
        lambda a, **o: sj.join(
            [a, a, a],
            where=sj.equals("s", of=(0, 1)) & sj.within(("x", "y"), radius=2, of=(1, 2)),
            time="ts", window=[sj.Now(), sj.Range(3), sj.Fixed(4)], emit="ordered", hold="inputs", buckets=3, **o,
        ),
        between=[
            *between(Equals("s", "s"), [(0, 1)]), *between(Within(("x", "y"), ("x", "y"), 2), [(1, 2)]),
        ],
        windows=[sj.Now(), sj.Range(3), sj.Fixed(4)], emit="ordered", hold="inputs",
    ),
    "similar texts": many(
        lambda a, **o: sj.join(
            [a, a, a], where=sj.similar("words", jaccard=0.5), time="ts", window=RANGE, late="output", buckets=3, **o
        ),
        between=between(Similar("words", "words", "jaccard", 0.5), for_all(3)), windows=[RANGE] * 3,
        late=["output"] * 3,
    ),
    "four by time": many(
        lambda a, **o: sj.join([a, a, a, a], window=sj.Validity("ts", "te"), buckets=2, **o),
        between=[], windows=[sj.Validity("ts", "te")] * 4, buckets=2,
    ),
    "sorted runs": many(
        lambda a, **o: sj.join(
            [a, a, a], where=sj.band("v", below=1, above=2), time="ts", window=RANGE, emit="ordered",
            algorithm="tpmj", merge=sj.Greedy(3), buckets=3, **o,
        ),
        tpmj_simulator.MergedCase, between=V_OF_ALL, windows=[RANGE] * 3, emit="ordered", merge=sj.Greedy(3),
    ),
    "sorted runs of two": many(
        lambda a, **o: sj.join(
            a, a, where=sj.equals("k"), time="ts", window=RANGE, emit="ordered", algorithm="tpmj", buckets=3, **o
        ),
        tpmj_simulator.MergedCase, between=between(Equals("k", "k"), [(0, 1)]), windows=[RANGE] * 2, emit="ordered",
        merge=sj.Adaptive(),
    ),
}  # fmt: skip


# -- trees: `tests.relational_simulator` -------------------------------------------------------------------------------


def query(text: str, options: dict[str, Any] | None = None, *, unjoined: bool = False, **leaving: Any) -> Same:
    """A query. `unjoined`: rows leave unjoined, which the simulator does not draw."""
    shown: dict[str, Any] = {"late": "output", "invalid": "output", "whole": True} if unjoined else {}

    def call(frame: DataFrame, **more: Any) -> DataFrame:
        return sj.cql(frame.sparkSession, text, R=frame, S=frame, buckets=3, **options or {}, **more)

    def simulated(lateness: Lateness, made: CallPlan) -> PhysicalPlan:
        sources = {leaf.source for leaf in streams_of(made.query.relation)}
        return relational_simulator.plan_for(
            made.query.relation, dict.fromkeys(sources, lateness), Leaving(buckets=3, **leaving), **shown
        )

    return Same(call, simulated, relational_simulator.SCHEMA)


QUERIES: dict[str, Same] = {
    "a chain in one stage": query(
        "SELECT R.k, sum(R.v) AS s FROM R [PARTITION BY k ROWS 2] AS R, S [RANGE 4] AS S WHERE R.k = S.k GROUP BY R.k"
    ),
    "set operators": query("SELECT k, s FROM R [RANGE 3] WHERE v > 1 EXCEPT SELECT k, s FROM S [ROWS 5]"),
    "an outer join by snapshot": query(
        "SELECT R.k, S.v AS other FROM R [RANGE 3] AS R LEFT JOIN S [NOW] AS S ON R.k = S.k"
    ),
    "by plus and minus tuples": query(
        "SELECT R.k, S.v AS other FROM R [RANGE 3] AS R, S [RANGE 2] AS S WHERE R.k = S.k",
        {"method": "negative"}, method="negative",
    ),
    "a chain of three at once": query(
        "SELECT a.k FROM R [RANGE 3] AS a, S [RANGE 3] AS b, R [NOW] AS c WHERE a.k = b.k AND b.k = c.k"
    ),
    "a stream of a relation": query("ISTREAM (SELECT DISTINCT k FROM R [RANGE 3] WHERE k > 0)", to_stream="istream"),
    "a changelog": query(
        "SELECT k, count(*) AS n FROM R [RANGE 3] GROUP BY k", {"output": "changelog"}, change=True, method="negative"
    ),
    "late rows of a query": query(
        "SELECT DISTINCT k FROM R [RANGE 3]", {"late": "output", "invalid": "output"}, unjoined=True
    ),
}  # fmt: skip


# -- urgent rows: `tests.priority_simulator`; order alone: `tests.plan.test_reorder` -----------------------------------


def urgent(text: str, kind: str, **drawn: Any) -> Same:
    """A query whose streams have priorities; its cases are streams, and their results' priority is the largest."""

    def call(frame: DataFrame, **more: Any) -> DataFrame:
        frames = dict.fromkeys(drawn["slacks"], frame)
        names = {"validity": priority_simulator.VALIDITY} if drawn.get("validity", True) else {}
        return sj.cql(frame.sparkSession, text, **frames, emit="ordered", buckets=2, **names, **more)

    def simulated(lateness: Lateness, made: CallPlan) -> PhysicalPlan:
        assert lateness == Slack(SLACK)
        usual: dict[str, Any] = {"batches": (), "emit": "ordered", "buckets": 2, "new_priority": None, "trouble": 0.0}
        return priority_simulator.PriorityCase(0, kind, lambda _: made.query.relation, **usual | drawn).plan()

    return Same(call, simulated, priority_simulator.SCHEMA, streaming=(True,))


def reordered(frame: DataFrame, **options: Any) -> DataFrame:
    return sj.reorder(frame, time="ts", **options)


RS, RST = dict.fromkeys("RS", SLACK), dict.fromkeys("RST", SLACK)
OTHERS: dict[str, Same] = {
    "urgent rows of a join": urgent(
        "SELECT R.id, S.id AS other FROM R [RANGE 5] PRIORITY BY p, S [RANGE 3] PRIORITY BY p WHERE R.k = S.k",
        "join", slacks=RS,
    ),
    "urgent rows of one input": urgent(
        "SELECT R.id, S.id AS other FROM R [RANGE 5] PRIORITY BY p LEFT JOIN S [RANGE 3] ON R.k = S.k",
        "join", slacks=RS,
    ),
    "urgent rows of an as-of join": urgent(
        "SELECT R.id, S.id AS other FROM R PRIORITY BY p ASOF JOIN S PRIORITY BY p "
        "MATCH_CONDITION (R.ts >= S.ts) ON R.k = S.k",
        "as of", slacks=RS, validity=False,
    ),
    "urgent rows of three": urgent(
        "SELECT R.id, S.id AS other, T.id AS third FROM R [RANGE 5] PRIORITY BY p, S [RANGE 3] PRIORITY BY p, "
        "T [RANGE 2] PRIORITY BY p WHERE R.k = S.k AND S.k = T.k",
        "many", slacks=RST,
    ),
    "order": Same(reordered, lambda lateness, _: test_reorder.plan_for(lateness), test_reorder.SCHEMA),
}  # fmt: skip


# -- what must be equal ------------------------------------------------------------------------------------------------

ALL = {
    f"{family}: {name}": same
    for family, some in (
        ("two", PAIRS), ("tree", SHAPES), ("many", MANY), ("query", QUERIES), ("other", OTHERS)
    )
    for name, same in some.items()
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "streaming"), [(name, streaming) for name, same in ALL.items() for streaming in same.streaming]
)
def test_differential_the_plan_of_a_call_is_the_one_that_is_simulated(
    spark: SparkSession, tmp_path: Path, name: str, streaming: bool
) -> None:
    same = ALL[name]
    schema = from_arrow_schema(same.schema)
    if streaming:
        frame = spark.readStream.schema(schema).parquet(str(tmp_path))
    else:
        frame = spark.createDataFrame([], schema)
    frames = (frame, frame) if name.startswith(("two", "tree")) else (frame,)
    call = plan_of(same.call(*frames, **({"lateness": same.lateness} if streaming else {})))
    simulated = same.simulated(policy(same.lateness) if streaming else Complete(), call)
    assert call.plan.streaming == streaming
    assert simulated == call.plan, difference(simulated, call.plan)
    assert from_stored(to_stored(call.plan)) == call.plan, "what a checkpoint stores is the plan itself"


def policy(given: Any) -> Lateness:
    """How late rows may be, as a simulator says it."""
    if isinstance(given, sj.Recall):
        sizes: Any = given.period, given.interval, given.granularity, given.max_delay, given.initial or 0
        return ToRecall(given.target, *sizes)
    return Slack(SLACK)


def difference(one: Any, two: Any, where: str = "plan") -> str:
    """The first part in which two plans differ, for whoever has to mend it."""
    if is_dataclass(one) and type(one) is type(two):
        parts = [(f".{each.name}", getattr(one, each.name), getattr(two, each.name)) for each in fields(one)]
    elif isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two):
        parts = [(f"[{number}]", *each) for number, each in enumerate(zip(one, two, strict=True))]
    else:
        parts = []
    for name, mine, other in parts:
        if mine != other:
            return difference(mine, other, where + name)
    return f"{where}: simulated {one!r}, on Spark {two!r}"


def test_every_shape_of_a_tree_is_compared() -> None:
    assert SHAPES.keys() == function_trees.SHAPES.keys()
