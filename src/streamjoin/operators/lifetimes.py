"""What operators share that follow the snapshots of their inputs: events in time order, and pieces of results.

An element is two events: it starts, and it ends. Elements wait to start until no earlier one can come, and then to end
(`TimeQueue`: unsorted until they are due); one whose end is unknown waits for that. Then the operator goes through the
events, and says which pieces of its result have been opened and closed.

Law: events before the least progress of all inputs are complete. Starts before it have all come, and an end that is
unknown is not before it. So when an element is due to start, it is known whether it is a ghost: ghosts leave no trace.

The same for both ways to manage lifetimes. *Direct*: elements in, elements out. *Negative*: plus and minus tuples in,
which are events already, and plus and minus tuples out.

A piece that is opened leaves at once, with a holder, because nobody knows for how long it will last; a piece that is
closed in the same step leaves with its end. So results of any age are never held back, and whoever reads them can make
progress.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Progress
from streamjoin.algebra.interval import Times
from streamjoin.operators.contract import ALONE, Context, Footprint, Output, Results
from streamjoin.operators.saving import Fingerprinted, OperatorOfParts
from streamjoin.state import Batch, Blobs, Catalogue, Ends, HolderIndex, Snapshot, TimeQueue, UnknownEnds
from streamjoin.state.batch import Indices
from streamjoin.state.holders import NO_HOLDER
from streamjoin.state.time_queue import QueuePart


class LifetimesConfig(Fingerprinted, Protocol):
    """What is asked of a configuration here."""

    @property
    def inputs(self) -> int: ...


class Members:
    """How many elements of each code have not ended."""

    def __init__(self) -> None:
        self.count = np.zeros(0, np.int64)
        self.note = uuid.uuid4().hex

    def add(self, codes: Indices, sign: int) -> Indices:
        """Elements of these codes have come (1) or ended (-1); the codes that have none left."""
        if not len(codes):
            return codes
        missing = int(codes.max()) + 1 - len(self.count)
        if missing > 0:
            self.count = np.concatenate([self.count, np.zeros(max(missing, len(self.count)), np.int64)])
        times = np.bincount(codes, minlength=len(self.count))  # codes are dense: no need to sort them
        self.count += sign * times
        self.note = uuid.uuid4().hex
        empty: Indices = np.flatnonzero((times > 0) & (self.count == 0))
        return empty

    def snapshot(self, name: str) -> Snapshot:
        """To be stored."""
        blob = f"{name}/{self.note}"
        return Snapshot({"name": blob, "note": self.note}, Blobs({blob: self.count.copy().tobytes}))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.count = np.frombuffer(snapshot.blobs[snapshot.manifest["name"]], np.int64).copy()
        self.note = snapshot.manifest["note"]


@dataclass
class RunningLifetimes(OperatorOfParts):
    """An operator that follows the snapshots of its inputs, at work."""

    config: LifetimesConfig
    catalogue: Catalogue
    context: Context = ALONE
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.inputs = self.config.inputs
        self.times = Progress(self.inputs)
        self.starting = TimeQueue()
        self.events = TimeQueue()  # ends; with plus and minus tuples all of them
        self.unknown = [UnknownEnds() for _ in range(self.inputs)]
        self.members = Members()
        self.figures = {"rows_in": 0, "results": 0, "never_valid": 0}

    @abstractmethod
    def _rows(self, number: int, batch: Batch) -> pa.Table:
        """What is to be remembered of each element until it ends; a column `code` has the catalogue's number."""

    @abstractmethod
    def _sweep(self, times: Times, rows: pa.Table) -> Iterator[Output]:
        """Events that are complete: `rows` with a column `sign` beside what `_rows` gave."""

    @abstractmethod
    def _own_parts(self) -> dict[str, Any]:
        """What is kept beyond the events, by name."""

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        if batch.sign is not None:
            self._take_changes(number, batch)
            return
        holder = np.full(len(batch), NO_HOLDER) if batch.holder is None else batch.holder
        rows = self._rows(number, batch)
        self._count(rows["code"].to_numpy(), 1)
        for name, column in (("te", batch.te), ("holder", holder), ("input", np.full(len(batch), number, np.int8))):
            rows = rows.append_column(f"__sj_{name}", pa.array(column))
        self.starting.add(batch.ts, rows)
        yield from ()

    def _take_changes(self, number: int, batch: Batch) -> None:
        """Plus and minus tuples: they are events already."""
        assert batch.sign is not None
        rows = self._rows(number, batch)
        self._count(rows["code"].to_numpy()[batch.sign > 0], 1)
        self.events.add(batch.ts, rows.append_column("sign", pa.array(batch.sign)))

    def on_ends(self, number: int, ends: Ends) -> Iterator[Output]:
        for te, rows in self.unknown[number].settle(ends):
            self.events.add(te, _signed(rows, -1))
        for part in self.starting.parts:
            _settle_start(part, ends)
        yield from ()

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        starts = self._start()
        due = [events for events in (starts, self.events.take(self.times.least())) if events is not None]
        if any(len(each[0]) for each in due):  # there may have been ghosts only
            times, rows = np.concatenate([each[0] for each in due]), pa.concat_tables([each[1] for each in due])
            yield from self._sweep(times, rows.combine_chunks())
            ended = rows["sign"].to_numpy() < 0
            self._count(rows["code"].to_numpy()[ended], -1)
        if self.times.least() == FOREVER:
            yield from self._finish()
            self.starting, self.events, self.unknown = (
                TimeQueue(),
                TimeQueue(),
                [UnknownEnds() for _ in range(self.inputs)],
            )
            self.members = Members()
            self.catalogue.clear()

    def _start(self) -> tuple[Times, pa.Table] | None:
        """Elements that are due start; from now on they wait for their ends."""
        due = self.starting.take(self.times.least())
        if due is None:
            return None
        ts, rows = due
        te, holder = rows["__sj_te"].to_numpy(), rows["__sj_holder"].to_numpy()
        number = rows["__sj_input"].to_numpy()
        rows = rows.drop_columns(["__sj_te", "__sj_holder", "__sj_input"])
        ghosts = ts >= te
        if ghosts.any():
            self.figures["never_valid"] += int(ghosts.sum())
            self._count(rows["code"].to_numpy()[ghosts], -1)
            ts, te, holder, number = (column[~ghosts] for column in (ts, te, holder, number))
            rows = rows.filter(pa.array(~ghosts))
        unknown = (holder >= 0) & (te == FOREVER)
        if not unknown.any():
            self.events.add(te, _signed(rows, -1))
            return ts, _signed(rows, 1)
        for each in range(self.inputs):
            mine = np.flatnonzero(unknown & (number == each))
            self.unknown[each].add(holder[mine], rows.take(pa.array(mine)))
        known = np.flatnonzero(~unknown)
        self.events.add(te[known], _signed(rows.take(pa.array(known)), -1))
        return ts, _signed(rows, 1)

    def _count(self, codes: Indices, sign: int) -> None:
        """Elements have come or ended; a code without elements may be given to another payload."""
        gone = self.members.add(codes, sign)
        self.catalogue.release(gone)

    @abstractmethod
    def _finish(self) -> Iterator[Output]:
        """Nothing comes any more: what is open stays open for ever."""

    @property
    def footprint(self) -> Footprint:
        waiting = len(self.starting) + sum(len(unknown) for unknown in self.unknown)
        nbytes = (
            self.starting.nbytes
            + self.events.nbytes
            + sum(unknown.nbytes for unknown in self.unknown)
            + self.catalogue.nbytes
        )
        return Footprint(len(self.events) + waiting, nbytes, len(self.events.parts))

    def _parts(self) -> dict[str, Any]:
        unknown = {f"unknown{number}": part for number, part in enumerate(self.unknown)}
        shared = {"catalogue": self.catalogue, "members": self.members, "starting": self.starting}
        shared |= {"events": self.events}
        return {**shared, **unknown, **self._own_parts()}


def _signed(rows: pa.Table, sign: int) -> pa.Table:
    return rows.append_column("sign", pa.array(np.full(rows.num_rows, sign, np.int8)))


def _settle_start(part: QueuePart, ends: Ends) -> None:
    """Ends of elements that have not started become known."""
    rows, te = HolderIndex(part.rows["__sj_holder"].to_numpy()).find(ends)
    if len(rows):
        known = part.rows["__sj_te"].to_numpy().copy()
        known[rows] = te
        place = part.rows.schema.get_field_index("__sj_te")
        part.rows, part.id = part.rows.set_column(place, "__sj_te", pa.array(known)), uuid.uuid4().hex


def plus_and_minus(payload: pa.Table, time: Times, holder: Indices, sign: int) -> Results:
    """Rows that appear (1) or disappear (-1)."""
    return Results(payload, time, np.full(len(time), FOREVER), holder=holder, sign=np.full(len(time), sign, np.int8))


def sorted_events(times: Times, rows: pa.Table) -> tuple[Times, pa.Table]:
    """Events in the order of (code, time)."""
    order = np.lexsort((times, rows["code"].to_numpy()))
    return times[order], rows.take(pa.array(order))
