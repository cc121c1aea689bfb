"""differential_: equality keys of every scalar type are equal as Spark's `=` says; only NULL and NaN match nothing."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj

# The values of a type, as text that is cast to it. Some come twice.
VALUES: dict[str, list[str | None]] = {
    "byte": ["1", "-128", "127", "1", None],
    "short": ["1", "-32768", "32767", "1", None],
    "int": ["1", "-2147483648", "2147483647", "0", "1", None],
    "long": ["1", "-9223372036854775808", "9223372036854775807", "9007199254740993", "9007199254740992", None],
    "float": ["0.0", "-0.0", "1.5", "0.1", "NaN", "Infinity", "-Infinity", "1e-45", None],
    "double": ["0.0", "-0.0", "1.5", "0.1", "NaN", "Infinity", "-Infinity", "5e-324", "9007199254740992", None],
    "decimal(10,2)": ["0.10", "-0.10", "99999999.99", "-99999999.99", "0", None],
    "decimal(38,10)": ["0.1", "9999999999999999999999999999.9999999999", "-0.0000000001", "18446744073709551616", None],
    "string": ["", "a", "A", "a ", "ä", "naïve", "a\u0000b", "a" * 100, None],
    "binary": ["", "a", "A", "\u0000", None],
    "boolean": ["true", "false", "true", None],
    "date": ["2024-02-29", "1582-10-15", "0001-01-01", "9999-12-31", None],
    "timestamp": ["2024-01-01 00:00:00.000001", "2024-01-01 00:00:00", "1969-12-31 23:59:59.999999", None],
    "timestamp_ntz": ["2024-01-01 00:00:00.000001", "2024-01-01 00:00:00", "1969-12-31 23:59:59.999999", None],
    "interval day to second": ["1 02:03:04.000005", "-0 00:00:01.000000", "0 00:00:00.000000", None],
}
# Two types that Spark compares, with values that both take.
MIXED: dict[tuple[str, str], list[str | None]] = {
    ("byte", "int"): ["1", "-128", None],
    ("int", "long"): ["1", "-1", "2147483647", None],
    ("int", "float"): ["1", "16777217", "16777216", None],
    ("int", "double"): ["1", "0", "-7", None],
    ("long", "double"): ["1", "9007199254740993", "9007199254740992", None],
    ("long", "decimal(10,2)"): ["1", "0", "-7", None],
    ("float", "double"): ["0.1", "0.5", "-0.0", "0.0", "NaN", None],
    ("decimal(5,2)", "decimal(10,4)"): ["1.25", "0", "-999.99", None],
    ("decimal(38,10)", "decimal(20,0)"): ["1", "12345678901234567890", None],
    ("decimal(10,2)", "double"): ["0.1", "0.5", None],
    ("date", "timestamp"): ["2024-02-29", "1969-12-31", None],
    ("date", "timestamp_ntz"): ["2024-02-29", "1969-12-31", None],
    ("timestamp", "timestamp_ntz"): ["2024-01-01 00:00:00.000001", "2024-01-01 00:00:00", None],
}


def _frame(spark: SparkSession, kind: str, values: list[str | None], id: str, key: str) -> DataFrame:
    texts = spark.createDataFrame(list(enumerate(values)), f"{id} int, {key} string")
    return texts.coalesce(1).selectExpr(id, f"CAST({key} AS {kind}) AS {key}")


def _assert_as_spark(left: DataFrame, right: DataFrame, floats: bool) -> None:
    joined = sj.join([left, right], left_by="v", right_by="w", buckets=2)
    condition = "v = w AND NOT isnan(v)" if floats else "v = w"
    expected = left.crossJoin(right).where(condition).select("i", "j")
    got = Counter(map(tuple, joined.select("i", "j").collect()))
    assert got == Counter(map(tuple, expected.collect()))
    assert got, "the case itself is wrong: nothing is equal"


@pytest.mark.parametrize("kind", VALUES)
def test_keys_are_equal_as_spark_says(spark: SparkSession, kind: str) -> None:
    values = VALUES[kind]
    left, right = _frame(spark, kind, values, "i", "v"), _frame(spark, kind, values[::-1], "j", "w")
    _assert_as_spark(left, right, kind in ("float", "double"))


@pytest.mark.parametrize("kinds", MIXED, ids=" and ".join)
def test_keys_of_two_types_are_equal_as_spark_says(spark: SparkSession, kinds: tuple[str, str]) -> None:
    values = MIXED[kinds]
    left, right = _frame(spark, kinds[0], values, "i", "v"), _frame(spark, kinds[1], values, "j", "w")
    _assert_as_spark(left, right, kinds[0] == "float")


@pytest.mark.parametrize(
    ("kinds", "common"),
    [
        (("byte", "int"), "int"),
        (("decimal(5,2)", "decimal(10,4)"), "decimal(10,4)"),
        (("int", "double"), "double"),
    ],
)
def test_a_key_that_appears_once_has_the_common_type_like_spark_using(
    spark: SparkSession, kinds: tuple[str, str], common: str
) -> None:
    left, right = (_frame(spark, kind, ["1", "2"], id, "k") for kind, id in zip(kinds, "ij", strict=True))
    joined = sj.join([left, right], by="k", how="full")
    assert joined.schema["k"].dataType == left.join(right, "k", "full").schema["k"].dataType
    assert joined.schema["k"].dataType.simpleString() == common


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI", "UTF8_BINARY_RTRIM"])
def test_keys_with_a_collation_are_equal_as_spark_says(spark: SparkSession, collation: str) -> None:
    values = ["a", "A", "a ", "b", "", None]
    left = _frame(spark, f"string collate {collation}", values, "i", "v")
    right = _frame(spark, f"string collate {collation}", values[::-1], "j", "w")
    _assert_as_spark(left, right, False)
    merged = sj.join([left, right.withColumnRenamed("w", "v")], by="v", how="full")
    assert merged.count() == left.join(right.withColumnRenamed("w", "v"), "v", "full").count()


def test_keys_with_a_collation_can_be_made_plain_text(spark: SparkSession) -> None:
    left = _frame(spark, "string collate UTF8_LCASE", ["a", "A", "ä", "b", None], "i", "v")
    right = left.withColumnsRenamed({"i": "j", "v": "w"})
    plain = {"left_by": F.lower("v").cast("string"), "right_by": F.lower("w").cast("string")}
    got = sj.join([left, right], **plain).select("i", "j")
    assert Counter(got.collect()) == Counter(left.join(right, F.col("v") == F.col("w")).select("i", "j").collect())


def test_groups_of_a_row_window_are_those_of_the_collation(spark: SparkSession) -> None:
    values = ["a", "b", "A", "B", None, "a ", None, "b"]
    frame = _frame(spark, "string collate UTF8_LCASE", values, "i", "v")
    text = "SELECT i, v FROM R [PARTITION BY v ROWS 1]"
    got = sj.cql(spark, text, R=frame, time="i", buckets=3)
    assert got.schema["v"].dataType.simpleString() == "string collate UTF8_LCASE"
    lower = frame.withColumn("v", F.lower("v").cast("string"))
    expected = sj.cql(spark, text, R=lower, time="i", buckets=3).drop("v")
    assert Counter(got.drop("v").collect()) == Counter(expected.collect())


def test_names_of_fields_say_nothing_of_types(spark: SparkSession) -> None:
    """A struct is not collated for a field `collateral`, and no text of a length for a field `charge`."""
    frame = spark.sql("SELECT k, named_struct('collateral', k, 'charge', k + 1) AS s FROM VALUES (1), (2), (1) AS t(k)")
    distinct = sj.distinct(frame.select("s"), window=sj.Unbounded(), time=F.lit(0))
    assert distinct.schema["s"].dataType == frame.schema["s"].dataType
    assert sorted(row.s.collateral for row in distinct.collect()) == [1, 2]
    joined = sj.join([frame, frame], by="k", where=sj.theta("l.s.charge > r.k"), how="left")
    assert joined.count() == 5


def test_whole_rows_with_a_collation_are_shown(spark: SparkSession) -> None:
    rows = spark.sql("SELECT i, s COLLATE UTF8_LCASE AS s FROM VALUES (1, 'a'), (NULL, 'B') AS t(i, s)")
    frame = rows.select("*", F.array("s").alias("l"))
    shown = sj.cql(spark, "SELECT s FROM R [ROWS 1]", R=frame, time="i", invalid="output")
    assert shown.schema["_invalid_R"].dataType.simpleString() == frame.schema.simpleString()
    assert [row._invalid_R.asDict() for row in shown.where("s IS NULL").collect()] == [
        {"i": None, "s": "B", "l": ["B"]}
    ]


def test_a_key_that_appears_once_is_coalesced(spark: SparkSession) -> None:
    left, right = _frame(spark, "int", ["1", "2"], "i", "k"), _frame(spark, "long", ["2", "3"], "j", "k")
    for how in ("left", "right", "full"):
        joined = sj.join([left, right], by="k", how=how)
        assert Counter(joined.collect()) == Counter(left.join(right, "k", how).collect())


def test_several_keys_of_different_types_must_all_be_equal(spark: SparkSession) -> None:
    rows = (
        "SELECT * FROM VALUES (1, 'a', 1.5D, true), (1, 'a', 1.5D, false), (1, 'b', 1.5D, true), (1, NULL, 1.5D, true)"
    )
    frame = spark.sql(f"{rows} AS t(a, b, c, d)")
    joined = sj.join([frame, frame], by=["a", "b", "c", "d"], buckets=3)
    assert Counter(joined.collect()) == Counter(frame.join(frame, ["a", "b", "c", "d"]).collect())


def test_null_and_nan_keys_match_nothing_but_their_rows_are_kept(spark: SparkSession) -> None:
    frame = _frame(spark, "double", ["NaN", None, "1"], "i", "v")
    other = frame.withColumnsRenamed({"i": "j", "v": "w"})
    joined = sj.join([frame, other], left_by="v", right_by="w", how="full", buckets=2)
    pairs = joined.select("i", "j").collect()
    assert Counter(map(tuple, pairs)) == Counter([(2, 2), (0, None), (1, None), (None, 0), (None, 1)])
