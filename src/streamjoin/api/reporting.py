"""Reports of running queries: what Spark tells of them, kept, and made into a value with a page."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from streamjoin.errors import CallError, says_what_fits
from streamjoin.reporting.measured import History, MicroBatch, flat
from streamjoin.reporting.report import Report, ReportedPlan
from streamjoin.spark.listening import Told, listening_in
from streamjoin.spark.marks import stage_of
from streamjoin.spark.starving import STANDING_FOR, compared


class Kept:
    """The history of a query, from what a listener is told."""

    def __init__(self) -> None:
        self.history = History()
        self.names: tuple[str, ...] = ()  # of the joins, in the last micro-batch
        self.lately: deque[tuple[float, Mapping[str, Any]]] = deque(maxlen=STANDING_FOR)  # when they ended, and figures

    def add(self, told: Told) -> None:
        """One more micro-batch."""
        self.names = tuple(told.figures["joins"])
        self.lately.append((told.began + float(told.figures["seconds"]), told.figures))
        compared(told.figures, self.lately)
        self.history.add(_batch(told))


@says_what_fits
def report(query: Any, *, settings: Mapping[str, str] | None = None, spark: SparkSession | None = None) -> Report:
    """What a streaming query has done until now, as a value: `.html()` and `.write(path)` make a page of it, and
    `.figures()` columns of numbers.

    From the first call on the query's figures are kept by a listener of the session: Spark itself forgets all but the
    last hundred reports. So call it once when the query has started, and again whenever you want to see one; it works
    when the query is over, and when it has failed. A query that was stopped and goes on from its checkpoint is the same
    query. Through Spark Connect there is no listener: a report has what the query still knew whenever you called.
    `settings` are shown on the page beside the plan's; `spark` is the session of the query, by default the active one.

    >>> import tempfile, streamjoin as sj
    >>> spark, folder = sj.session(), tempfile.mkdtemp()
    >>> spark.createDataFrame([(1, 10), (2, 20)], "k int, ts long").write.parquet(folder + "/in")
    >>> rows = spark.readStream.schema("k int, ts long").parquet(folder + "/in")
    >>> joined = sj.join([rows, rows], time="ts", window=sj.Range(5), by="k", lateness=sj.Grace(0))
    >>> query = joined.writeStream.trigger(availableNow=True).format("noop").start(checkpointLocation=folder + "/state")
    >>> report = sj.report(query)
    >>> query.awaitTermination()
    >>> report = sj.report(query)
    >>> len(report.batches), report.figures()["rows_in"], report.error
    (1, [4.0], None)
    >>> report.write(folder + "/report.html").stat().st_size > 100_000
    True
    """
    if not hasattr(query, "recentProgress"):
        raise CallError(
            f"report takes a streaming query, got {type(query).__name__}",
            hint="query = frame.writeStream. ... .start(), then sj.report(query)",
        )
    listening = listening_in(spark or SparkSession.active())
    failure = query.exception()
    kept = listening.follow(query, Kept)
    with listening.lock:
        batches, names = tuple(kept.history.batches), kept.names
    return Report(
        name=query.name or f"query {str(query.id)[:8]}",
        active=bool(query.isActive),
        batches=batches,
        plans=_plans(names),
        settings={"query": str(query.id), "run": str(query.runId), **(settings or {})},
        error=None if failure is None else str(failure),
    )


def _batch(told: Told) -> MicroBatch:
    number, seconds = int(told.figures["batch"]), float(told.figures["seconds"])
    return MicroBatch(
        first=number,
        last=number,
        began=told.began,
        ended=told.began + seconds,
        unseen=told.unseen,
        took=seconds,
        busy=seconds,
        figures={
            key: value
            for number, join in enumerate(told.figures["joins"].values(), 1)
            for key, value in flat(join, _called(number))
        },
        waiting=told.waiting,
        left_out={} if told.unseen is not None else {told.why: 1},
    )


def _called(number: int) -> str:
    """What a join is called in a report: by its place in the query. A run that goes on has other names for them."""
    return f"join-{number}"


def _plans(names: tuple[str, ...]) -> tuple[ReportedPlan, ...]:
    """The plans of the stages that tell their figures under these names, in the last micro-batch."""
    stages: dict[int, tuple[Any, dict[str, int]]] = {}
    for place, name in enumerate(names, 1):
        known = stage_of(name)
        if known is not None:
            plan, number = known
            stages.setdefault(id(plan), (plan, {}))[1][_called(place)] = number
    return tuple(ReportedPlan(plan, names) for plan, names in stages.values())
