"""Placing: which bucket, or buckets, a row goes to; and which bucket a pair belongs to.

| partitioning | when                       | rows                                      | each pair meets in     |
|--------------|----------------------------|-------------------------------------------|------------------------|
| by hash      | keys, groups, payloads     | one bucket                                | the bucket of its key  |
| by home      | band, distance: a bound    | one input at home in its cell, the other  | the home of that input |
|              | on the values              | wherever a partner may be                 |                        |
| by reference | overlap, with a cell size  | both in every cell that they cover        | several; kept where    |
|              |                            |                                           | the larger start lies  |
| by token     | similarity: a high         | both in the buckets of their prefix       | several; kept where    |
|              | threshold                  | tokens (see `token_placing`)              | the smallest shared    |
|              |                            |                                           | token belongs          |
| by matrix    | anything else              | input 0 along a row, input 1 along a      | where row and column   |
|              |                            | column of a matrix of buckets             | cross                  |

Placement is by content, never random: a task that runs again sends every row to the same place.

In the second row the side whose rows must know that they met nobody stays at home. Where that is impossible its rows
are replicated, with an `origin` that all replicas share, and a second stage gives the verdict.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra import Band, Within
from streamjoin.algebra.interval import Mask
from streamjoin.kernels import bucket_of_cells, cells_of, combine_hashes, hash_integers, spread_over_buckets
from streamjoin.state import Batch, PairTest
from streamjoin.state.batch import Indices
from streamjoin.state.columns import group_codes, number_values
from streamjoin.state.contents import content_hashes
from streamjoin.state.matching import grid_axes, grid_radius

# A cell is this many times as wide as the reach of the predicate: one row in eight goes to a second cell per axis.
CELLS_PER_REACH: Final = 8.0
# The grid uses at most so many axes: more would only multiply the cells that a row covers.
MOST_AXES: Final = 3


@dataclass(frozen=True)
class Placement:
    """Row `rows[i]` goes to bucket `buckets[i]`."""

    rows: Indices
    buckets: Indices

    def homes(self, count: int) -> Indices:
        """Of each of the rows, the bucket in which it is at home: that of its first replica."""
        homes = np.zeros(count, np.int64)
        homes[self.rows[::-1]] = self.buckets[::-1]
        return homes


@dataclass(frozen=True)
class Partitioning:
    """By hash of the columns that place a row; with one bucket also everything else. The base of the other three."""

    buckets: int

    @property
    def replicates(self) -> tuple[bool, bool]:
        """Of each input, whether its rows may go to several buckets."""
        return (False, False)

    def place(self, number: int, batch: Batch, hashes: Indices | None = None) -> Placement:
        """Where the rows of input `number` go; `hashes` are those of the columns that place them."""
        rows = np.arange(len(batch))
        if self.buckets == 1 or hashes is None:
            return Placement(rows, np.zeros(len(batch), np.int64))
        return Placement(rows, modulo(hashes, self.buckets))

    def at_home(self, bucket: int, number: int, batch: Batch) -> Mask:
        """Which rows of input `number` that have come to a bucket are at home there, though they may be elsewhere."""
        copied = self.replicates
        if not any(copied) or not copied[number]:
            return np.ones(len(batch), np.bool_)
        return np.asarray(self.place(number, batch).homes(len(batch)) == bucket, np.bool_)

    def owner_test(self, bucket: int) -> PairTest | None:
        """The test that keeps a pair in exactly one of the buckets where it meets; None when it meets in one only."""
        return None

    def describe(self) -> str:
        """In words, for `explain`."""
        return (
            "one bucket"
            if self.buckets == 1
            else f"hash of the equality keys over {self.buckets} buckets, no row twice"
        )


@dataclass(frozen=True)
class HomePartitioning(Partitioning):
    """Input `home` in its cell, the other input in every cell where a partner may be."""

    predicate: Band | Within
    cell: float
    home: int = 0

    @property
    def replicates(self) -> tuple[bool, bool]:
        return (self.home != 0, self.home != 1)

    def place(self, number: int, batch: Batch, hashes: Indices | None = None) -> Placement:
        points, below, above = self._points(number, batch)
        if number == self.home:
            return Placement(np.arange(len(batch)), bucket_of_cells(cells_of(points, self.cell), self.buckets))
        # Wider than exact by what subtraction and division can round: a cell too many costs a copy, one too few a pair.
        slack = (
            1e-6 * self.cell
            + 1e-15 * finite_magnitude(points)
            + 1e-15 * finite_magnitude(below)
            + 1e-15 * finite_magnitude(above)
        )
        with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest double there are no cells
            lowest, highest = points - below - slack, points + above + slack
        # Infinity less infinity could be anything, so the row goes everywhere.
        low = cells_of(np.where(np.isnan(lowest), -np.inf, lowest), self.cell)
        high = cells_of(np.where(np.isnan(highest), np.inf, highest), self.cell)
        rows, buckets = spread_over_buckets(low, high, self.buckets)
        return Placement(rows, buckets)

    def _points(self, number: int, batch: Batch) -> tuple[npt.NDArray[np.float64], float, float]:
        """Coordinates of the rows, and how far down and up from them a partner at home may lie."""
        below, above = reach(self.predicate)
        if isinstance(self.predicate, Within):
            return grid_axes(self.predicate, batch.values)[:, :MOST_AXES], below, above
        # right - left lies in [-below, above]; seen from the right that is left - right in [-above, below].
        if number == 1:
            below, above = above, below
        return batch.values[0].astype(np.float64).reshape(-1, 1), below, above

    def describe(self) -> str:
        return (
            f"grid of cell {self.cell:g} over {self.buckets} buckets: input {self.home} in its home cell, input "
            f"{1 - self.home} in every cell that a partner may be in (about {self._replication():.2f} copies of a row)"
        )

    def _replication(self) -> float:
        axes = 1
        if isinstance(self.predicate, Within):
            axes = 3 if self.predicate.metric == "haversine" else min(len(self.predicate.left), MOST_AXES)
        copies, most = 1 + sum(reach(self.predicate)) / self.cell, float(self.buckets)
        return min(min(copies, most) ** axes, most)


def reach(predicate: Band | Within) -> tuple[float, float]:
    """How far down and up from a row of input 0 a partner may lie."""
    if isinstance(predicate, Within):
        return grid_radius(predicate), grid_radius(predicate)
    return float(predicate.below), float(predicate.above)


def default_cell(predicate: Band | Within) -> float:
    """A cell size that follows from the predicate alone.

    >>> default_cell(Band("a", "b", below=0.5, above=0.5))
    8.0
    """
    width = sum(reach(predicate))
    return min(CELLS_PER_REACH * width, sys.float_info.max) if width > 0 and math.isfinite(width) else 1.0


@dataclass(frozen=True)
class ReferencePartitioning(Partitioning):
    """Both inputs in every cell that their interval covers; a pair belongs where the larger of the two starts lies.

    `on_time`: the interval is the validity, not a pair of value columns.
    """

    cell: float
    on_time: bool

    @property
    def replicates(self) -> tuple[bool, bool]:
        return (True, True)

    def place(self, number: int, batch: Batch, hashes: Indices | None = None) -> Placement:
        lo, hi = (batch.ts, batch.te) if self.on_time else batch.values[:2]
        low, high = cells_of(lo, self.cell), np.maximum(cells_of(hi, self.cell), cells_of(lo, self.cell))
        if batch.matchable is not None:
            high = np.where(batch.matchable, high, low)
        rows, buckets = spread_over_buckets(low.reshape(-1, 1), high.reshape(-1, 1), self.buckets)
        return Placement(rows, buckets)

    def owner_test(self, bucket: int) -> PairTest | None:
        return ReferencePoint(bucket, self.buckets, self.cell, self.on_time)

    def describe(self) -> str:
        return (
            f"grid of cell {self.cell:g} over {self.buckets} buckets: both inputs in every cell they cover, a pair is "
            "kept where the larger of its two starts lies"
        )


@dataclass(frozen=True)
class ReferencePoint:
    """Keeps a pair in the bucket of the cell where the larger of the two starts lies, which both intervals cover."""

    bucket: int
    buckets: int
    cell: float
    on_time: bool

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        lo_a, lo_b = (a.ts, b.ts) if self.on_time else (a.values[0], b.values[0])
        return self.owns(np.maximum(lo_a[i], lo_b[j]))

    def owns(self, points: npt.NDArray[Any]) -> Mask:
        """Which of the largest starts lie in this bucket."""
        cells = cells_of(points, self.cell).reshape(-1, 1)
        return np.asarray(bucket_of_cells(cells, self.buckets) == self.bucket, np.bool_)


@dataclass(frozen=True)
class MatrixPartitioning(Partitioning):
    """Input 0 along a row of a matrix of buckets, input 1 along a column: any two rows meet in exactly one bucket."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix, as square as the number of buckets allows."""
        rows = max(r for r in range(1, math.isqrt(self.buckets) + 1) if self.buckets % r == 0)
        return rows, self.buckets // rows

    @property
    def replicates(self) -> tuple[bool, bool]:
        rows, columns = self.shape
        return (columns > 1, rows > 1)

    def place(self, number: int, batch: Batch, hashes: Indices | None = None) -> Placement:
        rows, columns = self.shape
        content = content_hash(batch)
        if number == 0:
            line, copies = modulo(content, rows), columns
        else:
            line, copies = modulo(content, columns), rows
        row = np.repeat(np.arange(len(batch)), copies)
        step = np.tile(np.arange(copies), len(batch))
        buckets = line[row] * columns + step if number == 0 else step * columns + line[row]
        return Placement(row, buckets)

    def describe(self) -> str:
        rows, columns = self.shape
        return f"matrix of {rows} x {columns} buckets: input 0 {columns} times, input 1 {rows} times"


def finite_magnitude(numbers: Any) -> Any:
    """Magnitudes, 0 where infinite."""
    return np.where(np.isfinite(numbers), np.abs(numbers), 0.0)


def modulo(hashes: Indices, buckets: int) -> Indices:
    return (hashes.view(np.uint64) % np.uint64(buckets)).astype(np.int64)


def content_hash(batch: Batch) -> Indices:
    """A hash of a row's content: its times, what predicates compare, and its payload as far as that is numbers."""
    columns: list[npt.NDArray[Any]] = [batch.ts, batch.te, batch.group, *batch.values]
    for column in batch.payload.columns:
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_temporal(column.type):
            columns.append(number_values(column)[0])
    return _hash_of([*columns, *content_hashes(batch)])


def _hash_of(columns: Sequence[npt.NDArray[Any]]) -> Indices:
    content = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        bits = values.view(np.int64) if values.dtype == np.float64 else values
        content = combine_hashes(content, hash_integers(np.ascontiguousarray(bits)))
    return content


def origins(batch: Batch, judged_by: Sequence[str]) -> Indices:
    """A number that all replicas of a row share: a hash of everything that decides whom it matches.

    That is its times, its values and contents, and the payload columns `judged_by` that an expression reads. Rows that
    agree in all of it have the same partners, so it does not matter that they share an origin. Not the row's position:
    a task that runs again may see its rows in another order. (The verdict compares the times as well; see there.)
    """
    origin = _hash_of([batch.ts, batch.te, batch.group, *batch.values, *content_hashes(batch)])
    for name in judged_by:
        for column in _flattened(batch.payload[name]):
            code, present = group_codes([column], len(batch))
            # For a key NULL and NaN are alike, an expression tells them apart.
            valid = pc.is_valid(column).to_numpy()
            origin = combine_hashes(combine_hashes(origin, hash_integers(code)), present + np.int64(2) * valid)
    return origin


def _flattened(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    if not pa.types.is_struct(column.type):
        return [column]
    fields = [pc.struct_field(column, position) for position in range(column.type.num_fields)]
    return [pc.is_valid(column), *(part for field in fields for part in _flattened(field))]


def distribute(
    partitioning: Partitioning,
    number: int,
    batch: Batch,
    hashes: Indices | None = None,
    *,
    follow: bool = False,
    judged_by: Sequence[str] = (),
) -> Iterator[tuple[int, Batch]]:
    """The rows of a batch for each bucket that gets any.

    `follow`: the rows' fate is decided across buckets, so each gets an origin, and one of its replicas is its home.
    """
    placed = partitioning.place(number, batch, hashes)
    if follow:
        batch = replace(batch, origin=origins(batch, judged_by))
    order = np.argsort(placed.buckets, kind="stable")
    rows, buckets = placed.rows[order], placed.buckets[order]
    homes = placed.homes(len(batch)) if follow else None
    cuts = np.flatnonzero(np.diff(buckets)) + 1
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        if end == start:
            continue
        bucket, mine = int(buckets[start]), rows[start:end]
        part = batch if len(mine) == len(batch) and len(cuts) == 0 else batch.take(mine)
        yield bucket, part if homes is None else replace(part, home=homes[mine] == bucket)
