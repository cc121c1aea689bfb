"""DISTINCT, EXCEPT and INTERSECT over lifetimes: how often a payload is there, at each instant.

| operator | multiplicity of the result, from those of the inputs (m, n) |
|---|---|
| DISTINCT | min(1, m) |
| EXCEPT | 1 where m > 0 and n = 0; ALL: max(0, m - n) |
| INTERSECT | 1 where m > 0 and n > 0; ALL: min(m, n) |

Rows are equal as in GROUP BY: NULLs equal each other. Columns go by position; the result has the names, and of equal
values the spelling, that came first. Cost: a sort of the events that are due, then O(1) per event. State: a number per
living payload, and an end per living element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER, Method
from streamjoin.algebra.interval import Times
from streamjoin.kernels import OPERATORS
from streamjoin.operators.contract import ALONE, Configuration, Context, Output, Results
from streamjoin.operators.joining import described
from streamjoin.operators.lifetimes import RunningLifetimes, plus_and_minus, sorted_events
from streamjoin.state import Batch, Catalogue, Ends, OpenPieces
from streamjoin.state.holders import NO_HOLDER

SetOperator = Literal["distinct", "except", "intersect", "except all", "intersect all"]


@dataclass(frozen=True)
class Multiplicity(Configuration):
    """A set operator over elements of one schema. `build()` makes the running operator."""

    operator: SetOperator
    schema: pa.Schema
    producer: int = 0
    bucket: int = 0
    method: Method = "direct"

    @property
    def inputs(self) -> int:
        """How many there are."""
        return 1 if self.operator == "distinct" else 2

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr((self.operator, described([self.schema]), self.producer, self.method))

    def build(self, context: Context = ALONE) -> RunningMultiplicity:
        """The running operator, empty."""
        return RunningMultiplicity(self, Catalogue(self.schema), context)


@dataclass
class RunningMultiplicity(RunningLifetimes):
    """A set operator at work."""

    config: Multiplicity

    def __post_init__(self) -> None:
        super().__post_init__()
        first = self.context.first_holder(self.config.producer, self.config.bucket)
        self.pieces = OpenPieces(OPERATORS.index(self.config.operator), first)

    def _rows(self, number: int, batch: Batch) -> pa.Table:
        code = self.catalogue.codes(batch.payload, len(batch))
        return pa.table({"code": code, "number": np.full(len(batch), number, np.int8)})

    def _sweep(self, times: Times, rows: pa.Table) -> Iterator[Output]:
        times, rows = sorted_events(times, rows)
        opened, closed = self.pieces.sweep((
            rows["code"].to_numpy(), times, rows["number"].to_numpy(), rows["sign"].to_numpy()
        ))  # fmt: skip
        if self.config.method == "negative":
            self.figures["results"] += len(opened.id)
            yield plus_and_minus(self.catalogue.take(opened.code), opened.start, opened.id, 1)
            yield plus_and_minus(self.catalogue.take(closed.code), closed.end, closed.id, -1)
            return
        # Ids are given out one after the other, so those of this step are the last ones.
        first = int(opened.id[0]) if len(opened.id) else FOREVER
        new = closed.id >= first
        te, holder = np.full(len(opened.id), FOREVER), opened.id.copy()
        te[closed.id[new] - first] = closed.end[new]
        holder[closed.id[new] - first] = NO_HOLDER
        if len(te):
            self.figures["results"] += len(te)
            yield Results(self.catalogue.take(opened.code), opened.start, te, holder=holder)
        if not new.all():
            yield Ends(closed.id[~new], closed.end[~new])

    def _finish(self) -> Iterator[Output]:
        _, _, piece = self.pieces.open()
        if len(piece) and self.config.method == "direct":
            yield Ends(piece, np.full(len(piece), FOREVER))
        self.pieces = OpenPieces(self.pieces.operator, self.pieces.next_id)

    def _own_parts(self) -> dict[str, Any]:
        return {"pieces": self.pieces}
