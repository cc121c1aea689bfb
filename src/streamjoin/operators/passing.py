"""Passing: elements go on as they come, with the ends and holders that they have.

For elements that need an operator for where they come from, not for what becomes of them: a table beside a stream is
there before the stream begins, and whoever reads both must have a state that it can be put into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from streamjoin.algebra import Progress
from streamjoin.algebra.policy import ADDED
from streamjoin.operators.contract import ALONE, Configuration, Context, Footprint, Output, Results
from streamjoin.operators.joining import described
from streamjoin.operators.saving import OperatorOfParts
from streamjoin.state import Batch, Ends
from streamjoin.state.snapshot import Part


@dataclass(frozen=True)
class Passing(Configuration):
    """Elements with this schema. `build()` makes the running operator."""

    schema: pa.Schema
    inputs: int = 1
    plain: bool = field(default=False, metadata=ADDED)  # nothing is urgent any more

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr(("passing", described([self.schema]), *(("plain",) if self.plain else ())))

    @property
    def passes(self) -> bool:
        """Piece by piece, as rows come."""
        return True

    def build(self, context: Context = ALONE) -> RunningPassing:
        """The running operator, which keeps nothing."""
        return RunningPassing(self)


@dataclass
class RunningPassing(OperatorOfParts):
    """Passing at work."""

    config: Passing
    inputs: int = 1
    figures: dict[str, int] = field(default_factory=lambda: {"rows_in": 0, "results": 0})

    def __post_init__(self) -> None:
        self.times = Progress(1)

    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        self.figures["rows_in"] += len(batch)
        self.figures["results"] += len(batch)
        priority = None if self.config.plain else batch.priority
        yield Results(
            batch.payload, batch.ts, batch.te, holder=batch.holder, sign=batch.sign, priority=priority
        )  # fmt: skip

    def on_ends(self, number: int, ends: Ends) -> Iterator[Output]:
        yield ends

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.times.advance(0, time)
        yield from ()

    def on_end(self) -> Iterator[Output]:
        self.times.finish()
        yield from ()

    @property
    def progress(self) -> int:
        return self.times.of(0)

    @property
    def footprint(self) -> Footprint:
        return Footprint()

    def _parts(self) -> Mapping[str, Part]:
        return {}
