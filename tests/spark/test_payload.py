"""differential_: whatever columns hold, a join hands it on unharmed, as Spark's own join of the same data does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

import streamjoin as sj

HOWS = ["inner", "left", "right", "full", "semi", "anti"]

# A column of every type, each with fields and elements that can and that cannot be NULL.
COLUMNS = {
    "string": "concat('ä€', i)",
    "varchar": "CAST('v' AS varchar(5))",
    "collated": "'Ab' COLLATE UTF8_LCASE",
    "binary": "X'00FF10'",
    "boolean": "i % 2 = 0",
    "byte": "CAST(-128 AS byte)",
    "short": "CAST(32767 AS short)",
    "long": "9223372036854775807",
    "float": "CAST('NaN' AS float)",
    "double": "-0.0D",
    "decimal_38": "CAST('-1234567890123456789012345678.9012345678' AS decimal(38,10))",
    "decimal_5": "CAST('-999.99' AS decimal(5,2))",
    "date": "DATE'1582-10-15'",
    "timestamp": "TIMESTAMP'2024-03-31 01:30:00.123456'",
    "timestamp_ntz": "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'",
    "day_time": "INTERVAL '1 02:03:04.000005' DAY TO SECOND",
    "void": "NULL",
    "struct": "named_struct('a', i, 'b', 'x', 'c', IF(i = 4, NULL, TIMESTAMP'2024-01-01 00:00:00'))",
    "array": "array(i, NULL, 3)",
    "array_no_null": "array('p', 'q')",
    "map": "map('k', i, 'n', NULL)",
    "map_of_times": "map(DATE'2024-01-01', TIMESTAMP'2024-01-01 12:00:00')",
    "array_of_structs": "array(named_struct('a', i, 'b', array(1.5D)), named_struct('a', 2, 'b', NULL))",
    "struct_of_all": "named_struct('s', named_struct('m', map(1, array(X'01'))), 'd', CAST(1.5 AS decimal(38,18)))",
    "variant": """parse_json('{"a": [1, null]}')""",
}


def _wide(spark: SparkSession, ids: range, id: str = "i", suffix: str = "") -> DataFrame:
    """Rows with a value in every column; in the row whose id can be divided by 3 all are NULL."""
    columns = ", ".join(f"IF(i % 3 = 0, NULL, {value}) AS {name}{suffix}" for name, value in COLUMNS.items())
    return spark.sql(
        f"SELECT i AS {id}, {columns} FROM (SELECT CAST(id AS int) i FROM range({ids.start}, {ids.stop}, 1, 1))"
    )


def _content(frame: DataFrame) -> Counter[str]:
    return Counter(repr(row) for row in frame.collect())  # in writing: a NaN equals itself, a dict can be counted


def _types(frame: DataFrame) -> list[tuple[str, DataType]]:
    return [(field.name, field.dataType) for field in frame.schema.fields]


def _assert_same(got: DataFrame, expected: DataFrame) -> None:
    assert _types(got) == _types(expected)
    assert _content(got) == _content(expected)


@pytest.mark.parametrize("how", ["inner", "full", "semi"])
@pytest.mark.parametrize("route", ["by hash", "by matrix with a verdict"])
def test_columns_of_every_type_travel_unharmed(spark: SparkSession, how: str, route: str) -> None:
    left, right = _wide(spark, range(1, 6)), _wide(spark, range(3, 8), "j", "_right")
    condition = {"left_by": "i", "right_by": "j"} if route == "by hash" else {"where": sj.theta("l.i = r.j")}
    joined = sj.join([left, right], how=how, buckets=4, **condition)
    _assert_same(joined, left.join(right, F.col("i") == F.col("j"), {"semi": "left_semi"}.get(how, how)))


def test_invalid_rows_travel_unharmed_too(spark: SparkSession) -> None:
    frame = _wide(spark, range(1, 6)).withColumn("ts", F.expr("IF(i > 2, NULL, CAST(i AS long))"))
    joined = sj.join([frame, frame.limit(0)], time="ts", window=sj.Now(), invalid="output", suffix="2")
    _assert_same(joined.where("_invalid").select(frame.columns), frame.where("ts IS NULL"))


@pytest.mark.parametrize("kind", ["interval year to month", "interval"])
def test_a_type_that_spark_cannot_hand_to_python_is_refused_at_the_call(spark: SparkSession, kind: str) -> None:
    value = "INTERVAL '1-2' YEAR TO MONTH" if kind != "interval" else "make_interval(1, 2)"
    frame = spark.sql(f"SELECT 1 AS k, {value} AS odd")
    with pytest.raises(sj.UnsupportedError, match=f"column 'odd' of input 0 is {kind}, which Spark cannot hand to"):
        sj.join([frame, frame], by="k")


# -- nothing there -----------------------------------------------------------------------------------------------------


def _some(spark: SparkSession, value: str) -> DataFrame:
    rows = [(1, 10, "x"), (2, 20, None), (None, 30, "z")]
    frame = spark.createDataFrame(rows, f"k int, ts long, {value} string").coalesce(1)
    return frame.withColumn("at", F.timestamp_micros("ts"))


@pytest.mark.parametrize("how", HOWS)
def test_empty_frames_give_what_spark_gives(spark: SparkSession, how: str) -> None:
    left, right = _some(spark, "a"), _some(spark, "b").select("k", "b")
    for one, two in [(left.limit(0), right), (left, right.limit(0)), (left.limit(0), right.limit(0))]:
        expected = one.join(two, "k", {"semi": "left_semi", "anti": "left_anti"}.get(how, how))
        _assert_same(sj.join([one, two], by="k", how=how), expected)


@pytest.mark.parametrize("how", HOWS)
def test_empty_frames_give_the_schema_of_full_ones(spark: SparkSession, how: str) -> None:
    left, right = _some(spark, "a"), _some(spark, "b")
    for options in (
        {"time": "at", "window": sj.Range("1 second"), "by": "k"},
        {"time": "ts", "window": sj.Fixed(5), "where": sj.theta("l.a = r.b"), "buckets": 4},
    ):
        empty, full = (sj.join([one, right], how=how, **options) for one in (left.limit(0), left))
        assert _types(empty) == _types(full)
    assert empty.count() == (3 if how in ("right", "full") else 0)


def test_the_result_can_hold_nulls_wherever_it_pads(spark: SparkSession) -> None:
    left, right = spark.range(1, 2), spark.range(2, 3).withColumnRenamed("id", "other")
    assert not left.schema["id"].nullable
    joined = sj.join([left, right], left_by="id", right_by="other", how="full")
    assert all(field.nullable for field in joined.schema.fields)
    assert Counter(joined.where("id IS NULL OR other IS NULL").collect()) == Counter([Row(1, None), Row(None, 2)])


# -- time zones --------------------------------------------------------------------------------------------------------


@pytest.fixture
def zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"], indirect=True)
def test_instants_are_the_same_in_every_session_time_zone(spark: SparkSession, zone: str) -> None:
    # Half past one in New York twice, on the day when clocks go back; and what lies around it.
    first = 1_730_611_800_000_000
    rows = [(first,), (first + 1_800_000_000,), (first + 3_600_000_000,)]
    frame = spark.createDataFrame(rows, "micros long").select("micros", F.timestamp_micros("micros").alias("at"))
    nested = frame.withColumn("deep", F.struct(F.array("at").alias("list"), F.create_map(F.lit(1), "at").alias("map")))
    joined = sj.join([nested, frame], time="at", window=sj.Range("1 hour"), how="left", outer="snapshot")
    instants = ["micros", "micros_right", "unix_micros(valid_from)", "unix_micros(valid_to)", "unix_micros(at)"]
    instants += ["unix_micros(deep.list[0])", "unix_micros(deep.map[1])"]
    hour = 3_600_000_000
    expected = Counter()
    for (one,) in rows:
        for (two,) in rows:
            if abs(one - two) < hour:
                expected[(one, two, max(one, two), min(one, two) + hour, one, one, one)] += 1
    assert Counter(map(tuple, joined.selectExpr(*instants).collect())) == expected


# -- the same frame twice ----------------------------------------------------------------------------------------------


def test_a_frame_joins_with_itself(spark: SparkSession) -> None:
    frame = _some(spark, "a")
    joined = sj.join([frame, frame], by="k").select("k", "ts", "ts_right")
    assert Counter(map(tuple, joined.collect())) == Counter([(1, 10, 10), (2, 20, 20)])


def test_a_frame_joins_with_one_made_from_it(spark: SparkSession) -> None:
    frame = _some(spark, "a")
    later = frame.where("ts > 10").withColumn("ts", F.col("ts") + 1)
    joined = sj.join([frame, later], left_by=frame.k, right_by=later.k).select("ts", "ts_right")
    assert joined.collect() == [Row(20, 21)]


def test_a_result_joins_again(spark: SparkSession) -> None:
    frame = _some(spark, "a").select("k", "ts")
    pairs = sj.join([frame, frame], time="ts", window=sj.Range(15), suffix="_2")
    triples = sj.join(
        [pairs, frame],
        time=[None, "ts"],
        window=[sj.Validity("valid_from", "valid_to"), sj.Range(15)],
        suffix="_3",
        validity=("since", "until"),
    )
    times = [10, 20, 30]
    expected = Counter(
        (a, b, c, max(a, b, c), min(a, b, c) + 15)
        for a in times
        for b in times
        for c in times
        if max(a, b, c) < min(a, b, c) + 15
    )
    assert Counter(map(tuple, triples.select("ts", "ts_2", "ts_3", "since", "until").collect())) == expected
