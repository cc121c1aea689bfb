"""Waiting for ends: what an append-only sink needs. A result leaves when its end is known, and never changes.

Law: a result whose end is unknown waits; when its end is learned it leaves with it. A result that ends where it begins
is a ghost, and is dropped.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from streamjoin.algebra import FOREVER
from streamjoin.algebra.interval import Mask
from streamjoin.operators.contract import Footprint, Results
from streamjoin.state import Blobs, Ends, HolderIndex, Snapshot, table_from_bytes, table_to_bytes


@dataclass
class WaitingPart:
    """Results that began to wait together, and which of them still do."""

    results: Results
    waits: Mask
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    note: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        assert self.results.holder is not None
        self.index = HolderIndex(self.results.holder)

    def settle(self, ends: Ends) -> Results | None:
        """Those that leave."""
        positions, te = self.index.find(ends)
        if not len(positions):
            return None
        self.waits[positions] = False
        self.note = uuid.uuid4().hex
        left = self.results.take(positions)
        return Results(left.payload, left.ts, te)


@dataclass
class Waiting:
    """Results whose ends are not known."""

    parts: list[WaitingPart] = field(default_factory=list)

    @property
    def footprint(self) -> Footprint:
        """What waits."""
        rows = sum(int(part.waits.sum()) for part in self.parts)
        return Footprint(rows, sum(part.results.nbytes for part in self.parts), len(self.parts))

    @property
    def first(self) -> int:
        """The smallest `ts` that waits."""
        return min((int(part.results.ts[part.waits].min()) for part in self.parts), default=FOREVER)

    def take(self, results: Results) -> Iterator[Results]:
        """Results come: those whose ends are known go on."""
        if results.holder is not None:
            unknown = results.holder >= 0
            if unknown.any():
                waiting = results.take(unknown)
                self.parts.append(WaitingPart(waiting, np.ones(len(waiting), np.bool_)))
            results = results.take(~unknown)
        yield from _alive(results)

    def take_changes(self, changes: Results) -> Iterator[Results]:
        """Plus and minus tuples come: an element leaves when it has both."""
        assert changes.sign is not None and changes.holder is not None
        plus, minus = np.flatnonzero(changes.sign > 0), np.flatnonzero(changes.sign < 0)
        if len(plus):
            yield from self.take(replace(changes.take(plus), sign=None))
        if len(minus):
            yield from self.settle(Ends(changes.holder[minus], changes.ts[minus]))

    def finish(self) -> Iterator[Results]:
        """What has no end by now has none."""
        for part in self.parts:
            yield from _alive(replace(part.results.take(part.waits), holder=None))
        self.parts = []

    def settle(self, ends: Ends) -> Iterator[Results]:
        """Ends become known: their results leave."""
        for part in self.parts:
            left = part.settle(ends)
            if left is not None:
                yield from _alive(left)
        self.parts = [_tidied(part) for part in self.parts if part.waits.any()]

    def snapshot(self, name: str) -> Snapshot:
        """What waits, to be stored: results are written once, beside them which of them wait."""
        makers = {}
        for part in self.parts:
            makers[f"{name}/{part.id}"] = partial(_bytes, part.results)
            makers[f"{name}/{part.id}/{part.note}"] = partial(_mask_bytes, part.waits.copy())
        stored = [[part.id, part.note, len(part.waits)] for part in self.parts]
        return Snapshot({"name": name, "parts": stored}, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        name, self.parts = snapshot.manifest["name"], []
        for part, note, rows in snapshot.manifest["parts"]:
            results = Results.from_table(table_from_bytes(snapshot.blobs[f"{name}/{part}"]))
            bits = np.frombuffer(snapshot.blobs[f"{name}/{part}/{note}"], np.uint8)
            waits = np.unpackbits(bits, count=rows).astype(np.bool_)
            self.parts.append(WaitingPart(results, waits, part, note))


def _alive(results: Results) -> Iterator[Results]:
    alive = results.ts < results.te
    results = results if alive.all() else results.take(alive)
    if len(results):
        yield Results(results.payload, results.ts, results.te)


def _tidied(part: WaitingPart) -> WaitingPart:
    """A part of which most have left is written anew."""
    if 4 * int(part.waits.sum()) > len(part.waits):
        return part
    left = part.results.take(part.waits)
    return WaitingPart(left, np.ones(len(left), np.bool_))


def _bytes(results: Results) -> bytes:
    return table_to_bytes(results.to_table())


def _mask_bytes(mask: Mask) -> bytes:
    return np.packbits(mask).tobytes()
