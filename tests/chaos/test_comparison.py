"""That chaos notices: a comparison that finds nothing must have looked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos import data
from chaos.catalog import KINDS
from chaos.checkpoint import Checkpoint
from chaos.comparison import compare, compare_query, expected_frame, rest_of
from chaos.data import Shape
from chaos.driver import start_query
from chaos.errors import ChaosError
from chaos.kinds import Kind
from chaos.queries import QUERIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_difference_has_its_name() -> None:
    difference = compare(Counter({"a": 2, "b": 1}), Counter({"a": 1, "b": 3, "c": 1}))
    assert not difference.equal
    assert (difference.lost, difference.repeated, difference.invented) == ({"a": 1}, {"b": 2}, {"c": 1})
    assert difference.describe() == [
        "1 rows lost, for example:",
        "  1 x a",
        "2 rows repeated, for example:",
        "  2 x b",
        "1 rows invented, for example:",
        "  1 x c",
    ]


def test_lost_and_repeated_rows_of_an_output_are_found(spark: SparkSession, tmp_path: Path) -> None:
    kind, output = KINDS["interval-left"], str(tmp_path / "out")
    data.write(tmp_path / "in", "1", Shape(files=2, rows=40), late=False)
    whole = expected_frame(spark, kind, tmp_path / "in").coalesce(1)
    whole.write.parquet(output)
    same = compare_query(spark, kind, tmp_path)
    assert same.equal
    assert same.rows > 40
    whole.filter("id = 3").write.mode("append").parquet(output)
    more = compare_query(spark, kind, tmp_path)
    assert (more.lost.total(), more.invented.total()) == (0, 0)
    assert more.repeated.total() > 0
    whole.filter("id <> 3").write.mode("overwrite").parquet(output)
    less = compare_query(spark, kind, tmp_path)
    assert less.lost == more.repeated
    assert (less.repeated.total(), less.invented.total()) == (0, 0)


@pytest.mark.parametrize("name", ["late-output", pytest.param("theta-late-output", marks=pytest.mark.long)])
def test_late_rows_are_expected_as_a_stream_shows_them(spark: SparkSession, tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    data.write(tmp_path / "in", "1", Shape(files=6, rows=40), late=True)
    start_query(spark, kind.name, tmp_path).awaitTermination()
    difference = compare_query(spark, kind, tmp_path)
    assert difference.equal, "\n".join(difference.describe())
    expected = expected_frame(spark, kind, tmp_path / "in")
    assert expected.filter("_late AND id IS NOT NULL").count() > 0
    assert expected.filter("_late AND id_right IS NOT NULL").count() > 0


def test_late_rows_are_found_by_a_lateness_that_waits_for_them(spark: SparkSession, tmp_path: Path) -> None:
    kind = KINDS["late-recall"]
    data.write(tmp_path / "in", "1", Shape(files=6, rows=200), late=True)
    start_query(spark, kind.name, tmp_path).awaitTermination()
    difference = compare_query(spark, kind, tmp_path)
    assert difference.equal, "\n".join(difference.describe())
    expected = expected_frame(spark, kind, tmp_path / "in")
    assert expected.filter("late OR late_right").count() > 5, "others are found without waiting"


@pytest.mark.parametrize("kind", QUERIES, ids=lambda kind: kind.name)
def test_every_query_can_be_asked_of_streams_and_says_something(
    spark: SparkSession, tmp_path: Path, kind: Kind
) -> None:
    data.write(tmp_path / "in", "1", Shape(files=2, rows=60, closing=False), late=False, distinct=kind.distinct)
    assert kind.stream(spark, tmp_path / "in").isStreaming
    assert expected_frame(spark, kind, tmp_path / "in").count() > 20


def test_what_a_query_still_holds_counts_as_delivered(spark: SparkSession, tmp_path: Path) -> None:
    kind = KINDS["cql-left-band"]
    data.write(tmp_path / "in", "1", Shape(files=2, rows=40, closing=False), late=False)
    start_query(spark, kind.name, tmp_path).awaitTermination()
    without = compare_query(spark, replace(kind, finished=False), tmp_path)
    assert 0 < without.lost.total() < without.rows
    assert (without.repeated.total(), without.invented.total()) == (0, 0)
    difference = compare_query(spark, kind, tmp_path)
    assert difference.equal, "\n".join(difference.describe())


def test_a_query_that_cannot_be_finished_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ChaosError, match="the query cannot be finished: "):
        rest_of(spark, Checkpoint(tmp_path))
