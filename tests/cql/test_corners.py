"""Corners of queries, without a JVM: names that clash, groups without aggregates, rows that WHERE excludes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import Equals, Overlaps
from streamjoin.errors import InvalidRowError
from streamjoin.language import parse_cql
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.relation import Aggregation, Join, Projection, Relation
from streamjoin.plan.rules import optimise
from streamjoin.spark.calls.sources import time_columns
from tests.in_process import plan_of
from tests.interpreter import InProcess

KEYED = pa.schema({"ts": pa.int64(), "k": pa.int64()})


def optimised(text: str, **schemas: pa.Schema) -> Relation:
    return optimise(parse_cql(text, schemas, times=dict.fromkeys(schemas, "ts")).relation, schemas)


def found(text: str, *batches: list[tuple[Any, ...]], streaming: bool = True, **options: Any) -> list[dict[str, Any]]:
    """What a query over R gives, micro-batch by micro-batch, or of all rows at once."""
    plan = plan_of(optimised(text, R=KEYED), {"R": KEYED}, {"R": 0} if streaming else None, Leaving(), **options)
    run, tables = InProcess(plan), [pa.table(list(zip(*each, strict=True)), schema=KEYED) for each in batches]
    parts = [*(part for table in tables for part in run.micro_batch({"R": [table]})), *run.end()]
    parts = parts if streaming else list(InProcess(plan).batch({"R": tables}))
    return sorted((row for part in parts for row in part.to_pylist()), key=str)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT R.k AS k FROM R [RANGE 3] GROUP BY R.k",
        "SELECT COUNT(*) AS n FROM (SELECT R.k AS k, MAX(R.ts) AS m FROM R [RANGE 3] GROUP BY R.k) AS q",
    ],
)
def test_groups_without_aggregates(text: str) -> None:
    batches = [(1, 1)], [(2, 1)], [(3, 1), (4, 2), (9, 1)]
    streamed = found(text, *batches)
    assert streamed == found(text, [row for each in batches for row in each], streaming=False)
    assert streamed


@pytest.mark.parametrize("streaming", [True, False])
def test_a_row_that_where_excludes_may_be_invalid(streaming: bool) -> None:
    rows = [(1, 1), (None, 2)]
    for condition in ("R.ts IS NOT NULL", "R.k = 1"):
        text = f"SELECT R.k AS k, COUNT(*) AS n FROM R [RANGE 5] WHERE {condition} GROUP BY R.k"
        for invalid in ("fail", "output"):
            result = found(text, rows, streaming=streaming, invalid=invalid, whole=invalid == "output")
            assert [row["k"] for row in result] == [1]
    with pytest.raises(InvalidRowError):
        found("SELECT R.k AS k, COUNT(*) AS n FROM R [RANGE 5] WHERE R.k = 2 GROUP BY R.k", rows, streaming=streaming)


def test_a_reading_that_keeps_a_late_row_shows_it_though_another_does_not_want_it() -> None:
    text = (
        "SELECT a.k AS k, b.k AS j FROM (SELECT R.k AS k FROM R [RANGE 5] WHERE R.k = 1) AS a "
        "JOIN R [RANGE 5] AS b ON a.k <= b.k"
    )
    rows = found(text, [(0, 1)], [(100, 1)], [(3, 7)], late="output", whole=True)
    assert [row["_late_R"] for row in rows if row["k"] is None] == [{"ts": 3, "k": 7}]


def computed_below(relation: Relation) -> dict[str, str]:
    while not isinstance(relation, Aggregation):
        (relation,) = relation.children
    assert isinstance(relation.child, Projection)
    texts = dict(relation.child.computed)
    return {each.name: texts[each.column or ""] for each in relation.aggregates}


def test_columns_are_told_apart_by_what_they_are_not_by_their_names() -> None:
    schema = pa.schema({"ts": pa.int64(), "c": pa.int64(), "c + 1": pa.int64()})
    text = "SELECT SUM(W.c + 1) AS x, SUM(W.`c + 1`) AS y FROM W [RANGE 5]"
    assert list(computed_below(optimised(text, W=schema)).values()) == ["`W.c` + 1", "`W.c + 1`"]


def test_names_of_computed_columns_differ_in_more_than_case() -> None:
    schema = pa.schema({"ts": pa.int64(), "k": pa.string()})
    relation = optimised("SELECT MAX(upper(R.k)) AS x, MIN(UPPER(R.k)) AS y FROM R [RANGE 5]", R=schema)
    assert list(computed_below(relation).values()) == ["upper(`R.k`)", "UPPER(`R.k`)"]
    text = "SELECT R.ts AS x FROM R [RANGE 5] JOIN S [RANGE 5] ON upper(R.k) = S.k AND UPPER(R.k) = upper(S.k)"
    join = next(each for each in _all(optimised(text, R=schema, S=schema)) if isinstance(each, Join))
    keys = [(each.left, each.right) for each in join.predicates if isinstance(each, Equals)]
    assert len({str(left).lower() for left, _ in keys}) == len(keys) == 2


def _all(relation: Relation) -> list[Relation]:
    return [relation, *(each for child in relation.children for each in _all(child))]


@pytest.mark.parametrize(
    ("lo", "hi", "is_overlap"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.int32(), pa.float64(), True),
        (pa.decimal128(10, 2), pa.decimal128(10, 2), True),
        (pa.decimal128(20, 2), pa.decimal128(20, 2), False),
        (pa.int32(), pa.decimal128(10, 2), False),
        (pa.date32(), pa.date32(), True),
    ],
)
def test_comparisons_are_an_overlap_only_where_that_takes_all_ends(lo: Any, hi: Any, is_overlap: bool) -> None:
    schema = pa.schema({"ts": pa.int64(), "lo": lo, "hi": hi})
    ordered = "R.lo < R.hi AND S.lo < S.hi AND R.lo < S.hi AND S.lo < R.hi"
    relation = optimised(f"SELECT R.lo AS x FROM R [RANGE 5], S [RANGE 5] WHERE {ordered}", R=schema, S=schema)
    join = next(each for each in _all(relation) if isinstance(each, Join))
    assert any(isinstance(each, Overlaps) for each in join.predicates) == is_overlap
    assert (join.theta is None) == is_overlap


def test_all_times_by_which_a_stream_is_read_are_known() -> None:
    schema = pa.schema({name: pa.int64() for name in ("ts", "vf", "vt", "k")})
    text = "SELECT a.k AS k FROM R [VALID vf TO vt] AS a JOIN R [RANGE 5] AS b ON a.k = b.k"
    assert time_columns(optimised(text, R=schema)) == {"R": ["vf", "ts"]}
