"""Holders: ends that are not known yet.

The end of an element in a row window is the time stamp of a later element. Until that one is there, the element has a
*holder* instead of an end: a number that is nobody else's. In columns `te` is a value, or infinity with a holder beside
it (-1: the end is known). Whoever learns ends says so with a batch of (holder, end), and everyone who keeps elements
with these holders puts the ends in their place.

    element   a  [3, ?)  holder 17      -->  goes on, is joined, is kept
    ends      17: 9                     -->  a  [3, 9)

After Imaki and Nishizawa's direct method, where a holder is an object shared by reference, and an observer is called
back for each element. Here a resolution is a batch that travels like progress does, and elements are found by search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from streamjoin.algebra.interval import Mask, Times
from streamjoin.state.batch import NO_HOLDER as NO_HOLDER
from streamjoin.state.batch import Indices

_PRODUCER_BITS, _BUCKET_BITS, _COUNT_BITS = 7, 16, 40
MOST_PRODUCERS: Final = 1 << _PRODUCER_BITS
MOST_BUCKETS: Final = 1 << _BUCKET_BITS


@dataclass(frozen=True)
class Ends:
    """Ends that have become known: of these holders, these."""

    holder: Indices
    te: Times

    def __len__(self) -> int:
        return len(self.holder)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The smallest and the largest holder: many who could know some of them know none."""
        return int(self.holder.min()), int(self.holder.max())

    def take(self, rows: Indices | Mask) -> Ends:
        """Some of them."""
        return Ends(self.holder[rows], self.te[rows])

    def split(self, first: int) -> tuple[Ends, Ends]:
        """Those of holders before `first`, and the others.

        >>> old, new = Ends(np.array([3, 5, 4]), np.array([30, 50, 40])).split(4)
        >>> old.te.tolist(), new.te.tolist()
        ([30], [50, 40])
        """
        if (self.holder[1:] > self.holder[:-1]).all():  # as row windows without groups say them: nothing is copied
            place = int(np.searchsorted(self.holder, first))
            return Ends(self.holder[:place], self.te[:place]), Ends(self.holder[place:], self.te[place:])
        new = self.holder >= first
        return self.take(~new), self.take(new)

    def to_table(self) -> pa.Table:
        """To be stored or sent."""
        return pa.table({"holder": self.holder, "te": self.te})

    @staticmethod
    def none() -> Ends:
        """No ends.

        >>> len(Ends.none())
        0
        """
        return Ends(np.empty(0, np.int64), np.empty(0, np.int64))

    @staticmethod
    def from_table(table: pa.Table) -> Ends:
        """The inverse of `to_table`."""
        return Ends(table["holder"].to_numpy(), table["te"].to_numpy())

    @staticmethod
    def concat(parts: Sequence[Ends]) -> Ends:
        """All of several.

        >>> Ends.concat([Ends(np.array([1]), np.array([9])), Ends(np.array([2]), np.array([8]))]).te.tolist()
        [9, 8]
        """
        if len(parts) == 1:
            return parts[0]
        empty = np.empty(0, np.int64)
        return Ends(
            np.concatenate([empty, *(part.holder for part in parts)]),
            np.concatenate([empty, *(part.te for part in parts)]),
        )


def first_holder(producer: int, bucket: int) -> int:
    """The first of the holders that one operator may give out in one bucket; no other operator's are among them.

    >>> first_holder(0, 0), first_holder(0, 1) < first_holder(1, 0)
    (0, True)
    """
    assert 0 <= producer < 1 << _PRODUCER_BITS, "too many operators in one query"
    assert 0 <= bucket < 1 << _BUCKET_BITS, "too many buckets"
    return producer << (_BUCKET_BITS + _COUNT_BITS) | bucket << _COUNT_BITS


class HolderIndex:
    """Finds elements by their holders; built once for elements that stay together, searched for every resolution.

    Elements that lie in the order in which their holders were given out need no index: a place follows from a holder.

    >>> index = HolderIndex(np.array([7, -1, 3, 7]))
    >>> positions, te = index.find(Ends(np.array([7, 5]), np.array([70, 50])))
    >>> positions.tolist(), te.tolist()
    ([0, 3], [70, 70])
    """

    def __init__(self, holder: Indices) -> None:
        positions = np.flatnonzero(holder >= 0)
        ids = holder[positions]
        steps = ids[1:] - ids[:-1]
        if (steps < 0).any():
            order = np.argsort(ids, kind="stable")
            positions, ids = positions[order], ids[order]
            steps = ids[1:] - ids[:-1]
        self.unique = bool((steps > 0).all())
        self.lowest, self.highest = (int(ids[0]), int(ids[-1])) if len(ids) else (0, -1)
        # Given out one after the other, and none is missing: the ids need not be kept, nor places in the same order.
        self.dense = self.unique and self.highest - self.lowest + 1 == len(ids)
        self.ids = None if self.dense else ids
        straight = self.dense and len(ids) > 0 and bool((positions[1:] - positions[:-1] == 1).all())
        self.first = int(positions[0]) if straight else None
        self.positions = None if straight else positions

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return sum(column.nbytes for column in (self.positions, self.ids) if column is not None)

    def find(self, ends: Ends) -> tuple[Indices, Times]:
        """The positions of the elements whose ends these are, and the ends."""
        if self.highest < self.lowest or not len(ends):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        first, last = ends.span
        if last < self.lowest or first > self.highest:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if first < self.lowest or last > self.highest:
            ends = ends.take((ends.holder >= self.lowest) & (ends.holder <= self.highest))
        if self.first is not None:
            return ends.holder + (self.first - self.lowest), ends.te
        assert self.positions is not None
        if self.ids is None:
            return self.positions[ends.holder - self.lowest], ends.te
        places = np.searchsorted(self.ids, ends.holder)
        if self.unique:
            found = self.ids[places] == ends.holder
            return self.positions[places[found]], ends.te[found]
        count = np.searchsorted(self.ids, ends.holder, side="right") - places
        which = np.repeat(np.arange(len(ends)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        return self.positions[places[which] + within], ends.te[which]
