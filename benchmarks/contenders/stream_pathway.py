"""The interval join of Pathway, in its own environment: CSV in, CSV out, two threads (`PATHWAY_THREADS`).

In its static mode, which reads everything and joins once: its best case, since it is not asked for results in between.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pathway as pw

from benchmarks.one_shot import Answer, answer


class Row(pw.Schema):
    ts: int
    k: int
    v: float
    p: int


def do(request: dict[str, Any]) -> Answer:
    left, right = (
        pw.io.csv.read(str(Path(request["folder"]) / side), schema=Row, mode="static") for side in ("left", "right")
    )
    bound = 1000 * request["bound_seconds"]
    joined = left.interval_join_inner(
        right, left.ts, right.ts, pw.temporal.interval(-bound, bound), left.k == right.k
    ).select(
        ts=left.ts, k=left.k, v=left.v, p=left.p, ts_right=right.ts, v_right=right.v, p_right=right.p
    )  # fmt: skip
    output = Path(request["output"])
    output.mkdir()
    pw.io.csv.write(joined, output / "joined.csv")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {}


if __name__ == "__main__":
    answer(do)
