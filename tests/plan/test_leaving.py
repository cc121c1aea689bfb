"""What leaves where Spark has the last word: behind a condition on the pairs, and behind a second stage."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.algebra import AsOf, Range
from streamjoin.plan.lowering import lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Selection
from streamjoin.runtime.lateness import Slack
from tests.in_process import Troubled
from tests.interpreter import PlainTyping
from tests.joins import JoinCall

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "ts", "k")])
ON_TIME, LATE, PARTNER = (1, 50, 0), (2, 3, 0), (7, 50, 1)


def call(**options: Any) -> JoinCall:
    windows = (None, None) if "choice" in options else (Range(5), Range(5))
    return JoinCall((SCHEMA, SCHEMA), windows=windows, lateness=(Slack(0), Slack(0)), **options)


def left(plan: PhysicalPlan, *batches: dict[str, list[tuple]]) -> list[dict[str, Any]]:
    """The rows that leave in these micro-batches."""
    running, rows = Troubled(plan, rng=random.Random(0)), []
    for batch in batches:
        tables = {
            name: pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in some], schema=SCHEMA)
            for name, some in batch.items()
        }
        rows += [row for part in running.rows(tables) for row in part.to_pylist()]
    return rows


@pytest.mark.parametrize("how", ["inner", "left", "full"])
@pytest.mark.parametrize("buckets", [1, 4])
def test_a_late_row_is_shown_whoever_decides_about_pairs(how: str, buckets: int) -> None:
    """Spark in an inner join, the join itself in a left one, a second stage where rows have copies."""
    plan = call(theta="l.k < r.k", how=how, late=("output", "output"), buckets=buckets).plan()
    rows = left(plan, {"0": [ON_TIME], "1": [PARTNER]}, {"0": [LATE]}, {"1": [LATE]})
    assert {(row["id"], row["id_right"]) for row in rows if not row["_late"]} == {(1, 7)}
    shown = [row for row in rows if row["_late"]]
    assert [(row["id"], row["id_right"], row["valid_from"]) for row in shown] == [(2, None, None), (None, 2, None)]


def test_an_invalid_row_is_shown_beside_a_condition() -> None:
    plan = call(theta="l.k < r.k", invalid="output").plan()
    rows = left(plan, {"0": [ON_TIME, (3, None, 0)], "1": [PARTNER]})
    assert [(row["id"], row["id_right"], row["_invalid"]) for row in rows] == [(3, None, True), (1, 7, False)]


def test_what_is_taken_back_is_taken_back_behind_a_condition() -> None:
    joined = call(choice=AsOf(), keys=("k",), how="left", output="changelog")
    chosen = Selection(joined.relation(), "`0.id` > 0")
    plan = lower(chosen, joined.sources(), PlainTyping(), joined.leaving())
    rows = left(plan, {"0": [(1, 10, 0), (-1, 10, 0)]}, {"1": [(7, 9, 0)]})
    said = [(row["id"], row["id_right"], row["_change"]) for row in rows]
    assert said == [(1, None, "insert"), (1, None, "retract"), (1, 7, "insert")]
