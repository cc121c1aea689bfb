"""Reports of queries that nobody has run, for tests without Spark: a plan, and figures that were made up."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from streamjoin.algebra import Equals
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Distinct, Join, Projection
from streamjoin.reporting.measured import MicroBatch, flat
from streamjoin.reporting.report import Report, ReportedPlan
from streamjoin.spark.listening import FIRST
from tests.plan.trees import lowered, stream

START = 1_700_000_000.0


def plan() -> PhysicalPlan:
    """Two streams joined by a key, and of one column nothing twice: two stages."""
    join = Join(stream("R"), stream("S"), (Equals("R.k", "S.k"),))
    return lowered(Distinct(Projection(join, (("id", "`R.id`"),))), lateness=2)


def figures(number: int, **more: Any) -> dict[str, Any]:
    """The figures of a join in a micro-batch, as `sj.progress` has them."""
    own = {
        "rows_in": 1000 + 10 * number, "rows_out": 400, "rows_of": {0: 600 + 10 * number, 1: 400}, "late": number % 3,
        "invalid": 0, "state_rows": 5000 + 20 * number, "state_bytes": 400_000, "state_runs": 4 + number % 2,
        "rows_on": {2: 500}, "between": {"in": 0, "out": 0}, "spills": 0, "merges": 1 + number % 2,
        "spilled_bytes": 0, "progress": ["then", None], "lag": [2.0, 2.5 + math.sin(number)],
        "seconds": {"pack": 0.2, "read": 0.1, "join": 0.5, "write": 0.1},
    }  # fmt: skip
    return own | more


def micro_batch(number: int, **more: Any) -> MicroBatch:
    """One that began every two seconds, and took one and a half."""
    began = START + 2 * number
    told = dict(flat(figures(number, **more), "streamjoin-1"))
    unseen, left_out = (2.0, {}) if number else (None, {FIRST: 1})
    return MicroBatch(number, number, began, began + 1.5, unseen, 1.5, 1.5, told, left_out=left_out)


def report(batches: int = 30, **changed: Any) -> Report:
    """A report with all that a query can have."""
    more = {
        "recall": {"target": 0.95, "expected": 0.96, "slack": [1.0, 2.0], "kept_rows": [10, 20]},
        "urgent": {"rows": 30, "share": 0.03, "standing": [0.0, 4.0], "starving": False},
        "spilled_bytes": 100_000,
        "spills": 1,
    }
    made = tuple(replace(micro_batch(number, **more), waiting={"files": 3.0}) for number in range(batches))
    known = Report("orders and payments", True, made, (ReportedPlan(plan(), {"streamjoin-1": 0}),), {"job": "near.py"})
    return replace(known, **changed)
