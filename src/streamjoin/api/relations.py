"""Operators over lifetimes: a frame through a window is a relation that changes with time, and these follow it.

At each instant the result is what the ordinary operator gives of the rows that are valid then. Results have a validity,
`valid_from` and `valid_to`; a stream gives, in the end, what a batch of the same rows gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamjoin.algebra import Aggregate, Arrival, Grace, Window
from streamjoin.algebra.policy import InvalidPolicy, LatePolicy
from streamjoin.api.arguments import ColumnLike, Length, PerInput, PerStream
from streamjoin.api.queries import Frames, run_cql
from streamjoin.errors import CallError
from streamjoin.plan.relation import Aggregation, Difference, Distinct, Intersection, Relation, Union
from streamjoin.spark.calls.options import Options

_AGGREGATES = '{"mean": ("avg", "speed"), "n": "count"}'


def cql(
    spark: SparkSession,
    text: str,
    *,
    time: ColumnLike | Arrival | Mapping[str, ColumnLike | Arrival] = "ts",
    lateness: PerStream[Grace | None] = None,
    late: PerStream[LatePolicy] = "drop",
    invalid: PerStream[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
    **streams: DataFrame,
) -> DataFrame:
    """The result of a CQL query: Spark SQL with a window in brackets behind each stream.

    Parameters
        time        the time column of all streams, or a dict from a stream's name to it
        lateness    on a stream, how late rows may be: `Grace`, or a dict from a stream's name to it; by default as the
                    frame's own watermark says
        late        rows that are later: "drop" (counted in `sj.progress`), "fail", "output" (as whole rows in a column
                    `_late_R`), or, in a query of one join, "join"; or a dict from a stream's name to it
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
        every other name is a stream of the query: `R=frame`

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
    for name, value in streams.items():
        if not hasattr(value, "mapInArrow"):
            raise CallError(
                f"{name}={value!r} is neither an option of cql nor a stream of the query, which is a DataFrame",
                hint="the options are time, lateness, late, invalid, idle_after, timers, emit, output, method, "
                "validity, buckets",
            )
    if not streams:
        raise CallError("a query needs its streams by name", hint='sj.cql(spark, "SELECT * FROM R [NOW]", R=frame)')
    options = Options(lateness, late, invalid, idle_after, timers, emit, output, method, validity, buckets)
    return run_cql(text, streams, time, options)


def aggregate(
    frame: DataFrame,
    aggregates: Mapping[str, Any],
    *,
    by: str | Sequence[str] | None = None,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[Grace | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
) -> DataFrame:
    """Aggregates of the rows that are valid, at each instant; with `by`, of each group.

    Between two neighbouring instants at which a row of the group starts or ends there is one row of the result; where
    the group is empty there is none.

    Parameters beyond those of `cql` (`lateness`, `late`, `invalid`, `emit`, `output`, `method`, `validity`, `buckets`;
    a list of latenesses has one for each frame)
        aggregates  a dict from the name of a result column to a function and a column, `{"mean": ("avg", "speed")}`;
                    functions are count, sum, avg, min, max, stddev; `{"n": "count"}` counts rows
        by          the columns that make a group
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
    keys = _groups(by)
    asked = tuple(_aggregate(name, each) for name, each in aggregates.items())
    for each in asked:
        if each.name.lower() in {key.lower() for key in keys}:
            raise CallError(f"the result would have two columns {each.name!r}", hint="give the aggregate another name")
    needed = (*keys, *(each.column for each in asked if each.column is not None))
    options = Options(
        lateness, late, invalid, idle_after, timers, emit, output, method, validity, buckets
    )  # fmt: skip
    several = Frames([frame], time, window, "aggregate")
    stream = several.stream(0, tuple(dict.fromkeys(needed)))
    return several.run(Aggregation(stream, keys, asked), options)


def distinct(
    frame: DataFrame,
    *,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[Grace | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
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
    options = Options(
        lateness, late, invalid, idle_after, timers, emit, output, method, validity, buckets
    )  # fmt: skip
    several = Frames([frame], time, window, "distinct")
    return several.run(Distinct(several.stream(0)), options)


def union(
    frames: Sequence[DataFrame],
    *,
    all: bool = True,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[Grace | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
) -> DataFrame:
    """The rows of all frames while they are valid; with `all=False` each at most once. Columns go by position.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> a, b = (spark.createDataFrame([(ts, "x")], "ts long, k string") for ts in (1, 3))
    >>> sj.union([a, b], all=False, time="ts", window=sj.Range(5)).show()
    +---+----------+--------+
    |  k|valid_from|valid_to|
    +---+----------+--------+
    |  x|         1|       8|
    +---+----------+--------+
    <BLANKLINE>
    """
    options = Options(
        lateness, late, invalid, idle_after, timers, emit, output, method, validity, buckets
    )  # fmt: skip
    several = Frames(frames, time, window, "union")
    both: Relation = Union(several.streams())
    return several.run(both if all else Distinct(both), options)


def except_(
    frames: Sequence[DataFrame],
    *,
    all: bool = False,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[Grace | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
) -> DataFrame:
    """The rows of the first frame while the second has none like them; with `all=True` as often as it has fewer.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> a, b = (spark.createDataFrame([(ts, "x")], "ts long, k string") for ts in (1, 3))
    >>> sj.except_([a, b], time="ts", window=sj.Range(5)).show()
    +---+----------+--------+
    |  k|valid_from|valid_to|
    +---+----------+--------+
    |  x|         1|       3|
    +---+----------+--------+
    <BLANKLINE>
    """
    options = Options(
        lateness, late, invalid, idle_after, timers, emit, output, method, validity, buckets
    )  # fmt: skip
    several = Frames(frames, time, window, "except_")
    left, right = several.two()
    return several.run(Difference(left, right, all), options)


def intersect(
    frames: Sequence[DataFrame],
    *,
    all: bool = False,
    time: PerInput[ColumnLike | Arrival | None] = None,
    window: PerInput[Window | None] = None,
    lateness: PerInput[Grace | None] = None,
    late: PerInput[LatePolicy] = "drop",
    invalid: PerInput[InvalidPolicy] = "fail",
    idle_after: Length | None = None,
    timers: bool = False,
    emit: str = "eager",
    output: str = "append",
    method: str = "direct",
    validity: tuple[str, str] = ("valid_from", "valid_to"),
    buckets: int | None = None,
) -> DataFrame:
    """The rows of the first frame while the second has some like them; with `all=True` as often as both have.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> a, b = (spark.createDataFrame([(ts, "x")], "ts long, k string") for ts in (1, 3))
    >>> sj.intersect([a, b], time="ts", window=sj.Range(5)).show()
    +---+----------+--------+
    |  k|valid_from|valid_to|
    +---+----------+--------+
    |  x|         3|       6|
    +---+----------+--------+
    <BLANKLINE>
    """
    options = Options(
        lateness, late, invalid, idle_after, timers, emit, output, method, validity, buckets
    )  # fmt: skip
    several = Frames(frames, time, window, "intersect")
    left, right = several.two()
    return several.run(Intersection(left, right, all), options)


def _groups(by: Any) -> tuple[str, ...]:
    keys = () if by is None else (by,) if not isinstance(by, list | tuple) else tuple(by)
    for key in keys:
        if not isinstance(key, str):
            raise CallError(f"by takes names of columns, got {key!r}", hint="make it a column of its own")
        if keys.count(key) > 1:
            raise CallError(f"by has {key!r} twice", hint="name every group once")
    return keys


def _aggregate(name: str, asked: Any) -> Aggregate:
    given = asked if isinstance(asked, list | tuple) else (asked,)
    if len(given) not in (1, 2) or not all(isinstance(each, str) for each in given):
        raise CallError(
            f"the aggregate {name!r} is a function, or a function and a column, got {asked!r}", hint=_AGGREGATES
        )
    return Aggregate(given[0], given[1] if len(given) > 1 else None, name)
