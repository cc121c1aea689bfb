"""oracle_: joins on Spark against brute force, a pairwise cover of predicates, join types, windows and the rest.

Predicates are covered by family; the members of a family take turns.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.algebra import Band, Overlaps, Within
from streamjoin.algebra.predicate import conjuncts
from tests import oracle
from tests.spark.brute_force import FAMILIES, KINDS, TIMES, Kind, both, frame_of, in_band, random_rows, window
from tests.spark.pairwise import Choice, pairwise_cover

FACTORS = {
    "family": list(FAMILIES),
    "how": ["inner", "left", "right", "full", "semi", "anti"],
    "window": ["range", "slide", "fixed", "now", "unbounded", "validity", "none"],
    "time": list(TIMES),
    "buckets": [1, 2, 5],
    "outer": ["row", "snapshot"],
    "emit": ["eager", "ordered"],
    "cell": [None, 2],
}
LOWER, UPPER = -2, 3  # of interval joins, in units


def _clash(one: Choice, two: Choice) -> bool:
    """What a call cannot say: an interval join has no window, and only with a window there is a validity."""
    if one == ("family", "interval"):
        return two == ("outer", "snapshot") or (two[0] == "window" and two[1] != "none")
    return one == ("window", "none") and two in [("outer", "snapshot"), ("family", "time")]


@dataclass(frozen=True)
class Case:
    seed: int
    kind: str
    how: str
    window: str
    time: str
    buckets: int
    outer: str
    emit: str
    cell: int | None

    def __str__(self) -> str:
        cell = "" if self.cell is None else f"-cell {self.cell}"
        buckets = f"{self.buckets} bucket" + ("" if self.buckets == 1 else "s")
        return f"{self.kind}-{self.how}-{self.window}-{self.time}-{buckets}-by {self.outer}-{self.emit}{cell}"


def _cases() -> list[Case]:
    turns = {family: itertools.cycle(kinds) for family, kinds in FAMILIES.items()}
    cases = [
        Case(seed=number, kind=next(turns[case.pop("family")]), **case)
        for number, case in enumerate(pairwise_cover(FACTORS, seed=2024, clash=_clash))
    ]
    # Where rows meet by key a cell is refused; which of a family's kinds have keys is known only here.
    return [replace(case, cell=None) if KINDS[case.kind].keys else case for case in cases]


def _cell(case: Case, kind: Kind) -> Any:
    """The cell size in the unit of what the grid lies over: values where a predicate has them, otherwise time; where
    there is neither, a cell is refused.
    """
    of_values = any(isinstance(part, Band | Overlaps | Within) for part in conjuncts(kind.where))
    if case.kind == "band of timestamps":
        return case.cell and f"{case.cell} seconds"
    if case.kind.startswith("interval") or (case.window != "none" and not of_values):
        return case.cell and TIMES[case.time].duration(case.cell)
    return case.cell if of_values else None


def _joined(case: Case, kind: Kind, left: DataFrame, right: DataFrame) -> DataFrame:
    time = TIMES[case.time]
    options = {"how": case.how, "emit": case.emit, "buckets": case.buckets, "cell": _cell(case, kind)}
    if kind.keys:
        options["by"] = list(kind.keys)
    if case.kind.startswith("interval"):
        bounds = {"lower": time.duration(LOWER), "upper": time.duration(UPPER)}
        return sj.join_interval(left, right, on="ts", where=kind.where, **bounds, **options)
    if case.window != "none":
        options |= {"window": window(case.window, time)[0], "outer": case.outer}
        if case.window != "validity":
            options["time"] = "ts"
    sides = {"left_on": getattr(kind.where, "left", None), "right_on": getattr(kind.where, "right", None)}
    match kind.where:
        case Band(below=below, above=above, closed=closed):
            return sj.join_band(left, right, **sides, below=below, above=above, closed=closed, **options)
        case Within(radius=radius, metric=metric):
            return sj.join_within(left, right, **sides, radius=radius, metric=metric, **options)
        case Overlaps() if "window" in options:  # without one, ints would be the rows' own validity
            return sj.join_overlap(left, right, **sides, **options)
        case _:
            return sj.join([left, right], where=kind.where, **options)


def _expected(case: Case, kind: Kind, left: list[dict], right: list[dict]) -> list[oracle.Result]:
    time, match, timed = TIMES[case.time], kind.match, case.window != "none"
    if case.kind.startswith("interval"):
        match = both(match, in_band("ts", -LOWER * time.unit, UPPER * time.unit))
    if timed:
        ends = window(case.window, time)[1]
        left, right = ([{**row, "te": ends(row["ts"], row["te"])} for row in rows] for rows in (left, right))
    results = oracle.join(left, right, match, case.how, case.outer, timed)
    return results if timed else [(one, two, 0, 0) for one, two, _, _ in results]


def _results(case: Case, joined: DataFrame) -> list[tuple[int, oracle.Result]]:
    """The results in the order in which they leave, each with its Spark partition."""
    to_ticks = TIMES[case.time].to_ticks
    right = F.col("id_right") if "id_right" in joined.columns else F.lit(None)
    times = [to_ticks(F.col(name)) for name in ("valid_from", "valid_to") if name in joined.columns]
    seen = joined.select(
        F.monotonically_increasing_id(), F.spark_partition_id(), "id", right, *(times or [F.lit(0)] * 2)
    ).collect()
    return [
        (partition, (one, two, ts, oracle.FOREVER if te is None else te))
        for _, partition, one, two, ts, te in sorted(seen, key=lambda row: row[0])
    ]


def _assert_ordered(results: list[tuple[int, oracle.Result]]) -> None:
    for _, rows in itertools.groupby(results, key=lambda result: result[0]):
        times = [result[2:] for _, result in rows]
        assert times == sorted(times)


@pytest.mark.parametrize("case", _cases(), ids=str)
def test_oracle_a_join_on_spark_gives_what_brute_force_gives(spark: SparkSession, case: Case) -> None:
    time, kind = TIMES[case.time], KINDS[case.kind]
    rng = random.Random(case.seed)
    left, right = random_rows(rng, 40, time.unit), random_rows(rng, 32, time.unit)
    joined = _joined(case, kind, frame_of(spark, left, time), frame_of(spark, right, time))
    results = _results(case, joined)
    got, expected = [result for _, result in results], _expected(case, kind, left, right)
    assert expected, "the case itself is wrong: it has no results"
    assert Counter(got) == Counter(expected)
    if case.window != "none":
        assert oracle.normal_form(got) == oracle.normal_form(expected)
        if case.emit == "ordered":
            _assert_ordered(results)


def test_the_cover_has_every_kind_of_predicate() -> None:
    assert {case.kind for case in _cases()} == set(KINDS)


@pytest.mark.parametrize("how", ["inner", "full"])
def test_oracle_an_ordered_interval_join_leaves_in_the_order_of_the_later_event(spark: SparkSession, how: str) -> None:
    time = TIMES["long"]
    rng = random.Random(7)
    left, right = (frame_of(spark, random_rows(rng, 40, 1), time) for _ in range(2))
    joined = sj.join_interval(left, right, on="ts", lower=-2, upper=3, how=how, emit="ordered", buckets=2)
    later = joined.select(F.spark_partition_id(), F.greatest("ts", "ts_right")).collect()
    for _, rows in itertools.groupby(later, key=lambda row: row[0]):
        times = [time for _, time in rows]
        assert times == sorted(times)
