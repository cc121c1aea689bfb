"""The one contract of all operators. An input has a number; there are no left and right twins.

    on_batch(input, batch)    rows arrive; results that can leave at once come back
    on_batches_end()          all batches of a micro-batch are there
    on_ends(input, ends)      ends of rows that came before, and were not known then
    on_progress(input, t)     no on-time row with `ts < t` comes on this input any more
    on_end()                  nothing comes any more on any input; everything held leaves
    progress                  no result with a smaller `ts` leaves any more
    snapshot() / restore(s)   go on elsewhere, as if nothing had happened

The caller hands over all batches of a micro-batch, then moves progress: a row is late only against progress that
earlier micro-batches made. What comes back is an iterator, so that a large result never lies in memory as a whole; the
caller exhausts it before the next call. What leaves has a name: results, and rows that are late, undecided or
witnesses; and ends of results that left before theirs were known.

Law of unknown ends: an end that is not known is not before the progress of its input. So ends come before the progress
that reaches them, and a row whose end is unknown can still meet everyone who comes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import Mask, Times
from streamjoin.state import Batch, Ends, Snapshot
from streamjoin.state.batch import Indices, Signs, with_columns
from streamjoin.state.holders import NO_HOLDER

RowsName = Literal["late", "candidate", "witness"]


@dataclass(frozen=True)
class Footprint:
    """What an operator keeps: rows, bytes, in how many runs or parts; and how many rows it has purged so far.

    >>> Footprint(2, 80, 1) + Footprint(1, 40, 1, purged=7)
    Footprint(rows=3, nbytes=120, runs=2, purged=7)
    """

    rows: int = 0
    nbytes: int = 0
    runs: int = 0
    purged: int = 0

    def __add__(self, other: Footprint) -> Footprint:
        return Footprint(
            self.rows + other.rows,
            self.nbytes + other.nbytes,
            self.runs + other.runs,
            self.purged + other.purged,
        )


@dataclass(frozen=True)
class Results:
    """Result rows: the members' payloads side by side, columns named `<input>.<column>`, and the validity. In a
    changelog they may be `retracted`: results no longer. Where an end is not known yet, `holder` says who will know it.
    With a `sign` they are plus and minus tuples: what appears or disappears at `ts`, told apart by `holder`.
    """

    payload: pa.Table
    ts: Times
    te: Times
    retracted: bool = False
    holder: Indices | None = None
    sign: Signs | None = None

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def nbytes(self) -> int:
        """Bytes of payload and validity."""
        return int(self.payload.nbytes) + self.ts.nbytes + self.te.nbytes

    def take(self, rows: Indices | Mask) -> Results:
        """The results at these positions, or where this mask is true."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        holder = None if self.holder is None else self.holder[rows]
        payload = self.payload.take(pa.array(rows)) if self.payload.num_columns else self.payload
        sign = None if self.sign is None else self.sign[rows]
        return Results(payload, self.ts[rows], self.te[rows], self.retracted, holder, sign)

    def sorted(self) -> Results:
        """The same results ordered by (ts, te)."""
        return self.take(np.lexsort((self.te, self.ts)))

    def to_table(self) -> pa.Table:
        """The results as one Arrow table, to be stored or sent."""
        table = with_columns(self.payload, ts=self.ts, te=self.te)
        return table if self.holder is None else with_columns(table, holder=self.holder)

    @staticmethod
    def from_table(table: pa.Table) -> Results:
        """The inverse of `to_table`."""
        arrays = {name: table[name].to_numpy() for name in ("ts", "te", "holder") if name in table.column_names}
        return Results(table.drop_columns(list(arrays)).combine_chunks(), **arrays)

    @staticmethod
    def concat(parts: Sequence[Results]) -> Results:
        """All results of several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        holder = None
        if any(part.holder is not None for part in parts):
            known = [np.full(len(part), NO_HOLDER) if part.holder is None else part.holder for part in parts]
            holder = np.concatenate(known)
        return Results(
            pa.concat_tables([part.payload for part in parts]).combine_chunks(),
            np.concatenate([part.ts for part in parts]),
            np.concatenate([part.te for part in parts]),
            holder=holder,
        )


@dataclass(frozen=True)
class Rows:
    """Rows of one input that leave under a name, unjoined."""

    name: RowsName
    input: int
    batch: Batch


Output = Results | Rows | Ends


class Operator(ABC):
    """A running operator."""

    inputs: int
    figures: dict[str, int]

    @abstractmethod
    def on_batch(self, number: int, batch: Batch) -> Iterator[Output]:
        """Rows arrive on an input."""

    def on_batches_end(self) -> Iterator[Output]:
        """All batches of a micro-batch are there, before progress moves. Most operators have nothing to say then."""
        yield from ()

    def on_ends(self, number: int, ends: Ends) -> Iterator[Output]:
        """Ends of an input's rows become known, before its progress reaches them. Most inputs have only known ends."""
        yield from ()

    @abstractmethod
    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        """An input's progress has reached `time`."""

    @abstractmethod
    def on_end(self) -> Iterator[Output]:
        """All inputs have ended."""

    @property
    @abstractmethod
    def progress(self) -> int:
        """No result with a smaller `ts` leaves any more."""

    @property
    @abstractmethod
    def footprint(self) -> Footprint:
        """What is kept, of inputs and of results."""

    @property
    def state_rows(self) -> int:
        """Rows kept, of inputs and of results."""
        return self.footprint.rows

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """All that is needed to go on."""

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot of an operator with the same configuration."""


def side_by_side(members: Sequence[pa.Table]) -> pa.Table:
    """One table of the members' columns, each named `<input>.<column>`."""
    columns, names = [], []
    for number, member in enumerate(members):
        columns += member.columns
        names += [f"{number}.{name}" for name in member.column_names]
    return pa.table(columns, names=names)


def null_rows(schema: pa.Schema, rows: int) -> pa.Table:
    """As many rows of NULLs."""
    return pa.table(
        [pa.nulls(rows, column.type) for column in schema],
        schema=pa.schema([column.with_nullable(True) for column in schema]),
    )
