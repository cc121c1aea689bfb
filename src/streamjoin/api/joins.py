"""Joins in which a row takes all that match. Frames in, a frame out; everything after the frames is by keyword.

`join` is the whole of it; the others are short forms for the joins that people look for by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from streamjoin.algebra import Arrival, LatenessPolicy, MergeStrategy, Predicate, Window, band, within
from streamjoin.algebra.policy import InvalidPolicy, LatePolicy
from streamjoin.algebra.predicate import Closed, Metric
from streamjoin.api.arguments import (
    Bound,
    ColumnLike,
    Columns,
    Handler,
    Length,
    OneOrMore,
    PerInput,
    SchemaLike,
    gathers,
)
from streamjoin.errors import CallError
from streamjoin.spark.calls.joins import run_interval, run_join, run_overlap
from streamjoin.spark.calls.many import run_many
from streamjoin.spark.calls.options import Joining, listed
from streamjoin.spark.calls.pairs import as_predicate, two_frames, two_sides


@gathers(Joining)
def join(
    joining: Joining,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    where: Predicate | ColumnLike | None = None,
    by: Columns = None,
    left_by: Columns = None,
    right_by: Columns = None,
    how: str = "inner",
    outer: str = "row",
    emit: str = "eager",
    hold: str = "auto",
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy | None] = None,
    idle_after: Length | None = None,
    timers: bool = False,
    invalid: PerInput[InvalidPolicy] = "fail",
    suffix: str | Sequence[str] = "_right",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    memory: str | int | None = None,
    cell: Any = None,
    algorithm: str = "auto",
    merge: MergeStrategy | None = None,
    nway: str = "at once",
    priority: PerInput[ColumnLike | None] = None,
    priority_as: str = "priority",
    new_priority: str | None = None,
    urgent: Handler | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """Join frames over time and values: `sj.join(a, b, ...)`, or `sj.join([a, b, c], ...)` with any number of them.

    Parameters (all by keyword). Wherever a column may stand, it is a name, SQL text or a Column
        time        the time column: a timestamp, date or integer; one, or one per input; or `sj.arrival()`
        window      how long a row is valid: `Range`, `Fixed`, `Now`, `Unbounded`, `Rows`, or `Validity` (then without
                    `time`)
        by          equality keys of the same name on both inputs; they appear once in the result
        left_by, right_by   equality keys of different names, or expressions; both appear
        where       a predicate: `equals`, `band`, `overlaps`, `within`, `similar`, `theta`, combined with `&`; or a
                    condition as SQL text, "l.speed > r.mm", or as a Column, `F.col("l.speed") > F.col("r.mm")` or
                    `wind.speed > rain.mm`
        how         inner, left, right, full, semi, anti, in any of Spark's spellings
        outer       "row" (a row that met nobody leaves once) or "snapshot" (the parts of its validity without partner)
        emit        "eager", or "ordered": within a bucket sorted by (valid_from, valid_to)
        hold        with "ordered": hold back "inputs" or "outputs"; "auto" decides by expected partners
        lateness    on a stream, how late rows may be: `Grace`, `MaxDelay`, or by a `Recall` target; by default as the
                    frame's own watermark says
        late        rows that are later: "drop", "fail", "output" (marked `_late`), "join" (with what is still kept);
                    they are dropped by default, and join beside a recall target
        idle_after  an input that delivers nothing for so long no longer holds results back: "30 seconds"
        timers      look for idle inputs also when nothing is delivered at all; such a query never runs dry. With "tpmj"
                    merges that wait go on then, too
        invalid     rows without time, or ending before they begin: "fail", "drop", or "output" (marked `_invalid`)
        suffix      for names of input 1 that occur on input 0 too; of more inputs a list, by default _2, _3, ...
        validity    the names of the result's validity columns
        buckets     how many buckets the work is cut into; by default as many as tasks can run at once
        memory      how much memory what is kept may use in each Python process, "256 MB"; the rest goes to
                    files. By default there is no limit
        cell        the cell size of the grid that spreads joins without equality keys; a duration over times
        algorithm   "tpmj": an inner join with emit="ordered" whose state does not fit into memory; it is kept in sorted
                    runs, and results leave when runs are merged. Give `memory`, too: without it runs stay in memory
                    without limit, and the first is made of 102 MB of rows (two fifths of 256 MB) in a bucket. Before
                    that no result of a stream leaves
        merge       of "tpmj", when runs are merged: `MaxFanIn`, `Greedy` or `Adaptive` (the default)
        nway        of more than two frames: joined "at once" ("auto" is the same), or in a "cascade" of joins of two
        priority    how urgent rows are: an integer, from 1 on urgent. Results of an urgent row leave at once, also with
                    "ordered"; urgent rows say nothing of how far an input is. None for an input without urgent rows
        priority_as    the result's column that says how urgent it is: the largest of its rows' priorities
        new_priority   another one than the largest, SQL over p0, p1, ...: "least(p0, p1)"; integers, + - * %, abs(),
                    greatest(), least() and cast() of them: it is worked out while joining
        urgent      a function that workers call with urgent results as soon as they are made, at least once:
                    `handler(table, batch_id, bucket)`, an Arrow table; the rows are in the frame too. A join of batch
                    frames has batch_id 0
        schemas     the columns of the inputs, a StructType or text ("k int, ts timestamp") for each, where Spark cannot
                    be asked: inside a declarative pipeline. Only these columns are read
        streaming   whether the inputs are streams, True or False or one per input, where Spark cannot be asked

    More than two frames are joined inner, by predicates for all of them, or with `of=` for two of them:
    `where=sj.equals("k", of=(0, 1)) & sj.band("v", below=1, above=1, of=(1, 2))`.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> wind = spark.createDataFrame([(1, 30), (4, 20)], "ts long, speed int")
    >>> rain = spark.createDataFrame([(2, 5), (9, 7)], "ts long, mm int")
    >>> both = sj.join(wind, rain, time="ts", window=sj.Range(3), where=sj.theta("l.speed > r.mm"))
    >>> both.orderBy("ts").show()
    +---+-----+--------+---+----------+--------+
    | ts|speed|ts_right| mm|valid_from|valid_to|
    +---+-----+--------+---+----------+--------+
    |  1|   30|       2|  5|         2|       4|
    |  4|   20|       2|  5|         4|       5|
    +---+-----+--------+---+----------+--------+
    <BLANKLINE>
    """
    if len(two_frames([left, right])) > 2:
        return run_many([left, right], time, window, where, outer, joining, nway)
    if nway not in ("auto", "at once"):
        raise CallError(f"nway={nway!r} says how more than two frames are joined, got two", hint="leave it out")
    return run_join([left, right], time, window, where, outer, joining)


@gathers(Joining)
def join_interval(
    joining: Joining,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    lower: Length,
    upper: Length,
    on: ColumnLike | Arrival | None = None,
    left_on: ColumnLike | Arrival | None = None,
    right_on: ColumnLike | Arrival | None = None,
    closed: Closed = "both",
    where: Predicate | ColumnLike | None = None,
    by: Columns = None,
    left_by: Columns = None,
    right_by: Columns = None,
    how: str = "inner",
    emit: str = "eager",
    hold: str = "auto",
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy | None] = None,
    idle_after: Length | None = None,
    timers: bool = False,
    invalid: PerInput[InvalidPolicy] = "fail",
    suffix: str = "_right",
    buckets: int | None = None,
    memory: str | int | None = None,
    cell: Any = None,
    priority: PerInput[ColumnLike | None] = None,
    priority_as: str = "priority",
    new_priority: str | None = None,
    urgent: Handler | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """Pairs of events whose times lie within bounds of each other: `lower <= right - left <= upper`.

    Bounds are inclusive unless `closed` says otherwise ("left", "right", "neither"). The result has no validity. Other
    options as for `join`.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> orders = spark.sql("SELECT 7 account, timestamp'2024-01-01 10:00:00' ordered_at")
    >>> payments = spark.sql("SELECT 7 account, timestamp'2024-01-01 10:04:00' paid_at, 9.5 amount")
    >>> paid = sj.join_interval(orders, payments, left_on="ordered_at", right_on="paid_at", by="account",
    ...                         lower="0 s", upper="10 minutes", how="left")
    >>> [row.amount for row in paid.collect()]
    [Decimal('9.5')]
    """
    sides = two_sides(on, left_on, right_on, "join_interval")
    if lower is None or upper is None:
        raise CallError(
            f"an interval join needs both bounds, got lower={lower!r} and upper={upper!r}",
            hint='lower="0 seconds", upper="10 minutes": right - left lies between',
        )
    return run_interval(left, right, sides, (lower, upper), closed, where, joining)


@gathers(Joining)
def join_band(
    joining: Joining,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    below: Bound,
    above: Bound,
    on: ColumnLike | None = None,
    left_on: ColumnLike | None = None,
    right_on: ColumnLike | None = None,
    closed: Closed = "both",
    where: Predicate | ColumnLike | None = None,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    by: Columns = None,
    left_by: Columns = None,
    right_by: Columns = None,
    how: str = "inner",
    outer: str = "row",
    emit: str = "eager",
    hold: str = "auto",
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy | None] = None,
    idle_after: Length | None = None,
    timers: bool = False,
    invalid: PerInput[InvalidPolicy] = "fail",
    suffix: str = "_right",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    memory: str | int | None = None,
    cell: Any = None,
    priority: PerInput[ColumnLike | None] = None,
    priority_as: str = "priority",
    new_priority: str | None = None,
    urgent: Handler | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """Pairs whose values lie within a band: `left - below <= right <= left + above`, tested on the difference.

    With `time` and `window` the rows must also be valid at the same time. Other options as for `join`.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> bids = spark.createDataFrame([(10.0,), (20.0,)], "bid double")
    >>> asks = spark.createDataFrame([(10.4,), (12.0,)], "ask double")
    >>> sj.join_band(bids, asks, left_on="bid", right_on="ask", below=0.5, above=0.5).collect()
    [Row(bid=10.0, ask=10.4)]
    """
    one, two = two_sides(on, left_on, right_on, "join_band")
    condition: Predicate = band(one, two, below=below, above=above, closed=closed)
    condition = condition if where is None else condition & as_predicate(where)
    return run_join([left, right], time, window, condition, outer, joining)


@gathers(Joining)
def join_overlap(
    joining: Joining,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    on: tuple[ColumnLike, ColumnLike] | None = None,
    left_on: tuple[ColumnLike, ColumnLike] | None = None,
    right_on: tuple[ColumnLike, ColumnLike] | None = None,
    where: Predicate | ColumnLike | None = None,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    by: Columns = None,
    left_by: Columns = None,
    right_by: Columns = None,
    how: str = "inner",
    outer: str = "row",
    emit: str = "eager",
    hold: str = "auto",
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy | None] = None,
    idle_after: Length | None = None,
    timers: bool = False,
    invalid: PerInput[InvalidPolicy] = "fail",
    suffix: str = "_right",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    memory: str | int | None = None,
    cell: Any = None,
    priority: PerInput[ColumnLike | None] = None,
    priority_as: str = "priority",
    new_priority: str | None = None,
    urgent: Handler | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """Pairs whose half-open intervals share a point.

    Without `time` and `window`, columns of a time type (timestamp, date, integer) are the rows' own validity, and the
    result has the intersection as `valid_from`, `valid_to`. Otherwise, and for other numbers, they are intervals of
    values. Other options as for `join`.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> shifts = spark.createDataFrame([("Ann", 8, 16)], "name string, start int, end int")
    >>> alarms = spark.createDataFrame([(1, 15, 17), (2, 16, 18)], "alarm int, start int, end int")
    >>> sj.join_overlap(shifts, alarms, on=("start", "end")).select("name", "alarm", "valid_from", "valid_to").collect()
    [Row(name='Ann', alarm=1, valid_from=15, valid_to=16)]
    """
    sides = two_sides(on, left_on, right_on, "join_overlap")
    for side in sides:
        if not isinstance(side, tuple | list) or len(side) != 2:
            raise CallError(f"join_overlap needs the two ends of an interval, got {side!r}", hint='on=("start", "end")')
    return run_overlap(left, right, sides, time, window, where, outer, joining)


@gathers(Joining)
def join_within(
    joining: Joining,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    radius: float,
    on: Columns = None,
    left_on: Columns = None,
    right_on: Columns = None,
    metric: Metric = "euclidean",
    where: Predicate | ColumnLike | None = None,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    by: Columns = None,
    left_by: Columns = None,
    right_by: Columns = None,
    how: str = "inner",
    outer: str = "row",
    emit: str = "eager",
    hold: str = "auto",
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy | None] = None,
    idle_after: Length | None = None,
    timers: bool = False,
    invalid: PerInput[InvalidPolicy] = "fail",
    suffix: str = "_right",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    memory: str | int | None = None,
    cell: Any = None,
    priority: PerInput[ColumnLike | None] = None,
    priority_as: str = "priority",
    new_priority: str | None = None,
    urgent: Handler | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """Pairs at most `radius` apart over the axes `on`: euclidean, manhattan, chebyshev, or haversine.

    Haversine takes (latitude, longitude) in degrees and a radius in metres. With `time` and `window` the rows must also
    be valid at the same time. Other options as for `join`.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> ball = spark.createDataFrame([(0.0, 0.0)], "x double, y double")
    >>> players = spark.createDataFrame([("near", 3.0, 4.0), ("far", 6.0, 0.0)], "name string, x double, y double")
    >>> [row.name for row in sj.join_within(ball, players, on=("x", "y"), radius=5.0).collect()]
    ['near']
    """
    one, two = (tuple(listed(side)) for side in two_sides(on, left_on, right_on, "join_within"))
    condition: Predicate = within(one, two, radius=radius, metric=metric)
    condition = condition if where is None else condition & as_predicate(where)
    return run_join([left, right], time, window, condition, outer, joining)
