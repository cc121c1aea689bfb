"""Operators over lifetimes: a frame through a window is a relation that changes with time, and these follow it.

At each instant the result is what the ordinary operator gives of the rows that are valid then. Results have a validity,
`valid_from` and `valid_to`; a stream gives, in the end, what a batch of the same rows gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streamjoin.algebra import Aggregate, Validity, Window
from streamjoin.errors import CallError, unknown_column
from streamjoin.language import parse_cql
from streamjoin.plan.relation import (
    Aggregation,
    Difference,
    Distinct,
    Intersection,
    Query,
    Relation,
    Stream,
    Union,
)
from streamjoin.plan.rules import optimise
from streamjoin.spark.query import QueryCall, arrow_schema

_AGGREGATES = '{"mean": ("avg", "speed"), "n": "count"}'
_OPTIONS = ("lateness", "late", "invalid", "emit", "output", "method", "validity", "buckets")


def cql(spark: SparkSession, text: str, *, time: Any = "ts", **options: Any) -> DataFrame:
    """The result of a CQL query: Spark SQL with a window in brackets behind each stream.

    Parameters
        time        the time column of all streams, or a dict from a stream's name to it
        lateness    on a stream, how late rows may be: `Grace`, or a dict from a stream's name to it; by default as the
                    frame's own watermark says
        late        rows that are later: "drop" (counted in `sj.progress`) or "fail"; in an as-of or best-match join
                    also "output" and "join", as those have it
        invalid     rows without time, or ending before they begin: "fail" or "drop"
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
    frames = {name: value for name, value in options.items() if name not in _OPTIONS}
    for name, value in frames.items():
        if not hasattr(value, "mapInArrow"):
            raise CallError(
                f"{name}={value!r} is neither an option of cql nor a stream of the query, which is a DataFrame",
                hint="the options are time, " + ", ".join(_OPTIONS),
            )
    if not frames:
        raise CallError("a query needs its streams by name", hint='sj.cql(spark, "SELECT * FROM R [NOW]", R=frame)')
    schemas = {name: arrow_schema(frame, f"stream {name}") for name, frame in frames.items()}
    times = {name: time.get(name) if isinstance(time, Mapping) else time for name in frames}
    times = {name: column if column in schemas[name].names else None for name, column in times.items()}
    query = parse_cql(text, schemas, times=times)
    chosen = {name: value for name, value in options.items() if name in _OPTIONS}
    return QueryCall(frames, Query(optimise(query.relation, schemas), query.to_stream), query.relation, **chosen).run()


def aggregate(
    frame: DataFrame,
    aggregates: Mapping[str, Any],
    *,
    by: Any = None,
    time: Any = None,
    window: Any = None,
    **options: Any,
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
    _check_columns(frame, needed)
    stream = _stream(0, frame, time, window, tuple(dict.fromkeys(needed)))
    return _run([frame], Aggregation(stream, keys, asked), options)


def distinct(frame: DataFrame, *, time: Any = None, window: Any = None, **options: Any) -> DataFrame:
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
    return _run([frame], Distinct(_stream(0, frame, time, window)), options)


def union(
    frames: Sequence[DataFrame], *, all: bool = True, time: Any = None, window: Any = None, **options: Any
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
    both: Relation = Union(tuple(_streams(frames, time, window, "union")))
    return _run(frames, both if all else Distinct(both), options)


def except_(
    frames: Sequence[DataFrame], *, all: bool = False, time: Any = None, window: Any = None, **options: Any
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
    left, right = _two(_streams(frames, time, window, "except_"), "except_")
    return _run(frames, Difference(left, right, all), options)


def intersect(
    frames: Sequence[DataFrame], *, all: bool = False, time: Any = None, window: Any = None, **options: Any
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
    left, right = _two(_streams(frames, time, window, "intersect"), "intersect")
    return _run(frames, Intersection(left, right, all), options)


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


def _check_columns(frame: DataFrame, names: Sequence[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise unknown_column(name, frame.columns, "the frame")


def _two(streams: list[Stream], what: str) -> tuple[Stream, Stream]:
    if len(streams) != 2:
        raise CallError(f"{what} takes two frames, got {len(streams)}", hint=f"sj.{what}([a, b], ...)")
    return streams[0], streams[1]


def _streams(frames: Sequence[DataFrame], time: Any, window: Any, what: str) -> list[Stream]:
    if not isinstance(frames, list | tuple) or not frames:
        raise CallError(f"{what} takes a list of frames, got {frames!r}", hint=f"sj.{what}([a, b], ...)")
    times, windows = (per_input(option, len(frames), name) for option, name in ((time, "time"), (window, "window")))
    return [_stream(number, frame, times[number], windows[number]) for number, frame in enumerate(frames)]


def per_input(option: Any, inputs: int, what: str) -> list[Any]:
    """One value for each input, from one for all or a list."""
    if not isinstance(option, list | tuple):
        return [option] * inputs
    if len(option) != inputs:
        raise CallError(f"{what} needs one value, or one per input, got {len(option)} for {inputs} inputs")
    return list(option)


def _stream(number: int, frame: DataFrame, time: Any, window: Any, columns: Sequence[str] | None = None) -> Stream:
    schema = arrow_schema(frame, f"input {number}")
    check_window(window, time)
    when: list[Any] = [window.start, window.end] if isinstance(window, Validity) else [time]
    for name in when:
        if not isinstance(name, str):
            raise CallError(f"time must be the name of a column, got {name!r}", hint="make it a column of its own")
    _check_columns(frame, when)
    read = [name for name in schema.names if name not in when] if columns is None else columns
    return Stream(str(number), tuple((name, name) for name in read), None if len(when) == 2 else time, window)


def check_window(window: Any, time: Any) -> None:
    """Refuse a call that does not say how long rows are valid."""
    if not isinstance(window, Window):
        raise CallError(
            f"a window says how long a row is valid, got window={window!r}",
            hint='window=sj.Range("5 seconds"), sj.Rows(100), or sj.Validity("from", "to")',
        )
    if isinstance(window, Validity) and time is not None:
        raise CallError("a Validity names its own time columns", hint="leave time= out")
    if not isinstance(window, Validity) and time is None:
        raise CallError("a window needs a time column", hint='time="ts"')


def _run(frames: Sequence[DataFrame], relation: Relation, options: dict[str, Any]) -> DataFrame:
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise CallError(f"there is no option {unknown[0]!r}", hint="the options are " + ", ".join(_OPTIONS))
    return run_numbered(frames, relation, options)


def run_numbered(frames: Sequence[DataFrame], relation: Relation, options: Mapping[str, Any]) -> DataFrame:
    """A query whose streams have numbers for names. Lateness may be a list, one for each."""
    named = {str(number): frame for number, frame in enumerate(frames)}
    lateness = options.get("lateness")
    if isinstance(lateness, list | tuple):
        each = per_input(lateness, len(frames), "lateness")
        options = {**options, "lateness": dict(zip(named, each, strict=True))}
    return QueryCall(named, Query(relation), relation, **options).run()
