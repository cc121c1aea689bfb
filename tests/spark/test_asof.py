"""As-of joins through Spark: the call, its errors, and what pandas, Polars and DuckDB say to the same rows.

Where they coincide with us, and how the rows are drawn so that they do:

    pandas    `merge_asof`. Of rows with one key and time it takes the last in the order of the frame looking backward,
              and the first looking forward, so right rows are given in the order of our ties, or against it. For
              "nearest" times are unique per key
    Polars    `join_asof`. Times are unique per key. "nearest" at equal distance: Polars takes the later one, we the
              earlier, so no right row is as far before a left one as another after it
    DuckDB    ASOF JOIN knows backward and forward; equal times are a matter of the comparison. Ties are taken in no
              stated order, so times are unique per key; a tolerance is a second condition on the result
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import col, upper

import streamjoin as sj
from streamjoin.errors import CallError
from tests.spark.wrong_calls import USE_A_NUMBER, Call, Wrong, check, make_frames, short

CASES = 25  # of each combination of options
OPTIONS = list(itertools.product(("backward", "forward", "nearest"), (True, False), (None, 3)))


def drawn(seed: int, *, unique: bool, apart: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Many cases in one pair of frames, told apart by a key of their own. Some sides are empty, some keys one-sided.

    `unique`: no two rows of one key and time. `apart`: no two right rows as far before a left one as after it.
    """
    rng, sides = np.random.default_rng(seed), []
    for side in (0, 1):
        parts = []
        for case in range(CASES):
            rows = int(rng.integers(0, 30))
            part = pd.DataFrame({
                "case": case,
                "k": rng.integers(0, 4 + side, rows),
                "ts": rng.integers(-5, rng.choice([6, 40]), rows),
                "v": rng.integers(0, 1000, rows) / 8,
            })  # fmt: skip
            if apart:  # right rows at 0, 4, 8, ...; left ones beside them
                part["ts"] = 4 * part["ts"] + (0 if side else rng.choice([-1, 1], rows))
            parts.append(part.drop_duplicates(["k", "ts"]) if unique else part)
        # In order of our ties: by time, then by content.
        sides.append(pd.concat(parts).sort_values(["ts", "case", "k", "v"], ignore_index=True))
    return sides[0], sides[1]


def ours(spark: SparkSession, sides: tuple[pd.DataFrame, pd.DataFrame], **options: Any) -> list[tuple]:
    left, right = (spark.createDataFrame(side) for side in sides)
    joined = sj.join_asof(left, right, on="ts", by=["case", "k"], **options)
    return in_order(joined.select("case", "k", "ts", "v", "v_right").collect())


def in_order(rows: Any) -> list[tuple]:
    """Rows as tuples, NULL and NaN alike, sorted."""
    plain = [tuple(None if value is None or value != value else float(value) for value in row) for row in rows]
    return sorted(plain, key=lambda row: [-math.inf if value is None else value for value in row])


@pytest.mark.parametrize(("direction", "exact", "tolerance"), OPTIONS)
def test_differential_pandas(spark: SparkSession, direction: str, exact: bool, tolerance: int | None) -> None:
    left, right = sides = drawn(1, unique=direction == "nearest")
    theirs = pd.merge_asof(
        left, right, on="ts", by=["case", "k"], direction=direction, allow_exact_matches=exact, tolerance=tolerance,
        suffixes=("", "_right"),
    )  # fmt: skip
    if direction == "forward":  # there pandas takes the first of equal rows
        flipped = right.iloc[::-1].sort_values("ts", kind="stable")
        theirs = pd.merge_asof(
            left, flipped, on="ts", by=["case", "k"], direction=direction, allow_exact_matches=exact,
            tolerance=tolerance, suffixes=("", "_right"),
        )  # fmt: skip
    got = ours(spark, sides, direction=direction, allow_exact_matches=exact, tolerance=tolerance)
    assert got == in_order(theirs[["case", "k", "ts", "v", "v_right"]].itertuples(index=False))
    assert len(got) > 100


@pytest.mark.long  # the same options as beside pandas
@pytest.mark.parametrize(("direction", "exact", "tolerance"), OPTIONS)
def test_differential_polars(spark: SparkSession, direction: str, exact: bool, tolerance: int | None) -> None:
    sides = drawn(2, unique=True, apart=direction == "nearest")
    left, right = (pl.from_pandas(side).with_columns(pl.col("ts").cast(pl.Int64)) for side in sides)
    theirs = left.join_asof(
        right, on="ts", by=["case", "k"], strategy=direction, allow_exact_matches=exact, tolerance=tolerance,
        check_sortedness=False,
    )  # fmt: skip
    got = ours(spark, sides, direction=direction, allow_exact_matches=exact, tolerance=tolerance)
    assert got == in_order(theirs.select("case", "k", "ts", "v", "v_right").rows())


@pytest.mark.parametrize(("direction", "exact", "tolerance"), [each for each in OPTIONS if each[0] != "nearest"])
def test_differential_duckdb(spark: SparkSession, direction: str, exact: bool, tolerance: int | None) -> None:
    left, right = sides = drawn(3, unique=True)
    compare = {("backward", True): ">=", ("backward", False): ">", ("forward", True): "<=", ("forward", False): "<"}
    near = "true" if tolerance is None else f"abs(r.ts - l.ts) <= {tolerance}"
    with duckdb.connect() as database:
        database.register("l", left)
        database.register("r", right)
        theirs = database.sql(f"""
            SELECT l.case, l.k, l.ts, l.v, CASE WHEN {near} THEN r.v END
            FROM l ASOF LEFT JOIN r ON l.case = r.case AND l.k = r.k AND l.ts {compare[direction, exact]} r.ts
        """).fetchall()
    got = ours(spark, sides, direction=direction, allow_exact_matches=exact, tolerance=tolerance)
    assert got == in_order(theirs)


# -- the call ----------------------------------------------------------------------------------------------------------


def pair(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    trades = spark.sql("""
        SELECT * FROM VALUES ('A', timestamp'2024-01-01 10:00:05', 1), ('A', timestamp'2024-01-01 10:00:20', 2),
            ('B', timestamp'2024-01-01 10:00:05', 3), (NULL, timestamp'2024-01-01 10:00:05', 4), ('A', NULL, 5)
        AS t(symbol, ts, id)
    """)
    quotes = spark.sql("""
        SELECT * FROM VALUES ('A', timestamp'2024-01-01 10:00:03', 9.5, 1),
            ('A', timestamp'2024-01-01 10:00:03', 9.4, 2),
            (NULL, timestamp'2024-01-01 10:00:03', 1.0, 3), ('A', NULL, 2.0, 4)
        AS q(symbol, ts, bid, number)
    """)
    return trades, quotes


def taken(joined: DataFrame) -> dict[int, float | None]:
    return {row["id"]: None if row.bid is None else float(row.bid) for row in joined.collect()}


def test_nulls_take_nobody_and_the_left_row_stays(spark: SparkSession) -> None:
    joined = sj.join_asof(*pair(spark), on="ts", by="symbol")
    assert taken(joined) == {1: 9.5, 2: 9.5, 3: None, 4: None, 5: None}
    assert joined.columns == ["symbol", "ts", "id", "ts_right", "bid", "number"]


def test_tie_break_tolerance_and_inner(spark: SparkSession) -> None:
    options = {"on": "ts", "by": "symbol", "tie_break": "number"}
    assert taken(sj.join_asof(*pair(spark), **options, tolerance="5 seconds", how="inner")) == {1: 9.4}
    assert taken(sj.join_asof(*pair(spark), **options, forget_after="5 seconds", how="inner")) == {1: 9.4}
    assert taken(sj.join_asof(*pair(spark), **options, how="inner")) == {1: 9.4, 2: 9.4}


def test_keys_are_expressions_in_cql_too(spark: SparkSession) -> None:
    trades, quotes = pair(spark)
    quotes = quotes.withColumn("symbol", F.lower("symbol"))
    by = {"left_by": "symbol", "right_by": F.upper("symbol")}
    text = """SELECT trades.id, bid FROM trades LEFT ASOF JOIN quotes MATCH_CONDITION (trades.ts >= quotes.ts)
              ON upper(quotes.symbol) = trades.symbol"""
    asked = sj.cql(spark, text, trades=trades, quotes=quotes)
    assert asked.columns == ["id", "bid"], "what is computed for the join is no column of the result"
    assert taken(asked) == taken(sj.join_asof(trades, quotes, on="ts", **by))
    assert taken(asked) == {1: 9.5, 2: 9.5, 3: None, 4: None, 5: None}


@pytest.mark.parametrize("tolerance", [None, 2])
def test_oracle_without_keys_the_result_does_not_depend_on_the_buckets(
    spark: SparkSession, tolerance: int | None
) -> None:
    left = spark.createDataFrame([(n, (n * 7) % 50) for n in range(60)], "id int, ts int")
    right = spark.createDataFrame([(n, (n * 11) % 50) for n in range(20)], "other int, ts int")
    expected, others = {}, right.collect()
    for row in left.collect():
        reach = 100 if tolerance is None else tolerance
        candidates = [other for other in others if 0 <= row.ts - other.ts <= reach]
        best = max(candidates, key=lambda other: (other.ts, other.other), default=None)
        expected[row.id] = None if best is None else best.other
    for buckets in (1, 3):
        joined = sj.join_asof(left, right, on="ts", tolerance=tolerance, buckets=buckets)
        assert {row.id: row.other for row in joined.collect()} == expected


def test_explain_says_what_is_taken_and_kept(spark: SparkSession) -> None:
    text = sj.explain(sj.join_asof(*pair(spark), on="ts", by="symbol", tolerance="5 seconds", tie_break="number"))
    assert "as-of join, how=left" in text
    assert "the newest right row up to its time, at most 5 s away; ties: the greatest by number, content" in text
    assert "a row waits until the other input's progress proves its answer" in text


def asof(**options: Any) -> Call:
    return short(sj.join_asof, **{"on": "ts", **options})


WRONG: dict[str, Wrong] = {
    "a direction that is none": (
        asof(direction="up"), "direction must be one of 'backward', 'forward', 'nearest', got 'up'", None,
    ),
    "a join type": (asof(how="full"), "an as-of join is how=\"left\" or how=\"inner\", got 'full'", None),
    "an emission": (asof(emit="eager"), "emit of an as-of join must be 'final' or 'ordered', got 'eager'", None),
    "a negative tolerance": (
        asof(tolerance=-1), "tolerance must not be negative, got -1", "it is a distance in time",
    ),
    "a tolerance with a unit on a number": (
        asof(tolerance="5 seconds"),
        "tolerance must be an integer on an integer time axis, got '5 seconds'", USE_A_NUMBER,
    ),
    "a tie break that is not there": (
        asof(tie_break="spede"), "input 1 has no column 'spede'", "did you mean 'speed'?",
    ),
    "exact matches": (asof(allow_exact_matches=1), "allow_exact_matches must be True or False, got 1", None),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_call_is_refused(spark: SparkSession, what: str) -> None:
    check(make_frames(spark), WRONG[what], sj.CallError)


def test_late_left_rows_cannot_be_joined(spark: SparkSession) -> None:
    with pytest.raises(sj.UnsupportedError, match="left input"):
        sj.join_asof(*pair(spark), on="ts", by="symbol", late="join")


@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_infinity_is_no_time(spark: SparkSession, direction: str) -> None:
    largest = 2**63 - 1
    left = spark.createDataFrame([(1, 5), (2, largest)], "id int, ts long")
    right = spark.createDataFrame([(1, 5), (2, largest)], "id int, ts long")
    rows = sj.join_asof(left, right, on="ts", direction=direction).orderBy("id").collect()
    assert [(row.id, row.id_right) for row in rows] == [(1, 1), (2, None)], "like a row without time"
    with pytest.raises(Exception, match="is the largest number, which is no time"):
        sj.join_interval(left, right, on="ts", lower=0, upper=1).collect()


def test_columns_may_have_any_name_but_ours(spark: SparkSession) -> None:
    """Names that a join could well give to what it adds to a frame are the user's all the same."""
    names = ["arrival", "by k", "tie k", "time ts", "bucket", "ts", "te"]
    rows = [("a", "B", 3, 1, 0, 5, 6), ("c", "b", 4, 1, 1, 6, 7)]
    left, right = spark.createDataFrame(rows, names), spark.createDataFrame(rows, names)
    keys = [upper(frame["by k"]) for frame in (left, right)]
    joined = sj.join_asof(
        left, right, left_on=col("`time ts`") + 0, right_on="time ts", left_by=keys[0], right_by=keys[1],
        tie_break="tie k",
    )  # fmt: skip
    assert sorted((row["arrival"], row["tie k_right"]) for row in joined.collect()) == [("a", 4), ("c", 4)]
    ours = left.withColumnRenamed("bucket", "__sjh_by0")
    with pytest.raises(CallError, match="__sjh_by0"):
        sj.join_asof(ours, right, on="ts")
