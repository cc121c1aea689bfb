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

from streamjoin.algebra import FOREVER, NEVER, Progress
from streamjoin.algebra.interval import Times, saturating_add
from streamjoin.operators.contract import Footprint, Operator, Output
from streamjoin.operators.joining import check_snapshot, described, whole_snapshot
from streamjoin.operators.lifetimes import plus_and_minus
from streamjoin.state import Batch, Catalogue, Ends, RowRings, Snapshot, TimeQueue, UnknownEnds
from streamjoin.state.batch import with_columns
from streamjoin.state.holders import first_holder


@dataclass(frozen=True)
class NegativeWindow:
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
        return repr(("negative", self.size, kinds, self.drain, self.producer, self.bucket))

    def build(self) -> RunningNegativeWindow:
        """The running operator, empty."""
        return RunningNegativeWindow(self)


@dataclass
class RunningNegativeWindow(Operator):
    """A window at work."""

    config: NegativeWindow
    inputs: int = 1
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = Progress(1)
        self.ending = TimeQueue()  # elements whose ends are known, with their payload
        self.unknown = UnknownEnds()  # elements of a row window
        self.groups = Catalogue(self.config.by)
        self.rings = RowRings(self.config.size or 1)
        self.unordered = TimeQueue()
        self.next_id = first_holder(self.config.producer, self.config.bucket)
        self.last = NEVER
        self.figures = {"rows_in": 0, "results": 0}

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        self.last = max(self.last, int(batch.ts.max()))
        if self.config.size is None:
            batch, _ = batch.split(batch.ts < batch.te)
        ids = np.arange(self.next_id, self.next_id + len(batch))
        self.next_id += len(batch)
        rows = with_columns(batch.payload, __sj_id=ids)
        if self.config.size is None:
            self.ending.add(batch.te, rows)
        else:
            columns = {"holder": ids}
            if self.config.by.names:
                assert batch.proof is not None
                columns["group"] = self.groups.codes(batch.proof, len(batch))
            self.unordered.add(batch.ts, pa.table(columns))
            self.unknown.add(ids, rows)
        self.figures["results"] += len(batch)
        yield plus_and_minus(batch.payload, batch.ts, ids, 1)

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(0, time)
        reached = self.times.of(0)
        before = reached + 1 if reached < FOREVER else FOREVER
        due = self.ending.take(before) if self.config.size is None else None
        for times, rows in self._order(before) if self.config.size is not None else filter(None, [due]):
            yield plus_and_minus(rows.drop_columns(["__sj_id"]), times, rows["__sj_id"].to_numpy(), -1)
        if reached == FOREVER:
            self.ending, self.unknown = TimeQueue(), UnknownEnds()

    def _order(self, before: int) -> Iterator[tuple[Times, pa.Table]]:
        """Elements that progress has reached take their place, and end others; so those ends are reached as well."""
        due = self.unordered.take(before)
        if due is not None:
            ts, rows = due
            group = rows["group"].to_numpy() if self.config.by.names else None
            ends = self.rings.follow(group, ts, rows["holder"].to_numpy())
            yield from self.unknown.settle(ends)
        if before == FOREVER:
            left = self.rings.drain()
            if self.config.drain:
                end = int(saturating_add(np.array([self.last]), 1)[0])
                yield from self.unknown.settle(Ends(left, np.full(len(left), end)))

    def on_end(self) -> Iterator[Output]:
        yield from self.on_progress(0, FOREVER)

    @property
    def progress(self) -> int:
        return self.times.of(0)

    @property
    def footprint(self) -> Footprint:
        nbytes = self.rings.nbytes + self.unordered.nbytes + self.ending.nbytes + self.unknown.nbytes
        return Footprint(len(self.ending) + len(self.unknown), nbytes, len(self.ending.parts))

    def _parts(self) -> dict[str, TimeQueue | UnknownEnds | Catalogue | RowRings]:
        return {
            "ending": self.ending, "unknown": self.unknown, "groups": self.groups, "rings": self.rings,
            "unordered": self.unordered,
        }  # fmt: skip

    def snapshot(self) -> Snapshot:
        parts = [part.snapshot(name) for name, part in self._parts().items()]
        whole = whole_snapshot(self.config.fingerprint, self.times, self.figures, parts)
        whole.manifest |= {"next_id": self.next_id, "last": self.last}
        return whole

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        self.times = Progress(1, list(snapshot.manifest["progress"]))
        self.figures = dict(snapshot.manifest["figures"])
        self.next_id, self.last = snapshot.manifest["next_id"], snapshot.manifest["last"]
        for part, stored in zip(self._parts().values(), snapshot.manifest["parts"], strict=True):
            part.restore(Snapshot(stored, snapshot.blobs))
