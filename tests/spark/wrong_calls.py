"""Wrong calls: how tests write them, and what an error must say: what is wrong, what it got, what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj

USE_A_UNIT = 'write it as "5 seconds", "1 hour 30 minutes" or datetime.timedelta(seconds=5)'
USE_A_NUMBER = "use the unit of the time column, for example 10_000; or make the column a timestamp"


@dataclass(frozen=True)
class Frames:
    """The same row on several time axes."""

    long: DataFrame
    timestamp: DataFrame
    ntz: DataFrame
    date: DataFrame
    stream: DataFrame


def make_frames(spark: SparkSession) -> Frames:
    """One row with a time, a whole number, a text and a double."""
    row = spark.createDataFrame([(1, 10, "x", 1.5)], "ts long, speed int, name string, v double")
    timestamp = row.withColumn("ts", F.timestamp_millis("ts"))
    return Frames(
        row,
        timestamp,
        timestamp.withColumn("ts", F.col("ts").cast("timestamp_ntz")),
        timestamp.withColumn("ts", F.to_date("ts")),
        spark.readStream.format("rate").load(),
    )


Call = Callable[[Frames], DataFrame]
# What is called, the error's message, the error's hint (None: there need not be one).
Wrong = tuple[Call, str, str | None]


def join(axis: str = "long", other: str | None = None, **options: Any) -> Call:
    """`sj.join` of two of the frames."""
    return lambda frames: sj.join([getattr(frames, axis), getattr(frames, other or axis)], **options)


def timed(window: Any, axis: str = "long", **options: Any) -> Call:
    """`sj.join` over time."""
    return join(axis, time="ts", window=window, **options)


def short(function: Callable[..., DataFrame], axis: str = "long", **options: Any) -> Call:
    """A short form, of a frame with itself."""
    return lambda frames: function(getattr(frames, axis), getattr(frames, axis), **options)


def check(frames: Frames, wrong: Wrong, kind: type[sj.StreamjoinError]) -> None:
    """The call fails when it is made, with this message and this hint."""
    call, message, hint = wrong
    with pytest.raises(kind) as refused:
        call(frames)
    said = refused.value.message
    # Spark's own complaints go on after what is ours.
    assert said.startswith(message) if message.startswith("Spark cannot") else said == message
    if hint is not None:
        assert refused.value.hint == hint
        assert str(refused.value).startswith(f"{message}. Hint: {hint}")
