"""Best match: of the right rows within reach in every dimension, those that no other one dominates.

The distance of a pair is a vector, one number per dimension. A pair is a candidate when every number is at most that
dimension's epsilon. Among the candidates of one row, one dominates another

    pareto     when it is nowhere farther, and somewhere nearer
    strict     when it is nearer everywhere
    function   when the function says so

Equal vectors do not dominate each other: both stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Mask
from streamjoin.algebra.predicate import Column, Predicate, Values

Dominance = Literal["pareto", "strict"]
Vectors = npt.NDArray[np.float64]
# Whether each vector of the first array dominates the one of the second in the same row.
Dominates = Callable[[Vectors, Vectors], Mask]
Compare = Callable[[Values, Values], npt.NDArray[Any]]


@dataclass(frozen=True)
class BestOf:
    """Which candidates a row takes. `reach`: where the ordered dimension has no ticks of its own and is counted in
    steps, how many of them candidates can be apart.
    """

    dominance: Dominance | Dominates = "pareto"
    reach: int | None = None

    def describe(self, in_units: Callable[[int], str] = str) -> str:
        """In words, for `explain`; there is no length of time in them.

        >>> BestOf().describe()
        'the candidates that no other one dominates (pareto)'
        """
        name = self.dominance if isinstance(self.dominance, str) else getattr(self.dominance, "__name__", "a function")
        return f"the candidates that no other one dominates ({name})"


@dataclass(frozen=True)
class Steps:
    """Doubles as a time axis: the numbers of small steps, for progress only; distances are those of the values.

    Numbers are exact up to one step, because those beyond 2**50 are all alike. So whoever is at most `distance` apart
    is at most `count(distance)` steps apart.

    >>> steps = Steps.of(0.5, [0.0])
    >>> steps.width, steps.count(0.5)
    (0.0078125, 66)
    """

    width: float
    most = 2.0**50

    @staticmethod
    def of(epsilon: float, slacks: Sequence[float]) -> Steps:
        """Steps that are small beside an epsilon, or else beside how late values may be."""
        size = epsilon or max(slacks, default=0.0)
        return Steps(size / 64 if size > 0 else 2.0**-20)

    def count(self, distance: float) -> int:
        """How many steps two values of this distance can be apart."""
        return math.ceil(min(distance / self.width, self.most)) + 2


@dataclass(frozen=True)
class Near(Predicate):
    """A dimension whose distance is a function's: at most `epsilon`. NaN is no distance.

    >>> Near("a", "b", 1, lambda a, b: abs(a - b) % 12).holds([np.array([11, 11])], [np.array([0, 6])]).tolist()
    [False, False]
    """

    left: Column
    right: Column
    epsilon: Any
    compare: Compare = field(repr=False)  # its place in memory is nothing to compare a restart with

    def columns(self, number: int) -> tuple[Column, ...]:
        return (self.left if number == 0 else self.right,)

    def distances(self, left: Values, right: Values) -> npt.NDArray[np.float64]:
        """The function's distances; one per pair."""
        return np.asarray(self.compare(left, right), np.float64)

    def holds(self, left: Sequence[Values], right: Sequence[Values]) -> Mask:
        return np.asarray(self.distances(left[0], right[0]) <= self.epsilon, np.bool_)
