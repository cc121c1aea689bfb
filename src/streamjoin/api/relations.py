"""Operators over lifetimes: a frame through a window is a relation that changes with time, and these follow it.

At each instant the result is what the ordinary operator gives of the rows that are valid then. Results have a validity,
`valid_from` and `valid_to`; a stream gives, in the end, what a batch of the same rows gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from streamjoin.algebra import Aggregate, Arrival, LatenessPolicy, Now, Window
from streamjoin.algebra.policy import InvalidPolicy, LatePolicy
from streamjoin.api.arguments import (
    ColumnLike,
    Columns,
    Handler,
    Length,
    OneOrMore,
    PerInput,
    PerStream,
    SchemaLike,
    gathers,
)
from streamjoin.api.queries import Frames, refuse_sorted_runs, run_cql
from streamjoin.errors import ArgumentError, CallError, near_or_all
from streamjoin.plan.relation import Aggregation, Difference, Distinct, Intersection, Relation, Union
from streamjoin.spark.calls.inputs import Input, check_frame
from streamjoin.spark.calls.options import Options, listed

_AGGREGATES = '{"mean": ("avg", "speed"), "n": "count"}'


@gathers(Options)
def cql(
    options: Options,
    /,  # a stream may have that name too
    spark: SparkSession,
    text: str,
    *,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    time: ColumnLike | Arrival | Mapping[str, ColumnLike | Arrival] = "ts",
    lateness: PerStream[LatenessPolicy | None] = None,
    late: PerStream[LatePolicy | None] = None,
    invalid: PerStream[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    memory: str | int | None = None,
    nway: str = "auto",
    priority_as: str = "priority",
    urgent: Handler | None = None,
    schemas: PerStream[SchemaLike | None] = None,
    streaming: PerStream[bool | None] = None,
    **streams: DataFrame,
) -> DataFrame:
    """The result of a CQL query: Spark SQL with a window in brackets behind each stream.

    Parameters
        args        values of the text's parameters: a dict for `:limit`, a list for one `?` after the other; str, int,
                    float, bool, None, Decimal, date, datetime, timedelta or bytes. They stand where a literal may, and
                    in windows, `[RANGE :size]`
        time        the time column of all streams, or a dict from a stream's name to it
        lateness    on a stream, how late rows may be: `Grace`, `MaxDelay` or, in a query of one join, a `Recall`
                    target; or a dict from a stream's name to it; by default as the frame's own watermark says
        late        rows that are later: "drop" (the default, counted in `sj.progress`), "fail", "output" (as whole rows
                    in a column `_late_R`), or, in a query of one join, "join" (beside a recall target the default); or
                    a dict from a stream's name to it
        invalid     rows without time, or ending before they begin: "fail", "drop" or "output" (in `_invalid_R`); or a
                    dict
        idle_after, timers   as for `join`
        emit        "eager", or "ordered": within a bucket sorted by (valid_from, valid_to)
        output      "append": elements with their validity, each when its end is known; "changelog": what appears and
                    disappears, as soon as it is known, with columns `_change` ("insert" or "retract") and `_time`
        method      how lifetimes are managed: "direct" (elements with both ends) or "negative" (plus and minus tuples);
                    the same result, and a changelog is always by the second
        validity    the names of the result's validity columns
        buckets     how many buckets each operator is cut into; by default as many as tasks can run at once
        memory      as for `join`
        nway        how a chain of inner joins runs: "at once", as one operator, or as a "cascade" of joins of two.
                    "auto": at once where one key or one value of each stream says which rows meet, without copies
        priority_as, urgent   as for `join`, where a stream has urgent rows: `R [NOW] AS R PRIORITY BY severity`
        schemas, streaming   as for `join`; a dict from a stream's name to what is known of it
        R, S        every other name is a stream of the query: `R=frame`

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> r = spark.createDataFrame([(1, "a", 7), (4, "b", 9)], "ts long, k string, x int")
    >>> s = spark.createDataFrame([(2, "a", 1), (9, "b", 2)], "ts long, k string, y int")
    >>> sj.cql(spark, "SELECT R.k, x + y AS sum FROM R [RANGE 3], S [ROWS 1] WHERE R.k = S.k", R=r, S=s).show()
    +---+---+----------+--------+
    |  k|sum|valid_from|valid_to|
    +---+---+----------+--------+
    |  a|  8|         2|       4|
    +---+---+----------+--------+
    <BLANKLINE>
    """
    if not isinstance(spark, SparkSession) and not hasattr(spark, "createDataFrame"):
        raise CallError(
            f"cql needs a SparkSession first, got {type(spark).__name__}", hint='sj.cql(spark, "SELECT ...")'
        )
    refuse_sorted_runs(streams)
    for name, value in streams.items():
        near = near_or_all(name, list(inspect.signature(cql).parameters)[2:-1], "the options are")
        if not hasattr(value, "mapInArrow") and near.startswith("did"):
            raise ArgumentError(f"cql has no option {name!r}", hint=near)
        check_frame(value, f"{name}, which is no option of cql but a stream,")
    if not streams:
        raise CallError("a query needs its streams by name", hint='sj.cql(spark, "SELECT * FROM R [NOW]", R=frame)')
    return run_cql(text, streams, time, args, nway, options)


@gathers(Options)
def aggregate(
    options: Options,
    frame: DataFrame,
    aggregates: Mapping[str, Any],
    *,
    by: Columns = None,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """Aggregates of the rows that are valid, at each instant; with `by`, of each group.

    Between two neighbouring instants at which a row of the group starts or ends there is one row of the result; where
    the group is empty there is none.

    Parameters beyond those of `cql` (`lateness`, `late`, `invalid`, `emit`, `output`, `method`, `validity`, `buckets`;
    a list of latenesses has one for each frame)
        aggregates  a dict from the name of a result column to a function and a column, `{"mean": ("avg", "speed")}`;
                    functions are count, sum, avg, min, max, stddev; `{"n": "count"}` counts rows
        by          the columns that make a group; one that is computed is called what Spark calls it
        time, window   as for `join`

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> seen = spark.createDataFrame([(1, 10), (4, 20)], "ts long, speed int")
    >>> sj.aggregate(seen, {"mean": ("avg", "speed")}, time="ts", window=sj.Range(5)).orderBy("valid_from").show()
    +----+----------+--------+
    |mean|valid_from|valid_to|
    +----+----------+--------+
    |10.0|         1|       4|
    |15.0|         4|       6|
    |20.0|         6|       9|
    +----+----------+--------+
    <BLANKLINE>
    """
    if not isinstance(aggregates, Mapping) or not aggregates:
        raise CallError(
            f"aggregates is a dict from names to functions and columns, got {aggregates!r}",
            hint=_AGGREGATES,
        )
    several = Frames([frame], time, window, options, "aggregate")
    groups = _groups(by, several.inputs[0])
    asked = tuple(_aggregate(name, each, several.inputs[0]) for name, each in aggregates.items())
    for each in asked:
        if each.name.lower() in {key.lower() for key in groups}:
            raise CallError(f"the result would have two columns {each.name!r}", hint="give the aggregate another name")
        if each.column is not None and groups.get(each.column, each.column) != each.column:
            raise CallError(
                f"the group {each.column!r} is computed, and a column of that name is aggregated",
                hint='give the group another name: F.expr("...").alias("name")',
            )
    reads = {**groups, **{each.column: each.column for each in asked if each.column is not None}}
    return several.run(Aggregation(several.stream(0, reads), tuple(groups), asked))


@gathers(Options)
def distinct(
    options: Options,
    frame: DataFrame,
    *,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """Each row once while at least one like it is valid. Options as for `aggregate`.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> seen = spark.createDataFrame([("a", 1, 5), ("a", 3, 9)], "who string, since long, until long")
    >>> here = sj.distinct(seen.select("who", "since", "until"), window=sj.Validity("since", "until"))
    >>> here.select("who", "valid_from", "valid_to").show()
    +---+----------+--------+
    |who|valid_from|valid_to|
    +---+----------+--------+
    |  a|         1|       9|
    +---+----------+--------+
    <BLANKLINE>

    The columns that say when a row is valid are not part of what is compared; neither is the time column.
    """
    several = Frames([frame], time, window, options, "distinct")
    return several.run(Distinct(several.stream(0)))


@gathers(Options)
def union(
    options: Options,
    *frames: OneOrMore,
    all: bool = True,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """The rows of all frames while they are valid; with `all=False` each at most once. Columns go by position.

    Frames come one after the other, or in a list.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> a, b = (spark.createDataFrame([(ts, "x")], "ts long, k string") for ts in (1, 3))
    >>> sj.union(a, b, all=False, time="ts", window=sj.Range(5)).show()
    +---+----------+--------+
    |  k|valid_from|valid_to|
    +---+----------+--------+
    |  x|         1|       8|
    +---+----------+--------+
    <BLANKLINE>
    """
    several = Frames(frames, time, window, options, "union")
    both: Relation = Union(several.streams())
    return several.run(both if all else Distinct(both))


@gathers(Options)
def except_(
    options: Options,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    all: bool = False,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """The rows of the first frame while the second has none like them; with `all=True` as often as it has fewer.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> a, b = (spark.createDataFrame([(ts, "x")], "ts long, k string") for ts in (1, 3))
    >>> sj.except_(a, b, time="ts", window=sj.Range(5)).show()
    +---+----------+--------+
    |  k|valid_from|valid_to|
    +---+----------+--------+
    |  x|         1|       3|
    +---+----------+--------+
    <BLANKLINE>
    """
    several = Frames([left, right], time, window, options, "except_")
    return several.run(Difference(*several.two(), all))


@gathers(Options)
def intersect(
    options: Options,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    all: bool = False,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """The rows of the first frame while the second has some like them; with `all=True` as often as both have.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> a, b = (spark.createDataFrame([(ts, "x")], "ts long, k string") for ts in (1, 3))
    >>> sj.intersect(a, b, time="ts", window=sj.Range(5)).show()
    +---+----------+--------+
    |  k|valid_from|valid_to|
    +---+----------+--------+
    |  x|         3|       6|
    +---+----------+--------+
    <BLANKLINE>
    """
    several = Frames([left, right], time, window, options, "intersect")
    return several.run(Intersection(*several.two(), all))


@gathers(Options)
def reorder(
    options: Options,
    frame: DataFrame,
    *,
    time: ColumnLike | Arrival,
    lateness: LatenessPolicy | None = None,
    late: LatePolicy = "drop",
    invalid: InvalidPolicy = "fail",
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """The rows of a frame in order of time. On a stream a row waits until no earlier one can come any more.

    That takes as long as rows may be late: `lateness`, `sj.Grace` or `sj.MaxDelay` (together with a join that expects
    order this is what is called MP-K-slack). Streamjoin's own joins need no order; this is for others that do. All rows
    pass one task. Rows that come later than that are `late`: "drop", "fail", or "output" (in a column `_late_0`).

    Parameters
        time        the time column, or `sj.arrival()`
        lateness    on a stream, how late rows may be; by default as the frame's own watermark says
        invalid     rows without time: "fail", "drop" or "output" (in a column `_invalid_0`)
        schemas, streaming   as for `join`

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> seen = spark.createDataFrame([(3, "c"), (1, "a"), (2, "b")], "ts long, name string")
    >>> [row.name for row in sj.reorder(seen, time="ts").collect()]
    ['a', 'b', 'c']
    """
    frames = Frames([frame], time, Now(), replace(options, emit="ordered", buckets=1), "reorder")
    return frames.run(frames.stream(0, {name: name for name in frames.inputs[0].columns}), reordered=True)


def _groups(by: Any, part: Input) -> dict[str, str]:
    """The groups by the names that they have in the result, and the frame's columns that they are."""
    found: dict[str, str] = {}
    for given in listed(by):
        column = part.resolve(given)
        name = part.shown.get(column, column)
        if name in found:
            raise CallError(f"by has {name!r} twice", hint="name every group once")
        found[name] = column
    return found


def _aggregate(name: str, asked: Any, part: Input) -> Aggregate:
    given = asked if isinstance(asked, list | tuple) else (asked,)
    if len(given) not in (1, 2) or not isinstance(given[0], str) or not isinstance(given[-1], str | Column):
        raise CallError(
            f"the aggregate {name!r} is a function, or a function and a column, got {asked!r}", hint=_AGGREGATES
        )
    function: Any = given[0]
    return Aggregate(function, part.resolve(given[1]) if len(given) > 1 else None, name)
