"""A target: an input of a stage, as whoever feeds it sees it. Elements in, packets for the stage's buckets out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamjoin.operators import Results, Rows
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.packets import Kind, Packet
from streamjoin.runtime.placing import Partitioning, distribute, modulo
from streamjoin.state import Batch


@dataclass(frozen=True)
class Target:
    """Where the elements of a channel go, and how they are read there.

    `number` is the input's among those of the partitioning. `follow`: a row's replicas must be told apart, to decide
    about it or to show it once; `judged_by` are the columns that an expression reads to decide whom it matches.
    """

    channel: int
    binding: RowBinding
    partitioning: Partitioning
    number: int = 0
    follow: bool = False
    judged_by: tuple[str, ...] = ()

    @property
    def buckets(self) -> int:
        """How many the stage has."""
        return self.partitioning.buckets

    def rows(self, elements: Results) -> Iterator[Packet]:
        """Elements, for each bucket that gets any."""
        yield from self.placed(elements, self.binding.bind(elements))

    def placed(self, elements: Results, batch: Batch) -> Iterator[Packet]:
        """Elements that have been bound, for each bucket that gets any. Urgent ones have packets of their own."""
        if batch.priority is not None:
            urgent = batch.priority > 0
            if urgent.any():
                yield from self._placed(elements.take(urgent), batch.take(urgent))
            if urgent.all():
                return
            elements, batch = elements.take(~urgent), replace(batch.take(~urgent), priority=None)
        yield from self._placed(elements, batch)

    def _placed(self, elements: Results, batch: Batch) -> Iterator[Packet]:
        parts = distribute(
            self.partitioning, self.number, batch, self.binding.hashes(elements, batch),
            follow=self.follow, judged_by=self.judged_by,
        )  # fmt: skip
        for bucket, part in parts:
            yield Packet(bucket, self.channel, "rows", part.to_table())

    def everywhere(self, kind: Kind, content: Any) -> Iterator[Packet]:
        """What every bucket is told."""
        yield from to_all(self.buckets, self.channel, kind, content)


def to_all(buckets: int, channel: int, kind: Kind, content: Any) -> Iterator[Packet]:
    """The same for each of so many buckets."""
    for bucket in range(buckets):
        yield Packet(bucket, channel, kind, content)


@dataclass(frozen=True)
class Testimony:
    """Where word of replicated rows goes: all that is said of one row comes to one bucket."""

    channel: int
    name: str
    input: int
    buckets: int

    def rows(self, rows: Rows) -> Iterator[Packet]:
        """What a bucket says of rows."""
        assert rows.batch.origin is not None
        court = modulo(rows.batch.origin, self.buckets)
        for bucket in np.unique(court):
            yield Packet(int(bucket), self.channel, "rows", rows.batch.take(court == bucket).to_table())
