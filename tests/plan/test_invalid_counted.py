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
from streamjoin.runtime.lateness import Complete, Slack
from tests.in_process import Troubled
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


def test_a_join_without_time_counts_none() -> None:
    timeless = Troubled(replace(USUAL, time=None, predicates=(Band("v", "v", 1, 1),)).plan())
    list(timeless.batch({"0": [table()], "1": [table()]}))
    assert timeless.figure("invalid") == 0
    nearest = replace(USUAL, time=None, predicates=(Within(("v",), ("v",), 2.0),), choice=NearestOf(1), how="left")
    plain = Troubled(nearest.plan())
    list(plain.batch({"0": [table()], "1": [table()]}))
    assert plain.figure("invalid") == 0
