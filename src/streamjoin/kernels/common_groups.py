"""Rows of groups that all of several inputs have. Nobody else can be in a result of a join by that group.

Found before anything is sorted, or looked at beyond its group: where few groups are in all inputs, sorting and moving
the rest would be most of the work.

    input 0   a b c d d         sets of the groups seen so far, as bits by hash: input 0 makes one, input 1 one of those
    input 1     b c   e         of its groups that are in it, and so on. The last one, of all inputs, decides
    input 2   a b   d

    needs    nothing of the order
    cost     two hashes and two bits for a row; two sets of eight to sixteen bits for a row of the largest input

Law: no row of a group that all have is left out. Among those that stay may be a few of other groups, whose hash is that
of one which all have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from streamjoin.kernels.hashing import GOLDEN
from streamjoin.kernels.pairs import Indices, compiled, frozen

_BITS_FOR_A_ROW: Final = 8  # at least: so of groups that only some have, about one in eight stays at worst
_FEWEST_BITS, _MOST_BITS = 10, 26  # as powers of two: at most eight megabytes, then more stay


@compiled
def _place(group: Any, shift: np.uint64) -> np.uint64:
    """The bit of a group: the upper bits of a product, which all bits of the group reach."""
    return (np.uint64(group) * GOLDEN) >> shift


@compiled
def _first_set(groups: Any, shift: np.uint64, seen: Any) -> None:
    for row in range(len(groups)):
        place = _place(groups[row], shift)
        seen[place >> np.uint64(3)] |= np.uint8(1) << np.uint8(place & np.uint64(7))


@compiled
def _next_set(groups: Any, shift: np.uint64, seen: Any, both: Any) -> None:
    for row in range(len(groups)):
        place = _place(groups[row], shift)
        at, bit = place >> np.uint64(3), np.uint8(1) << np.uint8(place & np.uint64(7))
        both[at] |= seen[at] & bit


@compiled
def _rows_in(groups: Any, shift: np.uint64, seen: Any, out: Any) -> Any:
    found = np.int64(0)
    for row in range(len(groups)):
        place = _place(groups[row], shift)
        out[found] = row  # overwritten by the next one, unless this one stays: cheaper than a branch
        found += np.int64((seen[place >> np.uint64(3)] >> np.uint8(place & np.uint64(7))) & 1)
    return found


def rows_of_common_groups(inputs: Sequence[Indices]) -> list[Indices]:
    """Of each input, the rows whose group is in all of them, by their groups; perhaps a few more.

    >>> [rows.tolist() for rows in rows_of_common_groups([np.array([7, 3, 7]), np.array([5, 7]), np.array([7])])]
    [[0, 2], [1], [0]]
    """
    if any(len(groups) == 0 for groups in inputs):
        return [np.empty(0, np.int64) for _ in inputs]
    largest = max(len(groups) for groups in inputs)
    bits = min(max(_FEWEST_BITS, (largest * _BITS_FOR_A_ROW - 1).bit_length()), _MOST_BITS)
    shift = np.uint64(64 - bits)
    groups = [frozen(each) for each in inputs]
    seen: Any = None
    for each in sorted(groups, key=len):
        common = np.zeros(1 << (bits - 3), np.uint8)
        if seen is None:
            _first_set(each, shift, common)
        else:
            _next_set(each, shift, seen, common)
        seen = common
    found = []
    for each in groups:
        out = np.empty(len(each), np.int64)
        found.append(out[: _rows_in(each, shift, frozen(seen), out)])
    return found
