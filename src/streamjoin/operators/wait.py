"""Waiting for ends: what an append-only sink needs. A result leaves when its end is known, and never changes.

Law: a result whose end is unknown waits; when its end is learned it leaves with it. A result that ends where it begins
is never valid, and is dropped: a ghost, which its window has counted, or a pair with one or of two that turn out to
share no instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER
from streamjoin.algebra.interval import Times
from streamjoin.operators.contract import Footprint, Results
from streamjoin.state import Ends, Snapshot, UnknownEnds
from streamjoin.state.batch import RESERVED_PREFIX, with_columns

_TS: Final = RESERVED_PREFIX + "ts"
_PRIORITY: Final = RESERVED_PREFIX + "priority"


@dataclass
class Waiting:
    """Results whose ends are not known."""

    unknown: UnknownEnds = field(default_factory=UnknownEnds)

    @property
    def footprint(self) -> Footprint:
        """What waits."""
        return Footprint(len(self.unknown), self.unknown.nbytes, len(self.unknown.parts))

    @property
    def first(self) -> int:
        """The smallest `ts` that waits."""
        starts = (int(part.rows[_TS].to_numpy()[part.waits].min()) for part in self.unknown.parts)
        return min(starts, default=FOREVER)

    def take(self, results: Results) -> Iterator[Results]:
        """Results come: those whose ends are known go on."""
        if results.holder is not None:
            unknown = results.holder >= 0
            if unknown.any():
                waiting = results.take(unknown)
                assert waiting.holder is not None
                beside = {_TS: waiting.ts} | ({} if waiting.priority is None else {_PRIORITY: waiting.priority})
                self.unknown.add(waiting.holder, with_columns(waiting.payload, **beside))
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

    def settle(self, ends: Ends) -> Iterator[Results]:
        """Ends become known: their results leave."""
        for te, rows in self.unknown.settle(ends):
            yield from _alive(_results(rows, te))

    def finish(self) -> Iterator[Results]:
        """What has no end by now has none."""
        parts, self.unknown = self.unknown.parts, UnknownEnds()
        for part in parts:
            rows = part.left()
            yield from _alive(_results(rows, np.full(rows.num_rows, FOREVER)))

    def snapshot(self, name: str) -> Snapshot:
        """What waits, to be stored."""
        return self.unknown.snapshot(name)

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.unknown.restore(snapshot)


def _results(rows: pa.Table, te: Times) -> Results:
    own = [name for name in (_TS, _PRIORITY) if name in rows.column_names]
    priority = rows[_PRIORITY].to_numpy() if _PRIORITY in own else None
    return Results(rows.drop_columns(own).combine_chunks(), rows[_TS].to_numpy(), te, priority=priority)


def _alive(results: Results) -> Iterator[Results]:
    alive = results.ts < results.te
    results = results if alive.all() else results.take(alive)
    if len(results):
        yield replace(results, holder=None)
