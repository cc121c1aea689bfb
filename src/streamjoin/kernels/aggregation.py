"""Aggregation over lifetimes: where groups are cut into pieces, and what is counted there.

A *change* is the start (+1) or the end (-1) of an element of a group. Between two neighbouring instants with changes
the group stays as it is: that is a piece, and its aggregates are those of the elements valid there.

    elements     |--------)
                      |--------)         |---)
    changes      +    +   -    -         +   -
    pieces       |----|---|----)         |---)        none where the group is empty

Changes come sorted by (group, time, starts first). One pass, `cut_pieces`, says which pieces they close, and before
which change the values of each have to be read. Then every aggregate *folds*: it walks over the same changes, applies
each to what it keeps for the group, and writes down what it has where a piece is read. The cost is that of the changes,
however many elements are alive and however many groups there are. A fold without changes reads what is kept now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Mask, Times
from streamjoin.errors import StreamjoinError
from streamjoin.kernels.pairs import Indices, compiled, frozen


@dataclass(frozen=True)
class Reads:
    """When a fold writes down what it has: read k is of the group `who[k]`, before change number `at[k]`; ascending.

    >>> len(Reads(np.array([3, 3]), np.array([7, 2])))
    2
    """

    at: Indices
    who: Indices

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True)
class Steps:
    """Changes in order, and the reads between them: what a fold walks over.

    >>> steps = Steps(np.array([0, 0, 1]), np.array([1, -1, 1], np.int8), Reads(np.array([1, 2]), np.array([0, 0])))
    >>> steps.only(np.array([False, True, True])).reads.at.tolist()
    [0, 1]
    """

    group: Indices
    sign: npt.NDArray[np.int8]
    reads: Reads

    @staticmethod
    def none(groups: Indices) -> Steps:
        """No change: read these groups as they are."""
        return Steps(np.zeros(0, np.int64), np.zeros(0, np.int8), Reads(np.zeros(len(groups), np.int64), groups))

    def only(self, mask: Mask) -> Steps:
        """The changes where `mask` is true, with the same reads."""
        if mask.all():
            return self
        before = np.concatenate([[0], np.cumsum(mask)])
        return Steps(self.group[mask], self.sign[mask], Reads(before[self.reads.at], self.reads.who))


@dataclass(frozen=True)
class Cuts:
    """The pieces that changes close: when to read their values, their validity, and how many elements they have.

    `carried`: the piece was open before the first of the changes.
    """

    reads: Reads
    start: Times
    end: Times
    carried: Mask
    elements: Indices


@compiled
def _cut_pieces(
    group: Any,
    time: Any,
    sign: Any,
    alive: Any,
    opened: Any,
    out_at: Any,
    out_start: Any,
    out_carried: Any,
    out_elements: Any,
) -> int:
    found, change, total = 0, 0, len(group)
    while change < total:
        who = group[change]
        carried = alive[who] > 0
        while change < total and group[change] == who:
            now, elements = time[change], alive[who]
            if elements > 0 and now < opened[who]:
                return -2
            if elements > 0 and opened[who] < now:
                out_at[found], out_start[found] = change, opened[who]
                out_carried[found], out_elements[found] = carried, elements
                found += 1
                carried = False
            while change < total and group[change] == who and time[change] == now:
                elements += sign[change]
                if elements < 0:
                    return -1
                change += 1
            alive[who], opened[who] = elements, now
            carried = carried and elements > 0
    return found


def cut_pieces(group: Indices, time: Times, sign: npt.NDArray[np.int8], *, alive: Indices, opened: Times) -> Cuts:
    """The pieces closed by changes that are sorted by (group, time, starts first).

    `alive` and `opened` have, per group, its elements and the start of its open piece. They are brought up to date.

    >>> alive, opened = np.zeros(1, np.int64), np.zeros(1, np.int64)
    >>> signs = np.array([1, 1, -1, -1], np.int8)
    >>> cuts = cut_pieces(np.zeros(4, np.int64), np.array([1, 3, 5, 9]), signs, alive=alive, opened=opened)
    >>> cuts.start.tolist(), cuts.end.tolist(), cuts.elements.tolist(), cuts.reads.at.tolist()
    ([1, 3, 5], [3, 5, 9], [1, 2, 1], [1, 2, 3])
    """
    rows = len(group)
    at, start, elements = (np.empty(rows, np.int64) for _ in range(3))
    carried = np.empty(rows, np.bool_)
    found = _cut_pieces(frozen(group), frozen(time), frozen(sign), alive, opened, at, start, carried, elements)
    if found < 0:
        what = "ends more elements than it has" if found == -1 else "changes before the piece that is open"
        raise StreamjoinError(
            f"a group {what}", hint="every element must start before it ends, and changes must come in order of time"
        )
    at = at[:found].copy()
    return Cuts(Reads(at, group[at]), start[:found], time[at], carried[:found], elements[:found])


@compiled
def _fold_counts(group: Any, sign: Any, at: Any, who: Any, counts: Any, out: Any) -> None:
    read, reads = 0, len(at)
    for change in range(len(group) + 1):
        while read < reads and at[read] == change:
            out[read] = counts[who[read]]
            read += 1
        if change < len(group):
            counts[group[change]] += sign[change]


def fold_counts(steps: Steps, counts: Indices) -> Indices:
    """What `counts` has at each read, when every change counts up or down. `counts` is brought up to date.

    >>> last = Reads(np.array([3, 3]), np.array([1, 0]))
    >>> fold_counts(Steps(np.array([0, 0, 1]), np.ones(3, np.int8), last), np.zeros(2, np.int64)).tolist()
    [1, 2]
    """
    reads = steps.reads
    out = np.empty(len(reads), np.int64)
    _fold_counts(frozen(steps.group), frozen(steps.sign), frozen(reads.at), frozen(reads.who), counts, out)
    return out
