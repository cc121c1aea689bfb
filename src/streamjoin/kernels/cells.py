"""Counting rows per class of keys and cell of time: one pass, without sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.kernels.hashing import GOLDEN, mix
from streamjoin.kernels.pairs import Indices, compiled, frozen


@compiled
def _count(group: Any, ts: Any, width: int, first: int, mask: np.uint64, table: Any) -> None:
    for row in range(len(ts)):
        cell = ts[row] // width - first
        table[mix(group[row] + GOLDEN) & mask, cell] += 1


def count_cells(group: Indices, ts: Times, width: int, first: int, shape: tuple[int, int]) -> Times:
    """Rows by class, the lowest bits of the hash of their keys' code, and by cell, from the `first` one on.

    >>> count_cells(np.array([7, 7, 7]), np.array([10, 14, 15]), 5, 2, (1, 2)).tolist()
    [[2, 1]]
    """
    table = np.zeros(shape, np.int64)
    _count(frozen(group).view(np.uint64), frozen(ts), width, first, np.uint64(shape[0] - 1), table)
    return table
