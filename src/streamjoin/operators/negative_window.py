"""Windows by plus and minus tuples: an element appears, and when its time is over it is said again, to disappear.

The negative tuple method (Golab and Ozsu; Hammad and others), kept as a rival of the direct one, and because a
changelog is just this. It needs no holders, but every element travels twice, and a window must keep the payload of all
its elements, to say it again.

Law: a minus leaves when progress has reached its time; a plus at once. What is over before it begins is never said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Progress
from streamjoin.algebra.interval import Times
from streamjoin.operators.contract import ALONE, Configuration, Context, Footprint, Output
from streamjoin.operators.joining import described
from streamjoin.operators.lifetimes import plus_and_minus
from streamjoin.operators.saving import OperatorOfParts
from streamjoin.state import Batch, RowOrder, Snapshot, TimeQueue, UnknownEnds
from streamjoin.state.batch import with_columns


@dataclass(frozen=True)
class NegativeWindow(Configuration):
    """A window over elements of this schema; with a `size` it counts rows, otherwise elements bring their ends."""

    schema: pa.Schema
    size: int | None = None
    by: pa.Schema = field(default_factory=lambda: pa.schema([]))
    drain: bool = False
    producer: int = 0
    bucket: int = 0

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        kinds = described([self.schema, self.by])
        return repr(("negative", self.size, kinds, self.drain, self.producer))

    def build(self, context: Context = ALONE) -> RunningNegativeWindow:
        """The running operator, empty."""
        return RunningNegativeWindow(self, context)


@dataclass
class RunningNegativeWindow(OperatorOfParts):
    """A window at work."""

    config: NegativeWindow
    context: Context = ALONE
    inputs: int = 1
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = Progress(1)
        self.ending = TimeQueue()  # elements whose ends are known, with their payload
        self.unknown = UnknownEnds()  # elements of a row window
        self.order = RowOrder(self.config.size or 1, self.config.by, self.config.drain)
        self.next_id = self.context.first_holder(self.config.producer, self.config.bucket)
        self.figures = {"rows_in": 0, "results": 0, "ghosts": 0}

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        if self.config.size is None:
            batch, ghosts = batch.split(batch.ts < batch.te)
            self.figures["ghosts"] += len(ghosts)
        ids = np.arange(self.next_id, self.next_id + len(batch))
        self.next_id += len(batch)
        rows = with_columns(batch.payload, __sj_id=ids)
        if self.config.size is None:
            self.ending.add(batch.te, rows)
        else:
            self.order.add(batch, ids)
            self.unknown.add(ids, rows)
        self.figures["results"] += len(batch)
        yield plus_and_minus(batch.payload, batch.ts, ids, 1)

    def on_seen(self, number: int, largest: int) -> None:
        self.order.seen(largest)

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(0, time)
        for times, rows in self._over(self.times.of(0)):
            yield plus_and_minus(rows.drop_columns(["__sj_id"]), times, rows["__sj_id"].to_numpy(), -1)
        if self.times.of(0) == FOREVER:
            self.ending, self.unknown = TimeQueue(), UnknownEnds()

    def _over(self, reached: int) -> Iterator[tuple[Times, pa.Table]]:
        """Elements that are over when progress has reached this time. Those of a row window end when others take their
        places, which progress has reached as well.
        """
        if self.config.size is not None:
            before = self.order.ghosts
            ends = self.order.reach(reached)
            self.figures["ghosts"] += self.order.ghosts - before
            yield from self.unknown.settle(ends.take(ends.te < FOREVER))
            return
        due = self.ending.take_up_to(reached)
        if due is not None:
            yield due

    @property
    def footprint(self) -> Footprint:
        nbytes = self.order.nbytes + self.ending.nbytes + self.unknown.nbytes
        return Footprint(len(self.ending) + len(self.unknown), nbytes, len(self.ending.parts))

    def _parts(self) -> dict[str, TimeQueue | UnknownEnds | RowOrder]:
        return {"ending": self.ending, "unknown": self.unknown, "order": self.order}

    def snapshot(self) -> Snapshot:
        whole = super().snapshot()
        whole.manifest["next_id"] = self.next_id
        return whole

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        self.next_id = snapshot.manifest["next_id"]
