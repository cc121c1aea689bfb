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

An element that is pushed out by one of its own time is a ghost, and counted as one here, where it gets its end: it goes
on like the others, with or without a holder, and whoever learns that it is never valid drops it.

After Imaki and Nishizawa's direct method. Cost: a sort of what progress has reached, then O(1) per element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Progress
from streamjoin.algebra.policy import ADDED
from streamjoin.operators.contract import ALONE, Configuration, Context, Footprint, Output, Results
from streamjoin.operators.joining import described
from streamjoin.operators.ordering import HeldRows
from streamjoin.operators.saving import OperatorOfParts
from streamjoin.state import Batch, Ends, RowOrder, Snapshot
from streamjoin.state.batch import Indices
from streamjoin.state.history import tie_order
from streamjoin.state.holders import NO_HOLDER


@dataclass(frozen=True)
class RowWindow(Configuration):
    """The newest `size` elements; with `by`, columns of the proof, of each group. `build()` makes the running operator.

    `producer` and `bucket` set its holders apart from those of others, where the context does not. `by_content`: rows
    of one time stamp are in order of what else the proof holds, not of their arrival.
    """

    size: int
    by: pa.Schema = field(default_factory=lambda: pa.schema([]))
    drain: bool = False
    producer: int = 0
    bucket: int = 0
    by_content: bool = field(default=False, metadata=ADDED)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        by_content = ("by content",) if self.by_content else ()
        return repr(("row window", self.size, described([self.by]), self.drain, self.producer, *by_content))

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
        self.waiting = HeldRows()  # by content: rows that another of their time stamp may still precede
        self.next_holder = self.context.first_holder(self.config.producer, self.config.bucket)
        self.figures = {"rows_in": 0, "results": 0, "ghosts": 0}

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        if self.config.by_content:
            self.order.seen(int(batch.ts.max()))
            self.waiting.add(batch)
        else:
            self._enter(batch)
        yield from ()

    def _enter(self, batch: Batch) -> None:
        """Elements take their places, in this order."""
        holder = np.arange(self.next_holder, self.next_holder + len(batch))
        self.next_holder += len(batch)
        self.order.add(batch, holder)
        self.arrived.append(replace(batch, holder=holder))

    def on_seen(self, number: int, largest: int) -> None:
        self.order.seen(largest)

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(0, time)
        released = self.waiting.release(lambda rows: rows.ts < self.times.of(0))
        if released is not None:
            self._enter(in_order(released, len(self.config.by.names)))
        before = self.order.ghosts
        ends = self.order.reach(self.times.of(0))
        self.figures["ghosts"] += self.order.ghosts - before
        yield from self._pass_on(ends)

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
            yield Results(batch.payload, batch.ts, te, holder=unknown, priority=batch.priority)
        if len(ends):
            yield ends

    @property
    def footprint(self) -> Footprint:
        kept = Footprint(self.order.rows, self.order.nbytes, len(self.order.rings.parts))
        return kept + self.waiting.footprint

    def _parts(self) -> dict[str, RowOrder | HeldRows]:
        return {"order": self.order, "waiting": self.waiting} if self.config.by_content else {"order": self.order}

    def snapshot(self) -> Snapshot:
        assert not self.arrived, "a snapshot is taken between micro-batches"
        whole = super().snapshot()
        whole.manifest["next_holder"] = self.next_holder
        return whole

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        self.next_holder = snapshot.manifest["next_holder"]


def in_order(batch: Batch, groups: int) -> Batch:
    """The rows in the order of their time stamps, and then of their arrival, or in a batch of their content.

    Of the proof the first columns make groups; the others are what is compared, and go no further.

    >>> content = pa.table({"a": ["y", "x"]})
    >>> rows = Batch(content, np.array([5, 5]), np.array([9, 9]), np.zeros(2, np.int64), proof=content)
    >>> in_order(rows, 0).payload.to_pydict()
    {'a': ['x', 'y']}
    """
    ordered = replace(batch, proof=batch.proof.select(range(groups)) if batch.proof is not None and groups else None)
    if (batch.ts[1:] > batch.ts[:-1]).all():  # as most streams come: nothing need be moved
        return ordered
    order = np.argsort(batch.ts, kind="stable")
    ts = batch.ts[order]
    # In a stream of nothing but times all rows of one time are alike.
    if batch.proof is not None and (ts[1:] == ts[:-1]).any():
        which = np.concatenate([[0], np.cumsum(ts[1:] != ts[:-1])])
        content = batch.proof.select(range(groups, batch.proof.num_columns)).take(pa.array(order))
        order = order[tie_order(content, which, ())]
    return ordered.take(order)
