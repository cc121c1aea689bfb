"""The sum, mean and standard deviation of one column per group, exact under additions and removals.

NaN and the infinities are not summed but counted: a sum is NaN where there is a NaN or both infinities, infinite where
there is one infinity, and the exact sum of the others once all of them have gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra.interval import Mask
from streamjoin.errors import EvaluationError
from streamjoin.kernels import LongSums, Steps, SumsRead, fold_counts, fold_sums, renumbered, with_room
from streamjoin.state.aggregate_types import is_real
from streamjoin.state.batch import Indices
from streamjoin.state.column_values import decimals, divided_half_up, doubles, integers

_NAN: Final = 0  # columns of `strange`
_PLUS: Final = 1
_MINUS: Final = 2


@dataclass(frozen=True)
class Totals:
    """Sums that were read: of how many values, and of which type these are."""

    read: SumsRead
    values: Indices
    kind: pa.DataType

    def result(self, function: str, kind: pa.DataType, name: str) -> pa.Array:
        """One of the aggregates, as a column of this type."""
        known = self.values > 0
        if function == "stddev":
            scale = 10.0**self.kind.scale if pa.types.is_decimal(self.kind) else 1.0
            return pa.array(self.read.deviation / scale, mask=self.values < 2)
        if pa.types.is_decimal(self.kind):
            low, high = self.read.low, self.read.high
            if function == "avg":
                factor = 10 ** (kind.scale - self.kind.scale)
                low, high = divided_half_up(low, high, factor, np.maximum(self.values, 1))
            return decimals(low, high, known, kind)
        if function == "avg":
            return pa.array(self.read.total / np.maximum(self.values, 1), mask=~known)
        if is_real(self.kind):
            return pa.array(self.read.total, mask=~known)
        if (self.read.high != self.read.low >> 63).any():
            raise EvaluationError(
                f"the sum {name!r} does not fit into 64 bits", hint="cast the column to decimal(18, 0) or to double"
            )
        return pa.array(self.read.low, mask=~known)


class Sums:
    """What is kept of one column; with `squared` also for the standard deviation."""

    def __init__(self, kind: pa.DataType, *, squared: bool) -> None:
        self.kind = kind
        self.sums = LongSums.none(real=is_real(kind), squared=squared)
        self.strange = np.zeros((3, 0), np.int64)
        self.any_strange = False

    def fold(self, steps: Steps, column: pa.ChunkedArray, order: Indices, known: Mask, values: Indices) -> Totals:
        """The sums at each read; `known` tells which changes have a value, `values` how many there are at a read."""
        if not self.sums.real:
            numbers = integers(column)[order][known]
            return Totals(fold_sums(steps.only(known), numbers, values, self.sums), values, self.kind)
        reals = doubles(column)[order]
        finite = np.isfinite(reals)
        self.any_strange |= not finite.all()
        finite &= known
        self.sums.cover(reals[finite])
        read = fold_sums(steps.only(finite), reals[finite], values, self.sums)
        if self.any_strange:
            masks = (np.isnan(reals), reals == np.inf, reals == -np.inf)
            counts = (fold_counts(steps.only(mask), kept) for mask, kept in zip(masks, self.strange, strict=True))
            read = _with_strange(read, *counts)
        return Totals(read, values, self.kind)

    def grow(self, groups: int) -> None:
        """Have room for so many groups."""
        self.sums.grow(groups)
        if self.strange.shape[1] < groups:
            self.strange = np.ascontiguousarray(with_room(self.strange.T, groups).T)

    def renumber(self, old_to_new: Indices) -> None:
        """Move the groups to new codes."""
        self.sums.renumber(old_to_new)
        self.strange = np.ascontiguousarray(renumbered(self.strange.T, old_to_new).T)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return self.sums.limbs.nbytes + self.sums.squares.nbytes + self.sums.pending.nbytes + self.strange.nbytes

    def to_columns(self, groups: int) -> dict[str, pa.Array]:
        """What is kept of the first `groups` codes, to be stored."""
        self.sums.carry()
        columns: dict[str, Any] = {"base": pa.array(np.full(groups, self.sums.base))}
        columns["limbs"] = _rows(self.sums.limbs[:groups])
        columns["squares_base"] = pa.array(np.full(groups, self.sums.squares_base))
        columns["squares"] = _rows(self.sums.squares[:groups])
        columns |= {f"strange{i}": pa.array(counts[:groups]) for i, counts in enumerate(self.strange)}
        return columns

    def from_columns(self, columns: dict[str, pa.ChunkedArray]) -> None:
        """The inverse of `to_columns`."""
        groups = len(columns["base"])
        if not groups:
            return
        limbs, squares = _matrix(columns["limbs"]), _matrix(columns["squares"])
        base, squares_base = columns["base"][0].as_py(), columns["squares_base"][0].as_py()
        self.sums = replace(self.sums, limbs=limbs, base=base, squares=squares, squares_base=squares_base)
        self.sums.pending = np.zeros(groups, np.int64)
        self.strange = np.stack([columns[f"strange{i}"].to_numpy() for i in range(3)])
        self.any_strange = bool(self.strange.any())


def _with_strange(read: SumsRead, nans: Indices, plus: Indices, minus: Indices) -> SumsRead:
    total = np.where(plus > 0, np.inf, np.where(minus > 0, -np.inf, read.total))
    total[(nans > 0) | ((plus > 0) & (minus > 0))] = np.nan
    deviation = read.deviation
    if len(deviation):
        deviation = np.where(nans + plus + minus > 0, np.nan, deviation)
    return replace(read, total=total, deviation=deviation)


def _rows(matrix: npt.NDArray[np.int64]) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    width = matrix.shape[1]
    return pa.FixedSizeListArray.from_arrays(flat, width) if width else pa.nulls(len(matrix))


def _matrix(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    if pa.types.is_null(column.type):
        return np.zeros((len(column), 0), np.int64)
    flat = np.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks])
    return flat.reshape(len(column), column.type.list_size)
