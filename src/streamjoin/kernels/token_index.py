"""An index of rows by the tokens of their prefixes: whoever is similar enough shares one of them.

    needs    rows as token lists (64-bit hashes, one list after the other), with a group each
    cost     O(tokens) to build, by radix sorts; O(tokens) to have a probing side ranked by it

Tokens are ranked by how many rows of the indexed side have them, the rarest first; a token that it does not have comes
before all others. Any order would do, as long as both sides go by the same one. The first tokens of a row by this
order, as many as it can do without and still be similar to somebody, and one more, are its *prefix*:

    a row of 10 tokens, jaccard 0.8:  [t1 t2 t3] t4 t5 t6 t7 t8 t9 t10     8 must be shared, so one of these three

A token of one group and the same token of another are two tokens: keys make lists shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.hashing import mix
from streamjoin.kernels.pairs import Indices, compiled, frozen
from streamjoin.kernels.sorting import sort_order


@compiled
def _codes(group: Any, offsets: Any, tokens: Any, out: Any) -> None:
    for row in range(len(group)):
        own = mix(np.uint64(group[row]))
        for at in range(offsets[row], offsets[row + 1]):
            out[at] = mix(own + np.uint64(tokens[at]))


@compiled
def _number(codes: Any, slots: Any, numbers: Any, out: Any) -> int:
    """A number for each code, the same for the same; `slots` and `numbers` are a hash table, filled here."""
    mask, found = np.uint64(len(slots) - 1), 0
    for at in range(len(codes)):
        slot = codes[at] & mask
        while numbers[slot] >= 0 and slots[slot] != codes[at]:
            slot = (slot + np.uint64(1)) & mask
        if numbers[slot] < 0:
            slots[slot] = codes[at]
            numbers[slot] = found
            found += 1
        out[at] = numbers[slot]
    return found


@compiled
def _look_up(codes: Any, slots: Any, numbers: Any, out: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    for at in range(len(codes)):
        slot = codes[at] & mask
        while numbers[slot] >= 0 and slots[slot] != codes[at]:
            slot = (slot + np.uint64(1)) & mask
        out[at] = numbers[slot]


@compiled
def _post(rows: Any, offsets: Any, ranks: Any, prefix: Any, starts: Any, posted_row: Any, posted_place: Any) -> None:
    fill = starts[:-1].copy()
    for at in range(len(rows)):
        row = rows[at]
        for place in range(prefix[row]):
            rank = ranks[offsets[row] + place]
            posted_row[fill[rank]] = row
            posted_place[fill[rank]] = place
            fill[rank] += 1


@compiled
def _count_posted(offsets: Any, ranks: Any, prefix: Any, starts: Any) -> None:
    for row in range(len(prefix)):
        for place in range(prefix[row]):
            starts[ranks[offsets[row] + place] + 1] += 1
    for rank in range(len(starts) - 1):
        starts[rank + 1] += starts[rank]


def _row_of(offsets: Indices) -> Indices:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def token_codes(group: Indices, offsets: Indices, tokens: Indices) -> npt.NDArray[np.uint64]:
    """A code per token that differs from group to group."""
    codes = np.empty(len(tokens), np.uint64)
    _codes(frozen(group), frozen(offsets), frozen(tokens), codes)
    return codes


@dataclass(frozen=True)
class TokenIndex:
    """Rows by the tokens of their prefixes. Those of rank r are at `starts[r]:starts[r + 1]`, the smallest sets first.

    >>> offsets, tokens, size = np.array([0, 2, 3]), np.array([5, 6, 6]), np.array([2, 1])
    >>> index = TokenIndex.build(np.zeros(2, np.int64), offsets, tokens, size, prefix=size)
    >>> index.starts.tolist(), index.rows.tolist()
    ([0, 1, 3], [0, 1, 0])
    """

    slots: npt.NDArray[np.uint64]
    numbers: Indices
    rank: Indices
    starts: Indices
    rows: Indices
    places: Indices

    @classmethod
    def build(
        cls, group: Indices, offsets: Indices, tokens: Indices, size: Indices, prefix: Indices
    ) -> TokenIndex:  # fmt: skip
        """An index of rows with these tokens; `size` orders the rows of a token."""
        codes = token_codes(group, offsets, tokens)
        room = 1 << max(4, (2 * len(codes)).bit_length())
        slots, numbers = np.zeros(room, np.uint64), np.full(room, -1, np.int64)
        number = np.empty(len(codes), np.int64)
        different = int(_number(codes, slots, numbers, number))
        often = np.bincount(number, minlength=different).astype(np.int64)
        rank = np.empty(different, np.int64)
        if different:
            rank[sort_order([often, np.arange(different)])] = np.arange(different)
        ranks = _in_order(offsets, rank[number])
        starts = np.zeros(different + 1, np.int64)
        _count_posted(frozen(offsets), frozen(ranks), frozen(prefix), starts)
        rows, places = np.empty(int(starts[-1]), np.int64), np.empty(int(starts[-1]), np.int64)
        by_size = sort_order([size]) if len(size) else np.zeros(0, np.int64)
        _post(frozen(by_size), frozen(offsets), frozen(ranks), frozen(prefix), frozen(starts), rows, places)
        return cls(slots, numbers, rank, starts, rows, places)

    def ranks_of(self, group: Indices, offsets: Indices, tokens: Indices) -> Indices:
        """Of each row of another side, the ranks of its tokens in order; -1 for tokens that are not here."""
        number = np.empty(len(tokens), np.int64)
        _look_up(token_codes(group, offsets, tokens), frozen(self.slots), frozen(self.numbers), number)
        known = np.append(self.rank, -1)  # the last one is for -1
        return _in_order(offsets, known[number])


def _in_order(offsets: Indices, ranks: Indices) -> Indices:
    return ranks[sort_order([_row_of(offsets), ranks])] if len(ranks) else ranks
