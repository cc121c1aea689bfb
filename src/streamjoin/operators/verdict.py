"""The verdict: what becomes of rows that several buckets have seen.

Without equality keys a row may be replicated over buckets, and none of them alone knows that it met nobody. Each bucket
testifies, and the verdict of a row is given in one place:

    input 0, claimants    the replica at home found no partner there (by snapshot: the row itself, whatever it found)
    input 1, witnesses    another replica found a partner (by snapshot: the parts of the validity it saw covered)

A claimant without a witness met nobody: it is padded (outer) or leaves bare (anti). A claimant with a witness leaves
bare (semi). They are brought together by `origin`, a number that all replicas of a row share, and by the validity.
A row is decided when progress has passed its end on both inputs: then every bucket has said what it knows. Its
witnesses are forgotten with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamjoin.algebra import How, Outer, Progress
from streamjoin.algebra.policy import ADDED
from streamjoin.kernels import parts_of_validity
from streamjoin.operators.contract import ALONE, Configuration, Context, Footprint, Output, Results, side_by_side
from streamjoin.operators.joining import padded
from streamjoin.operators.ordering import HeldRows
from streamjoin.operators.saving import OperatorOfParts
from streamjoin.operators.urgency import NewPriority, at_least_0, priority_of
from streamjoin.state import Batch
from streamjoin.state.batch import Indices, Priorities


@dataclass(frozen=True)
class Verdict(Configuration):
    """Decides about the rows of input `number` of a join of two; `build()` makes the running operator."""

    number: int
    schemas: tuple[pa.Schema, pa.Schema]
    how: How
    outer: Outer = "row"
    new_priority: NewPriority | None = field(default=None, metadata=ADDED)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        new = () if self.new_priority is None else (self.new_priority,)
        return repr((self.number, self.how, self.outer, [str(schema) for schema in self.schemas], *new))

    def build(self, context: Context = ALONE) -> RunningVerdict:
        """The running operator, empty."""
        return RunningVerdict(self, context)


@dataclass
class RunningVerdict(OperatorOfParts):
    """One verdict stage at work."""

    config: Verdict
    context: Context = ALONE
    inputs: int = 2
    figures: dict[str, int] = field(default_factory=lambda: {"rows_in": 0, "results": 0})
    waiting: tuple[HeldRows, HeldRows] = field(default_factory=lambda: (HeldRows(), HeldRows()))
    times: Progress = field(default_factory=lambda: Progress(2))

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        self.waiting[number].add(batch)
        return iter(())

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        yield from self._decide()

    def on_end(self) -> Iterator[Output]:
        self.times.finish()
        yield from self._decide()

    def _decide(self) -> Iterator[Output]:
        bound = self.times.least()
        claimants, witnesses = (waiting.release(lambda rows: rows.te <= bound) for waiting in self.waiting)
        if claimants is None:
            return
        results = self._judge(claimants, witnesses)
        if len(results):
            self.figures["results"] += len(results)
            yield results

    def _judge(self, claimants: Batch, witnesses: Batch | None) -> Results:
        semi = self.config.how == "semi"
        mine, seen = who(claimants, witnesses)
        if self.config.outer == "row":
            chosen = claimants.take(np.isin(mine, seen) == semi)
            return self._results(chosen.payload, chosen.ts, chosen.te, self._priority(chosen))
        # Rows that share an origin have the same partners, so each of them gets all that was seen of any.
        start, end = (np.empty(0, np.int64),) * 2 if witnesses is None else witnesses.values
        order = np.argsort(seen, kind="stable")
        first, last = (np.searchsorted(seen[order], mine, side=side) for side in ("left", "right"))
        row = np.repeat(np.arange(len(mine)), last - first)
        piece = order[np.arange(len(row)) - np.repeat(np.cumsum(last - first) - last, last - first)]
        row, ts, te = parts_of_validity(claimants.ts, claimants.te, (row, start[piece], end[piece]), covered=semi)
        return self._results(claimants.payload.take(pa.array(row)), ts, te)

    def _priority(self, rows: Batch) -> Priorities | None:
        own = [rows.priority if each == self.config.number else None for each in (0, 1)]
        found = priority_of(own, len(rows), self.config.new_priority)
        return None if found is None else at_least_0(found)  # both inputs have passed them: none waits

    def _results(
        self, payload: pa.Table, ts: np.ndarray, te: np.ndarray, priority: Priorities | None = None
    ) -> Results:
        if self.config.how in ("semi", "anti"):
            return Results(side_by_side([payload]), ts, te, priority=priority)
        return padded(self.config.schemas, self.config.number, payload, ts, te, priority)

    @property
    def first_undecided(self) -> int:
        """The smallest `ts` of a claimant that waits for its verdict."""
        return self.waiting[0].first

    @property
    def progress(self) -> int:
        return min(self.times.least(), self.first_undecided)

    @property
    def footprint(self) -> Footprint:
        return sum((waiting.footprint for waiting in self.waiting), Footprint())

    def _parts(self) -> dict[str, HeldRows]:
        return {f"waiting{number}": waiting for number, waiting in enumerate(self.waiting)}


def who(claimants: Batch, witnesses: Batch | None) -> tuple[Indices, Indices]:
    """One number for every row that claimants and witnesses speak of: equal origin, equal validity."""
    batches = [claimants] if witnesses is None else [claimants, witnesses]
    columns = [np.column_stack([batch.origin, batch.ts, batch.te]) for batch in batches if batch.origin is not None]
    _, numbers = np.unique(np.concatenate(columns), axis=0, return_inverse=True)
    return numbers[: len(claimants)], numbers[len(claimants) :]
