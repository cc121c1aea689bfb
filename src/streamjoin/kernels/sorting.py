"""Orders: sort a batch once, then only ever merge sorted runs.

`sort_order` is a stable radix sort over (group, cell, value), least significant column first; bits that all rows share
are skipped, so a column of small range costs a pass or two. `merge_order` merges k sorted runs that lie one after
another. Both return positions, so that payload of any type can follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.pairs import Indices, compiled, frozen

_DIGIT_BITS: Final = 11
_SMALL: Final = 2048  # below this many rows a comparison sort is faster than clearing the histograms
_MOST_RUNS: Final = 16  # of more the heads are not compared one by one


def sortable_bits(column: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Unsigned integers in the same order as `column` (int64 or float64, no NaN; -0.0 sorts with 0.0).

    >>> np.argsort(sortable_bits(np.array([1.5, -2.0, 0.0]))).tolist()
    [1, 2, 0]
    """
    if column.dtype.kind == "f":
        bits = (column + 0.0).view(np.int64)
        return np.where(bits < 0, ~bits, bits ^ np.int64(-(2**63))).view(np.uint64)
    return (column ^ np.int64(-(2**63))).view(np.uint64)


def order_keys(column: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Signed integers in the same order as `column`.

    >>> order_keys(np.array([-0.5, 0.0, 2.0])).argsort().tolist()
    [0, 1, 2]
    """
    return (sortable_bits(column) ^ np.uint64(1 << 63)).view(np.int64)


@compiled
def _radix_pass(keys: Any, order: Any, shift: int, mask: int, keys_out: Any, order_out: Any) -> None:
    starts = np.zeros(mask + 2, np.int64)
    for key in keys:
        starts[((key >> np.uint64(shift)) & np.uint64(mask)) + np.uint64(1)] += 1
    for digit in range(mask + 1):
        starts[digit + 1] += starts[digit]
    for position in range(len(keys)):
        digit = (keys[position] >> np.uint64(shift)) & np.uint64(mask)
        place = starts[digit]
        starts[digit] = place + 1
        keys_out[place] = keys[position]
        order_out[place] = order[position]


def _radix_by(bits: npt.NDArray[np.uint64], order: Indices | None) -> Indices | None:
    low, high = int(bits.min()), int(bits.max())
    if low == high:
        return order
    keys = bits - np.uint64(low)
    if order is None:
        order = np.arange(len(bits))
    else:
        keys = keys[order]
    keys_out, order_out = np.empty_like(keys), np.empty_like(order)
    for shift in range(0, (high - low).bit_length(), _DIGIT_BITS):
        _radix_pass(keys, order, shift, (1 << _DIGIT_BITS) - 1, keys_out, order_out)
        keys, keys_out, order, order_out = keys_out, keys, order_out, order
    return order


def sort_order(columns: Sequence[npt.NDArray[Any]]) -> Indices:
    """The stable order of rows by `columns`, the first one most significant.

    >>> sort_order([np.array([1, 0, 1]), np.array([0.5, 2.0, -1.0])]).tolist()
    [1, 2, 0]
    """
    rows = len(columns[0])
    if rows < _SMALL:
        return np.lexsort([sortable_bits(column) for column in reversed(columns)]).astype(np.int64)
    order: Indices | None = None
    for column in reversed(columns):
        order = _radix_by(sortable_bits(column), order)
    return np.arange(rows) if order is None else order


@compiled
def _precedes(group: Any, cell: Any, value: Any, i: int, j: int) -> bool:
    if group[i] != group[j]:
        return bool(group[i] < group[j])
    if cell[i] != cell[j]:
        return bool(cell[i] < cell[j])
    return bool(value[i] < value[j])


@compiled
def _merge(group: Any, cell: Any, value: Any, offsets: Any, order: Any) -> None:
    heads = offsets[:-1].copy()
    for position in range(len(order)):
        best = -1
        for run in range(len(heads)):
            if heads[run] < offsets[run + 1] and (best < 0 or _precedes(group, cell, value, heads[run], heads[best])):
                best = run
        order[position] = heads[best]
        heads[best] += 1


def merge_order(group: Indices, cell: Indices, value: npt.NDArray[Any], offsets: Indices) -> Indices:
    """The merged order of sorted runs that lie one after another, run r at `offsets[r]:offsets[r + 1]`; stable.

    The heads are compared one by one: runs merge a few at a time, where a heap would cost more than it saves. Many, as
    when a state of small parts is restored, are sorted anew: being stable, that gives the same order.

    >>> zero = np.zeros(4, np.int64)
    >>> merge_order(zero, zero, np.array([1, 4, 2, 3]), np.array([0, 2, 4])).tolist()
    [0, 2, 3, 1]
    """
    if len(offsets) - 1 > _MOST_RUNS:
        return sort_order([group, cell, value])
    order = np.empty(len(group), np.int64)
    _merge(frozen(group), frozen(cell), frozen(value), frozen(offsets), order)
    return order
