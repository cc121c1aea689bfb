"""The Window Algorithm of TU Muenchen (Lehrstuhl III, 2005) as it is printed, with its corrections as switches.

It computes the left-outer best-match join of two tables that are sorted in their first dimension: for every left row
the right rows within epsilon in every dimension that no other of them dominates. Two windows with the same bounds move
up along the sorted dimension; what they hold is joined; pairs wait in a buffer, because a better one may come.

                 lower bound            upper bound
                      |   epsilon          |
    left    o o o o o [ o    o       o  o  ] . . . next         the buffer: potential pairs of left rows
    right   x x x x x [ +  +     +      +  ] . . . next         that are not below the lower bound

After each join left rows on the lower bound are removed, and the bounds move by one of four cases:

    1  neither window nor input has left rows    what is in the buffer leaves, and all is done
    2  both have                                 lower := min(smallest in the window, next - epsilon)
    3  only the window has                       lower := smallest in the window
    4  only the input has                        upper := next, lower := upper - epsilon; the whole windows are joined

Otherwise old left rows meet new right rows, and new left rows meet all. Windows are slices of the sorted tables.

Each of the corrections can be left out (`Corrections`), to count what goes wrong without it. Written to be read beside
the document, not to be fast: what counts of its cost are the pairs that it tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.float64]  # a row for each element, a column for each dimension; sorted by the first
Case = Literal[1, 2, 3, 4]


@dataclass(frozen=True)
class Corrections:
    """Which of the corrections are made.

    start         the windows begin as in case 4, not at [0, epsilon]
    throw_away    right rows below the lower bound go although they never were in the window
    differences   bounds are tested by differences of actual values, and the sorted dimension of a pair too
    unmatched     left rows without a partner leave as well, padded, when they are below the lower bound
    """

    start: bool = True
    throw_away: bool = True
    differences: bool = True
    unmatched: bool = True


CORRECTED: Final = Corrections()
AS_PRINTED: Final = Corrections(start=False, throw_away=False, differences=False, unmatched=False)


class Bounds(Protocol):
    """Both windows' bounds, as three questions about a value of the sorted dimension."""

    def below(self, value: float) -> bool:
        """Whether it is below the lower bound."""
        ...

    def above(self, value: float) -> bool:
        """Whether it is above the upper bound."""
        ...

    def on_lower(self, value: float) -> bool:
        """Whether it lies on the lower bound."""
        ...


@dataclass(frozen=True)
class Printed:
    """Bounds as numbers, as the document has them: one of the two is a sum or a difference, and rounded."""

    lower: float
    upper: float

    def below(self, value: float) -> bool:
        return value < self.lower

    def above(self, value: float) -> bool:
        return value > self.upper

    def on_lower(self, value: float) -> bool:
        return value == self.lower


@dataclass(frozen=True)
class FromLower:
    """Epsilon upwards from an actual value.

    >>> bounds = FromLower(0.1, 0.2)
    >>> bounds.above(0.3), bounds.above(0.30000000000000004), Printed(0.1, 0.1 + 0.2).above(0.3)
    (False, True, False)
    """

    value: float
    epsilon: float

    def below(self, value: float) -> bool:
        return value < self.value

    def above(self, value: float) -> bool:
        return value - self.value > self.epsilon

    def on_lower(self, value: float) -> bool:
        return value == self.value


@dataclass(frozen=True)
class FromUpper:
    """Epsilon downwards from an actual value. Nobody is on its lower bound: a right row may still come that is as far
    from such a row as epsilon, when the difference is rounded.
    """

    value: float
    epsilon: float

    def below(self, value: float) -> bool:
        return self.value - value > self.epsilon

    def above(self, value: float) -> bool:
        return value > self.value

    def on_lower(self, value: float) -> bool:
        return False


@dataclass
class Window:
    """A slice of a sorted table: rows from `first` on are in it, those from `fresh` on since the last update."""

    table: Table
    first: int = 0
    fresh: int = 0
    end: int = 0  # the next row of the input

    @property
    def empty(self) -> bool:
        return self.first == self.end

    @property
    def exhausted(self) -> bool:
        return self.end == len(self.table)

    @property
    def smallest(self) -> float:
        return float(self.table[self.first, 0])

    @property
    def next(self) -> float:
        return float(self.table[self.end, 0])

    def fill(self, bounds: Bounds, *, throw_away: bool) -> int:
        """Take what fits. A row that is below the bounds does not, and nobody behind it is reached unless it goes."""
        self.fresh, gone = self.end, 0
        while throw_away and self.empty and not self.exhausted and bounds.below(self.next):
            self.first = self.fresh = self.end = self.end + 1
            gone += 1
        while not self.exhausted and not bounds.above(self.next) and not bounds.below(self.next):
            self.end += 1
        return gone

    def drop_below(self, bounds: Bounds) -> None:
        """Rows that are below the lower bound are in it no longer."""
        while not self.empty and bounds.below(self.smallest):
            self.first += 1
        self.fresh = max(self.fresh, self.first)

    def drop_on_lower(self, bounds: Bounds) -> None:
        """Rows on the lower bound are in it no longer."""
        while not self.empty and bounds.on_lower(self.smallest):
            self.first += 1


@dataclass
class Joined:
    """What came out, in the order in which it left: a left row with its partner, or with None; and what it took."""

    results: list[tuple[int, int | None]] = field(default_factory=list)
    tested: int = 0
    pushed_out: int = 0  # pairs that were in the buffer until a better one came
    steps: int = 0
    thrown_away: int = 0
    most_buffered: int = 0
    cases: dict[Case, int] = field(default_factory=lambda: dict.fromkeys((1, 2, 3, 4), 0))
    stuck: bool = False  # the bounds did not move any more, and would never

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(row, partner) for row, partner in self.results if partner is not None]

    @property
    def padded(self) -> list[int]:
        return [row for row, partner in self.results if partner is None]

    @property
    def in_order(self) -> bool:
        """Whether left rows left in their order, those without a partner among the others."""
        return all(one <= two for (one, _), (two, _) in pairwise(self.results))


@dataclass
class WindowAlgorithm:
    """The algorithm at work on two tables that are sorted by their first column."""

    left: Table
    right: Table
    epsilons: Sequence[float]
    corrections: Corrections = CORRECTED

    def __post_init__(self) -> None:
        self.reach = float(self.epsilons[0])
        self.near = np.asarray(self.epsilons, np.float64)
        self.windows = Window(self.left), Window(self.right)
        self.buffer: dict[int, tuple[npt.NDArray[np.int64], Any]] = {}  # of a left row: right rows, distances
        self.left_until = 0  # left rows before this one have left
        self.joined = Joined()

    def run(self) -> Joined:
        """All of it.

        >>> left, right = np.array([[1.0, 5.0], [4.0, 5.0]]), np.array([[0.5, 5.0], [1.5, 6.0], [2.0, 5.0]])
        >>> found = WindowAlgorithm(left, right, (1.0, 1.0)).run()
        >>> found.pairs, found.padded
        ([(0, 0)], [1])
        """
        left, _ = self.windows
        if not self.corrections.start:
            # Nothing is thrown away yet: the correction that does so speaks of *new* lower bounds.
            self._fill(Printed(0.0, self.reach), throw_away=False)
            self._join(whole=True)
            self._remove(Printed(0.0, self.reach))
        while True:
            case = self._case()
            self.joined.cases[case] += 1
            if case == 1:
                self._leave(len(self.left))
                return self.joined
            before = (left.first, left.end, self.windows[1].first, self.windows[1].end)
            bounds = self._bounds(case)
            self._update(bounds)
            self._join(whole=case == 4)
            self._remove(bounds)
            self.joined.steps += 1
            if before == (left.first, left.end, self.windows[1].first, self.windows[1].end) and self._stays(bounds):
                self.joined.stuck = True
                self._leave(len(self.left))
                return self.joined

    def _case(self) -> Case:
        left, _ = self.windows
        if left.empty:
            return 1 if left.exhausted else 4
        return 3 if left.exhausted else 2

    def _bounds(self, case: Case) -> Bounds:
        left, _ = self.windows
        exact = self.corrections.differences
        if case == 4:
            return FromUpper(left.next, self.reach) if exact else Printed(left.next - self.reach, left.next)
        if case == 2:
            # The smaller of the two lower bounds: that of the next row, if it is within reach of the smallest one.
            if exact:
                if left.next - left.smallest <= self.reach:
                    return FromUpper(left.next, self.reach)
            else:
                lower = min(left.smallest, left.next - self.reach)
                return Printed(lower, lower + self.reach)
        return FromLower(left.smallest, self.reach) if exact else Printed(left.smallest, left.smallest + self.reach)

    def _stays(self, bounds: Bounds) -> bool:
        """Whether the next bounds would be the same: nobody has come or gone, so nobody ever will."""
        return bool(self._bounds(self._case()) == bounds)

    def _update(self, bounds: Bounds) -> None:
        """With new bounds: right rows below them go, pairs of left rows below them leave, and both windows fill."""
        left, right = self.windows
        right.drop_below(bounds)
        below = self.left_until
        while below < left.end and bounds.below(float(self.left[below, 0])):
            below += 1
        self._leave(below)
        self._fill(bounds, throw_away=self.corrections.throw_away)

    def _fill(self, bounds: Bounds, *, throw_away: bool) -> None:
        left, right = self.windows
        left.fill(bounds, throw_away=False)
        self.joined.thrown_away += right.fill(bounds, throw_away=throw_away)

    def _remove(self, bounds: Bounds) -> None:
        self.windows[0].drop_on_lower(bounds)

    def _join(self, *, whole: bool) -> None:
        """Old left rows with new right ones, new left rows with all; or everyone with everyone."""
        left, right = self.windows
        fresh = left.first if whole else left.fresh
        for row in range(left.first, max(left.first, fresh)):
            self._meet(row, right.fresh, right.end)
        for row in range(max(left.first, fresh), left.end):
            self._meet(row, right.first, right.end)
        self.joined.most_buffered = max(self.joined.most_buffered, sum(len(each[0]) for each in self.buffer.values()))

    def _meet(self, row: int, first: int, end: int) -> None:
        """A left row with some right ones: the pairs that nobody dominates go into the buffer, those that a better one
        dominates out of it."""
        if first >= end:
            return
        self.joined.tested += end - first
        distances = np.abs(self.left[row] - self.right[first:end])
        # As printed the sorted dimension is not tested: who is in the windows together counts as near.
        tested = 0 if self.corrections.differences else 1
        near = np.flatnonzero((distances[:, tested:] <= self.near[tested:]).all(axis=1))
        if not len(near):
            return
        partners, vectors = near + first, distances[near]
        waiting = 0
        if row in self.buffer:
            waiting = len(self.buffer[row][0])
            partners = np.concatenate([self.buffer[row][0], partners])
            vectors = np.concatenate([self.buffer[row][1], vectors])
        best = undominated(vectors)
        self.joined.pushed_out += waiting - int(best[:waiting].sum())
        self.buffer[row] = partners[best], vectors[best]

    def _leave(self, until: int) -> None:
        """Left rows before this one leave with their pairs: no better one will come."""
        for row in range(self.left_until, until):
            if row in self.buffer:
                self.joined.results += [(row, int(partner)) for partner in self.buffer.pop(row)[0]]
            elif self.corrections.unmatched:
                self.joined.results.append((row, None))
        self.left_until = max(self.left_until, until)


def undominated(vectors: Any) -> npt.NDArray[np.bool_]:
    """Which distance vectors no other one dominates: at most as far in all dimensions, nearer in one.

    >>> undominated(np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 0.0], [1.0, 2.0]])).tolist()
    [True, False, True, True]
    """
    one, two = vectors[:, None], vectors[None, :]
    dominates = (one <= two).all(axis=-1) & (one < two).any(axis=-1)
    kept: npt.NDArray[np.bool_] = ~dominates.any(axis=0)
    return kept


def nested_loops(left: Table, right: Table, epsilons: Sequence[float]) -> Joined:
    """The definition: every left row with every right one."""
    found, near = Joined(), np.asarray(epsilons, np.float64)
    for row, values in enumerate(left):
        distances = np.abs(values - right)
        candidates = np.flatnonzero((distances <= near).all(axis=1))
        found.tested += len(right)
        if len(candidates):
            best = candidates[undominated(distances[candidates])]
            found.results += [(row, int(partner)) for partner in best]
        else:
            found.results.append((row, None))
    return found
