"""Best-match joins through Spark: against the oracle, with functions, and their errors."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from tests import oracle
from tests.spark.wrong_calls import Call, Wrong, check, make_frames, short

Row = dict[str, Any]


def drawn(seed: int, rows: int = 60) -> list[Row]:
    """Values that are tenths, so that sums of them are not what they look like; many on the bounds, some NULL."""
    rng = random.Random(seed)
    return [
        {
            "id": number,
            "k": rng.choice([None, 1, 2]),
            "ra": rng.choice([None, float("nan"), *(n / 10 for n in range(-10, 11))]),
            "mag": rng.choice([0.1, 0.2, 0.3, 0.7, -0.4]),
        }
        for number in range(rows)
    ]


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], "id int, k int, ra double, mag double")


def pairs(joined: DataFrame) -> Counter[Any]:
    return Counter((row["id"], row["id_right"]) for row in joined.collect())


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("by", [None, "k"])
@pytest.mark.parametrize(
    ("how", "dominance"), [("left", "pareto"), ("inner", "strict"), ("right", "pareto"), ("full", "pareto")]
)
def test_oracle_whatever_the_buckets(
    spark: SparkSession, how: str, dominance: str, by: str | None, buckets: int
) -> None:
    left, right = drawn(1), drawn(2)
    keys = () if by is None else (by,)
    dimensions = [("ra", 0.3), ("mag", 0.4)]
    joined = sj.join_best_match(
        frame(spark, left), frame(spark, right), on=dict(dimensions), how=how, dominance=dominance, by=by,
        buckets=buckets,
    )  # fmt: skip
    expected = Counter(oracle.best_match(left, right, keys, dimensions, dominance, how))
    assert pairs(joined) == expected
    assert sum(expected.values()) > 40


def test_functions_compare_and_dominate(spark: SparkSession) -> None:
    """Hours on a clock, and whoever is nearest on it."""
    left = spark.createDataFrame([(1, 0.0, 23.0)], "id int, ra double, hour double")
    right = spark.createDataFrame([(1, 0.1, 1.0), (2, 0.0, 22.5), (3, 0.0, 12.0)], "id int, ra double, hour double")

    def on_a_clock(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        gap = np.abs(one - two) % 24
        return np.minimum(gap, 24 - gap)

    def nearer(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        return one[:, 1] < two[:, 1]

    options: dict[str, Any] = {"on": {"ra": 0.2, "hour": 3}, "compare": {"hour": on_a_clock}}
    assert set(pairs(sj.join_best_match(left, right, **options))) == {(1, 2)}
    assert set(pairs(sj.join_best_match(left, right.where("id <> 2"), **options))) == {(1, 1)}
    wide = {**options, "on": {"ra": 0.2, "hour": 12}}
    assert set(pairs(sj.join_best_match(left, right, **wide, dominance=nearer))) == {(1, 2)}


def test_columns_of_two_names_and_of_times(spark: SparkSession) -> None:
    left = spark.sql("SELECT timestamp'2024-01-01 10:00:00' seen, 1 id")
    right = spark.sql("SELECT explode(array(1, 9, 30)) id, timestamp'2024-01-01 10:00:00' made").selectExpr(
        "id", "made + make_interval(0, 0, 0, 0, 0, 0, id) made"
    )
    joined = sj.join_best_match(left, right, on={("seen", "made"): "10 seconds"})
    assert set(pairs(joined)) == {(1, 1)}
    assert joined.columns == ["seen", "id", "id_right", "made"]


def test_in_order(spark: SparkSession) -> None:
    joined = sj.join_best_match(
        frame(spark, drawn(1)), frame(spark, drawn(2)), on={"ra": 0.3}, emit="ordered", buckets=1, how="inner"
    )
    values = [row.ra for row in joined.collect()]
    assert values == sorted(values)


def test_explain(spark: SparkSession) -> None:
    some = frame(spark, drawn(1))
    text = sj.explain(sj.join_best_match(some, some, on={"ra": 0.3, "mag": 0.4}, by="k"))
    assert "best-match join, how=left" in text
    assert "equal k and distances of at most ra 0.3, mag 0.4" in text
    assert "the candidates that no other one dominates (pareto)" in text


def best(**options: Any) -> Call:
    return short(sj.join_best_match, **options)


WRONG: dict[str, Wrong] = {
    "no epsilons": (
        best(on="v"),
        "on of a best-match join gives an epsilon per dimension, got 'v'",
        'for example on={"ra": 0.01, "dec": 0.01}, or {("ra", "raj"): 0.01} for columns of two names',
    ),
    "an order by something else": (
        best(on={"v": 1}, ordered_by="ts"), "ordered_by must be one of the dimensions, got 'ts'", "on has ['v']",
    ),
    "an unknown dimension": (best(on={"vv": 1}), "input 0 has no column 'vv'", "did you mean 'v'?"),
    "a function for the order": (
        best(on={"v": 1}, compare={"v": abs}),
        "the ordered dimension 'v' is compared by its difference: nothing else keeps to the order",
        "order by another dimension with ordered_by=, or leave it out of compare=",
    ),
    "a dominance": (
        best(on={"v": 1}, dominance="best"), "dominance must be one of 'pareto', 'strict', got 'best'", None,
    ),
    "a join type": (
        best(on={"v": 1}, how="semi"), "a best-match join is left, inner, right or full, got how='semi'", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_is_refused(spark: SparkSession, what: str) -> None:
    check(make_frames(spark), WRONG[what], sj.CallError)


def test_streams_need_an_order_that_makes_progress(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value / 10.0D ra")
    with pytest.raises(sj.CallError, match=r"nothing says how late .* lateness=sj.Grace\(0.5\), a distance"):
        sj.join_best_match(stream, stream, on={"ra": 0.1})
    with pytest.raises(sj.CallError, match="lateness along 'ra' is a distance of its values"):
        sj.join_best_match(stream, stream, on={"ra": 0.1}, lateness=sj.Grace("1 second"))
    with pytest.raises(sj.UnsupportedError, match="which has no ticks to order by"):
        sj.join_best_match(stream, stream, on={"ra": 0.1}, lateness=sj.Grace(0.5), emit="ordered")
