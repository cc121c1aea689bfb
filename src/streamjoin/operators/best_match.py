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
one step with all its candidates (see `candidates`), so that the buffer of potential pairs is filled and emptied at
once. Candidates are found by the ordered dimension and by a grid over up to two others. `how="right"` turns the sides
around. `how="full"` also lets right rows leave that are in no result, when they leave their window; where they live in
several buckets, each says whom it saw taken, and `verdict` decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra import BestOf, Emit, Near, Predicate
from streamjoin.algebra.policy import ADDED
from streamjoin.algebra.predicate import Band, exact_difference
from streamjoin.errors import UnsupportedError
from streamjoin.kernels import order_keys, rivals, undominated
from streamjoin.operators.candidates import Candidates, RunningCandidatesJoin, Values
from streamjoin.operators.choosing import ChoosingJoin, choosing_terms
from streamjoin.operators.contract import ALONE, Context, JoinTerms
from streamjoin.operators.joining import described
from streamjoin.operators.lateness import LateRows
from streamjoin.operators.urgency import NewPriority
from streamjoin.state import Matching, View
from streamjoin.state.batch import Indices


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
    late: tuple[LateRows, LateRows] = ("drop", "drop")
    changelog: bool = False
    replicated: tuple[bool, bool] = (False, False)
    new_priority: NewPriority | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        if self.late[self.chooser] == "join":
            raise UnsupportedError(
                f'late="join" of input {self.chooser} of a best-match join: what a late row would take may be gone',
                hint='use late="output" or late="drop" for it',
            )
        if self.changelog and self.how == "full":
            raise UnsupportedError(
                'output="changelog" of a best-match join with how="full": that nobody takes a row is no first guess',
                hint='use how="left", and how="right" in a query of its own',
            )

    @property
    def chooser(self) -> int:
        """The input whose rows take their best candidates."""
        return 1 if self.how == "right" else 0

    @property
    def tracked(self) -> tuple[bool, bool]:
        return (False, self.how == "full")

    @property
    def terms(self) -> JoinTerms:
        """Rows choose by all dimensions."""
        return choosing_terms(self, self.choice, (self.reach, self.reach), self.matching.tests)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        dimensions = [repr((each.left, each.right, _epsilon(each), type(each).__name__)) for each in self.dimensions]
        which = self.choice.describe(), dimensions, self.reach
        return repr((
            *which, self.how, self.emit, self.late, self.changelog, self.replicated, described(self.schemas),
        ))  # fmt: skip

    def build(self, context: Context = ALONE) -> RunningBestMatchJoin:
        """The running operator, empty."""
        return RunningBestMatchJoin(self, context)


@dataclass
class RunningBestMatchJoin(RunningCandidatesJoin):
    """One best-match join at work."""

    config: BestMatchJoin

    def _distances(self, left: Values, right: Values) -> list[npt.NDArray[Any]]:
        return [distances(*each) for each in zip(self.config.dimensions, left, right, strict=True)]

    def _best(self, found: Candidates, seen: View) -> Indices:
        """Which candidates no other one of their row dominates."""
        if not len(found.row):
            return np.empty(0, np.int64)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(found.row)) + 1, [len(found.row)]])
        dominance = self.config.choice.dominance
        if isinstance(dominance, str):
            keys = np.column_stack([order_keys(column) for column in found.distances])
            return np.flatnonzero(undominated(starts, keys, strict=dominance == "strict"))
        vectors = np.column_stack([column.astype(np.float64) for column in found.distances])
        one, two = rivals(starts)
        best = np.ones(len(found.row), np.bool_)
        best[two[np.asarray(dominance(vectors[one], vectors[two]), np.bool_)]] = False
        return np.flatnonzero(best)


def distances(dimension: Predicate, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """How far apart values are in a dimension: whole numbers stay whole."""
    if isinstance(dimension, Near):
        return dimension.distances(left, right)
    return np.abs(exact_difference(right, left))


def _epsilon(dimension: Band | Near) -> Any:
    return dimension.epsilon if isinstance(dimension, Near) else dimension.above
