"""The best-match join: every row with those of its candidates that no other one dominates.

After the Window Algorithm of TU Muenchen (Lehrstuhl III, 2005): inputs ordered in one dimension, a window over each, as
wide as that dimension's epsilon, and a buffer of pairs that a better one may still push out.

                 lower bound            upper bound
                      |   epsilon          |
    left    . . . . . [ o    o       o  o  ] . . . next     rows that wait for their answer
    right   x x x x x [ +  +     +      +  ] . . . next     rows that one of them can still take
            thrown away

The document moves the bounds row by row, in four cases. Here they move with progress, batch by batch, and the cases are

    1  the left window and the left input are empty        `on_end`: what waits leaves, and nothing is kept
    2  both have rows                                      the lower bound is the smallest left row that waits, or the
                                                           left progress, less epsilon: whichever is smaller
    3  only the window has rows                            left progress is at its end, so what waits decides
    4  only the input has rows                             nothing waits, so left progress decides

With these corrections: the windows do not begin at zero, so values may be negative; a right row below the lower bound
goes even if it was never in a window; every dimension is tested by the difference of actual values, the ordered one
too; rows leave when they are final, those without a candidate in the same step.

A row is final when no candidate for it can come: right progress is beyond its value plus epsilon. It is joined then, in
one step with all its candidates, so that the buffer of potential pairs is filled and emptied at once. `how="right"`
turns the sides around. `how="full"` also lets right rows leave that are in no result, when they leave their window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra import FOREVER, BestOf, Emit, LatePolicy, Near, Predicate
from streamjoin.algebra.interval import Mask, saturating_add
from streamjoin.algebra.predicate import Band, exact_difference
from streamjoin.errors import UnsupportedError
from streamjoin.kernels import order_keys, rivals, undominated
from streamjoin.operators.choosing import ChoosingJoin, RunningChoosingJoin
from streamjoin.operators.contract import Output, Results, side_by_side
from streamjoin.state import Batch, Matching, Run, SweepArea
from streamjoin.state.batch import Indices

ROWS_AT_ONCE: Final = 1 << 16  # so many rows find their candidates before the best of them are chosen


@dataclass(frozen=True)
class BestMatchJoin(ChoosingJoin):
    """What to join and how. `build()` makes the running operator.

    `dimensions` in the order of the batches' values, the ordered one first; `reach` is its epsilon in ticks of `ts`.
    """

    choice: BestOf
    matching: Matching
    dimensions: tuple[Band | Near, ...]
    reach: int
    schemas: tuple[pa.Schema, pa.Schema]
    how: Literal["left", "inner", "right", "full"] = "left"
    emit: Emit = "eager"
    late: tuple[LatePolicy, LatePolicy] = ("drop", "drop")

    def __post_init__(self) -> None:
        if self.late[self.chooser] == "join":
            raise UnsupportedError(
                f'late="join" of input {self.chooser} of a best-match join: what a late row would take may be gone',
                hint='use late="output" or late="drop" for it',
            )

    @property
    def chooser(self) -> int:
        """The input whose rows take their best candidates."""
        return 1 if self.how == "right" else 0

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        schemas = [[(field.name, str(field.type)) for field in schema] for schema in self.schemas]
        dimensions = [repr((each.left, each.right, _epsilon(each), type(each).__name__)) for each in self.dimensions]
        return repr((self.choice.describe(), dimensions, self.reach, self.how, self.emit, self.late, schemas))

    def build(self) -> RunningBestMatchJoin:
        """The running operator, empty."""
        return RunningBestMatchJoin(self)


@dataclass(frozen=True)
class Candidates:
    """Pairs that could be results: the chooser's row, and the other row by run and position."""

    row: Indices
    run: Indices
    position: Indices
    vectors: list[npt.NDArray[Any]]  # a column of distances for each dimension

    def take(self, which: Indices | Mask) -> Candidates:
        """Some of them."""
        vectors = [column[which] for column in self.vectors]
        return Candidates(self.row[which], self.run[which], self.position[which], vectors)


@dataclass
class RunningBestMatchJoin(RunningChoosingJoin):
    """One best-match join at work."""

    config: BestMatchJoin

    def _new_area(self) -> SweepArea:
        return SweepArea(self.config.matching, tracked=self.config.how == "full")

    def _choose_final(self) -> Iterator[Output]:
        progress = self.times.of(self.other)
        ended = progress == FOREVER
        final = self.waiting.release(
            lambda rows: np.full(len(rows), ended) | (saturating_add(rows.ts, self.config.reach) < progress)
        )
        if final is not None:
            yield from self._choose(self.config.matching.sorted_run(final))

    # -- choosing ------------------------------------------------------------------------------------------------------

    def _choose(self, run: Run) -> Iterator[Output]:
        for first in range(0, len(run), ROWS_AT_ONCE):
            rows = self.config.matching.run_of(run.rows.take(np.arange(first, min(first + ROWS_AT_ONCE, len(run)))))
            found = self._candidates(rows)
            best = found.take(self._best(found))
            for results in self._pairs(rows.rows, best):
                yield from self._leave(results)
            if self._stays(self.chooser):
                alone = np.ones(len(rows), np.bool_)
                alone[found.row] = False
                if alone.any():
                    yield from self._leave(self._alone(self.chooser, rows.rows.take(alone)))

    def _candidates(self, rows: Run) -> Candidates:
        """All candidates of these rows, ordered by row."""
        none = np.empty(0, np.int64)
        row, run, position = [none], [none], [none]
        vectors: list[list[npt.NDArray[Any]]] = [[] for _ in self.config.dimensions]
        for number, kept in enumerate(self.area.kept):
            sides = (rows, kept.run) if self.chooser == 0 else (kept.run, rows)
            for pair in self.config.matching.pairs(*sides):
                mine, theirs = pair[self.chooser], pair[self.other]
                row.append(mine)
                run.append(np.full(len(mine), number))
                position.append(theirs)
                for column, (dimension, values) in enumerate(zip(self.config.dimensions, vectors, strict=True)):
                    left, right = (sides[n].rows.values[column][pair[n]] for n in (0, 1))
                    values.append(distances(dimension, left, right))
        columns = [np.concatenate(values) if values else np.empty(0) for values in vectors]
        found = Candidates(np.concatenate(row), np.concatenate(run), np.concatenate(position), columns)
        return found.take(np.argsort(found.row, kind="stable"))

    def _best(self, found: Candidates) -> Mask:
        """Which candidates no other one of their row dominates."""
        if not len(found.row):
            return np.ones(0, np.bool_)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(found.row)) + 1, [len(found.row)]])
        dominance = self.config.choice.dominance
        if isinstance(dominance, str):
            keys = np.column_stack([order_keys(column) for column in found.vectors])
            return undominated(starts, keys, strict=dominance == "strict")
        vectors = np.column_stack([column.astype(np.float64) for column in found.vectors])
        one, two = rivals(starts)
        best = np.ones(len(found.row), np.bool_)
        best[two[np.asarray(dominance(vectors[one], vectors[two]), np.bool_)]] = False
        return best

    # -- results leave -------------------------------------------------------------------------------------------------

    def _pairs(self, rows: Batch, best: Candidates) -> Iterator[Results]:
        for number, kept in enumerate(self.area.kept):
            mine = np.flatnonzero(best.run == number)
            if not len(mine):
                continue
            if kept.matched is not None:
                kept.matched[best.position[mine]] = True
                kept.note()
            chosen = rows.take(best.row[mine])
            members = [chosen.payload, kept.run.rows.payload.take(pa.array(best.position[mine]))]
            yield Results(side_by_side(members if self.chooser == 0 else members[::-1]), chosen.ts, chosen.ts)


def distances(dimension: Predicate, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """How far apart values are in a dimension: whole numbers stay whole."""
    if isinstance(dimension, Near):
        return dimension.distances(left, right)
    return np.abs(exact_difference(right, left))


def _epsilon(dimension: Band | Near) -> Any:
    return dimension.epsilon if isinstance(dimension, Near) else dimension.above
