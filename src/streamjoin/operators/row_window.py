"""The row window: the newest n elements, of all or of each group.

Law: an element ends when the n-th later one starts, by (time stamp, arrival). That one is known when progress has
reached its time stamp: whatever comes afterwards is later, or came later at the same time.

    n = 2    3 -----.        elements at 3, 5, 8, ...
               5 ----|--.
                 8 --'  |    the one at 3 ends at 8
                   9 ---'    the one at 5 ends at 9; those at 8 and 9 have a holder as long as nobody follows

Elements go on in the micro-batch in which they come, with their end where it is known by then, and with a holder where
it is not; ends follow when they are learned. Only time stamps and holders are kept (`RowOrder`), so the size of the
payload does not matter here. When the input ends, the last elements have no end; with `drain` they end one tick after
the last time stamp of the input.

After Imaki and Nishizawa's direct method. Cost: a sort of what progress has reached, then O(1) per element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Progress
from streamjoin.operators.contract import ALONE, Context, Footprint, Output, Results
from streamjoin.operators.joining import described
from streamjoin.operators.saving import OperatorOfParts
from streamjoin.state import Batch, Ends, RowOrder, Snapshot
from streamjoin.state.batch import Indices
from streamjoin.state.holders import NO_HOLDER


@dataclass(frozen=True)
class RowWindow:
    """The newest `size` elements; with `by`, columns of the proof, of each group. `build()` makes the running operator.

    `producer` and `bucket` set its holders apart from those of others, where the context does not.
    """

    size: int
    by: pa.Schema = field(default_factory=lambda: pa.schema([]))
    drain: bool = False
    producer: int = 0
    bucket: int = 0

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr(("row window", self.size, described([self.by]), self.drain, self.producer))

    def build(self, context: Context = ALONE) -> RunningRowWindow:
        """The running operator, empty."""
        return RunningRowWindow(self, context)


@dataclass
class RunningRowWindow(OperatorOfParts):
    """A row window at work. The batches' proof has the columns that make a group."""

    config: RowWindow
    context: Context = ALONE
    inputs: int = 1
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = Progress(1)
        self.order = RowOrder(self.config.size, self.config.by, self.config.drain)
        self.arrived: list[Batch] = []  # in this micro-batch
        self.next_holder = self.context.first_holder(self.config.producer, self.config.bucket)
        self.figures = {"rows_in": 0, "results": 0}

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        holder = np.arange(self.next_holder, self.next_holder + len(batch))
        self.next_holder += len(batch)
        self.order.add(batch, holder)
        self.arrived.append(replace(batch, holder=holder))
        yield from ()

    def on_seen(self, number: int, largest: int) -> None:
        self.order.seen(largest)

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(0, time)
        yield from self._pass_on(self.order.reach(self.times.of(0)))

    def on_end(self) -> Iterator[Output]:
        yield from self.on_progress(0, FOREVER)

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
        return Footprint(self.order.rows, self.order.nbytes, len(self.order.rings.parts))

    def _parts(self) -> dict[str, RowOrder]:
        return {"order": self.order}

    def snapshot(self) -> Snapshot:
        assert not self.arrived, "a snapshot is taken between micro-batches"
        whole = super().snapshot()
        whole.manifest["next_holder"] = self.next_holder
        return whole

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        self.next_holder = snapshot.manifest["next_holder"]
