"""What the queries of the golden files give on Spark, over the small tables of `tests/cql/tables.py`.

The section `result` of each file is written by `STREAMJOIN_REWRITE=1 pytest tests/spark/test_golden_results.py`, to be
looked at in the diff. So that it is not merely what the code said, the same rows are compared with what DuckDB says of
the query as it is written, instant by instant; joins of events, which have no instants, with an expectation by hand.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import streamjoin as sj
from tests.cql.results import BY_HAND, check_with_duckdb, shown
from tests.cql.streams import TIMES
from tests.cql.tables import TABLES
from tests.cql.test_golden import FILES, sections, written

# Queries that fail on these tables, as Spark would: with an error of its own.
FAILING = {"equal_types_unlike": "CAST_INVALID_INPUT"}


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    found = {}
    for name, table in TABLES.items():
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
        found[name] = spark.createDataFrame(table, schema).coalesce(1)  # fewer tasks: this is many small queries
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_result(spark: SparkSession, frames: dict[str, DataFrame], path: Path) -> None:
    parts = sections(path.read_text())
    query = sj.cql(spark, parts["query"], time=TIMES, buckets=2, **frames)
    if path.stem in FAILING:
        with pytest.raises(Exception, match=FAILING[path.stem]):
            query.toArrow()
        result = f"fails: {FAILING[path.stem]}"
    else:
        table = query.toArrow()
        result = shown(table)
        if path.stem in BY_HAND:
            assert result.splitlines()[1:] == BY_HAND[path.stem]
        else:
            check_with_duckdb(parts["query"], table)
    new = parts | {"result": result}
    if os.environ.get("STREAMJOIN_REWRITE"):
        path.write_text(written(new))
    assert new == parts


def test_nearly_every_query_says_something() -> None:
    silent = [path.stem for path in FILES if len(sections(path.read_text())["result"].splitlines()) < 2]
    assert silent == ["equal_casts", *FAILING]
