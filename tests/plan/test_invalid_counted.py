"""Rows without a time are counted in every join's figures, over batches and over streams, whatever becomes of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from streamjoin.algebra import (
    AsOf,
    Band,
    BestOf,
    Fixed,
    NearestOf,
    Now,
    Range,
    Rows,
    Unbounded,
    Validity,
    Within,
)
from streamjoin.language import parse_cql
from streamjoin.plan.multi_join import MultiJoin, joins_at_once
from streamjoin.plan.relation import Relation, operator_of
from streamjoin.plan.rules import optimise
from streamjoin.runtime.lateness import Complete, Slack
from tests.in_process import Troubled, plan_of
from tests.joins import Bounds, JoinCall

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("until", pa.int64()), ("v", pa.float64())])
ROWS = [(1, 10, 15, 1.0), (1, None, 12, 2.0), (2, 12, 14, 3.0), (2, None, None, 4.0), (None, None, 9, 5.0)]
USUAL = JoinCall((SCHEMA, SCHEMA), ("k",), invalid="drop")
WINDOWS = (Range(5), Range(8, slide=2), Fixed(5), Now(), Unbounded(), Rows(2), Rows(1, by="k"), Validity("ts", "until"))
JOINS = {
    **{str(window): replace(USUAL, windows=(window, Unbounded())) for window in WINDOWS if window != WINDOWS[-1]},
    "Validity": replace(USUAL, windows=(WINDOWS[-1], WINDOWS[-1])),
    **{
        f"{how} join": replace(USUAL, windows=(Range(5), Range(5)), how=how) for how in ("left", "full", "semi", "anti")
    },
    "shown": replace(USUAL, windows=(Range(5), Range(5)), invalid="output"),
    "without keys": replace(USUAL, keys=(), windows=(Range(5), Range(5)), theta="l.v < r.v", how="left", buckets=3),
    "interval": replace(USUAL, interval=Bounds(0, 5)),
    "as of": replace(USUAL, choice=AsOf(), how="left", invalid="fail"),
    "as of, inner": replace(USUAL, choice=AsOf("nearest", 3), invalid="fail"),
    "nearest": replace(
        USUAL, predicates=(Within(("v",), ("v",), 2.0),), choice=NearestOf(1, 5), how="left", invalid="fail"
    ),
    "best match": replace(
        USUAL, predicates=(Band("ts", "ts", 5, 5), Band("v", "v", 2, 2)), choice=BestOf(), how="full", invalid="fail"
    ),
    "best match in steps": replace(
        USUAL, predicates=(Band("v", "v", 2, 2),), choice=BestOf(reach=2), how="left", invalid="fail"
    ),
}


def table() -> pa.Table:
    columns = dict(zip(SCHEMA.names, zip(*ROWS, strict=True), strict=True))
    return pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()})


@pytest.mark.parametrize("what", JOINS)
def test_rows_without_a_time_are_counted(what: str) -> None:
    call = JOINS[what]
    batch = Troubled(call.plan())
    list(batch.batch({"0": [table()], "1": [table()]}))
    assert batch.figure("invalid") == 6
    stream = Troubled(replace(call, lateness=(Slack(0), Slack(0))).plan())
    list(stream.micro_batch({"0": [table()], "1": [table().slice(0, 2)]}))
    assert stream.figure("invalid") == 4
    beside = Troubled(replace(call, lateness=(Slack(0), Complete())).plan())
    list(beside.micro_batch({"0": [table()], "1": [table()]}))
    assert beside.figure("invalid") == 6


def of_query(text: str, names: str) -> Relation:
    schemas = dict.fromkeys(names, SCHEMA)
    return optimise(parse_cql(text, schemas, times=dict.fromkeys(names, "ts")).relation, schemas)


BY_KEY = "SELECT R.k FROM R [RANGE 5], S [RANGE 5], T [ROWS 2] WHERE R.k = S.k AND S.k = T.k"
QUERIES = {
    BY_KEY: "RST",
    "SELECT k, v FROM R [RANGE 5] WHERE v < 9": "R",
    "SELECT k FROM R [RANGE 5] UNION ALL SELECT k FROM S [NOW]": "RS",
    "SELECT R.k FROM R [RANGE 5], S [ROWS 2] WHERE R.k = S.k AND R.v < 9": "RS",
    "SELECT k, COUNT(*) AS n FROM R [PARTITION BY k ROWS 2] GROUP BY k": "R",
    "SELECT DISTINCT k FROM R [RANGE 5] EXCEPT SELECT k FROM S [RANGE 5]": "RS",
}
TREES = {
    "three at once": (joins_at_once(of_query(BY_KEY, "RST")), "RST"),
    **{text: (of_query(text, names), names) for text, names in QUERIES.items()},
}


@pytest.mark.parametrize("what", TREES)
def test_rows_without_a_time_are_counted_in_queries_and_joins_of_many(what: str) -> None:
    relation, names = TREES[what]
    assert (what == "three at once") == isinstance(operator_of(relation), MultiJoin)
    schemas = dict.fromkeys(names, SCHEMA)
    batch = Troubled(plan_of(relation, schemas, invalid="drop"))
    list(batch.batch({name: [table()] for name in names}))
    assert batch.figure("invalid") == 3 * len(names)
    stream = Troubled(plan_of(relation, schemas, dict.fromkeys(names, 0), invalid="drop"))
    for part, invalid in ((table().slice(0, 2), 1), (table().slice(2), 2)):
        list(stream.micro_batch({name: [part] for name in names}))
        assert stream.figure("invalid") == invalid * len(names)


def test_a_join_without_time_counts_none() -> None:
    timeless = Troubled(replace(USUAL, time=None, predicates=(Band("v", "v", 1, 1),)).plan())
    list(timeless.batch({"0": [table()], "1": [table()]}))
    assert timeless.figure("invalid") == 0
    nearest = replace(USUAL, time=None, predicates=(Within(("v",), ("v",), 2.0),), choice=NearestOf(1), how="left")
    plain = Troubled(nearest.plan())
    list(plain.batch({"0": [table()], "1": [table()]}))
    assert plain.figure("invalid") == 0
