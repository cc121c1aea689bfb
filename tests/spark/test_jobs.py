"""What it takes to run a job: micro-batches as they end, each once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession

import streamjoin as sj
from streamjoin.spark.calls.options import ROOM_TO_GROW, default_buckets
from streamjoin.spark.jobs import EndedBatches, buckets_by_default, buckets_of, did_run


class Query:
    """A query whose reports are what a test says."""

    def __init__(self) -> None:
        self.recentProgress: list[dict[str, Any]] = []  # Spark's name

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None

    def report(self, *batches: int, ran: bool = True) -> None:
        for batch in batches:
            spent = {"addBatch": 5} if ran else {"latestOffset": 1}
            moment = f"{len(self.recentProgress)}"
            self.recentProgress.append({"batchId": batch, "timestamp": moment, "durationMs": spent})


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Query:
    monkeypatch.setattr("streamjoin.spark.jobs.from_progress", lambda progress: progress["batchId"])
    return Query()


def test_every_batch_is_told_once_and_in_order(query: Query) -> None:
    ended = EndedBatches(query)
    assert ended.new() == []
    query.report(0)
    assert ended.new() == [0]
    assert ended.new() == []
    query.report(1)
    assert ended.new() == [1]
    query.report(2, 3, 4)
    assert ended.new() == [2, 3, 4]
    assert ended.last == 4


def test_an_idle_report_neither_counts_nor_hides_a_batch(query: Query) -> None:
    ended = EndedBatches(query)
    query.report(7)
    query.report(8, ran=False)
    assert ended.new() == [7]
    query.report(8)
    query.report(9, ran=False)
    assert ended.new() == [8]
    assert not did_run(query.recentProgress[-1])


def test_the_progress_of_an_idle_query_is_that_of_its_last_micro_batch() -> None:
    query = Query()
    assert sj.progress(query)["batch"] is None
    query.report(7)
    query.report(8, ran=False)
    assert sj.progress(query)["batch"] == 7


@dataclass
class Context:
    """How many tasks run at once, and where."""

    defaultParallelism: int  # noqa: N815
    master: str

    @property
    def _conf(self) -> dict[str, str]:
        """As a session has it that says how many cores it takes of a cluster."""
        return {"spark.cores.max": str(self.defaultParallelism)}


@dataclass
class Session:
    """A session with one setting; without a context it is Spark Connect's."""

    partitions: int
    context: Context | None
    conf: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.conf["spark.sql.shuffle.partitions"] = str(self.partitions)
        if self.context is not None:
            self._jvm = object()  # by which a session is known that is no client of Spark Connect

    @property
    def sparkContext(self) -> Context:  # noqa: N802
        if self.context is None:
            raise RuntimeError("[JVM_ATTRIBUTE_NOT_SUPPORTED]")
        return self.context


@pytest.mark.parametrize(
    ("streaming", "partitions", "context", "expected"),
    [
        (False, 200, Context(4, "local[4]"), 4),
        (True, 200, Context(4, "local[4]"), 4),
        (True, 2, Context(4, "local[4]"), 2),  # more would share the partitions
        (False, 200, Context(12, "yarn"), 12),
        (True, 200, Context(12, "yarn"), 64),  # who has joined the cluster so far does not matter
        (True, 16, Context(0, "yarn"), 16),
        (True, 8, None, 8),
    ],
)
def test_a_stream_finds_its_buckets_again(
    streaming: bool, partitions: int, context: Context | None, expected: int
) -> None:
    session: Any = Session(partitions, context)
    assert default_buckets(session, streaming=streaming) == expected


def test_streams_by_keys_have_room_to_grow(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS k", "value AS ts")
    table = spark.range(3).selectExpr("id AS k", "id AS ts")
    options: dict[str, Any] = {"time": "ts", "window": sj.Range(5)}
    late = {**options, "lateness": sj.Grace(0)}
    usual = default_buckets(spark, streaming=True)
    by_keys = sj.join([stream, stream], by="k", **late)
    assert buckets_of(by_keys) == ROOM_TO_GROW * usual
    assert f"over {ROOM_TO_GROW * usual} buckets" in str(sj.explain(by_keys))
    assert buckets_of(sj.join([stream, stream], by="k", buckets=3, **late)) == 3
    assert buckets_of(sj.join_band(stream, stream, on="k", below=1, above=1, **late)) == usual, "more would copy rows"
    assert buckets_of(sj.join([table, table], by="k", **options)) == default_buckets(spark, streaming=False)
    with buckets_by_default(spark, usual):
        assert buckets_of(sj.join([stream, stream], by="k", **late)) == usual
