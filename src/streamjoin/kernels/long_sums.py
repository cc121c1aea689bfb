"""Where exact sums are kept: one long accumulator per group, and one for squares where they are asked for.

All groups share the limbs `base .. base + width` of the whole range of doubles. Whoever adds doubles makes them wide
enough first (`cover`): values of similar size need about six limbs, all doubles there are 68.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.pairs import Indices
from streamjoin.kernels.per_group import renumbered, with_room

SPARE: Final = 4  # limbs above the one in which the highest value begins: two for its digits, two for carries
_DOUBLES: Final = (32, 6)  # about 2**-50 to 2**100: what usual values need
_INTEGERS: Final = (0, 4)  # 128 bits
_SQUARES_OF_INTEGERS: Final = (0, 3 + SPARE)  # a square's highest part begins at bit 88, in limb 2


@dataclass
class LongSums:
    """What is kept per group: limbs of the sum and, with `squared`, of the sum of squares.

    >>> LongSums.none(real=False, squared=True).squares.shape
    (0, 7)
    """

    real: bool
    limbs: npt.NDArray[np.int64]
    base: int
    squares: npt.NDArray[np.int64]
    squares_base: int
    pending: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @staticmethod
    def none(*, real: bool, squared: bool) -> LongSums:
        """Of no group: doubles if `real`, otherwise integers."""
        base, width = _DOUBLES if real else _INTEGERS
        squares_base, squares_width = (2 * base, 2 * width) if real else _SQUARES_OF_INTEGERS
        return LongSums(
            real,
            np.zeros((0, width), np.int64),
            base,
            np.zeros((0, squares_width if squared else 0), np.int64),
            squares_base,
        )

    def grow(self, groups: int) -> None:
        """Have room for so many groups."""
        self.limbs, self.squares = with_room(self.limbs, groups), with_room(self.squares, groups)
        self.pending = with_room(self.pending, groups)

    def renumber(self, old_to_new: Indices) -> None:
        """Move the groups to new codes."""
        self.limbs, self.squares = renumbered(self.limbs, old_to_new), renumbered(self.squares, old_to_new)
        self.pending = renumbered(self.pending, old_to_new)

    def carry(self) -> None:
        """Hand on all carries: then equal sums have equal limbs."""
        for limbs in (self.limbs, self.squares):
            for place in range(limbs.shape[1] - 1):
                over = limbs[:, place] >> 32
                limbs[:, place] -= over << 32
                limbs[:, place + 1] += over
        self.pending[:] = 0

    def cover(self, values: npt.NDArray[np.float64]) -> None:
        """Make the limbs wide enough for these doubles, all finite."""
        positions = np.maximum((values.view(np.int64) >> 52) & 2047, 1)[values != 0] - 1
        if len(positions):
            low, high = int(positions.min()), int(positions.max())
            self.limbs, self.base = _widened(self.limbs, self.base, low, high)
            if self.squares.shape[1]:
                widened = _widened(self.squares, self.squares_base, 2 * low, 2 * high + 54)
                self.squares, self.squares_base = widened


def _widened(limbs: npt.NDArray[np.int64], base: int, low: int, high: int) -> tuple[npt.NDArray[np.int64], int]:
    new_base = min(base, low >> 5)
    width = max(base + limbs.shape[1], (high >> 5) + 1 + SPARE) - new_base
    if width == limbs.shape[1]:
        return limbs, base
    wide = np.zeros((len(limbs), width), np.int64)
    wide[:, base - new_base : base - new_base + limbs.shape[1]] = limbs
    return wide, new_base
