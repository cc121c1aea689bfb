"""In a task: when do urgent results of a fragment of three joins leave, and what does it cost?

    A --\
    B ---- join --\
    C ------------- join --\
    D ---------------------- join --> out        all by one key, so one stage, in one task

The same micro-batches go through the stage without priorities, and in waves. For each urgent result: at which share of
the task's CPU time does it leave? Packets are made before; what Spark does around a task is not in here.

    python -m benchmarks.priority_waves [rows per stream and micro-batch] [share of urgent rows]
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamjoin.algebra import Equals, Range
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Join, Relation, Stream
from streamjoin.plan.tasks import SourceTask
from streamjoin.plan.types import Field, plain_type
from streamjoin.runtime.lateness import Slack
from streamjoin.runtime.packets import Packet
from tests.interpreter import PlainTyping, prepared

STREAMS = "ABCD"
WINDOW = 100_000
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64()), ("p", pa.int64())])


@dataclass(frozen=True)
class Left:
    """Of the micro-batches that count: the task's CPU seconds, when urgent results left, as shares, and how many."""

    seconds: list[float]
    shares: np.ndarray
    results: int


def plan(*, prioritised: bool) -> PhysicalPlan:
    """Three joins in one stage."""
    tree: Relation | None = None
    for name in STREAMS:
        reads = tuple((f"{name}.{column}", column) for column in ("k", "v"))
        stream = Stream(name, reads, "ts", Range(WINDOW), "`p`" if prioritised else None)
        tree = stream if tree is None else Join(tree, stream, (Equals("A.k", f"{name}.k"),))
    assert tree is not None
    fields = tuple(Field(each.name, plain_type(each.type)) for each in SCHEMA)
    infos = {name: SourceInfo(name, fields, name, Slack(0), streaming=True) for name in STREAMS}
    made = lower(tree, infos, PlainTyping(), Leaving())
    assert len(made.stages) == 1
    assert len(made.stages[0].nodes) == 3
    return made


def micro_batches(rows: int, share: float, count: int) -> list[dict[str, pa.Table]]:
    """Rows of one each tick; keys so that a row has about one partner in a window."""
    rng, found = np.random.default_rng(7), []
    for number in range(count):
        batch = {}
        for name in STREAMS:
            ts = np.arange(number * rows, (number + 1) * rows)
            urgent = np.where(rng.random(rows) < share, 10, 0)
            columns = [ts, rng.integers(0, WINDOW, rows), rng.random(rows), urgent]
            batch[name] = pa.table([pa.array(each) for each in columns], schema=SCHEMA)
        found.append(batch)
    return found


def run(how: str, batches: list[dict[str, pa.Table]], warm: int = 2) -> Left:
    """All micro-batches through the stage: `how` is plain or waves."""
    made = plan(prioritised=how == "waves")
    stage = made.stages[0].build(0)
    seconds, shares, results = [], [], 0
    for number, batch in enumerate(batches):
        packets: list[Packet] = []
        for source in made.sources:
            task = SourceTask(source)
            packets += [each for each in task.packets([prepared(source, batch[source.name])]) if each.kind != "figures"]
        began, at = time.process_time(), defaultdict(int)
        for packet in stage.take(packets):
            urgent = 0
            if packet.kind == "final" and how == "waves":
                urgent = int((packet.table["priority"].to_numpy() > 0).sum())
            results += packet.table.num_rows if packet.kind == "final" else 0
            if urgent:
                at[time.process_time() - began] += urgent
        took = time.process_time() - began
        if number >= warm:
            seconds.append(took)
            shares.append(np.repeat(np.array(list(at)) / took, list(at.values())) if at else np.zeros(0))
    return Left(seconds, np.concatenate(shares), results)


def main() -> None:
    """Measure, and print."""
    pa.set_cpu_count(1)
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 250_000
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 0.01
    batches = micro_batches(rows, share, 7)
    left = {how: run(how, batches) for how in ("plain", "waves")}
    assert len({each.results for each in left.values()}) == 1, "priorities change no result"
    results = left["waves"].results
    print(f"{len(STREAMS)} streams, {rows:,} rows of each a micro-batch, {share:.0%} urgent, {results:,} results")
    usual = float(np.median(left["plain"].seconds))
    for how, each in left.items():
        took = float(np.median(each.seconds))
        said = f"{how:9s} CPU {took:6.3f} s a micro-batch ({took / usual - 1:+.1%})"
        if len(each.shares):
            marks = {name: np.percentile(each.shares, at) for name, at in (("p50", 50), ("p90", 90), ("p99", 99))}
            said += f"; urgent results leave at mean {each.shares.mean():.0%}, " + ", ".join(
                f"{name} {value:.0%}" for name, value in marks.items()
            )
            said += f", the last at {each.shares.max():.0%} of it ({len(each.shares):,} results)"
        print(said, flush=True)


if __name__ == "__main__":
    main()
