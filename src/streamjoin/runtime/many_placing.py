"""Placing the rows of more than two inputs: each result meets in exactly one bucket, or is kept in one.

| partitioning | when                              | rows                                   | each result meets in   |
|--------------|-----------------------------------|----------------------------------------|------------------------|
| by hash      | a key that all inputs have        | one bucket                             | the bucket of its key  |
| by reach     | bounds on one value, that lead    | input 0 at home in its cell, others    | the home of input 0    |
|              | from input 0 to all others        | wherever it may be: the bounds add up  |                        |
| by point     | overlap of all, with a cell size  | all in every cell that they cover      | several; kept where    |
|              |                                   |                                        | the largest start lies |
| by cube      | anything else                     | a place along its own axis of a cube   | where the axes cross   |
|              |                                   | of buckets, copies along all others    |                        |

The first is `placing.Partitioning` as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamjoin.algebra import Within
from streamjoin.kernels import bucket_of_cells, cells_of, spread_over_buckets
from streamjoin.runtime.placing import (
    MOST_AXES,
    Partitioning,
    Placement,
    ReferencePoint,
    content_hash,
    finite_magnitude,
    modulo,
)
from streamjoin.state import Batch, PairTest
from streamjoin.state.batch import Indices
from streamjoin.state.matching import grid_axes


@dataclass(frozen=True)
class ReachPartitioning(Partitioning):
    """Input 0 in its cell; every other input in all cells where a row of input 0 may be that it is in a result with.

    `at`: where each input's coordinates begin among its values. `below` and `above`: how far below and above a row of
    an input that of input 0 may lie. `within`: the coordinates are those of a distance.
    """

    cell: float
    at: tuple[int, ...]
    below: tuple[float, ...]
    above: tuple[float, ...]
    within: Within | None = None

    @property
    def replicates(self) -> tuple[bool, ...]:  # type: ignore[override]
        return (False, *(True for _ in self.at[1:]))

    def place(self, number: int, batch: Batch, hashes: Indices | None = None) -> Placement:
        points = self._points(number, batch)
        if number == 0:
            return Placement(np.arange(len(batch)), bucket_of_cells(cells_of(points, self.cell), self.buckets))
        below, above = self.below[number], self.above[number]
        # Wider than exact by what subtraction and division can round: a cell too many costs a copy, one too few a pair.
        slack = 1e-6 * self.cell + 1e-15 * (
            finite_magnitude(points) + finite_magnitude(below) + finite_magnitude(above)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            lowest, highest = points - below - slack, points + above + slack
        low = cells_of(np.where(np.isnan(lowest), -np.inf, lowest), self.cell)
        high = cells_of(np.where(np.isnan(highest), np.inf, highest), self.cell)
        return Placement(*spread_over_buckets(low, high, self.buckets))

    def _points(self, number: int, batch: Batch) -> npt.NDArray[np.float64]:
        values = batch.values[self.at[number] :]
        if self.within is not None:
            return grid_axes(self.within, values)[:, :MOST_AXES]
        return values[0].astype(np.float64).reshape(-1, 1)

    def describe(self) -> str:
        copies = ", ".join(
            f"input {number} about {min(1 + (below + above) / self.cell, self.buckets):.2f} times"
            for number, (below, above) in enumerate(zip(self.below, self.above, strict=True))
            if number
        )
        return f"grid of cell {self.cell:g} over {self.buckets} buckets: input 0 in its home cell, {copies}"


@dataclass(frozen=True)
class PointPartitioning(Partitioning):
    """All inputs in every cell that their interval covers; a result belongs where the largest of all starts lies.

    `at`: where each input's interval begins among its values; None: the interval is the validity.
    """

    cell: float
    inputs: int
    at: tuple[int, ...] | None = None

    @property
    def replicates(self) -> tuple[bool, ...]:  # type: ignore[override]
        return (True,) * self.inputs

    def place(self, number: int, batch: Batch, hashes: Indices | None = None) -> Placement:
        lo, hi = (batch.ts, batch.te) if self.at is None else batch.values[self.at[number] : self.at[number] + 2]
        low, high = cells_of(lo, self.cell), np.maximum(cells_of(hi, self.cell), cells_of(lo, self.cell))
        if batch.matchable is not None:
            high = np.where(batch.matchable, high, low)
        return Placement(*spread_over_buckets(low.reshape(-1, 1), high.reshape(-1, 1), self.buckets))

    def owner_test(self, bucket: int) -> PairTest | None:
        return ReferencePoint(bucket, self.buckets, self.cell, self.at is None)

    def describe(self) -> str:
        return (
            f"grid of cell {self.cell:g} over {self.buckets} buckets: every input in every cell it covers, a result is "
            "kept where the largest of its starts lies"
        )


@dataclass(frozen=True)
class CubePartitioning(Partitioning):
    """An axis for each input: any rows, one of each, meet in exactly one bucket."""

    inputs: int

    @property
    def shape(self) -> tuple[int, ...]:
        """How long the axes are, as even as the number of buckets allows.

        >>> CubePartitioning(12, 3).shape, CubePartitioning(5, 3).shape
        ((3, 2, 2), (5, 1, 1))
        """
        lengths, left, factor = [1] * self.inputs, self.buckets, 2
        factors = []
        while left > 1:
            while left % factor == 0:
                factors.append(factor)
                left //= factor
            factor += 1
        for each in reversed(factors):
            lengths[lengths.index(min(lengths))] *= each
        return tuple(lengths)

    @property
    def replicates(self) -> tuple[bool, ...]:  # type: ignore[override]
        return tuple(self.buckets > length for length in self.shape)

    def place(self, number: int, batch: Batch, hashes: Indices | None = None) -> Placement:
        shape = self.shape
        own = modulo(content_hash(batch), shape[number])
        # The buckets of each place along the input's own axis, in rows.
        places = np.moveaxis(np.arange(self.buckets).reshape(shape), number, 0).reshape(shape[number], -1)
        copies = places.shape[1]
        return Placement(np.repeat(np.arange(len(batch)), copies), places[own].reshape(-1))

    def describe(self) -> str:
        shape = self.shape
        copies = ", ".join(f"input {number} {math.prod(shape) // length} times" for number, length in enumerate(shape))
        return f"cube of {' x '.join(map(str, shape))} buckets: {copies}"
