"""The row window: the newest n elements, of all or of each group.

Law: an element ends when the n-th later one starts, by (time stamp, arrival). That one is known when progress has
reached its time stamp: whatever comes afterwards is later, or came later at the same time.

    n = 2    3 -----.        elements at 3, 5, 8, ...
               5 ----|--.
                 8 --'  |    the one at 3 ends at 8
                   9 ---'    the one at 5 ends at 9; those at 8 and 9 have a holder as long as nobody follows

Elements go on in the micro-batch in which they come, with their end where it is known by then, and with a holder where
it is not; ends follow when they are learned. Only time stamps and holders are kept (`RowRings`), so the size of the
payload does not matter here. When the input ends, the last elements have no end; with `drain` they end one tick after
the last time stamp of the input.

After Imaki and Nishizawa's direct method. Cost: a sort of what progress has reached, then O(1) per element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, NEVER, Progress
from streamjoin.algebra.interval import saturating_add
from streamjoin.operators.contract import Footprint, Operator, Output, Results
from streamjoin.operators.joining import check_snapshot, described, whole_snapshot
from streamjoin.state import Batch, Catalogue, Ends, RowRings, Snapshot, TimeQueue
from streamjoin.state.batch import Indices
from streamjoin.state.holders import NO_HOLDER, first_holder


@dataclass(frozen=True)
class RowWindow:
    """The newest `size` elements; with `by`, columns of the proof, of each group. `build()` makes the running operator.

    `producer` and `bucket` set its holders apart from those of others.
    """

    size: int
    by: pa.Schema = field(default_factory=lambda: pa.schema([]))
    drain: bool = False
    producer: int = 0
    bucket: int = 0

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr(("row window", self.size, described([self.by]), self.drain, self.producer, self.bucket))

    def build(self) -> RunningRowWindow:
        """The running operator, empty."""
        return RunningRowWindow(self)


@dataclass
class RunningRowWindow(Operator):
    """A row window at work. The batches' proof has the columns that make a group."""

    config: RowWindow
    inputs: int = 1
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = Progress(1)
        self.groups = Catalogue(self.config.by)
        self.rings = RowRings(self.config.size)
        self.unordered = TimeQueue()  # time stamps that progress has not reached
        self.arrived: list[Batch] = []  # in this micro-batch
        self.next_holder = first_holder(self.config.producer, self.config.bucket)
        self.last = NEVER
        self.figures = {"rows_in": 0, "results": 0}

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        holder = np.arange(self.next_holder, self.next_holder + len(batch))
        self.next_holder += len(batch)
        columns = {"holder": holder}
        if self.config.by.names:
            assert batch.proof is not None
            columns["group"] = self.groups.codes(batch.proof, len(batch))
        self.unordered.add(batch.ts, pa.table(columns))
        self.arrived.append(replace(batch, holder=holder))
        self.last = max(self.last, int(batch.ts.max()))
        yield from ()

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(0, time)
        ends = self._order()
        if time == FOREVER:
            left = self.rings.drain()
            end = int(saturating_add(np.array([self.last]), 1)[0]) if self.config.drain else FOREVER
            ends = Ends.concat([ends, Ends(left, np.full(len(left), end))])
        yield from self._pass_on(ends)

    def on_end(self) -> Iterator[Output]:
        yield from self.on_progress(0, FOREVER)

    def _order(self) -> Ends:
        """Elements that progress has reached take their place; what ends thereby."""
        reached = self.times.of(0)
        due = self.unordered.take(reached + 1 if reached < FOREVER else FOREVER)
        if due is None:
            return Ends(np.empty(0, np.int64), np.empty(0, np.int64))
        ts, rows = due
        # Holders are given out in the order of arrival.
        group = rows["group"].to_numpy() if self.config.by.names else None
        return self.rings.follow(group, ts, rows["holder"].to_numpy())

    def _pass_on(self, ends: Ends) -> Iterator[Output]:
        """The elements that have arrived, with their ends if those are known; and ends of earlier ones."""
        arrived, self.arrived = self.arrived, []
        if arrived:
            batch = Batch.concat(arrived)
            assert batch.holder is not None
            first = int(batch.holder[0])
            te, holder = np.full(len(batch), FOREVER), batch.holder
            ends, new = ends.split(first)
            if len(new):
                known: Indices | slice = new.holder - first
                least, rows = int(new.holder[0]) - first, len(new)
                if (new.holder[1:] - new.holder[:-1] == 1).all():
                    known = slice(least, least + rows)
                te[known] = new.te
                holder = holder.copy()
                holder[known] = NO_HOLDER
            self.figures["results"] += len(batch)
            unknown: Indices | None = holder if (holder >= 0).any() else None
            yield Results(batch.payload, batch.ts, te, holder=unknown)
        if len(ends):
            yield ends

    @property
    def progress(self) -> int:
        return self.times.of(0)

    @property
    def footprint(self) -> Footprint:
        nbytes = self.rings.nbytes + self.unordered.nbytes + self.groups.nbytes
        return Footprint(self.rings.rows + len(self.unordered), nbytes, len(self.rings.parts))

    def snapshot(self) -> Snapshot:
        assert not self.arrived, "a snapshot is taken between micro-batches"
        parts = [self.groups.snapshot("groups"), self.rings.snapshot("rings"), self.unordered.snapshot("unordered")]
        whole = whole_snapshot(self.config.fingerprint, self.times, self.figures, parts)
        whole.manifest |= {"next_holder": self.next_holder, "last": self.last}
        return whole

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        manifest = snapshot.manifest
        self.times = Progress(1, list(manifest["progress"]))
        self.figures = dict(manifest["figures"])
        self.next_holder, self.last = manifest["next_holder"], manifest["last"]
        parts: tuple[Catalogue | RowRings | TimeQueue, ...] = (self.groups, self.rings, self.unordered)
        for part, stored in zip(parts, manifest["parts"], strict=True):
            part.restore(Snapshot(stored, snapshot.blobs))
