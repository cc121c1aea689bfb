"""Calls that are told what their frames are; that they ask nothing then is shown where a server could be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from streamjoin.spark import told
from streamjoin.spark.calls.inputs import Input

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, 5, "x"), (2, 6, "y")], "k int, ts long, s string")


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As through Spark Connect: nobody looks whether what is said of a frame is so."""
    for place in ("told", "calls.inputs"):
        monkeypatch.setattr(f"streamjoin.spark.{place}.is_connect", lambda session: True)


def test_only_the_columns_that_are_given_are_read(frame: DataFrame) -> None:
    joined = sj.join([frame, frame], by="k", schemas=["k int, ts long", "k int, s string"], streaming=False)
    assert joined.columns == ["k", "ts", "s"]
    assert sorted(map(tuple, joined.collect())) == [(1, 5, "x"), (2, 6, "y")]
    named = sj.cql(frame.sparkSession, "SELECT k FROM R [NOW]", R=frame, schemas={"R": "k int, ts long"})
    assert named.count() == 2


def test_types_of_expressions_are_asked_of_frames_without_rows(frame: DataFrame) -> None:
    later = F.col("ts") + F.lit(1)
    options: dict[str, Any] = {"left_by": later, "right_by": "ts", "where": sj.theta("l.k > r.k")}
    assert sj.join([frame, frame], **options).count() == 0
    assert sj.join([frame, frame], **options, schemas="k int, ts long").count() == 0
    assert sj.join([frame, frame], left_by=F.col("ts") - 1, right_by="ts", schemas="k int, ts long").count() == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"schemas": "k long, ts long"}, "has 'k' as bigint, and in the frame it is int"),
        ({"schemas": "k int, other long"}, "has 'other' as bigint, and in the frame it is not there"),
        ({"schemas": 7}, "must be a StructType or text, got 7"),
        ({"schemas": ["k int"]}, "schemas needs one value, or one per input"),
        ({"streaming": True}, "streaming=True for input 0, which is no stream"),
        ({"streaming": "yes"}, "streaming must be True or False, got 'yes'"),
    ],
)
def test_what_is_wrong_about_a_frame_is_refused(frame: DataFrame, options: dict[str, Any], match: str) -> None:
    with pytest.raises(sj.CallError, match=match):
        sj.join([frame, frame], by="k", **options)


@pytest.mark.usefixtures("unseen")
def test_that_spark_refuses_streams_that_were_called_batches_costs_nothing(frame: DataFrame) -> None:
    guarded: Any = Input(frame, "input 0", None, False).prepared()
    plans = guarded._jdf.queryExecution()
    assert "Sort" in str(plans.analyzed())
    assert "Sort" not in str(plans.optimizedPlan())


def test_questions_are_asked_elsewhere_only_where_it_matters(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import get_ident

    assert told.asked(spark, get_ident) == get_ident()
    monkeypatch.setattr(told, "is_connect", lambda session: True)
    assert told.asked(spark, get_ident) != get_ident()
