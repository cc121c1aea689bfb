"""Ordered emission: results leave sorted by (ts, te). Two ways to the same output.

Holding *outputs*: a result waits until no result with a smaller or equal `ts` can come any more. The intersection of
validities does not keep the lexicographic order of the inputs (R [3,10), [3,20) with S [1,9), [2,5), paired in order,
give [3,9) before [3,5)), so a result leaves only when progress is *strictly* greater than its `ts`.

Holding *inputs*: a row waits until progress of all inputs is strictly greater than its `ts`; then rows enter the join
in global order, and each step's results lie after all results of the steps before. Cheaper when a row has many
partners.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamjoin.algebra import FOREVER
from streamjoin.operators.contract import Results
from streamjoin.state import Batch, table_from_bytes, table_to_bytes


@dataclass
class HeldResults:
    """Results that wait for their turn."""

    parts: list[Results] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many wait."""
        return sum(len(part) for part in self.parts)

    @property
    def first(self) -> int:
        """The smallest `ts` that waits."""
        return min((int(part.ts.min()) for part in self.parts), default=FOREVER)

    def add(self, results: Results) -> None:
        """Let results wait."""
        if len(results):
            self.parts.append(results)

    def release(self, bound: int) -> Iterator[Results]:
        """The results with `ts < bound`, sorted."""
        if not self.parts:
            return
        everything = Results.concat(self.parts)
        ready = everything.ts < bound
        self.parts = [] if ready.all() else [everything.take(~ready)]
        if ready.any():
            yield everything.take(ready).sorted()

    def to_bytes(self) -> bytes | None:
        """What waits, to be stored; None when nothing does."""
        if not self.parts:
            return None
        return table_to_bytes(Results.concat(self.parts).to_table())

    def from_bytes(self, blob: bytes | None) -> None:
        """The inverse of `to_bytes`."""
        self.parts = [] if blob is None else [Results.from_table(table_from_bytes(blob))]


@dataclass
class HeldInput:
    """Rows of one input that wait until all inputs have passed them."""

    batches: list[Batch] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many wait."""
        return sum(len(batch) for batch in self.batches)

    def add(self, batch: Batch) -> None:
        """Let rows wait."""
        if len(batch):
            self.batches.append(batch)

    def release(self, bound: int) -> Batch | None:
        """The rows with `ts < bound`; None when there are none."""
        if not self.batches:
            return None
        everything = Batch.concat(self.batches)
        ready = everything.ts < bound
        if not ready.any():
            self.batches = [everything]
            return None
        released, waiting = everything.split(ready)
        self.batches = [waiting] if len(waiting) else []
        return released

    def to_bytes(self) -> bytes | None:
        """What waits, to be stored; None when nothing does."""
        return table_to_bytes(Batch.concat(self.batches).to_table()) if self.batches else None

    def from_bytes(self, blob: bytes | None) -> None:
        """The inverse of `to_bytes`."""
        self.batches = [] if blob is None else [Batch.from_table(table_from_bytes(blob))]
