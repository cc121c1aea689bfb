"""What is remembered of the inputs of a join, as long as a slack can be: in detail what is new, roughly what is old.

There is room for so many entries. When it is used up, older halves of what takes most of it get wider cells: what is
old is asked for by rows that are as late, and slack is chosen in steps of 4 percent, so a cell may be as wide as some
part of its age. Where that does not help, they get fewer classes. Then rows of different keys look as if they could
match, and `Alike` knows how many of those do.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.operators.recall.counts import Counts, Floats, half_of, together
from streamjoin.operators.recall.needs import need_histogram, pairs_between
from streamjoin.state import Blobs, Snapshot

# Of an input, in memory and in every snapshot.
MOST_ENTRIES: Final = 1 << 16
MERGED: Final = 8
# Of its age, the part that a cell may be wide; and how much wider cells become at a time: by as little as possible,
# since what is too young for the next step loses classes instead.
PART_OF_AGE: Final = 50
WIDER: Final = 2
ENOUGH: Final = 0.75  # of the entries, at most, after some of them have become less detailed


class Alike:
    """Of pairs of rows whose keys are alike in some bits of their hash, the share that is alike in all of them.

    It is learned from rows that come in one micro-batch: of those all that is known of any rows is known.
    """

    def __init__(self) -> None:
        self.learned: dict[int, tuple[float, float]] = {}  # by bits: pairs in full detail, and in this one

    def learn(self, one: Counts, two: Counts, windows: tuple[int, int], bits: Iterable[int]) -> None:
        """Both inputs' rows of a micro-batch, and the bits that are asked for."""
        full = min(one.bits, two.bits)
        fewer = sorted({each for each in bits if each < full})
        if not fewer:
            return
        exact = pairs_between(one, two, *windows)
        for each in fewer:
            before = self.learned.get(each, (0.0, 0.0))
            rough = pairs_between(one.with_bits(each), two.with_bits(each), *windows)
            self.learned[each] = before[0] + exact, before[1] + rough

    def share(self, one: Counts, two: Counts) -> float:
        """Of the pairs that two counts make."""
        exact, rough = self.learned.get(min(one.bits, two.bits), (0.0, 0.0))
        return exact / rough if exact > 0 else 1.0

    def to_json(self) -> Any:
        """To be stored."""
        return [[bits, *pairs] for bits, pairs in self.learned.items()]

    def restore(self, stored: Any) -> None:
        """The inverse of `to_json`."""
        self.learned = {bits: (exact, rough) for bits, exact, rough in stored}


class Seen:
    """What is remembered of an input, in parts that do not change: each is written to a snapshot once.

    Parts of one detail are merged as they grow, so that each is several times as large as the next.
    """

    def __init__(self, alike: Alike, most: int = MOST_ENTRIES) -> None:
        self.alike, self.most = alike, most
        self.parts: list[tuple[str, Counts]] = []

    def add(self, counts: Counts) -> None:
        """Rows have come."""
        same = [each for each in self.parts if (each[1].width, each[1].bits) == (counts.width, counts.bits)]
        while same and len(counts) * MERGED >= len(same[-1][1]):
            self.parts.remove(same[-1])
            counts = together([same.pop()[1], counts])
        self.parts.append((uuid.uuid4().hex, counts))

    def forget(self, now: int, reach: int) -> None:
        """What is older than `reach` is not asked for any more: a part goes, or is written anew, when half is past."""
        for name, part in list(self.parts):
            past = (now - reach) // part.width - 1  # the last cell that is
            if part.first <= past and part.middle <= past:
                recent = part.since(now - reach)
                at = [each for each, _ in self.parts].index(name)
                self.parts[at : at + 1] = [(uuid.uuid4().hex, recent)] if len(recent) else []

    def fit(self, now: int) -> None:
        """There is room for so many entries only."""
        while sum(len(part) for _, part in self.parts) > self.most:
            self._shorten(now)

    def _shorten(self, now: int) -> None:
        """The older half of a part in less detail, longest parts first: wider cells if its age allows, fewer classes if
        no part's does; and in the end wider cells whatever they mean.
        """
        longest_first = sorted((part for _, part in self.parts), key=lambda part: -len(part))
        for rougher in (_wider, _fewer, _widened):
            for part in longest_first:
                older, newer = part.halves
                rough = rougher(older, now - (older.last + 1) * older.width)
                if rough is not None:
                    self.parts = [each for each in self.parts if each[1] is not part]
                    for each in (rough, newer):
                        if len(each):
                            self.add(each)
                    return

    def needs_of(self, news: Counts, largest: int, windows: tuple[int, int], edges: Times) -> Floats:
        """The needs of pairs that new rows of the other input make with these."""
        bins = np.zeros(len(edges))
        for _, part in self.parts:
            bins += need_histogram(news, part, largest, windows, edges) * self.alike.share(news, part)
        return bins

    def pairs_with(self, news: Counts, windows: tuple[int, int]) -> float:
        """How many pairs new rows of the other input make with these."""
        return sum(pairs_between(news, part, *windows) * self.alike.share(news, part) for _, part in self.parts)

    def snapshot(self, name: str) -> Snapshot:
        """To be stored."""
        blobs = Blobs({f"{name}/{each}": part.to_bytes for each, part in self.parts})
        return Snapshot({"parts": [each for each, _ in self.parts]}, blobs)

    def restore(self, name: str, stored: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.parts = [(each, Counts.from_bytes(stored.blobs[f"{name}/{each}"])) for each in stored.manifest["parts"]]


def _wider(part: Counts, age: int) -> Counts | None:
    """Wider cells, as wide as its age allows; None where that saves too little."""
    rough = part
    while len(rough) > ENOUGH * len(part) and WIDER * rough.width * PART_OF_AGE <= age:
        rough = rough.with_width(WIDER * rough.width)
    return rough if len(rough) <= ENOUGH * len(part) else None


def _fewer(part: Counts, age: int) -> Counts | None:
    """Half as many classes."""
    if not part.bits:
        return None
    rough = part.with_bits(half_of(part.bits, part.classes))
    return rough if len(rough) <= ENOUGH * len(part) else None


def _widened(part: Counts, age: int) -> Counts:
    """Wider cells, at any age."""
    return part.with_width(WIDER * part.width)
