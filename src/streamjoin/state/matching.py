"""Matching: which order the rows of a run have, and how two runs find their pairs.

The first predicate chooses the order and the kernel; validity is tested inside the kernel. What is left of a
conjunction is tested on the index pairs, chunk by chunk: values of further predicates, key values where group codes are
hashes, expressions, and whose bucket a pair belongs to.

| first predicate | order of a run          | kernel                                             |
|-----------------|-------------------------|----------------------------------------------------|
| none            | (group, ts)             | overlap of the validity itself                     |
| Band            | (group, value)          | band, validity fused                               |
| Overlaps        | (group, lo)             | overlap, validity fused; several: a box, all fused |
| Within          | (group, row, x)         | rows of an epsilon grid, validity fused            |
| Similar         | (group, ts)             | prefixes of token lists, validity fused            |
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.algebra.interval import Mask, Times
from streamjoin.algebra.predicate import EARTH_RADIUS_METRES, Band, Overlaps, Predicate, Within
from streamjoin.algebra.similarity import Similar
from streamjoin.kernels import (
    PAIRS_PER_CHUNK,
    band_pairs,
    box_overlap_pairs,
    box_pairs,
    cells_of,
    order_keys,
    overlap_pairs,
    packed_cells,
    similar_pairs,
    sort_order,
    within_pairs,
)
from streamjoin.state.batch import Batch, Indices
from streamjoin.state.contents import index_of, token_lists
from streamjoin.state.run import Run

# The rows of the grid are a little wider than the radius, by more than `value / width` can round.
GRID_MARGIN: Final = 1.001


class PairTest(Protocol):
    """A condition on index pairs of two batches."""

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        """Which of the pairs `(a[i], b[j])` pass."""
        ...


@dataclass(frozen=True)
class ValueTest:
    """A further predicate of a conjunction; its columns begin at `offset` among the batch's values."""

    predicate: Predicate
    offset: int

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        width = len(self.predicate.columns(0))
        columns = range(self.offset, self.offset + width)
        return self.predicate.holds([a.values[c][i] for c in columns], [b.values[c][j] for c in columns])


@dataclass(frozen=True)
class KeyTest:
    """Equal group codes that are hashes: the key values themselves must be equal."""

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        assert a.proof is not None and b.proof is not None
        equal = np.ones(len(i), np.bool_)
        left, right = a.proof.take(pa.array(i)), b.proof.take(pa.array(j))
        for mine, other in zip(left.columns, right.columns, strict=True):
            equal &= pc.equal(mine, other).to_numpy(zero_copy_only=False).astype(np.bool_)
        return equal


@dataclass(frozen=True)
class GridAxis:
    """A further axis along which partners are at most `reach` apart; its values are number `column` of a batch's."""

    column: int
    reach: float


@dataclass(frozen=True)
class Matching:
    """How the rows of two inputs find each other.

    `grid`: beside a band that is as wide in both directions, up to two axes that bound partners as well. It only makes
    candidates fewer: `tests` must have a test for each.
    `timed` says that validities must overlap. Without it rows match by value alone (event joins, plain value joins).
    """

    first: Band | Overlaps | Within | Similar | None = None
    tests: tuple[PairTest, ...] = ()
    timed: bool = True
    chunk: int = PAIRS_PER_CHUNK
    grid: tuple[GridAxis, ...] = ()

    def sorted_run(self, batch: Batch) -> Run:
        """The batch as a run in this matching's order."""
        run = self.run_of(batch)
        order = sort_order(run.sort_columns)
        return self.run_of(batch.take(order))

    def run_of(self, batch: Batch) -> Run:
        """A run of rows that are in order already."""
        rows, first = len(batch), self.first
        cell, axes = np.zeros(0, np.int64), None
        value: npt.NDArray[Any]
        if first is None or isinstance(first, Similar):
            value = batch.ts
        elif isinstance(first, Within):
            axes = grid_axes(first, batch.values)
            value = np.ascontiguousarray(axes[:, 0])
            cell = cells_of(axes[:, -1], grid_width(first)) if axes.shape[1] > 1 else np.zeros(rows, np.int64)
        else:
            value = batch.values[0]
            if self.grid:
                axes = np.column_stack([batch.values[axis.column].astype(np.float64) for axis in self.grid])
                cell = packed_cells(axes, self._reach())
        return Run(batch, value, cell, axes)

    def in_tie_order(self, batch: Batch, order: Indices) -> Indices:
        """An order of the batch's rows, with those arranged that are equal by it. They stay as they are here."""
        return order

    @property
    def regards_neighbours(self) -> bool:
        """Whether what becomes of a row depends on those beside it in its run: merging asks."""
        return False

    def ends(self, batch: Batch, order: Indices) -> Times:
        """The ends of the batch's rows in this order, all of them being in one run."""
        return batch.te[order]

    def pairs(self, a: Run, b: Run) -> Iterator[tuple[Indices, Indices]]:
        """Index pairs into a run of input 0 and a run of input 1 that match, chunk by chunk."""
        box = self.box
        tests = [test for test in self.tests if test not in box]
        for i, j in self._candidates(a, b):
            for test in tests:
                keep = test.holds(a.rows, i, b.rows, j)
                if not keep.all():
                    i, j = i[keep], j[keep]
            if len(i):
                yield i, j

    @property
    def box(self) -> tuple[ValueTest, ...]:
        """Tests of further overlaps beside an overlap: dimensions of a box, which its kernel tests."""
        if not isinstance(self.first, Overlaps):
            return ()
        values = (test for test in self.tests if isinstance(test, ValueTest))
        return tuple(test for test in values if isinstance(test.predicate, Overlaps))

    def _candidates(self, a: Run, b: Run) -> Iterator[tuple[Indices, Indices]]:
        first, one, two = self.first, a.rows, b.rows
        if isinstance(first, Band) and self.grid:
            assert a.axes is not None and b.axes is not None
            return box_pairs(
                (one.group, a.cell, a.value, a.axes),
                (two.group, b.cell, b.value, b.axes),
                far=first.above,
                reach=self._reach(),
                limit=self.chunk,
            )
        if isinstance(first, Band):
            return band_pairs(
                (one.group, a.value, one.ts, one.te),
                (two.group, b.value, two.ts, two.te),
                low=-first.below,
                high=first.above,
                low_closed=first.low_closed,
                high_closed=first.high_closed,
                timed=self.timed,
                limit=self.chunk,
            )
        if isinstance(first, Within):
            return self._near(first, a, b)
        if isinstance(first, Similar):
            return self._alike(first, one, two)
        if isinstance(first, Overlaps) and self.box:
            return box_overlap_pairs(
                (one.group, one.values[0], one.values[1], *_beside(one, self.box), one.ts, one.te),
                (two.group, two.values[0], two.values[1], *_beside(two, self.box), two.ts, two.te),
                timed=self.timed,
                limit=self.chunk,
            )
        if isinstance(first, Overlaps):
            return overlap_pairs(
                (one.group, one.values[0], one.values[1], one.ts, one.te),
                (two.group, two.values[0], two.values[1], two.ts, two.te),
                timed=self.timed,
                limit=self.chunk,
            )
        # No predicate on values: the validity itself is the interval. Without time everything in a group matches.
        end_a, end_b = (one.te, two.te) if self.timed else (_forever(one), _forever(two))
        return overlap_pairs(
            (one.group, one.ts, end_a, one.ts, end_a),
            (two.group, two.ts, end_b, two.ts, end_b),
            timed=False,
            limit=self.chunk,
        )

    def _reach(self) -> npt.NDArray[np.float64]:
        return np.array([axis.reach for axis in self.grid])

    def _alike(self, first: Similar, a: Batch, b: Batch) -> Iterator[tuple[Indices, Indices]]:
        """The larger side is looked up: as a run that is kept, it has its index already."""
        if len(a) > len(b):
            return ((i, j) for j, i in self._alike(first, b, a))
        one, two = (token_lists(each, 0, first) for each in (a, b))
        return similar_pairs(
            (a.group, a.ts, a.te, one.lists),
            (b.group, b.ts, b.te, two.lists),
            index_of(b, first),
            mode=one.mode,
            threshold=one.threshold,
            timed=self.timed,
            limit=self.chunk,
        )

    def _near(self, first: Within, a: Run, b: Run) -> Iterator[tuple[Indices, Indices]]:
        assert a.axes is not None and b.axes is not None
        radius, metric = grid_radius(first), first.metric
        candidates = within_pairs(
            (a.rows.group, a.cell, a.axes, a.rows.ts, a.rows.te),
            (b.rows.group, b.cell, b.axes, b.rows.ts, b.rows.te),
            radius=radius,
            metric="euclidean" if metric == "haversine" else metric,
            timed=self.timed,
            limit=self.chunk,
        )
        if metric != "haversine":
            return candidates
        # The kernel found everyone within the chord and a hair; the great circle decides.
        exact = ValueTest(first, 0)
        return ((i[keep], j[keep]) for i, j in candidates for keep in [exact.holds(a.rows, i, b.rows, j)])


def _beside(batch: Batch, box: tuple[ValueTest, ...]) -> tuple[Indices, Indices, Indices]:
    """Low and high ends of the second dimension of boxes, and those of further ones, worked out once for a run.

    They are numbers in the order of the values.
    """
    columns = tuple(column for test in box for column in (test.offset, test.offset + 1))
    if columns not in batch.worked_out:
        low, high, *further = (order_keys(batch.values[column]) for column in columns)
        beside = np.column_stack(further) if further else np.zeros((len(batch), 0), np.int64)
        batch.worked_out[columns] = low, high, beside
    found: tuple[Indices, Indices, Indices] = batch.worked_out[columns]
    return found


def _forever(batch: Batch) -> npt.NDArray[np.int64]:
    return np.full(len(batch), np.iinfo(np.int64).max)


def grid_axes(within: Within, values: tuple[npt.NDArray[Any], ...]) -> npt.NDArray[np.float64]:
    """Coordinates in which the distance is (nearly) straight: the axes themselves, or points on the Earth's sphere."""
    if within.metric != "haversine":
        return np.column_stack([column.astype(np.float64) for column in values[: len(within.left)]])
    latitude, longitude = np.radians(values[0]), np.radians(values[1])
    return EARTH_RADIUS_METRES * np.column_stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
    )


def grid_radius(within: Within) -> float:
    """The radius in the coordinates of `grid_axes`: for the sphere the chord, and a millimetre for its rounding."""
    if within.metric != "haversine":
        return float(within.radius)
    angle = min(within.radius / (2 * EARTH_RADIUS_METRES), math.pi / 2)
    return 2 * EARTH_RADIUS_METRES * math.sin(angle) * (1 + 1e-9) + 1e-3


def grid_width(within: Within) -> float:
    """The width of the grid's rows: above the radius, and never zero."""
    return min(grid_radius(within) * GRID_MARGIN, sys.float_info.max) or 1.0
