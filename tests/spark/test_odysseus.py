"""oracle_: results that Odysseus, another stream system, produced. `tests/data/odysseus/README.md` says where from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj

DATA = Path(__file__).parent.parent / "data" / "odysseus"
WIND = "ts long, speed int, direction string, name string, location int"
HEAT = "ts long, temperature int, name string, location int"


def _expected(path: str) -> Counter[str]:
    lines = (DATA / path).read_text().splitlines()
    return Counter(line.strip() for line in lines if line.strip())


def _read(spark: SparkSession, path: str, schema: str, separator: str) -> DataFrame:
    return spark.read.csv(str(DATA / path), schema=schema, sep=separator)


def _as_odysseus_writes(result: DataFrame, payload: list[str]) -> Counter[str]:
    """Rows as lines of an expected file; columns are text, whole numbers, or doubles, which both write alike."""
    line = F.concat(F.concat_ws("|", *payload), F.lit(" | META | "), F.concat_ws("|", "valid_from", "valid_to"))
    return Counter(row[0] for row in result.select(line).collect())


def _wind_and_heat(spark: SparkSession, folder: str) -> tuple[DataFrame, DataFrame]:
    return _read(spark, f"{folder}/input0.csv", WIND, ";"), _read(spark, f"{folder}/input1.csv", HEAT, ";")


@pytest.fixture(scope="module")
def join_time(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return _wind_and_heat(spark, "join_time")


PAYLOAD = ["ts", "speed", "direction", "name", "location", "ts_right", "temperature", "name_right", "location_right"]
OF_A_QUERY = [name.replace("_right", "_2") for name in PAYLOAD]
FAST_AND_WARM = sj.theta("l.speed > 25 AND r.temperature > 12")


def test_join_time_on_a_timestamp_axis(join_time: tuple[DataFrame, DataFrame]) -> None:
    inputs = [frame.withColumn("ts", F.timestamp_millis("ts")) for frame in join_time]
    result = sj.join(inputs, time="ts", window=sj.Range("5 seconds", slide="1 seconds"), where=FAST_AND_WARM)
    in_millis = {name: F.unix_millis(name) for name in ("ts", "ts_right", "valid_from", "valid_to")}
    assert _as_odysseus_writes(result.withColumns(in_millis), PAYLOAD) == _expected("join_time/join_time.csv")


def test_join_time_as_a_query(spark: SparkSession, join_time: tuple[DataFrame, DataFrame]) -> None:
    wind, heat = (frame.withColumn("ts", F.timestamp_millis("ts")) for frame in join_time)
    query = """
        SELECT * FROM wind [RANGE 5 SECONDS SLIDE 1 SECONDS], heat [RANGE 5 SECONDS SLIDE 1 SECONDS]
        WHERE speed > 25 AND temperature > 12
    """
    result = sj.cql(spark, query, wind=wind, heat=heat, buckets=3)
    in_millis = {name: F.unix_millis(name) for name in ("ts", "ts_2", "valid_from", "valid_to")}
    assert _as_odysseus_writes(result.withColumns(in_millis), OF_A_QUERY) == _expected("join_time/join_time.csv")


@pytest.mark.parametrize("buckets", [1, 4])
def test_join_time_on_an_integer_axis(join_time: tuple[DataFrame, DataFrame], buckets: int) -> None:
    window = sj.Range(5000, slide=1000)
    result = sj.join(list(join_time), time="ts", window=window, where=FAST_AND_WARM, buckets=buckets)
    assert _as_odysseus_writes(result, PAYLOAD) == _expected("join_time/join_time.csv")


@pytest.fixture(scope="module")
def join_defaultsa(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return (
        _read(spark, "join_defaultsa/random1.csv", "key1 int, value1 string, ts long, te long", ","),
        _read(spark, "join_defaultsa/random2.csv", "key2 int, value2 string, ts long, te long", ","),
    )


KEYS_AND_VALUES = ["key1", "value1", "key2", "value2"]


def test_join_defaultsa_by_the_rows_own_validity(join_defaultsa: tuple[DataFrame, DataFrame]) -> None:
    result = sj.join(list(join_defaultsa), window=sj.Validity("ts", "te"), where=sj.equals("key1", "key2"))
    assert _as_odysseus_writes(result, KEYS_AND_VALUES) == _expected("join_defaultsa/DefaultSA_Test.csv")


def test_join_defaultsa_as_a_query(spark: SparkSession, join_defaultsa: tuple[DataFrame, DataFrame]) -> None:
    query = "SELECT key1, value1, key2, value2 FROM A [VALID ts TO te] JOIN B [VALID ts TO te] ON key1 = key2"
    result = sj.cql(spark, query, A=join_defaultsa[0], B=join_defaultsa[1], buckets=3)
    assert _as_odysseus_writes(result, KEYS_AND_VALUES) == _expected("join_defaultsa/DefaultSA_Test.csv")


@pytest.fixture(scope="module")
def crossproduct_tuple(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return _wind_and_heat(spark, "crossproduct_tuple")


def test_crossproduct_tuple_of_row_windows(crossproduct_tuple: tuple[DataFrame, DataFrame]) -> None:
    result = sj.join(list(crossproduct_tuple), time="ts", window=sj.Rows(5, drain=True), buckets=4)
    assert _as_odysseus_writes(result, PAYLOAD) == _expected("crossproduct_tuple/crossproduct_tuple.csv")


def test_crossproduct_tuple_as_a_query(spark: SparkSession, crossproduct_tuple: tuple[DataFrame, DataFrame]) -> None:
    wind, heat = crossproduct_tuple
    query = "SELECT * FROM wind [ROWS 5 DRAIN], heat [ROWS 5 DRAIN]"
    result = sj.cql(spark, query, wind=wind, heat=heat, buckets=1)
    assert _as_odysseus_writes(result, OF_A_QUERY) == _expected("crossproduct_tuple/crossproduct_tuple.csv")


@pytest.fixture(scope="module")
def aggregate_time(spark: SparkSession) -> DataFrame:
    return _read(spark, "aggregate_time/input0.csv", "ts long, percentage int", ";")


def test_aggregate_time_on_an_integer_axis(aggregate_time: DataFrame) -> None:
    window = sj.Range(5000, slide=1000)
    result = sj.aggregate(aggregate_time, {"mean": ("avg", "percentage")}, time="ts", window=window)
    assert _as_odysseus_writes(result, ["mean"]) == _expected("aggregate_time/aggregate_time.csv")


def test_aggregate_time_as_a_query(spark: SparkSession, aggregate_time: DataFrame) -> None:
    query = "SELECT AVG(percentage) AS mean FROM I [RANGE 5 SECONDS SLIDE 1 SECONDS]"
    result = sj.cql(spark, query, I=aggregate_time.withColumn("ts", F.timestamp_millis("ts")))
    in_millis = {name: F.unix_millis(name) for name in ("valid_from", "valid_to")}
    assert _as_odysseus_writes(result.withColumns(in_millis), ["mean"]) == _expected(
        "aggregate_time/aggregate_time.csv"
    )


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("join_time/join_time.csv", 1358),
        ("join_defaultsa/DefaultSA_Test.csv", 201),
        ("crossproduct_tuple/crossproduct_tuple.csv", 671),
        ("aggregate_time/aggregate_time.csv", 104),
    ],
)
def test_the_expected_files_are_complete(path: str, rows: int) -> None:
    assert _expected(path).total() == rows
