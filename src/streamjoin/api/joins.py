"""Joins of two frames. Frames in, a frame out; everything after the frames is by keyword.

`join` is the whole of it; the others are short forms for the joins that people look for by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from streamjoin.algebra import Direction, Predicate, Validity, Window, Within, band, join_type, overlaps, within
from streamjoin.algebra.predicate import Closed, Metric
from streamjoin.api.row_windows import has_row_window, join_with_row_windows
from streamjoin.errors import CallError
from streamjoin.spark.build import JoinCall, is_time, run_best_match
from streamjoin.spark.choices import AsOfCall, BestMatchCall, NearestCall


def join(frames: Sequence[DataFrame], **options: Any) -> DataFrame:
    """Join two frames over time and values.

    Parameters (all by keyword)
        time        the time column: a timestamp, date or integer; one, or one per input; or `sj.arrival()`
        window      how long a row is valid: `Range`, `Fixed`, `Now`, `Unbounded`, `Rows`, or `Validity` (then without
                    `time`)
        by          equality keys of the same name on both inputs; they appear once in the result
        left_by, right_by   equality keys of different names, or expressions; both appear
        where       a predicate: `equals`, `band`, `overlaps`, `within`, `theta`, combined with `&`
        how         inner, left, right, full, semi, anti, in any of Spark's spellings
        outer       "row" (a row that met nobody leaves once) or "snapshot" (the parts of its validity without partner)
        emit        "eager", or "ordered": within a bucket sorted by (valid_from, valid_to)
        hold        with "ordered": hold back "inputs" or "outputs"; "auto" decides by expected partners
        lateness    on a stream, how late rows may be: `Grace`; by default as the frame's own watermark says
        late        rows that are later: "drop", "fail", "output" (marked `_late`), "join" (with what is still kept)
        idle_after  an input that delivers nothing for so long no longer holds results back: "30 seconds"
        timers      look for idle inputs also when nothing is delivered at all; such a query never runs dry
        invalid     rows without time, or ending before they begin: "fail", "drop", or "output" (marked `_invalid`)
        suffix      for names of input 1 that occur on input 0 too
        validity    the names of the result's validity columns
        buckets     how many buckets the work is cut into; by default as many as tasks can run at once
        cell        the cell size of the grid that spreads joins without equality keys; a duration over times

    >>> import streamjoin as sj
    >>> spark = sj.session()
    >>> wind = spark.createDataFrame([(1, 30), (4, 20)], "ts long, speed int")
    >>> rain = spark.createDataFrame([(2, 5), (9, 7)], "ts long, mm int")
    >>> both = sj.join([wind, rain], time="ts", window=sj.Range(3), where=sj.theta("l.speed > r.mm"))
    >>> both.orderBy("ts").show()
    +---+-----+--------+---+----------+--------+
    | ts|speed|ts_right| mm|valid_from|valid_to|
    +---+-----+--------+---+----------+--------+
    |  1|   30|       2|  5|         2|       4|
    |  4|   20|       2|  5|         4|       5|
    +---+-----+--------+---+----------+--------+
    <BLANKLINE>
    """
    unknown = set(options) - _JOIN_OPTIONS
    if unknown:
        raise CallError(
            f"join has no option {sorted(unknown)[0]!r}", hint="its options are " + ", ".join(sorted(_JOIN_OPTIONS))
        )
    if has_row_window(options):
        return join_with_row_windows(frames, options)
    return JoinCall(frames, **options).run()


_JOIN_OPTIONS = {
    "time", "window", "by", "left_by", "right_by", "where", "how", "outer", "emit", "hold", "lateness", "late",
    "idle_after", "timers", "invalid", "suffix", "validity", "buckets", "cell",
}  # fmt: skip


def join_interval(
    left: DataFrame,
    right: DataFrame,
    *,
    lower: Any,
    upper: Any,
    on: Any = None,
    left_on: Any = None,
    right_on: Any = None,
    closed: Closed = "both",
    **options: Any,
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
    times = list(_two_sides(on, left_on, right_on, "join_interval"))
    if lower is None or upper is None:
        raise CallError(
            f"an interval join needs both bounds, got lower={lower!r} and upper={upper!r}",
            hint='lower="0 seconds", upper="10 minutes": right - left lies between',
        )
    _refuse(options, {"time", "window", "outer", "validity"}, "join_interval")
    return JoinCall([left, right], time=times, lower=lower, upper=upper, closed=closed, **_checked(options)).run()


def join_asof(
    left: DataFrame,
    right: DataFrame,
    *,
    on: Any = None,
    left_on: Any = None,
    right_on: Any = None,
    direction: Direction = "backward",
    tolerance: Any = None,
    allow_exact_matches: bool = True,
    how: str = "left",
    tie_break: Any = None,
    forget_after: Any = None,
    emit: str = "final",
    output: str = "append",
    **options: Any,
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
    times = list(_two_sides(on, left_on, right_on, "join_asof"))
    _refuse(options, {"time", "window", "outer", "validity", "hold", "invalid", "cell", "where"}, "join_asof")
    if join_type(how) not in ("left", "inner"):
        raise CallError(f'an as-of join is how="left" or how="inner", got {how!r}')
    asof = AsOfCall(direction, tolerance, forget_after, allow_exact_matches, tie_break)
    options = {**_checked(options), "how": how, "emit": _when_final(emit, "an as-of join"), "output": output}
    return JoinCall([left, right], time=times, asof=asof, **options).run()


def join_best_match(
    left: DataFrame,
    right: DataFrame,
    *,
    on: Any,
    ordered_by: Any = None,
    how: str = "left",
    dominance: Any = "pareto",
    compare: Any = None,
    emit: str = "final",
    output: str = "append",
    **options: Any,
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
    _refuse(options, {"time", "window", "outer", "validity", "hold", "invalid", "where"}, "join_best_match")
    if join_type(how) not in ("left", "inner", "right", "full"):
        raise CallError(f"a best-match join is left, inner, right or full, got how={how!r}")
    options = {**_checked(options), "how": how, "emit": _when_final(emit, "a best-match join"), "output": output}
    return run_best_match(left, right, BestMatchCall(on, ordered_by, dominance, compare), options)


def join_nearest(
    left: DataFrame,
    right: DataFrame,
    *,
    on: Any = None,
    left_on: Any = None,
    right_on: Any = None,
    within: float,
    k: int = 1,
    metric: Metric = "euclidean",
    time: Any = None,
    tolerance: Any = None,
    how: str = "left",
    tie_break: Any = None,
    emit: str = "final",
    output: str = "append",
    **options: Any,
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
    one, two = _two_sides(on, left_on, right_on, "join_nearest")
    _refuse(options, {"window", "outer", "validity", "hold", "invalid", "where"}, "join_nearest")
    if join_type(how) not in ("left", "inner"):
        raise CallError(f'a nearest join is how="left" or how="inner", got {how!r}')
    nearest = NearestCall(Within(_as_tuple(one), _as_tuple(two), within, metric), k, tolerance, tie_break)
    options = {**_checked(options), "how": how, "emit": _when_final(emit, "a nearest join"), "output": output}
    return JoinCall([left, right], time=time, nearest=nearest, **options).run()


def join_band(
    left: DataFrame,
    right: DataFrame,
    *,
    below: Any,
    above: Any,
    on: Any = None,
    left_on: Any = None,
    right_on: Any = None,
    closed: Closed = "both",
    where: Predicate | None = None,
    **options: Any,
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
    one, two = _two_sides(on, left_on, right_on, "join_band")
    condition: Predicate = band(one, two, below=below, above=above, closed=closed)
    return JoinCall([left, right], where=condition if where is None else condition & where, **_checked(options)).run()


def join_overlap(
    left: DataFrame,
    right: DataFrame,
    *,
    on: Any = None,
    left_on: Any = None,
    right_on: Any = None,
    where: Predicate | None = None,
    time: Any = None,
    window: Window | Sequence[Window] | None = None,
    **options: Any,
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
    sides = _two_sides(on, left_on, right_on, "join_overlap")
    for side in sides:
        if not isinstance(side, tuple | list) or len(side) != 2:
            raise CallError(f"join_overlap needs the two ends of an interval, got {side!r}", hint='on=("start", "end")')
    if time is None and window is None and all(is_time(*end) for end in ((left, sides[0][0]), (right, sides[1][0]))):
        validities = [Validity(*side) for side in sides]
        return JoinCall([left, right], window=validities, where=where, **_checked(options)).run()
    condition: Predicate = overlaps(tuple(sides[0]), tuple(sides[1]))
    condition = condition if where is None else condition & where
    return JoinCall([left, right], time=time, window=window, where=condition, **_checked(options)).run()


def join_within(
    left: DataFrame,
    right: DataFrame,
    *,
    radius: float,
    on: Any = None,
    left_on: Any = None,
    right_on: Any = None,
    metric: Metric = "euclidean",
    where: Predicate | None = None,
    **options: Any,
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
    one, two = (_as_tuple(side) for side in _two_sides(on, left_on, right_on, "join_within"))
    condition: Predicate = within(one, two, radius=radius, metric=metric)
    return JoinCall([left, right], where=condition if where is None else condition & where, **_checked(options)).run()


def _two_sides(on: Any, left_on: Any, right_on: Any, what: str) -> tuple[Any, Any]:
    if on is not None and left_on is None and right_on is None:
        return on, on
    if on is None and left_on is not None and right_on is not None:
        return left_on, right_on
    raise CallError(f"{what} needs on=, or left_on= and right_on=", hint="give on= when the names are the same")


def _as_tuple(side: Any) -> tuple[Any, ...]:
    return tuple(side) if isinstance(side, tuple | list) else (side,)


def _refuse(options: dict[str, Any], names: set[str], what: str) -> None:
    wrong = sorted(names & set(options))
    if wrong:
        raise CallError(f"{what} has no option {wrong[0]!r}", hint=f"its options are in help(sj.{what})")


def _when_final(emit: str, what: str) -> str:
    """How final rows leave: as soon as they are final, or in order."""
    if emit not in ("final", "ordered"):
        raise CallError(f"emit of {what} must be 'final' or 'ordered', got {emit!r}")
    return "eager" if emit == "final" else emit


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(options) - _JOIN_OPTIONS)
    if unknown:
        raise CallError(
            f"there is no option {unknown[0]!r}", hint="the options are " + ", ".join(sorted(_JOIN_OPTIONS))
        )
    return options
