"""Ordered emission: results leave sorted by (ts, te). Two ways to the same output.

Holding *outputs*: a result waits until no result with a smaller or equal `ts` can come any more. The intersection of
validities does not keep the lexicographic order of the inputs (R [3,10), [3,20) with S [1,9), [2,5), paired in order,
give [3,9) before [3,5)), so a result leaves only when progress is *strictly* greater than its `ts`.

What is urgent does not wait: it leaves when it is made. So with priorities the order is *weak*: once a result that is
not urgent has left, none with a smaller `ts` follows, urgent or not.

Holding *inputs*: a row waits until progress of all inputs is strictly greater than its `ts`; then rows enter the join
in global order, and each step's results lie after all results of the steps before. Cheaper when a row has many
partners.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from streamjoin.algebra import FOREVER
from streamjoin.algebra.interval import Mask
from streamjoin.operators.contract import Footprint, Results
from streamjoin.operators.urgency import at_least_0
from streamjoin.state import Batch, Blobs, Ends, HolderIndex, Snapshot, table_from_bytes, table_to_bytes
from streamjoin.state.holders import NO_HOLDER
from streamjoin.state.row_table import RowTable

Held = TypeVar("Held", Results, Batch)


@dataclass
class _Waiting(Generic[Held]):
    """What waits, in parts with ids."""

    kind: ClassVar[type[RowTable]]
    parts: dict[str, Held] = field(default_factory=dict)

    @property
    def footprint(self) -> Footprint:
        """What waits."""
        waiting = self.parts.values()
        return Footprint(sum(len(part) for part in waiting), sum(part.nbytes for part in waiting), len(waiting))

    @property
    def first(self) -> int:
        """The smallest `ts` that waits."""
        return min((int(part.ts.min()) for part in self.parts.values()), default=FOREVER)

    def snapshot(self, name: str) -> Snapshot:
        """What waits, to be stored."""
        # Each part under its id: one that is still there next time is not written again.
        makers = {f"{name}/{part}": partial(_bytes, held) for part, held in self.parts.items()}
        return Snapshot({"name": name, "parts": list(self.parts)}, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        name, parts = snapshot.manifest["name"], snapshot.manifest["parts"]
        kind: Any = self.kind
        self.parts = {part: kind.from_table(table_from_bytes(snapshot.blobs[f"{name}/{part}"])) for part in parts}


@dataclass
class HeldResults(_Waiting[Results]):
    """Results that wait for their turn."""

    kind = Results

    def add(self, results: Results) -> None:
        """Let results wait."""
        if len(results):
            own = None if results.priority is None else at_least_0(results.priority)
            self.parts[uuid.uuid4().hex] = replace(results, priority=own)

    def kept_back(self, results: Results, *, ordered: bool = True) -> Results:
        """Let results wait that have to, the others come back. For order all have to that are not urgent; otherwise
        only those that are not urgent though a member is, which may be ahead of progress.
        """
        if results.priority is None:
            if not ordered:
                return results
            self.add(results)
            return results.empty()
        leaves = results.priority > 0 if ordered else results.priority >= 0
        if leaves.all():
            return results
        leaving, others = results.split(leaves)
        self.add(others)
        return leaving

    def release(self, bound: int) -> Iterator[Results]:
        """The results with `ts < bound`, sorted."""
        if not any(part.ts.min() < bound for part in self.parts.values()):
            return
        everything = Results.concat(list(self.parts.values()))
        ready = everything.ts < bound
        self.parts = {}
        self.add(everything.take(~ready))
        yield everything.take(ready).sorted()

    def settle(self, ends: Ends) -> Ends:
        """Ends become known: those of results that wait here take their place, the others come back."""
        settled = {}
        for part, results in self.parts.items():
            if results.holder is None:
                settled[part] = results
                continue
            rows, te = HolderIndex(results.holder).find(ends)
            if len(rows):
                known, holder = results.te.copy(), results.holder.copy()
                ends = ends.take(~np.isin(ends.holder, holder[rows]))
                known[rows], holder[rows] = te, NO_HOLDER
                part, results = uuid.uuid4().hex, replace(results, te=known, holder=holder)
            settled[part] = results
        self.parts = settled
        return ends


@dataclass
class HeldRows(_Waiting[Batch]):
    """Rows of one input that wait."""

    kind = Batch

    def add(self, batch: Batch) -> None:
        """Let rows wait."""
        if len(batch):
            self.parts[uuid.uuid4().hex] = batch

    def all(self) -> Batch:
        """Everything that waits; there must be something."""
        return Batch.concat(list(self.parts.values()))

    def release(self, ready: Callable[[Batch], Mask]) -> Batch | None:
        """The rows that are ready; None when there are none."""
        if not any(ready(part).any() for part in self.parts.values()):
            return None
        everything = self.all()
        released, waiting = everything.split(ready(everything))
        self.parts = {}
        self.add(waiting)
        return released


def _bytes(held: Results | Batch) -> bytes:
    return table_to_bytes(held.to_table())
