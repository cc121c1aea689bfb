"""The nearest join: each left row with the k right rows that are nearest to it, within a radius.

    left  --> [waiting]           rows wait until no right row of their time can come
                  |  looks around
    right --> [area, on a grid]   what a left row that waits or can come may still take

Law: of the right rows within the radius (and within the tolerance in time, where there is one) a left row takes the k
first by (distance, tie break, content). Distances are compared as the predicate computes them: for the Euclidean metric
sums of squares, without the root. A row that finds nobody stays, with NULLs, or goes (`how="inner"`).

On two streams a tolerance is what makes a row final: right progress is beyond its time plus the tolerance. Beside a
static input a row is final at once.

Cost: the candidates within the radius, which a grid finds, and sorting them; ties at the k-th place are looked at by
content, others are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra import Emit, NearestOf, Within
from streamjoin.algebra.policy import ADDED
from streamjoin.errors import UnsupportedError
from streamjoin.kernels import sort_order
from streamjoin.operators.candidates import Candidates, RunningCandidatesJoin, Values
from streamjoin.operators.choosing import ChoosingJoin, choosing_terms
from streamjoin.operators.contract import ALONE, Context, JoinTerms
from streamjoin.operators.joining import described
from streamjoin.operators.lateness import LateRows
from streamjoin.operators.urgency import NewPriority
from streamjoin.state import Matching, View
from streamjoin.state.batch import Indices
from streamjoin.state.history import tie_order


@dataclass(frozen=True)
class NearestJoin(ChoosingJoin):
    """What to join and how. `build()` makes the running operator. `within` reads a batch's first values."""

    choice: NearestOf
    matching: Matching
    within: Within
    schemas: tuple[pa.Schema, pa.Schema]
    how: Literal["left", "inner"] = "left"
    emit: Emit = "eager"
    late: tuple[LateRows, LateRows] = ("drop", "drop")
    changelog: bool = False
    new_priority: NewPriority | None = field(default=None, metadata=ADDED)

    def __post_init__(self) -> None:
        if self.late[self.chooser] == "join":
            raise UnsupportedError(
                'late="join" of the left input of a nearest join: what a late row would take may be gone',
                hint='use late="output" or late="drop" for the left input, for example late=["output", "join"]',
            )

    @property
    def chooser(self) -> int:
        """The input whose rows take others."""
        return 0

    @property
    def reach(self) -> int:
        """How far after a left row's time a right row may be that it takes."""
        return self.choice.tolerance or 0

    @property
    def terms(self) -> JoinTerms:
        """Left rows choose by distance."""
        return choosing_terms(self, self.choice, self.choice.reach, self.matching.tests)

    @property
    def fingerprint(self) -> str:
        """Two operators may share a snapshot iff this is equal."""
        return repr((self.choice, self.within, self.how, self.emit, self.late, self.changelog, described(self.schemas)))

    def build(self, context: Context = ALONE) -> RunningNearestJoin:
        """The running operator, empty."""
        return RunningNearestJoin(self, context)


@dataclass
class RunningNearestJoin(RunningCandidatesJoin):
    """One nearest join at work."""

    config: NearestJoin

    def _distances(self, left: Values, right: Values) -> list[npt.NDArray[Any]]:
        axes = len(self.config.within.left)
        return [self.config.within.measure(left[:axes], right[:axes])]

    def _best(self, found: Candidates, seen: View) -> Indices:
        """The k nearest of each row."""
        distance, k = found.distances[0] if found.distances else np.empty(0), self.config.choice.k
        order = sort_order([found.row, distance])
        row, distance = found.row[order], distance[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        # Where the k-th and the next have the same distance, content decides who of all with that distance is in.
        last = np.flatnonzero((rank == k - 1)[:-1] & (row[1:] == row[:-1]) & (distance[1:] == distance[:-1]))
        if len(last):
            tied = _runs_around(row, distance, last)
            order = order.copy()
            order[tied] = order[tied][self._tie_order(found.take(order[tied]), seen)]
        return order[rank < k]

    def _tie_order(self, tied: Candidates, seen: View) -> Indices:
        """Candidates that are equally far from their row: the one to take first."""
        payload = seen.payload(tied.run, tied.position)
        # The greatest comes first, so everything is turned around: the rows, and what they are grouped by.
        return tie_order(payload, -tied.row, self.config.choice.tie_break)[::-1]


def _runs_around(row: Indices, distance: npt.NDArray[Any], places: Indices) -> Indices:
    """The positions of all that have the row and the distance of one of these places."""
    begins = np.ones(len(row), np.bool_)
    begins[1:] = (row[1:] != row[:-1]) | (distance[1:] != distance[:-1])
    which = np.cumsum(begins)
    return np.flatnonzero(np.isin(which, which[places]))
