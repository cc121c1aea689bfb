"""Rows without time, or that end before they begin: only a running join can find them. Three policies."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, 10), (2, None), (3, 12)], "id int, ts long").coalesce(1)


@pytest.fixture(scope="module")
def periods(spark: SparkSession) -> DataFrame:
    rows = [(1, 10, 20), (2, 15, 11), (3, 12, 12), (4, None, 9), (5, 18, None)]
    return spark.createDataFrame(rows, "id int, start long, stop long").coalesce(1)


def _failure(joined: DataFrame) -> str:
    with pytest.raises(PythonException) as failure:
        joined.collect()
    return str(failure.value)


# -- fail, the default -------------------------------------------------------------------------------------------------


def test_a_null_time_fails_and_names_the_row(events: DataFrame) -> None:
    said = _failure(sj.join([events, events.where("ts > 0")], time="ts", window=sj.Range(5)))
    assert "InvalidRowError: input 0 has 1 invalid row(s), the first is {'id': 2, 'ts': None}" in said
    assert "its time column 'ts' is NULL" in said
    assert 'Hint: repair or filter such rows, or choose invalid="drop" or invalid="output".' in said


def test_a_null_time_of_an_interval_join_fails_too(events: DataFrame) -> None:
    said = _failure(sj.join_interval(events.where("ts > 0"), events, on="ts", lower=0, upper=5))
    assert "InvalidRowError: input 1 has 1 invalid row(s), the first is {'id': 2, 'ts': None}" in said


def test_a_validity_that_ends_before_it_begins_fails_and_names_the_row(periods: DataFrame) -> None:
    broken = periods.where("id IN (1, 2)")
    said = _failure(sj.join([broken, broken], window=sj.Validity("start", "stop")))
    assert "has 1 invalid row(s), the first is {'id': 2, 'start': 15, 'stop': 11}" in said
    assert "a validity needs a start, and stop must not be before start" in said
    assert 'Hint: repair or filter such rows, or choose invalid="drop" or invalid="output".' in said


def test_a_row_is_not_called_invalid_where_time_plays_no_part(events: DataFrame) -> None:
    assert sj.join([events, events], by="id").count() == 3


# -- drop --------------------------------------------------------------------------------------------------------------


def test_invalid_rows_can_be_dropped(events: DataFrame) -> None:
    joined = sj.join([events, events], time="ts", window=sj.Range(5), how="full", invalid="drop")
    pairs = Counter(map(tuple, joined.select("id", "id_right").collect()))
    assert pairs == Counter([(1, 1), (1, 3), (3, 1), (3, 3)])


# -- output ------------------------------------------------------------------------------------------------------------


def test_invalid_rows_can_leave_marked_and_unjoined(events: DataFrame) -> None:
    joined = sj.join([events, events], time="ts", window=sj.Range(5), how="left", invalid="output", buckets=3)
    assert joined.columns == ["id", "ts", "id_right", "ts_right", "valid_from", "valid_to", "_invalid"]
    rows = Counter(map(tuple, joined.collect()))
    good = [(1, 10, 1, 10, 10, 15), (1, 10, 3, 12, 12, 15), (3, 12, 1, 10, 12, 15), (3, 12, 3, 12, 12, 17)]
    bad = [(2, None, None, None, None, None), (None, None, 2, None, None, None)]
    assert rows == Counter([(*row, False) for row in good] + [(*row, True) for row in bad])


def test_a_key_that_appears_once_shows_the_key_of_an_invalid_row_of_either_input(events: DataFrame) -> None:
    joined = sj.join([events, events], time="ts", window=sj.Range(5), by="id", invalid="output")
    assert [row.id for row in joined.where("_invalid").collect()] == [2, 2]


def test_invalid_rows_leave_through_a_verdict_too(events: DataFrame) -> None:
    joined = sj.join(
        [events, events],
        time="ts",
        window=sj.Range(5),
        where=sj.theta("l.id < r.id"),
        how="full",
        emit="ordered",
        invalid="output",
        buckets=4,
    )
    rows = Counter((row.id, row.id_right, row._invalid) for row in joined.collect())
    expected = [(1, 3, False), (3, None, False), (None, 1, False), (2, None, True), (None, 2, True)]
    assert rows == Counter(expected)


# -- what is not invalid -----------------------------------------------------------------------------------------------


def test_a_ghost_is_in_no_result_and_breaks_nothing(periods: DataFrame) -> None:
    rows = periods.where("id IN (1, 3)")
    joined = sj.join([rows, rows], window=sj.Validity("start", "stop"), how="full")
    assert [(row.id, row.id_right) for row in joined.collect()] == [(1, 1)]


def test_a_validity_without_end_lasts_for_ever(periods: DataFrame) -> None:
    rows = periods.where("id IN (1, 5)")
    joined = sj.join([rows, rows], window=sj.Validity("start", "stop"))
    found = Counter((row.id, row.id_right, row.valid_from, row.valid_to) for row in joined.collect())
    assert found == Counter([(1, 1, 10, 20), (1, 5, 18, 20), (5, 1, 18, 20), (5, 5, 18, None)])
