"""The outlet of a stage in one bucket: what leaves it, when, and in which form.

*When*: to another stage at once, with holders for ends that are not known. Out of the query only when ends are known
("settled"), since nobody could change what has left; or, in a changelog, as it is told. With ordered emission results
wait until nothing earlier can come.

*In which form*, by the way it goes:

    ToStage    packed for the buckets of the next stage, directly
    ToCourt    to the same bucket of a stage that decides about replicated rows
    ToFrame    rows of elements, because Spark has something to compute; reports are rows among them
    ToUser     rows as the user sees them

Each says how `results` go, how readers are told (`tell`) of ends and progress, and how rows that pass are `shown`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.algebra.policy import ADDED
from streamjoin.operators import Footprint, Output, Results, Waiting
from streamjoin.operators.ordering import HeldResults
from streamjoin.runtime.elements import element_rows, report_rows
from streamjoin.runtime.naming import Mark, Shape
from streamjoin.runtime.packets import Kind, Packet, Report
from streamjoin.runtime.target import Target, Testimony, to_all
from streamjoin.state import Batch, Ends, Snapshot

# To another operator; or out of the query, when ends are known, or in a changelog at once.
Leaves = Literal["passed on", "settled", "told"]


@dataclass(frozen=True)
class ToStage:
    """To the buckets of the next stage."""

    target: Target

    @property
    def channel(self) -> int:
        """What the next stage knows it by."""
        return self.target.channel

    def results(self, bucket: int, results: Results) -> Iterator[Packet]:
        yield from self.target.rows(results)

    def tell(self, bucket: int, kind: Kind, content: Any) -> Iterator[Packet]:
        yield from self.target.everywhere(kind, content)

    def shown(self, bucket: int, packet: Packet) -> Iterator[Packet]:
        yield Packet(bucket % self.target.buckets, packet.channel, packet.kind, packet.content)


@dataclass(frozen=True)
class ToCourt:
    """To the same bucket of a stage that has as many."""

    channel: int
    buckets: int

    def results(self, bucket: int, results: Results) -> Iterator[Packet]:
        group = np.zeros(len(results), np.int64)
        batch = Batch(results.payload, results.ts, results.te, group, holder=results.holder, priority=results.priority)
        yield Packet(bucket, self.channel, "rows", batch.to_table())

    def tell(self, bucket: int, kind: Kind, content: Any) -> Iterator[Packet]:
        if kind == "ends":  # of results that went there: each other bucket would tell its readers of them once more
            yield Packet(bucket, self.channel, kind, content)
        else:
            yield from to_all(self.buckets, self.channel, kind, content)

    def shown(self, bucket: int, packet: Packet) -> Iterator[Packet]:
        yield Packet(bucket, packet.channel, packet.kind, packet.content)


@dataclass(frozen=True)
class ToFrame:
    """As rows of elements with these columns."""

    channel: int
    schema: pa.Schema
    prioritised: bool = field(default=False, metadata=ADDED)

    def results(self, bucket: int, results: Results) -> Iterator[Packet]:
        yield Packet(bucket, self.channel, "final", element_rows(results, prioritised=self.prioritised))

    def tell(self, bucket: int, kind: Kind, content: Any) -> Iterator[Packet]:
        yield from self.shown(bucket, Packet(bucket, self.channel, kind, content))

    def shown(self, bucket: int, packet: Packet) -> Iterator[Packet]:
        yield Packet(bucket, self.channel, "final", report_rows(self.schema, packet, prioritised=self.prioritised))


@dataclass(frozen=True)
class ToUser:
    """As rows of this shape."""

    channel: int
    shape: Shape

    def alive(self, results: Results) -> Results:
        """Those that are in any snapshot: what ends where it begins is shown to nobody. Events have no validity."""
        if self.shape.validity is None:
            return results
        alive = results.ts < results.te
        return results if alive.all() else results.take(alive)

    def results(self, bucket: int, results: Results) -> Iterator[Packet]:
        yield Packet(bucket, self.channel, "final", self.shape.assemble(results))

    def tell(self, bucket: int, kind: Kind, content: Any) -> Iterator[Packet]:
        assert kind != "ends", "what leaves a query has its end"
        yield from ()  # nobody asks how far a stage is

    def shown(self, bucket: int, packet: Packet) -> Iterator[Packet]:
        rows = self.shape.assemble_marked(cast(Mark, packet.kind), packet.channel, packet.table)
        yield Packet(bucket, self.channel, "final", rows)


Way = ToStage | ToCourt | ToFrame | ToUser


@dataclass(frozen=True)
class Outlet:
    """What leaves a stage, and how. `testimony`: where word of replicated rows goes."""

    way: Way
    leaves: Leaves = "passed on"
    ordered: bool = False
    testimony: tuple[Testimony, ...] = ()

    @property
    def packed(self) -> bool:
        """Whether packets leave for another stage, and not rows."""
        return isinstance(self.way, ToStage | ToCourt)


class RunningOutlet:
    """The outlet of one bucket."""

    def __init__(self, config: Outlet, bucket: int) -> None:
        self.config, self.bucket = config, bucket
        self.waiting, self.held = Waiting(), HeldResults()
        self.said = (NEVER, NEVER)  # what readers have heard of this bucket
        self.rows_out = 0

    def send(self, output: Output) -> Iterator[Packet]:
        """Something leaves the fragment."""
        if isinstance(output, Results):
            yield from self._results(output)
        elif isinstance(output, Ends):
            if self.config.leaves == "settled":
                for results in self.waiting.settle(output):
                    yield from self._in_turn(results)
            else:
                yield from self.config.way.tell(self.bucket, "ends", output.to_table())
        else:
            said = output.name, output.input
            where = next(each for each in self.config.testimony if (each.name, each.input) == said)
            yield from where.rows(output)

    def _results(self, results: Results) -> Iterator[Packet]:
        if self.config.leaves != "settled" or (results.holder is None and results.sign is None):
            yield from self._in_turn(results)
            return
        take = self.waiting.take if results.sign is None else self.waiting.take_changes
        for known in take(results):
            yield from self._in_turn(known)

    def _in_turn(self, results: Results) -> Iterator[Packet]:
        if self.config.leaves == "settled" and isinstance(self.config.way, ToUser):
            results = self.config.way.alive(results)
        if self.config.ordered:
            results = self.held.kept_back(results)
        if len(results):
            self.rows_out += len(results)
            yield from self.config.way.results(self.bucket, results)

    def shown(self, packet: Packet) -> Iterator[Packet]:
        """Rows that only pass."""
        self.rows_out += packet.table.num_rows
        yield from self.config.way.shown(self.bucket, packet)

    def move(self, progress: int, joined: int, clock: int | None = None, *, awake: bool = True) -> Iterator[Packet]:
        """The fragment has come so far: nothing earlier leaves it any more, and rows until `joined` have met all.

        With a clock readers are told in any case: that this bucket is awake, or, as a source would, that nothing but
        urgent rows has come to it.
        """
        if self.config.ordered:
            for results in self.held.release(min(progress, self.waiting.first)):
                self.rows_out += len(results)
                yield from self.config.way.results(self.bucket, results)
        if (progress, joined) == self.said and clock is None:
            return
        self.said = progress, joined
        report: Report = {"bucket": self.bucket}
        if clock is not None:
            report |= {"clock": clock} | ({} if awake else {"urgent": True})
        yield from self.config.way.tell(self.bucket, "progress", report | {"progress": progress})
        for each in self.config.testimony:
            yield from to_all(each.buckets, each.channel, "progress", report | {"progress": joined})

    def end(self) -> Iterator[Packet]:
        """Nothing leaves the fragment any more."""
        for results in self.waiting.finish():
            yield from self._in_turn(results)
        yield from self.move(FOREVER, FOREVER)

    @property
    def footprint(self) -> Footprint:
        """What waits here."""
        return self.waiting.footprint + self.held.footprint

    def snapshot(self) -> Snapshot:
        """All that is needed to go on."""
        waiting, held = self.waiting.snapshot("waiting"), self.held.snapshot("held")
        blobs: Any = ChainMap(waiting.blobs, held.blobs)  # type: ignore[arg-type]
        return Snapshot({"waiting": waiting.manifest, "held": held.manifest, "said": list(self.said)}, blobs)

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.waiting.restore(Snapshot(snapshot.manifest["waiting"], snapshot.blobs))
        self.held.restore(Snapshot(snapshot.manifest["held"], snapshot.blobs))
        self.said = tuple(snapshot.manifest["said"])
