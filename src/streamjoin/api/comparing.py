"""How good a result is whose join was allowed to miss some: against the exact one, where all rows are known."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from streamjoin.algebra import TimeAxis
from streamjoin.algebra.time import Duration
from streamjoin.errors import CallError, says_what_fits, unknown_column
from streamjoin.plan.condition import quoted

# Names that no column of a user has.
_FOUND: Final = "__sj_found"
_EXACT: Final = "__sj_exact"
_PERIOD: Final = "period_start"


@says_what_fits
def true_recall(result: DataFrame, exact: DataFrame, *, time: str, period: Duration) -> DataFrame:
    """How many of the exact results were found, by period: the true recall of what a join to a target has given.

    `result` is what was written, `exact` the same join as a batch over the whole input, both with the same columns.
    Rows are compared by all of them, each copy for itself: of three equal rows in `exact` and two in `result`, two are
    found. Nothing is collected: a frame comes back, with a row for every period that has a row of either.

    Parameters
        time    the column by which rows belong to a period, of the result: `valid_from`, or the time of an input
        period  how long a period is; periods begin at its multiples, as those of Spark's `window` do

    Columns
        period_start  when it begins, of the type of `time`; NULL for rows that have none
        found         rows of `exact` that are in `result`
        exact         rows of `exact`
        recall        the first through the second; NULL where there is nothing to be found
        extra         rows of `result` that `exact` has not. More than 0: the two are not of the same join, or input

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> exact = spark.createDataFrame([(1, 0), (2, 3), (2, 3), (3, 12)], "id int, ts long")
    >>> result = spark.createDataFrame([(1, 0), (2, 3), (9, 14)], "id int, ts long")
    >>> sj.true_recall(result, exact, time="ts", period=10).orderBy("period_start").show()
    +------------+-----+-----+------------------+-----+
    |period_start|found|exact|            recall|extra|
    +------------+-----+-----+------------------+-----+
    |           0|    2|    3|0.6666666666666666|    0|
    |          10|    0|    1|               0.0|    1|
    +------------+-----+-----+------------------+-----+
    """
    _check_frames(result, exact)
    if time not in exact.columns:
        raise unknown_column(time, exact.columns, "the exact result")
    start = _start_of(exact.schema[time].dataType, time, period)
    columns = exact.columns
    told = (
        result.select([quoted(name) for name in columns]).withColumns({_FOUND: F.lit(1), _EXACT: F.lit(0)})
        .unionAll(exact.withColumns({_FOUND: F.lit(0), _EXACT: F.lit(1)}))
    )  # fmt: skip
    rows = told.groupBy(*(quoted(name) for name in columns)).agg(
        F.sum(_FOUND).alias(_FOUND), F.sum(_EXACT).alias(_EXACT)
    )
    by_period = rows.groupBy(start.alias(_PERIOD)).agg(
        F.sum(F.least(_FOUND, _EXACT)).alias("found"),
        F.sum(_EXACT).alias("exact"),
        F.sum(F.greatest(F.col(_FOUND) - F.col(_EXACT), F.lit(0))).alias("extra"),
    )
    return by_period.select(_PERIOD, "found", "exact", F.try_divide("found", "exact").alias("recall"), "extra")


def _check_frames(result: DataFrame, exact: DataFrame) -> None:
    for name, frame in (("result", result), ("exact", exact)):
        if frame.isStreaming:
            raise CallError(
                f"true_recall is for results that are complete, and {name} is a stream",
                hint="write it, and read what was written: spark.read.parquet(path)",
            )
    one, two = ({field.name: field.dataType.simpleString() for field in each.schema} for each in (result, exact))
    if one != two:
        differ = next(name for name in (*two, *one) if one.get(name) != two.get(name))
        raise CallError(
            f"result and exact must have the same columns, and {differ!r} is {one.get(differ, 'not there')} in result, "
            f"{two.get(differ, 'not there')} in exact",
            hint="select the same columns of both",
        )


def _start_of(kind: DataType, time: str, period: Duration) -> Column:
    """When the period of a row begins."""
    column = F.col(quoted(time))
    if isinstance(kind, TimestampType | TimestampNTZType):
        ticks = _checked(TimeAxis.TIMESTAMP, period)
        if isinstance(kind, TimestampType):
            return F.timestamp_micros(_floor(F.unix_micros(column), ticks))
        epoch = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
        since = F.expr(f"timestampdiff(MICROSECOND, {epoch}, {quoted(time)})")
        return F.expr(epoch) + F.make_dt_interval(secs=(_floor(since, ticks) / F.lit(1_000_000)).cast("decimal(18,6)"))
    if isinstance(kind, DateType):
        return F.date_from_unix_date(_floor(F.unix_date(column), _checked(TimeAxis.DATE, period)).cast("int"))
    if isinstance(kind, IntegralType):
        return _floor(column.cast("long"), _checked(TimeAxis.INTEGER, period)).cast(kind)
    raise CallError(
        f"time must be a timestamp, a date or a whole number, and {time!r} is {kind.simpleString()}",
        hint="name the column of the result that has its time",
    )


def _checked(axis: TimeAxis, period: Duration) -> int:
    ticks = axis.ticks(period, "period")
    if ticks <= 0:
        raise CallError(f"period must be positive, got {period!r}")
    return ticks


def _floor(ticks: Column, period: int) -> Column:
    """The multiple of the period at or before a tick; also of those before 1970."""
    return ticks - F.pmod(ticks, F.lit(period))
