"""The stages of a join: what is done with the packets of one bucket. Packets in, packets out; no Spark in here.

    JoinStage      rows and progress of the inputs -> final rows, or, where rows are replicated, what the bucket knows
    VerdictStage   what all buckets know           -> final rows

A batch is one call of `take`, then `end`. A stream is many calls of `take`, with a snapshot after each.
"""

from __future__ import annotations

import uuid
from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.operators import Court, Footprint, Output, Results, Rows
from streamjoin.plan.naming import INVALID_FLAG, LATE_FLAG
from streamjoin.plan.planner import JoinPlan
from streamjoin.runtime import finish, run_micro_batch
from streamjoin.spark.packing import Packet
from streamjoin.state import Batch, Blobs, Ends, Snapshot, table_to_bytes

StageName = Literal["join", "verdict", "lifetimes"]


class RunningStage(Protocol):
    """A stage at work in one bucket."""

    def take(self, packets: Iterable[Packet]) -> Iterator[Packet]:
        """One micro-batch: everything that has come for this bucket."""
        ...

    def tick(self, clock: int) -> Iterator[Packet]:
        """Nothing has come, and it is so late now."""
        ...

    def end(self) -> Iterator[Packet]:
        """Nothing comes any more: everything held leaves."""
        ...

    def figures(self) -> dict[str, int]:
        """What happened since the last `take` began, and what is kept."""
        ...

    def snapshot(self) -> Snapshot:
        """All that is needed to go on."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot."""
        ...


class Stage(Protocol):
    """A stage before it runs."""

    name: ClassVar[StageName]

    @property
    def identity(self) -> dict[str, str]:
        """What a stored state depends on, by name: a restart may differ in none of it."""
        ...

    def build(self, bucket: int) -> RunningStage:
        """The stage in one bucket, empty."""
        ...


def footprint_figures(footprint: Footprint) -> dict[str, int]:
    """What is kept, as figures."""
    return {"state_rows": footprint.rows, "state_bytes": footprint.nbytes, "state_runs": footprint.runs}


# -- joining -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JoinStage:
    """The join itself."""

    name: ClassVar[StageName] = "join"
    plan: JoinPlan

    @property
    def identity(self) -> dict[str, str]:
        """What a stored state depends on."""
        return self.plan.identity

    def build(self, bucket: int) -> RunningJoinStage:
        """The join in one bucket, empty."""
        return RunningJoinStage(self, bucket)


class RunningJoinStage:
    """The join in one bucket."""

    def __init__(self, config: JoinStage, bucket: int) -> None:
        self.plan, self.bucket = config.plan, bucket
        self.operator = config.plan.join_in(bucket).build()
        self.operator.home_test = partial(config.plan.at_home, bucket)
        self.arrivals = config.plan.arrivals.build()
        self.waiting: dict[str, Packet] = {}
        self.counted: Counter[str] = Counter()
        self.before: dict[str, int] = {}

    def take(self, packets: Iterable[Packet]) -> Iterator[Packet]:
        self._count_anew()
        arrived: dict[int, list[Batch]] = defaultdict(list)
        waiting, self.waiting = self.waiting, {}
        for packet in chain(waiting.values(), packets):
            if packet.kind == "rows":
                arrived[packet.number].append(Batch.from_table(packet.table))
            elif packet.kind == "progress":
                self._hear(packet.number, packet.report)
            else:
                assert packet.kind == "invalid"
                yield self._marked(INVALID_FLAG, packet.number, packet.table)
        batches = {number: Batch.concat(parts) for number, parts in arrived.items()}
        yield from self._run(batches)

    def put(self, packets: Iterable[Packet]) -> None:
        """Rows of an input that is there before the stream begins: they wait for the first micro-batch."""
        self.waiting |= {uuid.uuid4().hex: packet for packet in packets}

    def tick(self, clock: int) -> Iterator[Packet]:
        self._count_anew()
        self.arrivals.tick(clock)
        yield from self._run({})

    def has_seen(self, clock: int) -> bool:
        """Whether this bucket has looked for idle inputs at this time, or later."""
        return self.arrivals.clock is not None and self.arrivals.clock >= clock

    def end(self) -> Iterator[Packet]:
        yield from self.take(())
        for output in finish(self.operator):
            yield from self._send(output)
        yield from self._tell(FOREVER, FOREVER)

    def _run(self, batches: dict[int, Batch]) -> Iterator[Packet]:
        for output in run_micro_batch(self.operator, batches, self.arrivals.progress()):
            yield from self._send(output)
        yield from self._tell(self.operator.joined, self.operator.progress)

    def _hear(self, number: int, report: dict[str, Any]) -> None:
        self.arrivals.heard(number, report["largest"], report["clock"])

    def _send(self, output: Output) -> Iterator[Packet]:
        """Where something goes that leaves the operator: to the user, or to those who decide about it."""
        if isinstance(output, Results):
            if any(self.plan.followed):
                yield Packet(self.bucket, 0, "results", output.to_table())
            else:
                yield self._final(output)
        elif isinstance(output, Ends):
            raise AssertionError("ends of results are followed by whoever keeps them, before anything is sent")
        elif output.name == "late":
            yield self._marked(LATE_FLAG, output.input, output.batch.payload)
        else:
            yield from self._testify(output)

    def _testify(self, rows: Rows) -> Iterator[Packet]:
        assert rows.batch.origin is not None
        court = rows.batch.origin % self.plan.partitioning.buckets
        for bucket in np.unique(court):
            yield Packet(int(bucket), rows.input, rows.name, rows.batch.take(court == bucket).to_table())  # type: ignore[arg-type]

    def _tell(self, joined: int, to_come: int) -> Iterator[Packet]:
        """Every court hears how far this bucket is."""
        if any(self.plan.followed) and joined > NEVER:
            for court in range(self.plan.partitioning.buckets):
                yield Packet(court, self.bucket, "joined", {"joined": joined, "to_come": to_come})

    def _final(self, results: Results) -> Packet:
        self._count_out(len(results))
        table = self.plan.naming.assemble(results.payload, results.ts, results.te, retracted=results.retracted)
        return Packet(self.bucket, 0, "final", table)

    def _marked(self, flag: str, number: int, rows: Any) -> Packet:
        self._count_out(rows.num_rows)
        return Packet(self.bucket, number, "final", self.plan.naming.assemble_marked(flag, number, rows))

    def _count_out(self, rows: int) -> None:
        if self.plan.residual is None:  # otherwise Spark drops some of them, and those that are left are counted there
            self.counted["rows_out"] += rows

    def _count_anew(self) -> None:
        self.counted = Counter(rows_out=0)
        self.before = {"late": self.operator.figures["late"], "purged": self.operator.footprint.purged}

    def figures(self) -> dict[str, int]:
        footprint = self.operator.footprint
        figures = dict(self.counted) | footprint_figures(footprint)
        figures["late"] = self.operator.figures["late"] - self.before.get("late", 0)
        figures["purged"] = footprint.purged - self.before.get("purged", 0)
        for number, time in enumerate(self.operator.times.times):
            if NEVER < time < FOREVER:
                figures[f"progress_{number}"] = time
                figures[f"lag_{number}"] = max(0, (self.arrivals.newest or time) - time)
        return figures

    def snapshot(self) -> Snapshot:
        inner = self.operator.snapshot()
        waiting = Blobs(
            {f"waiting/{name}": partial(table_to_bytes, packet.table) for name, packet in self.waiting.items()}
        )
        manifest = {
            "operator": inner.manifest,
            "arrivals": self.arrivals.to_json(),
            "waiting": [[name, packet.number, packet.kind] for name, packet in self.waiting.items()],
        }
        return Snapshot(manifest, ChainMap(waiting, inner.blobs))  # type: ignore[arg-type]

    def restore(self, snapshot: Snapshot) -> None:
        self.waiting = {
            name: Packet.of(self.bucket, number, kind, snapshot.blobs[f"waiting/{name}"])
            for name, number, kind in snapshot.manifest["waiting"]
        }
        self.operator.restore(Snapshot(snapshot.manifest["operator"], snapshot.blobs))
        self.arrivals.restore(snapshot.manifest["arrivals"])


# -- deciding ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VerdictStage:
    """The second stage, where rows are replicated over buckets and some must know that they met nobody."""

    name: ClassVar[StageName] = "verdict"
    plan: JoinPlan

    @property
    def identity(self) -> dict[str, str]:
        """What a stored state depends on."""
        return self.plan.identity

    def build(self, bucket: int) -> RunningVerdictStage:
        """The court of one bucket, empty."""
        return RunningVerdictStage(self, bucket)


class RunningVerdictStage:
    """The court of one bucket."""

    def __init__(self, config: VerdictStage, bucket: int) -> None:
        plan = config.plan
        self.plan, self.bucket, self.rows_out = plan, bucket, 0
        self.court = Court(plan.verdicts(), plan.partitioning.buckets, plan.node.emit == "ordered").build()

    def take(self, packets: Iterable[Packet]) -> Iterator[Packet]:
        self.rows_out = 0
        for packet in packets:
            if packet.kind == "final":
                yield packet
            elif packet.kind == "results":
                yield from self._final(self.court.on_results(Results.from_table(packet.table)))
            elif packet.kind == "joined":
                self.court.on_progress(packet.number, packet.report["joined"], packet.report["to_come"])
            else:
                self.court.on_testimony(packet.number, packet.kind, Batch.from_table(packet.table))
        yield from self._final(self.court.decide())

    def tick(self, clock: int) -> Iterator[Packet]:
        yield from ()

    def end(self) -> Iterator[Packet]:
        self.rows_out = 0
        yield from self._final(self.court.on_end())

    def _final(self, results: Iterator[Results]) -> Iterator[Packet]:
        for some in results:
            self.rows_out += len(some)
            yield Packet(self.bucket, 0, "final", self.plan.naming.assemble(some.payload, some.ts, some.te))

    def figures(self) -> dict[str, int]:
        return footprint_figures(self.court.footprint) | {"rows_out": self.rows_out}

    def snapshot(self) -> Snapshot:
        inner = self.court.snapshot()
        return Snapshot({"operator": inner.manifest}, inner.blobs)

    def restore(self, snapshot: Snapshot) -> None:
        self.court.restore(Snapshot(snapshot.manifest["operator"], snapshot.blobs))
