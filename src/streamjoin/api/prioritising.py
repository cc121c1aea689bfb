"""Urgent rows: which they are, lanes in which they overtake, and how to have a plain stream again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from streamjoin.algebra import Arrival, LatenessPolicy, Now, Validity
from streamjoin.algebra.policy import InvalidPolicy, LatePolicy
from streamjoin.api.arguments import ColumnLike, PerInput, SchemaLike, gathers
from streamjoin.api.queries import Frames
from streamjoin.errors import CallError, says_what_fits
from streamjoin.plan.condition import quoted
from streamjoin.spark.calls.inputs import Input
from streamjoin.spark.calls.options import PRIORITY_NAME, Options
from streamjoin.spark.calls.prioritising import laned, prioritised
from streamjoin.spark.lane_limit import LaneLimit, limit_of
from streamjoin.spark.marks import name_in_plan, plan_by_mark, priority_column


@says_what_fits
def prioritise(frame: DataFrame, rules: Mapping[str, int], *, as_: str = "priority") -> DataFrame:
    """The frame with a column that says how urgent its rows are: from 1 on urgent, the largest first.

    `rules` is a dict from a condition, in SQL, to a priority. A row has the largest whose condition is true, and 0
    where none is. Do this at the source: behind a join's buffers it comes too late.

    Make it the last thing before the call that takes `priority=`. That its rows are urgent is known from the column:
    filters and renames keep that; dropping it, or computing another from it (`priority + 1`) forget it, and Spark's
    `union` knows of its first frame only. A call without `priority=` is then not refused, and rows that are not urgent
    may be late.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> seen = spark.createDataFrame([(1, "ALARM", 3), (2, "INFO", 99), (3, "INFO", 5)], "ts long, kind string, v int")
    >>> urgent = sj.prioritise(seen, {"kind = 'ALARM'": 10, "v > 50": 8})
    >>> [row.priority for row in urgent.orderBy("ts").collect()]
    [10, 8, 0]
    """
    return prioritised(frame, rules, as_)


@gathers(Options)
def deprioritise(
    options: Options,
    frame: DataFrame,
    *,
    time: ColumnLike | Arrival | None = None,
    priority: ColumnLike | None = None,
    lateness: LatenessPolicy | None = None,
    late: LatePolicy = "drop",
    invalid: InvalidPolicy = "fail",
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """A frame with urgent rows as a plain stream in order of time again: rows wait for their turn, and have priority 0.

    For whoever goes by time, such as Spark's watermark: a prioritised frame must not be given to it, because urgent
    rows come early. All rows pass one task.

    Parameters
        time        the time column; by default, of a join's result, its validity
        priority    the column that says how urgent rows are; by default that of `sj.prioritise`, `sj.lanes` or a join
        lateness    on a stream, how late rows may be; by default as is known of a join's result, or as the frame's own
                    watermark says
        late, invalid   as for `sj.reorder`
        schemas, streaming   as for `sj.join`; with `schemas` the frame is not looked at: give time and priority too

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> seen = spark.createDataFrame([(2, 10), (1, 0)], "ts long, priority int")
    >>> [(row.ts, row.priority) for row in sj.deprioritise(seen, time="ts", priority="priority").collect()]
    [(1, 0), (2, 0)]
    """
    frames = Frames([frame], time, Now(), replace(options, emit="ordered", buckets=1), "deprioritise")
    part = frames.inputs[0]
    # A schema in words has no marks of the call that made the frame.
    given = priority_column(part.schema) if priority is None else priority
    if given is None:
        raise CallError("nothing says which rows of the frame are urgent", hint='give priority="priority", its column')
    column = part.resolve(given)
    if time is None:
        frames.times, frames.windows = [None], [_validity(part)]
    kept = {name: name for name in part.columns if name != column}
    stream = replace(frames.stream(0, kept), priority=quoted(column))
    shown = column if column in part.columns else PRIORITY_NAME
    if shown != column and shown.lower() in map(str.lower, part.columns):
        raise CallError(
            f"the frame has a column {shown!r} already, and priority={priority!r} is none of its columns",
            hint=f"make it one, frame.withColumn(...), and give its name; or drop {shown!r}",
        )
    frames.options = replace(frames.options, priority_as=shown)
    return frames.run(stream, reordered=True)


def _validity(part: Input) -> Validity:
    """The validity that a join has given to its results."""
    call = next((call for call in map(plan_by_mark, part.schema.fields) if call is not None), None)
    names = None if call is None else call.plan.sink.shape.validity
    now = {name_in_plan(field): field.name for field in part.schema.fields}
    if names is None or not set(names) <= now.keys():
        raise CallError("nothing says when rows of the frame are valid", hint='give time="ts", its time column')
    return Validity(now[names[0]], now[names[1]])


@says_what_fits
def lanes(*, as_: str = "priority", **lanes: DataFrame) -> DataFrame:
    """Lanes of one stream, the most urgent first, as one frame with a column that says how urgent its rows are.

    `sj.lanes(urgent=alarms, normal=readings)`: rows of the last lane have priority 0, those of the one before at least
    1, and so on; a larger priority that a row has already stays, whatever its column is called. Under a backlog the
    urgent lane overtakes between micro-batches if its source has no limit and that of the normal one has:
    `maxFilesPerTrigger`, `maxBytesPerTrigger`, or Kafka's `maxOffsetsPerTrigger`. `sj.lane_limit` says which. A partner
    that is still in the backlog is waited for: streams that others are looked up in go whole into an unlimited lane.

    As with `sj.prioritise`, make it the last thing before the call that takes `priority=`: a `union` of Spark's after
    another frame, or a column computed from the priority, forget that rows are urgent, and nothing is refused then.
    How late rows may be is known, as of one frame, if all lanes say the same; if not, that call says it.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> alarms, readings = (spark.createDataFrame([(ts, "x")], "ts long, k string") for ts in (9, 1))
    >>> [(row.ts, row.priority) for row in sj.lanes(urgent=alarms, normal=readings).orderBy("ts").collect()]
    [(1, 0), (9, 1)]
    """
    return laned(lanes, as_)


@says_what_fits
def lane_limit(query: Any, *, batch_seconds: float = 2.0) -> LaneLimit:
    """How many rows keep a query's micro-batches so short, from what its last ones took: the limit of a normal lane.

    A micro-batch takes a + b * rows seconds; so `rows` = (batch_seconds - a) / b. The price is throughput: of what
    endless micro-batches would do, 1 - a / batch_seconds is left (`throughput`). Micro-batches of equal size vary, so
    half of them are longer: ask for 0.7 of what hardly any may exceed.

    These are rows of all streams of the query, urgent lanes and streams beside it too (Spark's `numInputRows`), because
    nothing says which of its sources is a normal lane. Where the others bring many, subtract what they bring (`sources`
    of `query.lastProgress` has `numInputRows` of each); where several sources have a limit, divide by their number.

    >>> import streamjoin as sj
    >>> from types import SimpleNamespace
    >>> ran = [(1000, 0.6), (2000, 0.7), (11000, 1.6)]
    >>> seen = [{"batchId": n, "numInputRows": rows, "durationMs": {"triggerExecution": s * 1000, "addBatch": 1}}
    ...         for n, (rows, s) in enumerate(ran)]
    >>> limit = sj.lane_limit(SimpleNamespace(recentProgress=seen), batch_seconds=2)
    >>> limit.rows, round(limit.throughput, 2)
    (15000, 0.75)
    """
    return limit_of(query.recentProgress, batch_seconds)
