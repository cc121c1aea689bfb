"""What running joins of two inputs share: progress, results that wait, and how they are saved.

    held     under ordered emission, results that something could still precede
    early    rows that can meet nobody. They wait for the other input to come as far as they are: whoever follows the
             results' times would otherwise take all that leaves meanwhile for late

A join says which further parts it keeps (`_own_parts`), what happens when progress moves (`_settle`), and before which
time nothing can leave any more (`_first_to_come`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from streamjoin.algebra import Progress
from streamjoin.algebra.interval import Times
from streamjoin.errors import SnapshotError
from streamjoin.operators.contract import Footprint, Operator, Output, Results, null_rows, side_by_side
from streamjoin.operators.ordering import HeldResults, HeldRows
from streamjoin.state import Batch, PendingEnds, Snapshot, SweepArea
from streamjoin.state.snapshot import FORMAT

Part = SweepArea | HeldRows | HeldResults | PendingEnds


class JoinConfig(Protocol):
    """What is asked of a configuration here."""

    @property
    def fingerprint(self) -> str: ...


@dataclass
class RunningJoin(Operator):
    """A join of two inputs at work."""

    config: JoinConfig
    inputs: int = 2
    figures: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = Progress(2)
        self.held = HeldResults()
        self.early = [HeldResults(), HeldResults()]
        self.figures = dict.fromkeys(("rows_in", "results", "late", "unmatchable"), 0)

    @abstractmethod
    def _settle(self) -> Iterator[Output]:
        """Progress has moved: rows leave, are forgotten, or are decided."""

    @abstractmethod
    def _first_to_come(self) -> int:
        """No result with a smaller `ts` is made any more."""

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

    def _not_early(self, number: int, results: Results) -> Results:
        """Those rows of input `number` that need not wait for the other input, because they are late already."""
        waits = results.ts >= self.progress
        self.early[number].add(results.take(waits))
        return results.take(~waits)

    def _release(self) -> Iterator[Output]:
        """Whatever has waited long enough."""
        bounds = [self.times.of_others(0), self.times.of_others(1), self._first_to_come()]
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
        return {**self._own_parts(), "held": self.held, "early0": self.early[0], "early1": self.early[1]}

    @property
    def footprint(self) -> Footprint:
        return sum((_footprint(part) for part in self._parts().values()), Footprint())

    def snapshot(self) -> Snapshot:
        parts = [part.snapshot(name) for name, part in self._parts().items()]
        return whole_snapshot(self.config.fingerprint, self.times, self.figures, parts)

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        self.times = Progress(2, list(snapshot.manifest["progress"]))
        self.figures = dict(snapshot.manifest["figures"])
        for part, manifest in zip(self._parts().values(), snapshot.manifest["parts"], strict=True):
            part.restore(Snapshot(manifest, snapshot.blobs))


def _footprint(part: Part) -> Footprint:
    if isinstance(part, SweepArea):
        return Footprint(part.rows, part.nbytes, len(part.kept), part.removed)
    if isinstance(part, PendingEnds):
        return Footprint(len(part), part.nbytes, len(part.parts))
    return part.footprint


def described(schemas: Sequence[pa.Schema]) -> Any:
    """Schemas as plain values, for a fingerprint."""
    return [[(column.name, str(column.type)) for column in schema] for schema in schemas]


def witness(rows: Batch, *parts: Times) -> Batch:
    """Word that these rows met someone (in these parts of their validity): everything but their payload."""
    return Batch(pa.table({}), rows.ts, rows.te, rows.group, parts, origin=rows.origin)


def padded(schemas: Sequence[pa.Schema], number: int, payload: pa.Table, ts: Times, te: Times) -> Results:
    """Rows of input `number` as results, with NULLs for the other inputs."""
    members = [payload if i == number else null_rows(schema, len(ts)) for i, schema in enumerate(schemas)]
    return Results(side_by_side(members), ts, te)


def whole_snapshot(fingerprint: str, times: Progress, figures: dict[str, int], parts: Sequence[Snapshot]) -> Snapshot:
    """The snapshot of an operator, made of those of its parts."""
    manifest = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "progress": list(times.times),
        "figures": dict(figures),
        "parts": [part.manifest for part in parts],
    }
    return Snapshot(manifest, ChainMap(*(part.blobs for part in parts)))  # type: ignore[arg-type]


def check_snapshot(snapshot: Snapshot, fingerprint: str) -> None:
    """Refuse a snapshot of another format or another configuration."""
    if snapshot.manifest.get("format") != FORMAT:
        raise SnapshotError(f"this snapshot has format {snapshot.manifest.get('format')}, this version reads {FORMAT}")
    if snapshot.manifest["fingerprint"] != fingerprint:
        raise SnapshotError(
            f"this state was made by another join: {snapshot.manifest['fingerprint']}, not {fingerprint}",
            hint="start with an empty state, or restore the old configuration",
        )
