"""`where=` as a Column: it means what Spark computes of the Column, and says of which input each of its columns is."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.errors import StreamjoinError
from tests.spark.conditions import differing


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    wind = spark.createDataFrame([(1, "a", 30, 1), (2, "b", 5, 2)], "ts int, k string, speed int, id int")
    rain = spark.createDataFrame([(1, "a", 10, 1), (2, "b", 20, 2)], "ts int, k string, mm int, id int")
    return wind, rain


def ids(joined: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in joined.select("id", "id_right").collect())


def test_differential_texts_mean_what_spark_computes_of_the_column(spark: SparkSession) -> None:
    assert differing(spark) == []


def test_every_way_to_say_of_which_input_a_column_is(frames: tuple[DataFrame, DataFrame]) -> None:
    wind, rain = frames
    expected = ids(sj.join(wind, rain, where="l.speed > r.mm AND l.id <= r.id"))
    assert expected == [(1, 1), (1, 2)]
    for condition in (
        (F.col("l.speed") > F.col("r.mm")) & (F.col("l.id") <= F.col("r.id")),
        (F.col("speed") > F.col("mm")) & (F.col("in0.id") <= F.col("R.ID")),
        (wind.speed > rain["mm"]) & (wind.id <= rain.id),
        F.expr("l.speed > mm -- as text") & (wind.id <= F.col("r.id")),
        (wind.speed > rain.mm) & (wind.id <= rain.id) & ~wind.id.isin([]),
    ):
        assert ids(sj.join(wind, rain, where=condition)) == expected


def test_a_column_of_a_frame_before_rows_were_left_out(frames: tuple[DataFrame, DataFrame]) -> None:
    wind, rain = frames
    fast = wind.where("speed > 10")
    assert ids(sj.join(fast, rain, where=wind.speed > rain.mm)) == [(1, 1), (1, 2)]


def test_conditions_decide_outer_joins_and_stand_beside_keys_and_bands(frames: tuple[DataFrame, DataFrame]) -> None:
    wind, rain = frames
    assert ids(sj.join(wind, rain, by="k", where=wind.speed > rain.mm, how="left")) == [(1, 1), (2, None)]
    beside = sj.join_band(wind, rain, left_on="speed", right_on="mm", below=20, above=15, where=wind.id == rain.id)
    assert ids(beside) == [(1, 1), (2, 2)]
    near = sj.join_interval(wind, rain, on="ts", lower=0, upper=1, where=wind.speed > rain.mm)
    assert ids(near) == [(1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        (lambda a, b: F.col("id") > 1, "both inputs of the join have a column 'id'", 'write F.col("l.id")'),
        (lambda a, b: a.withColumn("id", F.lit(1)).id < b.id, "none of the inputs of the join has it", "write F.col("),
        (
            lambda a, b: F.udf(lambda x: x, "boolean")(a.speed),
            "a function of Python has none",
            "give a frame a column",
        ),
        (lambda a, b: F.exists(F.array(a.speed), lambda x: x > 1), "lambda function has none", "write it as text"),
        (lambda a, b: F.max(a.speed) > 1, "It is an aggregate", "compute it as a column of an input first"),
        (lambda a, b: F.col("l.spede") > 1, "has no column 'spede'", "did you mean 'speed'?"),
    ],
    ids=["no side", "of another frame", "a function of Python", "a lambda", "an aggregate", "no such column"],
)
def test_what_has_no_side_or_no_text_is_refused(
    frames: tuple[DataFrame, DataFrame], condition: Any, message: str, hint: str
) -> None:
    with pytest.raises(StreamjoinError) as refused:
        sj.join(*frames, where=condition(*frames))
    assert message in refused.value.message
    assert hint in str(refused.value.hint)
