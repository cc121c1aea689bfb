"""The join of a stage, to a recall target and exact, in this process: seconds by micro-batch, in turn."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from benchmarks.disorder import Times
from streamjoin.algebra import Equals, Range
from streamjoin.algebra.interval import Mask
from streamjoin.plan.relation import Join, Stream
from streamjoin.runtime.lateness import LargestSeen, Lateness, Report, RunningLateness
from streamjoin.runtime.recall import Both, CellsSeen, RecallSide, RunningSide, ToRecall
from streamjoin.state import Batch
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


@dataclass
class Spent:
    """Seconds of the process: what tasks count and report, what a bucket hears and decides."""

    counting: float = 0.0
    hearing: float = 0.0

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """All that happens inside."""
        start = time.process_time()
        yield
        setattr(self, what, getattr(self, what) + time.process_time() - start)


class TimedCells(CellsSeen):
    """Counts rows as ever, by the clock."""

    def __init__(self, step: int, bits: int, spent: Spent) -> None:
        super().__init__(step, bits)
        self.spent = spent

    def see(self, rows: Batch, keep: Mask | None = None) -> None:
        with self.spent.on("counting"):
            super().see(rows, keep)

    def report(self) -> Report:
        with self.spent.on("counting"):
            return super().report()


class TimedRunning(RunningSide):
    """Hears and decides as ever, by the clock."""

    spent: Spent

    def heard(self, report: Report) -> None:
        with self.spent.on("hearing"):
            super().heard(report)

    def settle(self, told: int) -> None:
        with self.spent.on("hearing"):
            super().settle(told)


@dataclass(frozen=True)
class TimedSide(RecallSide):
    """A source of a join to a recall target, by the clock."""

    spent: Spent

    def measure(self) -> LargestSeen:
        return TimedCells(self.model.aim.step, self.bits, self.spent)

    def build_beside(self, shared: dict[Any, Any]) -> RunningLateness:
        running = TimedRunning(shared.setdefault(self.model, Both(self.model.build())), self.number)
        running.spent = self.spent
        return running


@dataclass(frozen=True)
class TimedRecall(ToRecall):
    """A recall target, by the clock."""

    spent: Spent = field(default_factory=Spent, compare=False)

    def side(self, number: int, windows: tuple[int, int], *, keyed: bool) -> RecallSide:
        one = super().side(number, windows, keyed=keyed)
        return TimedSide(one.model, one.number, one.bits, self.spent)


@dataclass
class JoinedSeconds:
    """Of the process, by micro-batch: the exact join, the one to a recall target, and what of that one adapts."""

    exact: list[float] = field(default_factory=list)
    aimed: list[float] = field(default_factory=list)
    counting: list[float] = field(default_factory=list)
    hearing: list[float] = field(default_factory=list)


def joined_seconds(batches: Iterable[MicroBatch], window: int) -> JoinedSeconds:
    """Streams in order through both joins: the same rows, the same stage, another lateness; each goes first in turn."""
    aim = TimedRecall(0.95, 60_000_000, 1_000_000)
    ways = [running(window, 0), running(window, aim, late="join")]
    took, found = JoinedSeconds(), [0, 0]
    seconds = (took.exact, took.aimed)
    for number, (ts, keys) in enumerate(batches):
        rows = {name: [pa.table({"ts": ts[at], "k": keys[at]})] for at, name in enumerate("RS")}
        aim.spent.counting = aim.spent.hearing = 0.0
        for at in (0, 1) if number % 2 else (1, 0):
            start = time.process_time()
            found[at] += sum(table.num_rows for table in ways[at].micro_batch(rows))
            seconds[at].append(time.process_time() - start)
        took.counting.append(aim.spent.counting)
        took.hearing.append(aim.spent.hearing)
    if found[0] != found[1]:
        raise AssertionError(f"streams in order: the exact join finds {found[0]:,}, the recall target {found[1]:,}")
    return took
