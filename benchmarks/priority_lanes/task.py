"""In a task: when do urgent results of a fragment of three joins leave, and what does it cost?

    A --\
    B ---- join --\
    C ------------- join --\
    D ---------------------- join --> out        all by one key, so one stage, in one task

The task is that of a stream, with the code that a worker runs for it (`spark.stored.bucket`):

    packed rows --> packets --> three joins --> what leaves, as packed rows
                                    |
                                    --> the state of this micro-batch: saved in the store, and in a file of this host

The store is a dictionary. Not in the task: packing of sources, which tasks before it do, and all that Spark does around
it: the socket to its store and the database behind that, and whoever takes what leaves.

The same micro-batches pass without priorities and in waves, in turn, one by one, each way with a state of its own. Of
each urgent result: at which share of the task's CPU time is a handler told of it (`urgent=`)? What counts is the last
one of a micro-batch, in the median of micro-batches. Beside it stand the shares of the task without saving, and of the
joins alone, from packets to packets. What waves cost is the median of micro-batches too, each beside itself without.
"""

from __future__ import annotations

import gc
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from rich.table import Table

from benchmarks.digest import Digest, digest_of
from benchmarks.errors import BenchmarkError, UnequalResultsError
from benchmarks.race import Verdict
from benchmarks.tables import new_table
from streamjoin.algebra import Equals, Range
from streamjoin.plan.identity import identity_of
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Join, Relation, Stream
from streamjoin.plan.types import Field, plain_type
from streamjoin.runtime.lateness import Slack
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.running.packed import COLUMNS
from streamjoin.spark.running.tasks import PackSource
from streamjoin.spark.stored import bucket
from streamjoin.spark.stored.blob_cache import cache_root
from streamjoin.spark.stored.processor import Clock, StateVariables
from streamjoin.state import table_from_bytes
from streamjoin.state.giving_back import take_from_heap
from tests.interpreter import PlainTyping, prepared

STREAMS: Final = "ABCD"
WINDOW: Final = 100_000
SCHEMA: Final = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64()), ("p", pa.int64())])


PLAIN, WAVES = "plain", "waves"
WARM: Final = 2  # micro-batches that do not count: the state fills
LEFT_BY: Final = 0.6  # of the task's CPU time
ADDED: Final = 1.1  # times the CPU time without priorities
Whole = Literal["task", "without saving", "joins"]  # of which a share is told
WHOLES: Final[tuple[Whole, ...]] = ("task", "without saving", "joins")


@dataclass(frozen=True)
class Effort:
    """Rows of a stream in a micro-batch, the share of urgent ones, micro-batches, and how often they all pass."""

    rows: int = 250_000
    share: float = 0.01
    batches: int = 12
    rounds: int = 3


FULL: Final = Effort()
QUICK: Final = Effort(rows=5_000, batches=4, rounds=1)


@dataclass(frozen=True)
class Took:
    """A micro-batch in CPU seconds: the task, of that its saving, and the joins. And its urgent results: seconds of the
    task and of the joins until they left, and how many.
    """

    task: float
    saving: float
    joins: float
    left: tuple[tuple[float, float, int], ...]
    digest: Digest

    def shares(self, whole: Whole = "task") -> npt.NDArray[np.float64]:
        """When urgent results left, one by one."""
        in_task, in_joins, rows = np.array(self.left, np.float64).reshape(-1, 3).T
        if whole == "joins":
            return np.repeat(in_joins / self.joins, rows.astype(np.int64))
        of = self.task if whole == "task" else self.task - self.saving
        return np.repeat(in_task / of, rows.astype(np.int64))


@dataclass(frozen=True)
class Outcome:
    """The micro-batches that count, of all rounds, both ways: those at one place are the same rows."""

    effort: Effort
    took: dict[str, list[Took]]

    @property
    def costs(self) -> list[float]:
        """Of each micro-batch, its CPU time in waves over that without."""
        both = zip(self.took[WAVES], self.took[PLAIN], strict=True)
        return [waves.task / plain.task for waves, plain in both]

    def last(self, whole: Whole = "task") -> list[float]:
        """Of each micro-batch that has urgent results, when the last of them left."""
        return [float(shares.max()) for each in self.took[WAVES] if len(shares := each.shares(whole))]

    @property
    def verdicts(self) -> list[Verdict]:
        """What must come out: medians of micro-batches."""
        last, cost = self.last(), float(np.median(self.costs))
        found = float(np.median(last))
        mean = float(np.concatenate([each.shares() for each in self.took[WAVES]]).mean())
        unsaved, joins = (float(np.median(self.last(whole))) for whole in WHOLES[1:])
        left = (
            f"the last at {found:.0%} (the latest of {len(last)} micro-batches at {max(last):.0%}), on average at "
            f"{mean:.0%} of the task's CPU time; the last at {unsaved:.0%} without saving, {joins:.0%} of the joins"
        )
        low, high = np.percentile(self.costs, (25, 75))
        added = f"{cost:.3f}, half of the micro-batches between {low:.3f} and {high:.3f}"
        return [
            Verdict("task: urgent results have left", found, LEFT_BY, left, at_most=True),
            Verdict("task: CPU time over that without priorities", cost, ADDED, added, at_most=True),
        ]

    def to_json(self) -> dict[str, Any]:
        left = {
            how: {
                "seconds": [each.task for each in took],
                "saving": [each.saving for each in took],
                "joins": [each.joins for each in took],
                **asdict(total(took)),
            }
            for how, took in self.took.items()
        }
        marked = {whole: marks(self, whole) for whole in WHOLES}
        verdicts = [each.to_json() for each in self.verdicts]
        return {**asdict(self.effort), "left": left, "costs": self.costs, "marks": marked, "verdicts": verdicts}


# -- what runs ---------------------------------------------------------------------------------------------------------


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
    assert [len(stage.nodes) for stage in made.stages] == [3]
    return made


def micro_batch(effort: Effort, number: int) -> dict[str, pa.Table]:
    """Rows of one each tick; keys so that a row has about one partner in a window."""
    rng, batch, rows = np.random.default_rng((7, number)), {}, effort.rows
    for name in STREAMS:
        ts = np.arange(number * rows, (number + 1) * rows)
        urgent = np.where(rng.random(rows) < effort.share, 10, 0)
        columns = [ts, rng.integers(0, WINDOW, rows), rng.random(rows), urgent]
        batch[name] = pa.table([pa.array(each) for each in columns], schema=SCHEMA)
    return batch


class Variable:
    """A variable of the store: a value, or a map."""

    def __init__(self) -> None:
        self.value: Any = None
        self.pages: dict[Any, Any] = {}

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        self.pages[key] = value

    def removeKey(self, key: Any) -> None:  # noqa: N802
        del self.pages[key]


@dataclass
class TimedBucket(bucket.Bucket):
    """A bucket that counts the CPU seconds of its joins and of its saving, and those of them that are over when urgent
    results leave.
    """

    began: float = 0.0
    joins: float = 0.0
    saving: float = 0.0
    left: list[tuple[float, float, int]] = field(default_factory=list)
    running: RunningStage | None = None

    def told(self, table: pa.Table, batch: int, number: int) -> None:
        """Urgent results have left."""
        self.left.append((time.process_time() - self.began, self.joins, table.num_rows))

    def _run(
        self, known: bucket.Remembered, packets: Iterator[Packet], read: int, clock: Clock
    ) -> Iterator[pd.DataFrame]:
        if self.running not in (None, known.stage):
            raise BenchmarkError(
                "the state of a task was forgotten between micro-batches", hint="more memory, or fewer rows"
            )
        self.running = known.stage
        yield from super()._run(known, self._joined(packets), read, clock)

    def _joined(self, packets: Iterator[Packet]) -> Iterator[Packet]:
        while True:
            began = time.process_time()
            packet = next(packets, None)
            self.joins += time.process_time() - began
            if packet is None:
                return
            yield packet

    def _save(self, known: bucket.Remembered, figures: dict[str, int] | None = None) -> None:
        began = time.process_time()
        super()._save(known, figures)
        self.saving += time.process_time() - began


class Way:
    """One way, with a state of its own, from the first micro-batch on."""

    def __init__(self, how: str) -> None:
        self.plan = plan(prioritised=how == WAVES)
        (stage,) = self.plan.stages
        self.labels = bucket_labels(stage.buckets)
        variables = StateVariables(Variable(), Variable(), Variable(), Variable())
        self.bucket = TimedBucket(
            uuid.uuid4().hex, stage, self.labels, "{}", identity_of(self.plan, stage), None, variables
        )
        if how == WAVES:
            self.bucket.urgent = self.bucket.told

    def packed(self, batch: dict[str, pa.Table]) -> pd.DataFrame:
        """A micro-batch as it comes to the task."""
        rows = []
        for source in self.plan.sources:
            task = PackSource(source, self.labels, told=True)
            for each in task(prepared(source, batch[source.name]).to_batches()):
                rows += [row for row in each.to_pylist() if row["kind"] != "figures"]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def take(self, batch: dict[str, pa.Table]) -> Took:
        """A micro-batch passes."""
        frames, task = [self.packed(batch)], self.bucket
        gc.collect()  # what the other way has left behind
        task.joins, task.saving, task.left = 0.0, 0.0, []
        task.began = time.process_time()
        sent = list(task.take(frames, lambda: 0))
        took = time.process_time() - task.began
        return Took(took, task.saving, task.joins, tuple(task.left), digest_of(map(_told, _results(sent))))

    def forget(self) -> None:
        """What it has left on this host."""
        for state, known in list(bucket._remembered.items()):
            if known.stage is self.bucket.running:
                del bucket._remembered[state]
                shutil.rmtree(cache_root() / state, ignore_errors=True)


def _results(frames: list[pd.DataFrame]) -> Iterator[pa.Table]:
    for frame in frames:
        for kind, blob in zip(frame["kind"], frame["blob"], strict=True):
            if kind == "final":
                yield table_from_bytes(blob)


def _told(table: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Two numbers for each result, in which the values of all its four rows are."""
    a, b, c, d = (table[f"{name}.v"].to_numpy().view(np.int64) for name in STREAMS)
    return 3 * a + b, 3 * c + d


def measure(effort: Effort, say: Callable[[str], None]) -> Outcome:
    """Both ways in turn, micro-batch by micro-batch; different results are an error."""
    pa.set_cpu_count(1)  # a task has one core
    take_from_heap()  # as every worker does
    took: dict[str, list[Took]] = {PLAIN: [], WAVES: []}
    for each in range(effort.rounds):
        ways = {how: Way(how) for how in took}
        try:
            for number in range(effort.batches):
                say(f"a task, round {each + 1} of {effort.rounds}, micro-batch {number + 1} of {effort.batches}")
                batch = micro_batch(effort, number)
                # Each way is the first as often as the other: it finds what the other has left of caches and memory.
                turn = list(ways) if (each + number) % 2 else list(ways)[::-1]
                found = {how: ways[how].take(batch) for how in turn}
                if found[PLAIN].digest != found[WAVES].digest:
                    said = " and ".join(str(one.digest) for one in found.values())
                    raise UnequalResultsError(f"priorities changed the results: {said}")
                if number >= WARM:
                    for how, one in found.items():
                        took[how].append(one)
        finally:
            for way in ways.values():
                way.forget()
    return Outcome(effort, took)


# -- what is said ------------------------------------------------------------------------------------------------------


def total(took: list[Took]) -> Digest:
    """The digest of all results of the micro-batches that count."""
    digests = [each.digest for each in took]
    sums = [sum(getattr(each, name) for each in digests) % (1 << 64) for name in ("pairs", "left", "right")]
    return Digest(sum(each.count for each in digests), *sums)


def marks(outcome: Outcome, whole: Whole = "task") -> dict[str, float]:
    """When urgent results leave, all of them, and of micro-batches the last; nothing where none is urgent."""
    if not (last := outcome.last(whole)):
        return {}
    shares = np.concatenate([each.shares(whole) for each in outcome.took[WAVES]])
    points = {f"p{at}": float(np.percentile(shares, at)) for at in (50, 90, 99)}
    return {"mean": float(shares.mean()), **points, "last": float(np.median(last)), "latest": max(last)}


def table_of(outcome: Outcome) -> Table:
    """A line for each way, and for the other wholes of which a share can be told."""
    effort = outcome.effort
    table = new_table(
        f"Three joins in a task, {len(STREAMS)} streams, {effort.rows:,} rows of each in a micro-batch, "
        f"{effort.share:.0%} urgent; when urgent results leave, of the CPU time",
        "", "CPU s", "mean", "p50", "p90", "p99", "last, median", "latest", "results", "checksum",
    )  # fmt: skip
    seconds: dict[Whole, Callable[[Took], float]] = {
        "task": lambda each: each.task,
        "without saving": lambda each: each.task - each.saving,
        "joins": lambda each: each.joins,
    }
    for how, took in outcome.took.items():
        found = total(took)
        for whole in WHOLES:
            marked = marks(outcome, whole) if how == WAVES else {}
            shown = [f"{value:.0%}" for value in marked.values()] or [""] * 6
            said = [f"{found.count:,}", f"{found.pairs or 0:016x}"] if whole == "task" else ["", ""]
            median = float(np.median([seconds[whole](each) for each in took]))
            table.add_row(f"{how}, {whole}", f"{median:.3f}", *shown, *said)
    return table
