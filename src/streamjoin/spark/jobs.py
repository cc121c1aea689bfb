"""What it takes to run somebody's job: its functions on the workers, what its frame is, how its query gets on."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from streamjoin.spark.calls.options import BUCKETS_SETTING, MEMORY_SETTING, checked_memory
from streamjoin.spark.calls.tree import check_memory
from streamjoin.spark.figures import from_progress
from streamjoin.spark.marks import plan_if_any


def ship_by_value(module: ModuleType) -> None:
    """Send functions of this module to workers as they are, not by a name under which workers would look for them."""
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def log_no_errors() -> None:
    """Keep PySpark from writing every error that it raises to the error stream too, with the whole Java stack trace."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def buckets_by_default(spark: SparkSession, buckets: int | None) -> Iterator[None]:
    """While this lasts, calls that do not say `buckets=` have so many; with None as many as ever."""
    before = spark.conf.get(BUCKETS_SETTING, None)
    try:
        if buckets is not None:
            spark.conf.set(BUCKETS_SETTING, buckets)
        yield
    finally:
        if buckets is not None:
            spark.conf.unset(BUCKETS_SETTING) if before is None else spark.conf.set(BUCKETS_SETTING, before)


@contextmanager
def memory_by_default(spark: SparkSession, memory: str | None) -> Iterator[None]:
    """While this lasts, calls that do not say `memory=` have so much; with None as much as ever."""
    before = spark.conf.get(MEMORY_SETTING, None)
    try:
        if memory is not None:
            spark.conf.set(MEMORY_SETTING, memory)
        yield
    finally:
        if memory is not None:
            spark.conf.unset(MEMORY_SETTING) if before is None else spark.conf.set(MEMORY_SETTING, before)


def memory_differs(frame: DataFrame, memory: str) -> bool:
    """Whether the call that made a frame says another `memory=` than this."""
    made = plan_if_any(frame)
    return made is not None and made.leaving.memory != checked_memory(memory)


def check_memory_is_used(frame: DataFrame) -> None:
    """Refuse a budget that was given from outside where the call that made a frame keeps nothing that it bounds."""
    made = plan_if_any(frame)
    if made is not None:
        check_memory(made.plan, given=True)


def buckets_of(frame: DataFrame) -> int | None:
    """How many buckets the call has that made a frame; None when it is no call of ours."""
    made = plan_if_any(frame)
    return None if made is None else made.leaving.buckets


def schema_from_json(text: str) -> StructType:
    """The inverse of a schema's own `json()`."""
    return StructType.fromJson(json.loads(text))


@dataclass
class EndedBatches:
    """The figures of a query's micro-batches as they end: each once, in order."""

    query: Any
    last: int | None = None
    seen: tuple[int, str] | None = None

    def new(self) -> list[dict[str, Any]]:
        """The figures of those that have ended since the last call, as `sj.progress` has them."""
        latest = self.query.lastProgress
        if latest is None or (latest["batchId"], latest["timestamp"]) == self.seen:
            return []
        self.seen = latest["batchId"], latest["timestamp"]
        # The last progress is enough unless batches were quicker than we are, or a report of idleness covers theirs.
        next_one = did_run(latest) and self.last is not None and latest["batchId"] == self.last + 1
        ended = []
        for progress in [latest] if next_one else self.query.recentProgress:
            if did_run(progress) and (self.last is None or progress["batchId"] > self.last):
                self.last = progress["batchId"]
                ended.append(from_progress(progress))
        return ended


def did_run(progress: dict[str, Any]) -> bool:
    """Whether a progress report is about a micro-batch; an idle query reports too, with the number of the next one.

    >>> did_run({"batchId": 3, "durationMs": {"addBatch": 70, "triggerExecution": 90}})
    True
    >>> did_run({"batchId": 4, "durationMs": {"latestOffset": 2, "triggerExecution": 2}})
    False
    """
    return "addBatch" in progress["durationMs"]


def rows_read(progress: dict[str, Any]) -> int:
    """How many rows a micro-batch has read. Through Spark Connect a report has only the rows of each source.

    >>> rows_read({"numInputRows": 7}), rows_read({"numInputRows": None, "sources": [{"numInputRows": 3}] * 2})
    (7, 6)
    """
    told = progress["numInputRows"]
    return int(sum(each["numInputRows"] for each in progress["sources"]) if told is None else told)
