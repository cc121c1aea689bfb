"""Joins in which a row takes some of those that match: as-of, best match, nearest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from streamjoin.algebra import Arrival, Direction, LatenessPolicy, Within, join_type
from streamjoin.algebra.policy import LatePolicy
from streamjoin.algebra.predicate import Metric
from streamjoin.api.arguments import ColumnLike, Columns, Handler, Length, OneOrMore, PerInput, SchemaLike, gathers
from streamjoin.errors import CallError
from streamjoin.spark.calls.choices import run_asof, run_best_match, run_nearest
from streamjoin.spark.calls.options import Joining, listed
from streamjoin.spark.calls.pairs import two_sides


@gathers(Joining)
def join_asof(
    joining: Joining,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    on: ColumnLike | Arrival | None = None,
    left_on: ColumnLike | Arrival | None = None,
    right_on: ColumnLike | Arrival | None = None,
    by: Columns = None,
    left_by: Columns = None,
    right_by: Columns = None,
    direction: Direction = "backward",
    tolerance: Length | None = None,
    allow_exact_matches: bool = True,
    how: str = "left",
    tie_break: Columns = None,
    forget_after: Length | None = None,
    emit: str = "final",
    output: str = "append",
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy] = "drop",
    idle_after: Length | None = None,
    timers: bool = False,
    suffix: str = "_right",
    buckets: int | None = None,
    memory: str | int | None = None,
    priority: PerInput[ColumnLike | None] = None,
    priority_as: str = "priority",
    new_priority: str | None = None,
    urgent: Handler | None = None,
    schemas: PerInput[SchemaLike | None] = None,
    streaming: PerInput[bool | None] = None,
) -> DataFrame:
    """Each left row with the nearest right row of its key in time: a trade with the quote that was valid then.

    Parameters beyond those of `join` (`by`, `left_by`, `right_by`, `suffix`, `lateness`, `late`, `buckets`, ...)
        on          the time column of both inputs, or left_on and right_on; timestamp, date or integer
        direction   "backward" (the newest right row up to the left time), "forward" (the oldest from it on),
                    "nearest" (at equal distance the earlier one)
        tolerance   the largest distance in time; a left row that finds nothing stays, with NULLs
        allow_exact_matches   whether a right row of the same time may be taken
        how         "left" or "inner"
        tie_break   columns of the right input: among rows of one time the greatest by them is taken, then by content
        forget_after   how long a right row is remembered, in time of the rows: a key that never returns keeps no state
                    for ever. The same for batches, so that a stream gives what the batch gives
        emit        "final": a row leaves when nothing nearer can come; "ordered": also in order of the left time
        output      "append": final rows; "changelog": on a stream a first answer at once and corrections, told apart by
                    the column `_change`, "insert" or "retract"

    A row whose time or key is NULL takes nobody. On a stream each key keeps only what can still be the answer.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> trades = spark.sql("SELECT 'A' symbol, timestamp'2024-01-01 10:00:05' ts, 100 size")
    >>> quotes = spark.sql("SELECT 'A' symbol, timestamp'2024-01-01 10:00:03' ts, 9.5 bid")
    >>> priced = sj.join_asof(trades, quotes, on="ts", by="symbol", tolerance="5 seconds")
    >>> [(row["size"], row.bid, row.ts_right.second) for row in priced.collect()]
    [(100, Decimal('9.5'), 3)]
    """
    times = two_sides(on, left_on, right_on, "join_asof")
    if join_type(how) not in ("left", "inner"):
        raise CallError(f'an as-of join is how="left" or how="inner", got {how!r}')
    joining = replace(joining, emit=when_final(emit, "an as-of join"))
    distances = {"tolerance": tolerance, "forget_after": forget_after}
    return run_asof(left, right, times, direction, distances, allow_exact_matches, tie_break, joining)


@gathers(Joining)
def join_best_match(
    joining: Joining,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    on: Mapping[Any, Any],
    by: Columns = None,
    left_by: Columns = None,
    right_by: Columns = None,
    ordered_by: Any = None,
    how: str = "left",
    dominance: Any = "pareto",
    compare: Mapping[Any, Any] | None = None,
    emit: str = "final",
    output: str = "append",
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy] = "drop",
    idle_after: Length | None = None,
    timers: bool = False,
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
    """Each left row with the best of the right rows near it: near enough in every dimension, and dominated by none.

    Parameters beyond those of `join` (`by`, `left_by`, `right_by`, `suffix`, `lateness`, `late`, `buckets`, ...)
        on          an epsilon per dimension, {"ra": 0.01, "dec": 0.01}: a right row is a candidate when it differs by
                    at most so much in each; {("ra", "raj"): 0.01} where the columns have two names
        ordered_by  the dimension that streams are ordered by, up to `lateness`; by default the first. On a stream
                    of doubles `lateness` is a distance of values, sj.Grace(0.5)
        how         "left", "inner", "right" (the best of the left rows for each right row), "full" (also the right rows
                    that nobody took)
        dominance   "pareto": a candidate goes when another is nowhere farther and somewhere nearer; "strict": when
                    another is nearer everywhere; or a function of two arrays of distance vectors, a row for each pair,
                    that says where the first dominates the second
        compare     per dimension a function of two arrays that gives their distances, instead of the difference
        emit        "final": a row leaves when nothing better can come; "ordered": also in order of that dimension
        output      "append": final rows; "changelog": on a stream the best so far at once and corrections, told apart
                    by the column `_change`, "insert" or "retract"

    Candidates that no other one dominates are all in the result, so a row may be there several times.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> stars = spark.createDataFrame([("a", 10.0, 5.0), ("b", 50.0, 5.0)], "star string, ra double, mag double")
    >>> survey = spark.createDataFrame([(1, 10.001, 5.2), (2, 10.002, 5.3), (3, 10.003, 5.1)],
    ...                                "object int, ra double, mag double")
    >>> found = sj.join_best_match(stars, survey, on={"ra": 0.01, "mag": 0.5})
    >>> sorted((row.star, row.object) for row in found.collect() if row.object)
    [('a', 1), ('a', 3)]
    """
    if join_type(how) not in ("left", "inner", "right", "full"):
        raise CallError(f"a best-match join is left, inner, right or full, got how={how!r}")
    joining = replace(joining, emit=when_final(emit, "a best-match join"))
    return run_best_match(left, right, on, ordered_by, dominance, compare, joining)


@gathers(Joining)
def join_nearest(
    joining: Joining,
    left: OneOrMore,
    right: DataFrame | None = None,
    *,
    on: Columns = None,
    left_on: Columns = None,
    right_on: Columns = None,
    by: Columns = None,
    left_by: Columns = None,
    right_by: Columns = None,
    within: float,
    k: int = 1,
    metric: Metric = "euclidean",
    time: PerInput[ColumnLike | Arrival | None] = None,
    tolerance: Length | None = None,
    how: str = "left",
    tie_break: Columns = None,
    emit: str = "final",
    output: str = "append",
    lateness: PerInput[LatenessPolicy | None] = None,
    late: PerInput[LatePolicy] = "drop",
    idle_after: Length | None = None,
    timers: bool = False,
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
    """Each left row with the k nearest right rows within a radius: a taxi with the three stands around it.

    Parameters beyond those of `join` (`by`, `left_by`, `right_by`, `suffix`, `lateness`, `late`, `buckets`, ...)
        on          the axes of both inputs, one column or a tuple of them; or left_on and right_on
        within      the radius, inclusive
        k           how many a row takes at most
        metric      "euclidean", "manhattan", "chebyshev", or "haversine" over (latitude, longitude), in metres
        time, tolerance   only right rows count whose time is at most so far away, before or after. Needed where the
                    right input is a stream: a left row is final when no such row can come any more
        how         "left" (a row that finds nobody stays, with NULLs) or "inner"
        tie_break   columns of the right input: at equal distance the greatest by them is nearer, then by content
        emit        "final": a row leaves when nothing nearer can come; "ordered": also in order of the left time
        output      "append": final rows; "changelog": on a stream the nearest so far at once and corrections, told
                    apart by the column `_change`, "insert" or "retract"

    A row with NULL or NaN in an axis, or NULL in its key or time, takes nobody.

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> taxis = spark.createDataFrame([(1, 0.0, 0.0), (2, 50.0, 0.0)], "taxi int, x double, y double")
    >>> stands = spark.createDataFrame([("a", 1.0, 0.0), ("b", 3.0, 4.0), ("c", 9.0, 9.0)],
    ...                                "stand string, x double, y double")
    >>> near = sj.join_nearest(taxis, stands, on=("x", "y"), k=2, within=10.0)
    >>> sorted((row.taxi, str(row.stand)) for row in near.collect())
    [(1, 'a'), (1, 'b'), (2, 'None')]
    """
    one, two = two_sides(on, left_on, right_on, "join_nearest")
    if join_type(how) not in ("left", "inner"):
        raise CallError(f'a nearest join is how="left" or how="inner", got {how!r}')
    near = Within(tuple(listed(one)), tuple(listed(two)), within, metric)
    joining = replace(joining, emit=when_final(emit, "a nearest join"))
    return run_nearest(left, right, near, k, time, tolerance, tie_break, joining)


def when_final(emit: str, what: str) -> str:
    """How final rows leave: as soon as they are final, or in order."""
    if emit not in ("final", "ordered"):
        raise CallError(f"emit of {what} must be 'final' or 'ordered', got {emit!r}")
    return "eager" if emit == "final" else emit
