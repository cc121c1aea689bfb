"""Rows that end where they begin are counted where they get their ends: each of them once, whoever reads them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from streamjoin.algebra import Fixed, Range, Rows, Unbounded, Validity
from streamjoin.language import parse_cql
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.relation import Relation
from streamjoin.plan.rules import optimise
from streamjoin.runtime.lateness import Slack
from tests.in_process import Troubled, plan_of
from tests.joins import JoinCall

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("until", pa.int64()), ("v", pa.float64())])
# Of three rows at 10 a window of one row has two ghosts; one row brings an end that is its start.
ROWS = [(1, 10, 15, 1.0), (1, 10, 10, 2.0), (1, 10, 12, 3.0), (1, 13, 14, 4.0), (2, 20, 29, 5.0)]
USUAL = JoinCall((SCHEMA, SCHEMA), ("k",))
ONE = Rows(1)
# What is joined, and how many ghosts there are of both inputs.
JOINS = {
    "a slide": (replace(USUAL, windows=(Range(2, slide=4), Fixed(5))), 3),  # those at 10: from 8 on there are 2
    "validity": (replace(USUAL, windows=(Validity("ts", "until"), Validity("ts", "until"))), 2),
    "rows": (replace(USUAL, windows=(ONE, Unbounded())), 2),
    "rows of groups": (replace(USUAL, windows=(Rows(1, by="k"), Rows(2, by="k")), how="full"), 3),
    "snapshots": (replace(USUAL, windows=(ONE, ONE), how="left", outer="snapshot"), 4),
    "in copies": (replace(USUAL, keys=(), windows=(ONE, ONE), theta="l.v < r.v", buckets=3), 4),
    "in copies, decided elsewhere": (
        replace(USUAL, keys=(), windows=(ONE, ONE), theta="l.v < r.v", how="left", buckets=3), 4,
    ),
}  # fmt: skip
QUERIES = {
    "SELECT k FROM R [ROWS 1]": 2,
    "SELECT k FROM R [ROWS 1] WHERE v > 100": 2,
    "SELECT DISTINCT k FROM R [ROWS 1]": 2,
    "SELECT DISTINCT k FROM R [PARTITION BY k ROWS 1]": 2,
    "SELECT COUNT(*) AS n FROM R [ROWS 2]": 1,
    "SELECT k FROM R [ROWS 1] EXCEPT SELECT k FROM S [ROWS 2]": 3,
    "SELECT R.k FROM R [PARTITION BY k ROWS 1], S [ROWS 1] WHERE R.k = S.k": 4,
    "SELECT k FROM R [RANGE 2 SLIDE 4]": 3,
}


def table() -> pa.Table:
    columns = dict(zip(SCHEMA.names, zip(*ROWS, strict=True), strict=True))
    return pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()})


def ghosts_of_a_stream(running: Troubled, names: str) -> int:
    """Row by row, each in a micro-batch of its own, and elsewhere after each: ends are learned later."""
    found = 0
    for at in range(len(ROWS)):
        list(running.micro_batch({name: [table().slice(at, 1)] for name in names}))
        found += running.figure("ghosts")
        running.move()
    list(running.end())
    return found


@pytest.mark.parametrize("what", JOINS)
def test_ghosts_are_counted_once(what: str) -> None:
    call, ghosts = JOINS[what]
    batch = Troubled(call.plan())
    list(batch.batch({"0": [table()], "1": [table()]}))
    assert batch.figure("ghosts") == ghosts
    assert ghosts_of_a_stream(Troubled(replace(call, lateness=(Slack(0), Slack(0))).plan()), "01") == ghosts


def tree(text: str) -> Relation:
    schemas = dict.fromkeys("RS", SCHEMA)
    return optimise(parse_cql(text, schemas, times=dict.fromkeys("RS", "ts")).relation, schemas)


@pytest.mark.parametrize("method", ["direct", "negative"])
@pytest.mark.parametrize("text", QUERIES)
def test_ghosts_are_counted_once_in_queries(text: str, method: str) -> None:
    names = "RS" if " S " in text else "R"
    schemas, leaving = dict.fromkeys(names, SCHEMA), Leaving(method=method, buckets=3)
    batch = Troubled(plan_of(tree(text), schemas, leaving=leaving))
    list(batch.batch({name: [table()] for name in names}))
    assert batch.figure("ghosts") == QUERIES[text]
    stream = Troubled(plan_of(tree(text), schemas, dict.fromkeys(names, 0), leaving))
    assert ghosts_of_a_stream(stream, names) == QUERIES[text]
