"""The join of a stage, to a recall target and exact, in this process: seconds by micro-batch, in turn."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from benchmarks.disorder import Times
from streamjoin.algebra import Equals, Range
from streamjoin.plan.relation import Join, Stream
from streamjoin.runtime.lateness import Lateness
from streamjoin.runtime.recall import ToRecall
from tests.in_process import plan_of
from tests.interpreter import InProcess

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
MicroBatch = tuple[list[Times], list[Times]]  # time stamps and keys of both inputs


def running(window: int, lateness: Lateness | int, **options: Any) -> InProcess:
    """A join of R and S by `k`, at work."""
    sides = [
        Stream(name, tuple((f"{name}.{each}", each) for each in ("ts", "k")), "ts", Range(window)) for name in "RS"
    ]
    join = Join(*sides, (Equals("R.k", "S.k"),))
    return InProcess(plan_of(join, dict.fromkeys("RS", SCHEMA), dict.fromkeys("RS", lateness), **options))


def joined_seconds(batches: list[MicroBatch], window: int) -> tuple[list[float], list[float]]:
    """Of the process, for each micro-batch: the exact join of streams in order, and the one to a recall target."""
    ways = [running(window, 0), running(window, ToRecall(0.95, 60_000_000, 1_000_000), late="join")]
    seconds: tuple[list[float], list[float]] = ([], [])
    found = [0, 0]
    for ts, keys in batches:
        rows = {name: [pa.table({"ts": ts[at], "k": keys[at]})] for at, name in enumerate("RS")}
        for at, way in enumerate(ways):
            start = time.process_time()
            found[at] += sum(table.num_rows for table in way.micro_batch(rows))
            seconds[at].append(time.process_time() - start)
    if found[0] != found[1]:
        raise AssertionError(f"streams in order: the exact join finds {found[0]:,}, the recall target {found[1]:,}")
    return seconds
