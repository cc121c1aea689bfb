"""The plan that a call makes on Spark is the one that tests without a JVM run: the same tree, lowered over plain
schemas, with nobody but `PlainTyping` to ask, gives an equal value.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.plan.lowering import SourceInfo, lower
from streamjoin.plan.relation import streams_of
from streamjoin.plan.stored import from_stored, to_stored
from streamjoin.plan.types import Field, plain_type
from streamjoin.runtime.lateness import Slack
from streamjoin.spark.calls import sources
from streamjoin.spark.marks import CallPlan, plan_of
from streamjoin.spark.typing import fields_of
from tests.interpreter import PlainTyping

COLUMNS = "id long, ts long, te long, k int, s string, v double, x double, y double"
Call = Callable[[DataFrame, DataFrame], DataFrame]


def cql(text: str, **options: object) -> Call:
    return lambda left, right: sj.cql(left.sparkSession, text, R=left, S=right, buckets=3, **options)


CALLS: dict[str, Call] = {
    "join by keys": lambda a, b: sj.join([a, b], time="ts", window=sj.Range(5), by="k", how="full", buckets=3),
    "join by validity": lambda a, b: sj.join([a, b], window=sj.Validity("ts", "te"), how="left", buckets=4),
    "join in order": lambda a, b: sj.join([a, b], time="ts", window=sj.Fixed(4), by="s", emit="ordered", buckets=2),
    "join with row windows": lambda a, b: sj.join([a, b], time="ts", window=sj.Rows(3), by="k", how="left", buckets=2),
    "interval": lambda a, b: sj.join_interval(a, b, on="ts", by="k", lower=-1, upper=4, how="left", buckets=2),
    "band": lambda a, b: sj.join_band(a, b, on="v", below=1, above=1, time="ts", window=sj.Range(3), buckets=3),
    "overlap": lambda a, b: sj.join_overlap(a, b, on=("x", "y"), time="ts", window=sj.Now(), how="semi", buckets=4),
    "within": lambda a, b: sj.join_within(a, b, on=("x", "y"), radius=2, time="ts", window=sj.Now(), buckets=3),
    "as of": lambda a, b: sj.join_asof(a, b, on="ts", by="s", tolerance=4, buckets=3),
    "nearest": lambda a, b: sj.join_nearest(a, b, on=("x", "y"), within=3, time="ts", tolerance=2, buckets=3),
    "best match": lambda a, b: sj.join_best_match(a, b, on={"ts": 3, "v": 1.0}, how="full", buckets=3),
    "late rows are shown": lambda a, b: sj.join(
        [a, b], time="ts", window=sj.Range(5), by="k", late=["output", "drop"], invalid="output", buckets=2
    ),
    "a chain in one stage": cql(
        "SELECT R.k, sum(R.v) AS s FROM R [PARTITION BY k ROWS 2] AS R, S [RANGE 4] AS S WHERE R.k = S.k GROUP BY R.k"
    ),
    "set operators": cql("SELECT k, s FROM R [RANGE 3] WHERE v > 1 EXCEPT SELECT k, s FROM S [ROWS 5]"),
    "an outer join by snapshot": cql(
        "SELECT R.id, S.id AS other FROM R [RANGE 3] AS R LEFT JOIN S [NOW] AS S ON R.k = S.k"
    ),
    "a stream of a relation": cql("ISTREAM (SELECT DISTINCT k FROM R [RANGE 3] WHERE k > 0)"),
    "a changelog": cql("SELECT k, count(*) AS n FROM R [RANGE 3] GROUP BY k", output="changelog"),
    "late rows of a query": cql("SELECT DISTINCT k FROM R [RANGE 3]", late="output", invalid="output"),
}


def infos(call: CallPlan, frames: dict[str, DataFrame], *, streaming: bool) -> dict[str, SourceInfo]:
    """The sources of a call, by nothing but plain schemas."""
    found = {}
    for leaf in streams_of(call.query.relation):
        plain = tuple(
            Field(each.name, plain_type(each.type.arrow)) for each in fields_of(frames[leaf.source].schema, "")
        )
        channel = next(source.channel for source in call.plan.sources if source.name == leaf.source)
        known = {c.number: c for stage in call.plan.stages for part in stage.inputs for c in part.channels}[channel]
        reading = next(source.reading for source in call.plan.sources if source.name == leaf.source)
        found[leaf.source] = SourceInfo(
            leaf.source, plain, reading.label, known.lateness, streaming, known.late, reading.invalid,
            f"{leaf.source}." if call.numbered else "", whole=known.whole,
        )  # fmt: skip
    return found


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_differential_the_plan_of_a_call_needs_no_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, streaming: bool
) -> None:
    frame = spark.createDataFrame([], COLUMNS)
    if streaming:
        frame = spark.readStream.schema(COLUMNS).parquet(str(tmp_path))
        monkeypatch.setattr(sources, "lateness_of", lambda part, given, column: Slack(2))  # as every call would say it
    call = plan_of(CALLS[name](frame, frame))
    frames = {leaf.source: frame for leaf in streams_of(call.query.relation)}
    alone = lower(call.query.relation, infos(call, frames, streaming=streaming), PlainTyping(), call.leaving)
    assert alone == call.plan
    assert from_stored(to_stored(call.plan)) == call.plan, "what a checkpoint stores is the plan itself"
    if streaming:
        assert all(source.lateness == Slack(2) for source in call.plan.sources)
