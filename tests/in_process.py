"""Physical plans without a JVM, in trouble: everything that crosses a task boundary goes through bytes; after each
micro-batch every bucket is saved, in a store that writes a blob once, and now and then it is restored.
"""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import pyarrow as pa

from streamjoin.algebra import NEVER
from streamjoin.operators.tpmj import Shares, Tpmj
from streamjoin.plan.lowering import Leaving, SourceInfo, lower
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Relation
from streamjoin.plan.types import Field, plain_type
from streamjoin.runtime.lateness import Complete, Lateness, RunningLateness, Slack, Timeless
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage, Stage
from tests.interpreter import InProcess, PlainTyping
from tests.state.storing import Store

# A folder for state that does not fit: stages have hardly any memory then.
SCRATCH: ContextVar[str | None] = ContextVar("scratch", default=None)


@dataclass(frozen=True)
class Told(Lateness):
    """A source whose progress is told from outside: by whoever plays a case that has drawn it."""

    def build(self) -> RunningLateness:
        return RunningTold()


class RunningTold(RunningLateness):
    def heard(self, report: dict[str, Any]) -> None:
        self.largest = max(self.largest, report.get("largest") or NEVER)
        self.promised = max(self.promised, report.get("told", NEVER))


def source(
    name: str, schema: pa.Schema, lateness: Lateness | int | None = None, *, label: str | None = None, **options: Any
) -> SourceInfo:
    """A frame with this schema; a number is a slack, nothing a batch."""
    fields = tuple(Field(each.name, plain_type(each.type)) for each in schema)
    policy = Complete() if lateness is None else Slack(lateness) if isinstance(lateness, int) else lateness
    streaming = not isinstance(policy, Complete) or isinstance(policy, Timeless)
    return SourceInfo(name, fields, label or f"stream {name}", policy, streaming, **options)


def plan_of(
    relation: Relation,
    schemas: Mapping[str, pa.Schema],
    lateness: Mapping[str, Lateness | int | None] | None = None,
    leaving: Leaving = Leaving(),  # noqa: B008
    **options: Any,
) -> PhysicalPlan:
    """The plan of a tree over frames with these schemas."""
    known = lateness or {}
    infos = {name: source(name, schema, known.get(name), **options) for name, schema in schemas.items()}
    return lower(relation, infos, PlainTyping(), leaving)


def _rebudgeted(stage: Stage, luck: random.Random) -> Stage:
    """Joins in sorted runs may have more memory whenever they go on elsewhere."""

    def more(config: Any) -> Any:
        if not isinstance(config, Tpmj):
            return config
        return replace(config, memory=Shares(*(each * luck.choice((1, 1, 2, 7)) for each in astuple(config.memory))))

    return replace(stage, nodes=tuple(replace(node, config=more(node.config)) for node in stage.nodes))


@dataclass
class Troubled(InProcess):
    """A plan at work whose buckets are moved elsewhere now and then."""

    rng: random.Random = field(default_factory=lambda: random.Random(0))
    trouble: float = 0.0
    stores: dict[tuple[int, int], Store] = field(default_factory=dict)
    news: dict[str, int] = field(default_factory=dict)  # progress that is told with this micro-batch

    def __post_init__(self) -> None:
        self.plan = _travelled(self.plan)
        self.spilled = 0  # bytes of state in files, at most
        self.resumed = 0  # times that a bucket went on elsewhere in the middle of a merge of sorted runs
        self.luck = random.Random(self.rng.getstate()[1][1])  # of its own: cases shall be drawn as without a budget
        self.memory = None if SCRATCH.get() is None else self.luck.choice((1, 1, 1_000, 4_000))

    def rows(self, tables: Mapping[str, pa.Table]) -> list[pa.Table]:
        """Rows arrive, in partitions of any size."""
        return list(self.micro_batch({name: self.partitions(table) for name, table in tables.items()}))

    def told(self, tables: Mapping[str, pa.Table], progress: Mapping[str, int]) -> list[pa.Table]:
        """Rows arrive, and then the progress of sources that is `Told`."""
        self.news = dict(progress)
        left = self.rows(tables)
        self.news = {}
        return left

    def finished(self) -> list[pa.Table]:
        """Nothing comes any more; what leaves."""
        return list(self.end())

    def move(self) -> None:
        """All buckets go on elsewhere."""
        for number, bucket in self.running:
            self.running[number, bucket] = self._restored(number, bucket)

    def partitions(self, table: pa.Table) -> list[pa.Table]:
        at = sorted(self.rng.randint(0, table.num_rows) for _ in range(self.rng.randint(0, 2)))
        return [table.slice(start, stop - start) for start, stop in zip([0, *at], [*at, table.num_rows], strict=True)]

    def _source(self, source: Any, partitions: Any, clock: Any, arrived: Any, left: Any) -> None:
        super()._source(source, partitions, clock, arrived, left)
        news = self.news.get(source.name)
        if news is not None and source.target is not None:
            arrived[source.channel] += source.target.everywhere("progress", {"told": news})

    def travelled(self, packets: Iterable[Packet]) -> Iterable[Packet]:
        for packet in packets:
            for blob in packet.blobs():
                yield Packet.of(packet.bucket, packet.channel, packet.kind, blob)

    def _stage(self, number: int, bucket: int) -> RunningStage:
        known = self.running.get((number, bucket))
        if known is None or self.rng.random() < self.trouble:
            self.running[number, bucket] = self._restored(number, bucket)
        return self.running[number, bucket]

    def _restored(self, number: int, bucket: int) -> RunningStage:
        stage, scratch = _travelled(self.plan.stages[number]), SCRATCH.get()
        if scratch is not None:
            # Often the files are found again; elsewhere they have to be made anew.
            scratch = os.path.join(scratch, str(self.luck.randint(0, 1)), f"{number}-{bucket}")
            stage = replace(stage, memory=self.memory)
        fresh: RunningStage = _rebudgeted(stage, self.luck).build(bucket, scratch)
        if (number, bucket) in self.stores:
            stored = self.stores[number, bucket].load()
            fresh.restore(stored)
            trees = [each["tree"] for each in stored.manifest["operators"] if "tree" in each]
            self.resumed += sum(tree["merge"] is not None for tree in trees)
        return fresh

    def ran(self, number: int, bucket: int, running: RunningStage, *, end: bool) -> None:
        super().ran(number, bucket, running, end=end)
        self.spilled = max(self.spilled, running.figures()["spilled_bytes"])
        self.stores.setdefault((number, bucket), Store()).save(running.snapshot())
        assert not end or running.figures()["state_rows"] == 0, "state is left after the end"

    def figure(self, name: str) -> int:
        """A figure of the last micro-batch, over all tasks."""
        return sum(figures.get(name, 0) for figures in self.figures)

    @property
    def state_rows(self) -> int:
        """Rows that all buckets keep."""
        return sum(running.figures()["state_rows"] for running in self.running.values())


def _travelled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))
