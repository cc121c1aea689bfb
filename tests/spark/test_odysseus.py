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
    """Rows as lines of an expected file; all columns are whole numbers or text."""
    line = F.concat(F.concat_ws("|", *payload), F.lit(" | META | "), F.concat_ws("|", "valid_from", "valid_to"))
    return Counter(row[0] for row in result.select(line).collect())


@pytest.fixture(scope="module")
def join_time(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return _read(spark, "join_time/input0.csv", WIND, ";"), _read(spark, "join_time/input1.csv", HEAT, ";")


PAYLOAD = ["ts", "speed", "direction", "name", "location", "ts_right", "temperature", "name_right", "location_right"]
FAST_AND_WARM = sj.theta("l.speed > 25 AND r.temperature > 12")


def test_join_time_on_a_timestamp_axis(join_time: tuple[DataFrame, DataFrame]) -> None:
    inputs = [frame.withColumn("ts", F.timestamp_millis("ts")) for frame in join_time]
    result = sj.join(inputs, time="ts", window=sj.Range("5 seconds", slide="1 seconds"), where=FAST_AND_WARM)
    in_millis = {name: F.unix_millis(name) for name in ("ts", "ts_right", "valid_from", "valid_to")}
    assert _as_odysseus_writes(result.withColumns(in_millis), PAYLOAD) == _expected("join_time/join_time.csv")


@pytest.mark.parametrize("buckets", [1, 4])
def test_join_time_on_an_integer_axis(join_time: tuple[DataFrame, DataFrame], buckets: int) -> None:
    window = sj.Range(5000, slide=1000)
    result = sj.join(list(join_time), time="ts", window=window, where=FAST_AND_WARM, buckets=buckets)
    assert _as_odysseus_writes(result, PAYLOAD) == _expected("join_time/join_time.csv")


def test_join_defaultsa_by_the_rows_own_validity(spark: SparkSession) -> None:
    one = _read(spark, "join_defaultsa/random1.csv", "key1 int, value1 string, ts long, te long", ",")
    two = _read(spark, "join_defaultsa/random2.csv", "key2 int, value2 string, ts long, te long", ",")
    result = sj.join([one, two], window=sj.Validity("ts", "te"), where=sj.equals("key1", "key2"))
    payload = ["key1", "value1", "key2", "value2"]
    assert _as_odysseus_writes(result, payload) == _expected("join_defaultsa/DefaultSA_Test.csv")


@pytest.mark.parametrize(
    ("path", "rows"), [("join_time/join_time.csv", 1358), ("join_defaultsa/DefaultSA_Test.csv", 201)]
)
def test_the_expected_files_are_complete(path: str, rows: int) -> None:
    assert _expected(path).total() == rows
