"""oracle_: the functions over lifetimes against the definition: aggregate, distinct, union, except_, intersect, and
joins with row windows. Small random data on every time axis; failures print the seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.algebra import Aggregate, Band, Equals, Window
from streamjoin.errors import CallError
from streamjoin.plan.relation import Aggregation, Difference, Distinct, Intersection, Join, Relation, Stream, Union
from tests.relational_oracle import Conditions, Element, Row, evaluate, normal_form
from tests.spark.lifetimes import AXES, COLUMNS, Axis, as_counted, elements_of, frame_of, in_ticks, random_rows, rounded

Windows = Callable[[Callable[[int], Any]], list[Window]]


@dataclass(frozen=True)
class Case:
    """A call over frames R and S, and the tree that says what it means.

    `windows` gives those of the inputs, from a function that makes durations of steps. `shape` turns a payload of the
    tree into one of the result.
    """

    call: Callable[[list[DataFrame], dict[str, Any]], DataFrame]
    meaning: Callable[[list[Stream]], Relation]
    windows: Windows
    columns: tuple[str, ...]
    shape: Callable[[tuple], tuple] = lambda payload: payload
    conditions: Conditions | None = None
    given: tuple[str, ...] = COLUMNS  # the columns of the frames


def of_range(*sizes: int) -> Windows:
    return lambda lasting: [sj.Range(lasting(size)) for size in sizes]


def rows(*windows: Window) -> Windows:
    return lambda lasting: list(windows)


# -- aggregates and sets -----------------------------------------------------------------------------------------------

ASKED = {"n": "count", "known": ("count", "v"), "total": ("sum", "v"), "mean": ("avg", "v"), "low": ("min", "v"),
         "high": ("max", "v"), "spread": ("stddev", "v")}  # fmt: skip
AGGREGATES = tuple(
    Aggregate(each, None, name) if isinstance(each, str) else Aggregate(*each, name) for name, each in ASKED.items()
)


def aggregation(by: list[str], windows: Windows) -> Case:
    return Case(
        lambda frames, options: sj.aggregate(frames[0], ASKED, by=by, **options),
        lambda streams: Aggregation(streams[0], tuple(f"R.{key}" for key in by), tuple(
            replace(each, column=None if each.column is None else f"R.{each.column}") for each in AGGREGATES
        )),
        windows, (*by, *ASKED),
    )  # fmt: skip


def of_sets(function: Callable, tree: Callable[..., Relation], windows: Windows, **options: Any) -> Case:
    """A set operator over the columns k and s of R and S."""
    return Case(
        lambda frames, chosen: function([frame.select("ts", "k", "s") for frame in frames], **chosen, **options),
        lambda streams: tree(*(replace(stream, reads=(("k", "k"), ("s", "s"))) for stream in streams)),
        windows, ("k", "s"), given=("k", "s"),
    )  # fmt: skip


def distinct(windows: Windows) -> Case:
    return Case(
        lambda frames, options: sj.distinct(frames[0].select(*_whole(options), "k", "s"), **options),
        lambda streams: Distinct(replace(streams[0], reads=(("k", "k"), ("s", "s")))),
        windows, ("k", "s"), given=("k", "s"),
    )  # fmt: skip


def _whole(options: dict[str, Any]) -> list[str]:
    return ["ts", "te"] if isinstance(options["window"], sj.Validity) else ["ts"]


SETS = {
    "aggregates of groups": aggregation(["k"], of_range(6)),
    "aggregates of all": aggregation([], lambda lasting: [sj.Fixed(lasting(5))]),
    "aggregates of the last rows": aggregation([], rows(sj.Rows(4))),
    "aggregates of the last rows of each": aggregation(["s", "k"], rows(sj.Rows(2, by=["s"], drain=True))),
    "aggregates of rows with ends": aggregation(["s"], rows(sj.Validity("ts", "te"))),
    "distinct, sliding": distinct(lambda lasting: [sj.Range(lasting(5), slide=lasting(2))]),
    "distinct among the last rows": distinct(rows(sj.Rows(6, drain=True))),
    "distinct of rows with ends": distinct(rows(sj.Validity("ts", "te"))),
    "union all": of_sets(sj.union, lambda one, two: Union((one, two)), of_range(3, 8)),
    "union": of_sets(sj.union, lambda one, two: Distinct(Union((one, two))), rows(sj.Rows(3), sj.Now()), all=False),
    "except": of_sets(sj.except_, Difference, lambda lasting: [sj.Range(lasting(9)), sj.Rows(4)]),
    "except all": of_sets(
        sj.except_, lambda one, two: Difference(one, two, every=True), of_range(9, 5), all=True,
    ),
    "intersect": of_sets(sj.intersect, Intersection, rows(sj.Rows(6), sj.Rows(5, by="k"))),
    "intersect all": of_sets(
        sj.intersect, lambda one, two: Intersection(one, two, every=True), of_range(9, 7), all=True,
    ),
}  # fmt: skip

# -- joins with row windows --------------------------------------------------------------------------------------------

BOTH = (*COLUMNS, *(f"{name}_right" for name in COLUMNS))
KEY_FIRST = ("k", *(name for name in COLUMNS if name != "k"))
ONE_KEY = (*KEY_FIRST, *(f"{name}_right" for name in COLUMNS if name != "k"))


def joining(windows: Windows, how: Any = "inner", columns: tuple[str, ...] = BOTH, **options: Any) -> Case:
    """A join of all columns; `on` is its meaning, the rest is handed on."""
    predicates, theta, conditions = options.pop("on", ()), options.pop("theta", None), options.pop("conditions", None)
    shape = (lambda payload: payload) if columns == BOTH else _one_key
    return Case(
        lambda frames, chosen: sj.join(frames, how=how, outer="snapshot", **chosen, **options),
        lambda streams: Join(streams[0], streams[1], predicates, theta, how),
        windows, columns, shape, conditions,
    )  # fmt: skip


def _one_key(payload: tuple) -> tuple:
    """The columns of one or both sides, the key k once and first: the one that is there."""
    sides = [payload[start : start + len(COLUMNS)] for start in range(0, len(payload), len(COLUMNS))]
    key = next((side[1] for side in sides if side[1] is not None), None)
    return (key, *(value for side in sides for value in (side[0], *side[2:])))


SAME_KEY = (Equals("R.k", "S.k"),)
NEAR = (Band("R.v", "S.v", 0.125, 0.25),)
LARGER = "`R.v` > `S.v`"
IS_LARGER: Conditions = {LARGER: lambda row: None not in (row["R.v"], row["S.v"]) and row["R.v"] > row["S.v"]}
FEW = rows(sj.Rows(4), sj.Rows(2, by="k"))

JOINS = {
    "by a key": joining(FEW, columns=ONE_KEY, by="k", on=SAME_KEY),
    "by keys of other names": joining(
        rows(sj.Rows(3, drain=True), sj.Rows(5)), left_by="te", right_by="ts", on=(Equals("R.te", "S.ts"),),
    ),
    "by a band": joining(
        lambda lasting: [sj.Rows(5), sj.Range(lasting(4))], where=sj.band("v", below=0.125, above=0.25), on=NEAR,
    ),
    "by any condition": joining(
        lambda lasting: [sj.Range(lasting(3)), sj.Rows(4)], where=sj.theta("l.v > r.v"), theta=LARGER,
        conditions=IS_LARGER,
    ),
    "by a key and any condition": joining(
        FEW, "left", ONE_KEY, by="k", where=sj.theta("l.v > r.v"), on=SAME_KEY, theta=LARGER, conditions=IS_LARGER,
    ),
    "with everybody": joining(rows(sj.Rows(3), sj.Rows(2))),
    "left": joining(FEW, "left", ONE_KEY, by="k", on=SAME_KEY),
    "left by a band": joining(FEW, "left", where=sj.band("v", below=0.125, above=0.25), on=NEAR),
    "right": joining(FEW, "right", ONE_KEY, by="k", on=SAME_KEY),
    "full": joining(FEW, "full", ONE_KEY, by="k", on=SAME_KEY),
    "semi": joining(FEW, "semi", KEY_FIRST, by="k", on=SAME_KEY),
    "anti": joining(lambda lasting: [sj.Rows(6), sj.Range(lasting(4))], "anti", KEY_FIRST, by="k", on=SAME_KEY),
}  # fmt: skip
CASES = SETS | {f"join {name}": case for name, case in JOINS.items()}


def leaf(number: int, window: Window, axis: Axis) -> Stream:
    reads = tuple((f"{'RS'[number]}.{name}", name) for name in COLUMNS)
    timed = None if isinstance(window, sj.Validity) else "ts"
    if isinstance(window, sj.Rows) and window.by is not None:
        window = replace(window, by=(window.by,) if isinstance(window.by, str) else tuple(window.by))
    return Stream("RS"[number], reads, timed, _in_ticks(window, axis))


def _in_ticks(window: Window, axis: Axis) -> Window:
    sizes = {
        name: int(str(getattr(window, name)).split()[0]) * axis.step
        for name in ("size", "slide")
        if not isinstance(window, sj.Rows) and getattr(window, name, None) is not None
    }
    return replace(window, **sizes)


# Every case twice: on all axes in turn, in one bucket and in three.
@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_oracle_functions_over_lifetimes(spark: SparkSession, name: str, buckets: int) -> None:
    case, place = CASES[name], list(CASES).index(name)
    axis = AXES[list(AXES)[(place + buckets) % len(AXES)]]
    rng = random.Random(f"{name} {buckets}")
    windows = case.windows(axis.lasting)
    given = [random_rows(rng) for _ in windows]
    frames = [frame_of(spark, axis, each, rng) for each in given]
    window = windows if len(windows) > 1 else windows[0]
    time = {} if isinstance(window, sj.Validity) else {"time": "ts"}
    result = case.call(frames, {"window": window, "buckets": buckets, **time})
    assert tuple(result.columns) == (*case.columns, "valid_from", "valid_to")

    streams = {"RS"[number]: as_counted(in_ticks(axis, each), case.given) for number, each in enumerate(given)}
    relation = case.meaning([leaf(number, each, axis) for number, each in enumerate(windows)])
    expected = [(case.shape(payload), ts, te) for payload, ts, te in evaluate(relation, streams, case.conditions)]
    got = elements_of(result)
    assert normal_form(got) == normal_form(rounded(expected)), f"{name!r} on {axis}, {buckets} buckets: {given}"
    assert len(got) > 2, "the case says nothing"
    if isinstance(relation, Aggregation) and isinstance(windows[0], sj.Range):
        assert Counter(got) == Counter(rounded(pieces(relation, streams["R"]))), "cut at other instants"


def pieces(relation: Aggregation, given: list[Row]) -> list[Element]:
    """An aggregation's elements, group by group: cut where an element of the group starts or ends, nowhere else."""
    keys = [key.split(".")[1] for key in relation.keys]
    groups: dict[tuple, list[Row]] = {}
    for row in given:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [element for group in groups.values() for element in evaluate(relation, {"R": group})]


def test_a_suffix_tells_columns_of_the_same_name_apart(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2)], "ts long, k int")
    joined = sj.join([frame, frame], by="k", time="ts", window=sj.Rows(1, drain=True), suffix="_s", validity=("a", "b"))
    assert joined.columns == ["k", "ts", "ts_s", "a", "b"]
    assert [tuple(row) for row in joined.collect()] == [(2, 1, 1, 1, 2)]


# -- ties --------------------------------------------------------------------------------------------------------------

TIED = [(ts, k, v) for ts in (1, 1, 4, 4, 9) for k in (1, 2, None) for v in (0.5, None, 2.0)]


def counted(frame: DataFrame) -> Counter[tuple]:
    return Counter(tuple(row) for row in frame.collect())


def test_ties_of_a_row_window_do_not_depend_on_partitions_or_order(spark: SparkSession) -> None:
    results = []
    for partitions in (1, 3, 5):
        shuffled = random.Random(partitions).sample(TIED, len(TIED))
        frame = spark.createDataFrame(shuffled, "ts long, k int, v double").repartition(partitions)
        window = [sj.Rows(4), sj.Rows(3, by="k")]
        results.append(counted(sj.join([frame, frame], by="k", time="ts", window=window, buckets=partitions)))
    assert results[0] == results[1] == results[2]
    assert results[0].total() > 20


def test_ties_of_a_row_window_do_not_depend_on_the_columns_that_are_read(spark: SparkSession) -> None:
    """Among equal times the order is that of all columns, whichever of them a query needs."""
    rng = random.Random(7)
    frame = spark.createDataFrame(rng.sample(TIED, len(TIED)), "ts long, k int, v double")
    everything = sj.cql(spark, "SELECT k AS key, v FROM R [ROWS 2]", R=frame)
    only_one = sj.cql(spark, "SELECT v FROM R [ROWS 2]", R=frame)
    assert counted(only_one) == counted(everything.select("v", "valid_from", "valid_to"))
    turned = sj.cql(spark, "SELECT v, k FROM R [ROWS 2]", R=frame)
    assert counted(turned.select("k", "v", "valid_from", "valid_to")) == counted(everything)
    sums = sj.aggregate(frame, {"total": ("sum", "v")}, time="ts", window=sj.Rows(2))
    assert counted(sums) == counted(
        sj.cql(spark, "SELECT SUM(v) AS total FROM (SELECT k, v FROM R [ROWS 2]) q", R=frame)
    )
    last = everything.where(F.col("valid_to").isNull()).select("key", "v").collect()
    assert [tuple(row) for row in sorted(last, key=lambda row: row.v)] == [(2, 0.5), (2, 2.0)]


def test_what_where_excludes_is_not_computed(spark: SparkSession) -> None:
    """Also where such rows go on, because they count in a row window."""
    frame = spark.createDataFrame([(1, 10, 2), (2, 5, 0), (3, 9, 3)], "ts long, a long, b long")
    text = "SELECT R.a / R.b AS q FROM R [ROWS 10] WHERE R.b <> 0"
    assert sorted(row.q for row in sj.cql(spark, text, R=frame, time="ts").collect()) == [3.0, 5.0]


def test_the_watermark_of_one_time_says_nothing_of_another(spark: SparkSession) -> None:
    rates = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "timestamp AS vf", "timestamp AS vt")
    text = "SELECT a.ts FROM R [VALID vf TO vt] AS a JOIN R [RANGE 5 SECONDS] AS b ON a.vf = b.vf"
    frame = rates.withWatermark("ts", "5 seconds")
    with pytest.raises(CallError, match=r'nothing says how late rows of stream R .*withWatermark\("vf"'):
        sj.cql(spark, text, R=frame, time="ts")
    assert sj.cql(spark, text, R=frame, time="ts", lateness=sj.Grace("9 s")).columns[0] == "ts"
