"""What running joins share, of however many inputs: progress, results that wait, and how they are saved.

    held     under ordered emission, results that something could still precede, here or in another bucket
    early    rows that can meet nobody. They wait for the other inputs to come as far as they are: whoever follows the
             results' times would otherwise take all that leaves meanwhile for late

A join says which further parts it keeps (`_own_parts`), what happens when progress moves (`_settle`), before which time
nothing is made any more (`_first_to_come`), and before which time results leave that are held (`_first_held`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streamjoin.algebra import Progress
from streamjoin.algebra.interval import Times
from streamjoin.operators.contract import (
    ALONE,
    Context,
    Footprint,
    Output,
    Results,
    null_rows,
    side_by_side,
)
from streamjoin.operators.ordering import HeldResults, HeldRows
from streamjoin.operators.saving import Fingerprinted, OperatorOfParts
from streamjoin.operators.urgency import WAITS, NewPriority, priority_of
from streamjoin.state import Batch, PendingEnds, SweepArea
from streamjoin.state.batch import Priorities

Part = SweepArea | HeldRows | HeldResults | PendingEnds


@dataclass
class RunningJoin(OperatorOfParts):
    """A join at work."""

    config: Fingerprinted
    context: Context = ALONE
    inputs: int = 2
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = Progress(self.inputs)
        self.held = HeldResults()
        self.early = [HeldResults() for _ in range(self.inputs)]
        self.figures = dict.fromkeys(("rows_in", "results", "late", "unmatchable"), 0)

    @abstractmethod
    def _settle(self) -> Iterator[Output]:
        """Progress has moved: rows leave, are forgotten, or are decided."""

    @abstractmethod
    def _first_to_come(self) -> int:
        """No result with a smaller `ts` is made any more."""

    def _first_held(self) -> int:
        """Results with a smaller `ts` need not be held. None leaves before *every* input has passed it."""
        return self._first_to_come()

    @abstractmethod
    def _own_parts(self) -> dict[str, Part]:
        """What is kept beyond the results that wait, by name."""

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(number, time)
        yield from self._settle()

    def on_end(self) -> Iterator[Output]:
        self.times.finish()
        yield from self._settle()

    # -- results wait --------------------------------------------------------------------------------------------------

    def _priority(self, members: Sequence[Priorities | None], rows: int) -> Priorities | None:
        """The priority of results by those of their members, one of each input."""
        new: NewPriority | None = getattr(self.config, "new_priority", None)
        return priority_of(members, rows, new)

    def _priority_alone(self, number: int, priority: Priorities | None, rows: int) -> Priorities | None:
        """The same of rows of one input without partners."""
        return self._priority([priority if each == number else None for each in range(self.inputs)], rows)

    def _not_early(self, number: int, results: Results) -> Results:
        """Those rows of input `number` that need not wait for the other inputs, because they are late already."""
        waits = results.ts >= self.progress
        if results.priority is not None:
            waits &= results.priority > WAITS  # those wait for their own input as well
        self.early[number].add(results.take(waits))
        return results.take(~waits)

    def _release(self) -> Iterator[Output]:
        """Whatever has waited long enough."""
        bounds = [*(self.times.of_others(number) for number in range(self.inputs)), self._first_held()]
        for held, bound in zip((*self.early, self.held), bounds, strict=True):
            for results in held.release(bound):
                self.figures["results"] += len(results)
                yield results

    @property
    def progress(self) -> int:
        # Between a batch and the next progress, results may wait that nothing undecided precedes any more.
        return min(self._first_to_come(), self.held.first, *(early.first for early in self.early))

    # -- what is kept --------------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Part]:
        return {**self._own_parts(), "held": self.held, **numbered("early", self.early)}

    @property
    def footprint(self) -> Footprint:
        return sum((_footprint(part) for part in self._parts().values()), Footprint())


def _footprint(part: Part) -> Footprint:
    if isinstance(part, SweepArea):
        return Footprint(
            part.rows, part.nbytes, part.runs, part.removed, part.spilled_nbytes, part.spills, part.merges, *part.pages
        )  # fmt: skip
    if isinstance(part, PendingEnds):
        return Footprint(len(part), part.nbytes, len(part.parts))
    return part.footprint


def numbered(name: str, parts: Sequence[Part]) -> dict[str, Part]:
    """Parts of the same kind, one of each input, by name and number."""
    return {f"{name}{number}": part for number, part in enumerate(parts)}


def described(schemas: Sequence[pa.Schema]) -> Any:
    """Schemas as plain values, for a fingerprint."""
    return [[(column.name, str(column.type)) for column in schema] for schema in schemas]


def witness(rows: Batch, *parts: Times) -> Batch:
    """Word that these rows met someone (in these parts of their validity): everything but their payload."""
    return Batch(pa.table({}), rows.ts, rows.te, rows.group, parts, origin=rows.origin)


def padded(
    schemas: Sequence[pa.Schema],
    number: int,
    payload: pa.Table,
    ts: Times,
    te: Times,
    priority: Priorities | None = None,
) -> Results:
    """Rows of input `number` as results, with NULLs for the other inputs."""
    return Results(padded_payload(schemas, number, payload, len(ts)), ts, te, priority=priority)


def padded_payload(schemas: Sequence[pa.Schema], number: int, payload: pa.Table, rows: int) -> pa.Table:
    """So many rows of input `number` side by side with NULLs for the other inputs."""
    return side_by_side([payload if i == number else null_rows(schema, rows) for i, schema in enumerate(schemas)])
