"""What a result was, in a few numbers that do not depend on the order of its rows.

A pair counts as a whole: its two values are mixed together before they are summed, so that two rows that swap their
partners are noticed. Sums are modulo 2**64.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_MODULUS = 1 << 64
_PIECE = 1 << 20  # rows at a time: the intermediate arrays stay small


@dataclass(frozen=True)
class Digest:
    """How many pairs, the sum of their mixed values, and each column's sum. What an aggregate does not know is None."""

    count: int
    pairs: int | None = None
    left: int | None = None
    right: int | None = None

    def agrees_with(self, other: Digest) -> bool:
        """Whether everything that both know is equal."""
        mine, theirs = asdict(self), asdict(other)
        return all(mine[name] == theirs[name] for name in mine if None not in (mine[name], theirs[name]))

    def __str__(self) -> str:
        checksum = "none" if self.pairs is None else f"{self.pairs:016x}"
        return f"{self.count:,} pairs, checksum {checksum}, column sums {self.left} and {self.right}"


def _mix(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: a bijection that spreads every bit over all others."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def digest_of(chunks: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> Digest:
    """The digest of pairs of int64 columns, in any order and cut in any way."""
    count = pairs = left = right = 0
    for one, two in chunks:
        if len(one) != len(two):
            raise ValueError(f"the columns of a result must be equally long, got {len(one)} and {len(two)}")
        count += len(one)
        for start in range(0, len(one), _PIECE):
            v = one[start : start + _PIECE].astype(np.int64).view(np.uint64)
            w = two[start : start + _PIECE].astype(np.int64).view(np.uint64)
            # The constant makes (v, w) and (w, v) differ, and keeps 0 from being a fixed point.
            pairs += int(_mix(_mix(v + np.uint64(0x9E3779B97F4A7C15)) + w).sum(dtype=np.uint64))
            left += int(v.sum(dtype=np.uint64))
            right += int(w.sum(dtype=np.uint64))
    return Digest(count, pairs % _MODULUS, left % _MODULUS, right % _MODULUS)
