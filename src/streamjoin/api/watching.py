"""What a frame will do, what a running query does, and how it ends."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from streamjoin.algebra import TimeAxis
from streamjoin.errors import CallError, says_what_fits
from streamjoin.plan.delay import describe_delay
from streamjoin.plan.delay import output_delay as delay_of
from streamjoin.plan.explaining import draw_plan, explain_plan
from streamjoin.plan.picture import explain_relation
from streamjoin.spark.figures import from_progress
from streamjoin.spark.jobs import did_run
from streamjoin.spark.marks import CallPlan, has_urgent_rows, name_in_plan, plan_of
from streamjoin.spark.starving import STANDING_FOR
from streamjoin.spark.starving import told as starving
from streamjoin.spark.stored.begun import Checkpoint, begun_with
from streamjoin.spark.stored.finish import finish_query

# Why a frame with urgent rows has no delay.
_URGENT: Final = "Spark's watermark would follow the urgent ones, and drop others"


@says_what_fits
def explain(frame: DataFrame) -> str:
    """What a joined frame will do: operator, order, partitioning and its copies, what is kept and until when; of a
    stream also how late results can be, which is what `sj.output_delay` rounds up for Spark, or why there is no bound.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> a = spark.createDataFrame([(1, 1)], "k int, ts long")
    >>> print(sj.explain(sj.join([a, a], time="ts", window=sj.Range(5), by="k", buckets=2)))
    operator       temporal join, how=inner
    emission       eager
    order          runs sorted by (key, ts)
    matches by     equal k
    buckets        hash of the equality keys over 2 buckets, no row twice
    input 0        Range(5): a row is kept until the other input's progress reaches its end
    input 1        Range(5): a row is kept until the other input's progress reaches its end
    """
    return _explanation(plan_of(frame), urgent=has_urgent_rows(frame.schema))


class Explanation(str):
    """A plan in words; in a notebook the picture of it."""

    picture: str | None = None

    def _repr_markdown_(self) -> str:
        return f"```text\n{self}\n```" if self.picture is None else f"```mermaid\n{self.picture}\n```"


def _explanation(call: CallPlan, *, urgent: bool) -> Explanation:
    """A call in words: of a query also the tree as it was written, and as it runs. `urgent`: rows may be, by now."""
    lines = explain_plan(call.plan)
    if not call.numbered:
        written, runs = (explain_relation(each) for each in (call.written, call.query.relation))
        leaves = [] if call.query.to_stream is None else [f"leaves as      {call.query.to_stream}"]
        lines = ["as written", *_indented(written), "as it runs", *_indented(runs), *leaves, *lines]
    if call.plan.streaming:
        delay = f"no bound: {_URGENT}" if call.prioritised or urgent else describe_delay(call.query, call.plan)
        lines.append(f"delay          {delay}")
    told = Explanation("\n".join(lines))
    told.picture = draw_plan(call.plan)
    return told


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]


@says_what_fits
def progress(query: Any) -> dict[str, Any]:
    """What a streaming query's joins did in its last micro-batch, and what they keep.

    `batch` is its number (None before the first), `seconds` how long it took, `rows_in`, `rows_out` and `late` are sums
    over the joins, and `joins` has the figures of each: rows, state, progress and lag per input, where the time went.
    Of joins of many inputs `probing` has whom rows asked, in which order, and what they found.
    With priorities `urgent` has the share of urgent rows, for how many seconds each input's progress has been
    `standing`, and whether the others are `starving`, of which there is a warning.
    `sj.from_progress` gives the same for any micro-batch, in a `StreamingQueryListener` say, but for these two, which
    several micro-batches tell.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> ticks = spark.readStream.format("rate").load()
    >>> joined = sj.join_interval(ticks, ticks, on="timestamp", by="value", lower="0 s", upper="1 s",
    ...                           lateness=sj.Grace("0 s"))
    >>> query = joined.writeStream.format("noop").start()
    >>> while sj.progress(query)["batch"] is None:
    ...     _ = query.awaitTermination(1)
    >>> query.stop()
    >>> [sorted(figures["seconds"]) for figures in sj.progress(query)["joins"].values()]
    [['join', 'pack', 'read', 'write']]
    """
    # An idle query reports too, and has nothing to say then.
    ran = [each for each in query.recentProgress if did_run(each)]
    if not ran:
        return from_progress({})
    last = from_progress(ran[-1])
    if not any("urgent" in figures for figures in last["joins"].values()):
        return last  # nothing that those before it would say more of
    before = [(each, from_progress(each)) for each in ran[-STANDING_FOR:-1]]
    return starving(last, [*before, (ran[-1], last)])


@says_what_fits
def output_delay(frame: DataFrame, column: str | None = None) -> str | int:
    """How late a streaming join's results can be: what `withWatermark` on them needs, so that Spark drops none.

    `column` is a time column of the result, by default the start of the validity, or the time of input 0.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> ticks = spark.readStream.format("rate").load()
    >>> joined = sj.join([ticks, ticks], time="timestamp", window=sj.Range("5 s"), by="value", lateness=sj.Grace("2 s"))
    >>> sj.output_delay(joined)
    '7001 milliseconds'
    >>> counted = joined.withWatermark("valid_from", sj.output_delay(joined)).groupBy("valid_from").count()
    """
    plan = plan_of(frame)
    if plan.prioritised or has_urgent_rows(frame.schema):
        raise CallError(
            f"a frame with urgent rows has no delay: {_URGENT}",
            hint="sj.deprioritise(frame) gives a plain stream in order of time",
        )
    for field in frame.schema.fields:
        if field.name == column:
            column = name_in_plan(field)  # it may have been renamed since
            break
    ticks = delay_of(plan.query, plan.plan, column)
    if plan.plan.axis is TimeAxis.TIMESTAMP:
        # Spark's watermark counts milliseconds, rounds down, and lets a row go that lies exactly on it.
        return f"{-(-ticks // 1000) + 1} milliseconds"
    return ticks


@says_what_fits
def finish(checkpoint: Any, spark: SparkSession | None = None) -> DataFrame:
    """What a stopped query still holds, as if its inputs had ended: held results, rows that met nobody.

    Reads the state in the query's checkpoint. What the query wrote and what this returns are together what the same
    call gives for a batch: rows as the call returns them, so do to them what the query did after it. The query cannot
    go on afterwards, because that would repeat rows: the checkpoint is marked.

    >>> import tempfile, streamjoin as sj
    >>> spark, folder = sj.session(), tempfile.mkdtemp()
    >>> spark.createDataFrame([(1, 10), (2, 20)], "k int, ts long").write.parquet(folder + "/in")
    >>> rows = spark.readStream.schema("k int, ts long").parquet(folder + "/in")
    >>> joined = sj.join([rows, rows], time="ts", window=sj.Range(5), by="k", lateness=sj.Grace(0), emit="ordered")
    >>> query = joined.writeStream.trigger(availableNow=True).format("noop").start(checkpointLocation=folder + "/state")
    >>> query.awaitTermination()
    >>> [(row.k, row.ts) for row in sj.finish(folder + "/state").collect()]
    [(2, 20)]
    """
    return finish_query(spark or SparkSession.active(), str(checkpoint))


@says_what_fits
def checkpoint(path: Any, spark: SparkSession | None = None) -> Checkpoint:
    """What the query of a checkpoint was begun with: `buckets` and `lateness` as calls take them, the `call` in words.

    A query keeps its buckets for ever, and without `buckets=` a call has as many as its machine runs tasks at once. So
    a program that may go on elsewhere asks here. Before the first micro-batch is over `buckets` is None, as a call
    takes it: nothing is bound. A query that was ended by `sj.finish` is refused.

    >>> import tempfile, streamjoin as sj
    >>> spark, folder = sj.session(), tempfile.mkdtemp()
    >>> spark.createDataFrame([(1, 10)], "k int, ts long").write.parquet(folder + "/in")
    >>> rows = spark.readStream.schema("k int, ts long").parquet(folder + "/in")
    >>> begun = sj.checkpoint(folder + "/state")
    >>> joined = sj.join([rows, rows], time="ts", window=sj.Range(5), by="k", lateness=sj.Grace(7),
    ...                  buckets=begun.buckets or 3)
    >>> query = joined.writeStream.trigger(availableNow=True).format("noop").start(checkpointLocation=folder + "/state")
    >>> query.awaitTermination()
    >>> begun = sj.checkpoint(folder + "/state")
    >>> begun.buckets, begun.lateness, begun.call["window"]
    (3, (Grace(delay=7), Grace(delay=7)), 'Range(5), Range(5)')
    """
    return begun_with(spark or SparkSession.active(), str(path))
