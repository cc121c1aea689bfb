"""In a task: when do urgent results of a fragment of three joins leave, and what does it cost?

    A --\
    B ---- join --\
    C ------------- join --\
    D ---------------------- join --> out        all by one key, so one stage, in one task

The same micro-batches go through the stage without priorities, and in waves, in turn. For each urgent result: at which
share of the task's CPU time does it leave? Packets are made before; what Spark does around a task is not in here.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.table import Table

from benchmarks.digest import Digest, digest_of
from benchmarks.errors import UnequalResultsError
from benchmarks.race import Verdict
from benchmarks.tables import new_table
from streamjoin.algebra import Equals, Range
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Join, Relation, Stream
from streamjoin.plan.tasks import SourceTask
from streamjoin.plan.types import Field, plain_type
from streamjoin.runtime.lateness import Slack
from streamjoin.runtime.packets import Packet
from tests.interpreter import PlainTyping, prepared

STREAMS: Final = "ABCD"
WINDOW: Final = 100_000
SCHEMA: Final = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64()), ("p", pa.int64())])


PLAIN, WAVES = "plain", "waves"
WARM: Final = 2  # micro-batches that do not count: the state fills
LEFT_BY: Final = 0.6  # of the task's CPU time
ADDED: Final = 1.1  # times the CPU time without priorities


@dataclass(frozen=True)
class Effort:
    """Rows of a stream in a micro-batch, the share of urgent ones, micro-batches, and how often both ways run."""

    rows: int = 250_000
    share: float = 0.01
    batches: int = 7
    rounds: int = 3


FULL: Final = Effort()
QUICK: Final = Effort(rows=5_000, batches=4, rounds=1)


@dataclass(frozen=True)
class Left:
    """Of the micro-batches that count: the task's CPU seconds, and when urgent results left, as shares of them."""

    seconds: list[float]
    shares: npt.NDArray[np.float64]
    digest: Digest


@dataclass(frozen=True)
class Outcome:
    """Both ways, all rounds of each together."""

    effort: Effort
    left: dict[str, Left]

    @property
    def cost(self) -> float:
        """CPU time in waves over that without: medians of micro-batches."""
        return float(np.median(self.left[WAVES].seconds) / np.median(self.left[PLAIN].seconds))

    @property
    def verdicts(self) -> list[Verdict]:
        """What must come out."""
        shares = self.left[WAVES].shares
        last = f"the last at {shares.max():.0%}, on average at {shares.mean():.0%} of the task's CPU time"
        return [
            Verdict("task: urgent results have left", float(shares.max()), LEFT_BY, last, at_most=True),
            Verdict("task: CPU time over that without priorities", self.cost, ADDED, f"{self.cost:.3f}", at_most=True),
        ]

    def to_json(self) -> dict[str, Any]:
        found = {
            how: {"seconds": each.seconds, "marks": marks(each.shares), **asdict(each.digest)}
            for how, each in self.left.items()
        }
        return {**asdict(self.effort), "left": found, "verdicts": [each.to_json() for each in self.verdicts]}


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


def run(how: str, batches: list[dict[str, pa.Table]]) -> Left:
    """All micro-batches through the stage, PLAIN or in WAVES."""
    made = plan(prioritised=how == WAVES)
    stage = made.stages[0].build(0)
    seconds, shares, results = [], [], []
    for number, batch in enumerate(batches):
        packets: list[Packet] = []
        for source in made.sources:
            task = SourceTask(source)
            packets += [each for each in task.packets([prepared(source, batch[source.name])]) if each.kind != "figures"]
        began, left = time.process_time(), defaultdict[float, int](int)
        for packet in stage.take(packets):
            if packet.kind != "final":
                continue
            results.append(packet.table)
            if how == WAVES and (urgent := int((packet.table["priority"].to_numpy() > 0).sum())):
                left[time.process_time() - began] += urgent
        took = time.process_time() - began
        if number >= WARM:
            seconds.append(took)
            shares.append(np.repeat(np.array(list(left)) / took, list(left.values())) if left else np.zeros(0))
    return Left(seconds, np.concatenate(shares), digest_of(map(_told, results)))


def _told(table: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Two numbers for each result, in which the values of all its four rows are."""
    a, b, c, d = (table[f"{name}.v"].to_numpy().view(np.int64) for name in STREAMS)
    return 3 * a + b, 3 * c + d


def measure(effort: Effort, say: Callable[[str], None]) -> Outcome:
    """Both ways in turn, over the same micro-batches; different results are an error."""
    pa.set_cpu_count(1)  # a task has one core
    batches = micro_batches(effort.rows, effort.share, effort.batches)
    found: dict[str, list[Left]] = {PLAIN: [], WAVES: []}
    for number in range(effort.rounds):
        for how, runs in found.items():
            say(f"a task, {how}, round {number + 1} of {effort.rounds}")
            runs.append(run(how, batches))
    digests = {each.digest for runs in found.values() for each in runs}
    if len(digests) > 1:
        raise UnequalResultsError("priorities changed the results: " + " and ".join(map(str, digests)))
    (digest,) = digests
    left = {
        how: Left([s for each in runs for s in each.seconds], np.concatenate([each.shares for each in runs]), digest)
        for how, runs in found.items()
    }
    return Outcome(effort, left)


def marks(shares: npt.NDArray[np.float64]) -> dict[str, float]:
    """When urgent results leave, as shares of the task's CPU time; nothing where none is urgent."""
    if not len(shares):
        return {}
    points = {f"p{at}": float(np.percentile(shares, at)) for at in (50, 90, 99)}
    return {"mean": float(shares.mean()), **points, "last": float(shares.max())}


def table_of(outcome: Outcome) -> Table:
    """A line for each way."""
    effort = outcome.effort
    table = new_table(
        f"Three joins in a task, {len(STREAMS)} streams, {effort.rows:,} rows of each in a micro-batch, "
        f"{effort.share:.0%} urgent; when urgent results leave, of the task's CPU time",
        "", "CPU s", "mean", "p50", "p90", "p99", "last", "results", "checksum",
    )  # fmt: skip
    for how, each in outcome.left.items():
        shown = [f"{value:.0%}" for value in marks(each.shares).values()] or [""] * 5
        seconds = f"{np.median(each.seconds):.3f}"
        table.add_row(how, seconds, *shown, f"{each.digest.count:,}", f"{each.digest.pairs or 0:016x}")
    return table
