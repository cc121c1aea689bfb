"""Predicates: which pairs of values match. Frozen values that check themselves, combined with `&`.

    equals("k")                                  l.k = r.k
    band("bid", "ask", below=0.5, above=0.5)     -below <= r.ask - l.bid <= above
    overlaps("lo", "hi")                         [l.lo, l.hi) and [r.lo, r.hi) share a point
    within(("x", "y"), radius=5.0)               distance(l, r) <= radius
    theta("l.speed > 25 AND r.t > 12")           any Spark SQL expression

Laws. Bounds and distances are tested on *differences of actual values*, never on `x + eps` formed beforehand: rounding
would lose and invent pairs. An empty value interval matches nothing. NULL and NaN match nothing. `holds` is the meaning
of each predicate over aligned arrays; kernels find the same pairs faster, and are tested against it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from streamjoin.algebra.interval import Mask
from streamjoin.errors import CallError, says_what_fits

Column = Any  # a column's name, or an expression that the layer above turns into one
Values = npt.NDArray[Any]
Closed = Literal["both", "left", "right", "neither"]
Metric = Literal["euclidean", "manhattan", "chebyshev", "haversine"]

EARTH_RADIUS_METRES: Final = 6_371_008.8


class Predicate:
    """A condition on a pair of rows."""

    def __and__(self, other: Predicate) -> Conjunction:
        if not isinstance(other, Predicate):
            raise CallError(
                f"a predicate can only be combined with a predicate, got {other!r}", hint='write sj.theta("...")'
            )
        return Conjunction(conjuncts(self) + conjuncts(other))

    def columns(self, number: int) -> tuple[Column, ...]:
        """The columns this predicate reads on input `number`, in the order `holds` wants their values."""
        raise NotImplementedError

    def holds(self, left: Sequence[Values], right: Sequence[Values]) -> Mask:
        """Which of the aligned pairs match."""
        raise NotImplementedError


@dataclass(frozen=True)
class Equals(Predicate):
    """Equality of one column with another.

    >>> Equals("k", "k").holds([np.array([1, 2])], [np.array([1, 3])]).tolist()
    [True, False]
    """

    left: Column
    right: Column

    def columns(self, number: int) -> tuple[Column, ...]:
        return (self.left if number == 0 else self.right,)

    def holds(self, left: Sequence[Values], right: Sequence[Values]) -> Mask:
        return np.asarray(left[0] == right[0], bool)


@dataclass(frozen=True)
class Band(Predicate):
    """`-below <= right - left <= above`; `closed` says which of the two bounds belong to the band.

    >>> Band("a", "b", below=0, above=2, closed="left").holds([np.array([1, 1, 1])], [np.array([0, 1, 3])]).tolist()
    [False, True, False]
    """

    left: Column
    right: Column
    below: Any
    above: Any
    closed: Closed = "both"

    def __post_init__(self) -> None:
        if self.closed not in get_args(Closed):
            raise CallError(f"closed must be one of {', '.join(get_args(Closed))}, got {self.closed!r}")
        for name, bound in (("below", self.below), ("above", self.above)):
            if isinstance(bound, float) and math.isnan(bound):
                raise CallError(f"{name} must be a number, got NaN")
        numeric = all(isinstance(bound, int | float) for bound in (self.below, self.above))
        if numeric and -self.below > self.above:
            raise CallError(
                f"the band from -below = {-self.below} to above = {self.above} is empty",
                hint="below and above count from the left value downwards and upwards",
            )

    def columns(self, number: int) -> tuple[Column, ...]:
        return (self.left if number == 0 else self.right,)

    @property
    def low_closed(self) -> bool:
        """Whether the lower bound itself belongs to the band."""
        return self.closed in ("both", "left")

    @property
    def high_closed(self) -> bool:
        """Whether the upper bound itself belongs to the band."""
        return self.closed in ("both", "right")

    def holds(self, left: Sequence[Values], right: Sequence[Values]) -> Mask:
        difference = exact_difference(right[0], left[0])
        low = difference >= -self.below if self.low_closed else difference > -self.below
        high = difference <= self.above if self.high_closed else difference < self.above
        return np.asarray(low & high, bool)


@dataclass(frozen=True)
class Overlaps(Predicate):
    """Two half-open value intervals share a point. Boxes in d dimensions are a conjunction of these.

    >>> one, two = [np.array([0]), np.array([5])], [np.array([5]), np.array([9])]
    >>> Overlaps(("lo", "hi"), ("lo", "hi")).holds(one, two).tolist()
    [False]
    """

    left: tuple[Column, Column]
    right: tuple[Column, Column]

    def columns(self, number: int) -> tuple[Column, ...]:
        return self.left if number == 0 else self.right

    def holds(self, left: Sequence[Values], right: Sequence[Values]) -> Mask:
        return np.asarray(np.maximum(left[0], right[0]) < np.minimum(left[1], right[1]), bool)


@dataclass(frozen=True)
class Within(Predicate):
    """A distance of at most `radius`, inclusive. Haversine takes (latitude, longitude) in degrees and metres.

    >>> Within(("x",), ("x",), radius=1.0).holds([np.array([0.0, 0.0])], [np.array([1.0, 1.5])]).tolist()
    [True, False]
    """

    left: tuple[Column, ...]
    right: tuple[Column, ...]
    radius: float
    metric: Metric = "euclidean"

    def __post_init__(self) -> None:
        if self.metric not in get_args(Metric):
            raise CallError(f"metric must be one of {', '.join(get_args(Metric))}, got {self.metric!r}")
        number = isinstance(self.radius, int | float) and not isinstance(self.radius, bool)
        if not number or math.isnan(self.radius) or math.isinf(self.radius):
            raise CallError(f"radius must be a finite number, got {self.radius!r}")
        if self.radius < 0:
            raise CallError(f"radius must not be negative, got {self.radius!r}", hint="a radius of 0 is equality")
        if not self.left or len(self.left) != len(self.right):
            raise CallError(
                f"within needs as many axes on both sides, got {len(self.left)} and {len(self.right)}",
                hint='write within(("x", "y"), radius=5.0), or within(("x", "y"), ("px", "py"), radius=5.0)',
            )
        if self.metric == "haversine" and len(self.left) != 2:
            raise CallError(f"haversine needs (latitude, longitude), got {len(self.left)} axes")

    def columns(self, number: int) -> tuple[Column, ...]:
        return self.left if number == 0 else self.right

    def measure(self, left: Sequence[Values], right: Sequence[Values]) -> npt.NDArray[np.float64]:
        """A number for each pair that grows with its distance: for the Euclidean metric the square of it.

        >>> Within(("x", "y"), ("x", "y"), 9).measure([np.array([0]), np.array([0])], [np.array([3]), np.array([4])])
        array([25.])
        """
        if self.metric == "haversine":
            return haversine(left[0], left[1], right[0], right[1])
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = _gaps(left, right)
            if self.metric == "chebyshev":
                return np.asarray(np.max(gaps, axis=0))
            return np.asarray(sum(gap * gap for gap in gaps) if self.metric == "euclidean" else sum(gaps))

    def holds(self, left: Sequence[Values], right: Sequence[Values]) -> Mask:
        if self.metric == "haversine":
            return np.asarray(haversine(left[0], left[1], right[0], right[1]) <= self.radius, bool)
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = _gaps(left, right)
            near = np.max(gaps, axis=0) <= self.radius
            if self.metric == "euclidean":
                # Squares on both sides: no root, and the same rounding as the kernels. The largest gap is tested as
                # well, because squares of very small numbers vanish.
                near &= sum(gap * gap for gap in gaps) <= self.radius * self.radius
            elif self.metric == "manhattan":
                near &= sum(gaps) <= self.radius
        return np.asarray(near, bool)


def _gaps(left: Sequence[Values], right: Sequence[Values]) -> list[npt.NDArray[np.float64]]:
    """Distances along each axis, as doubles, like the kernels: squares of integers would wrap around."""
    return [np.abs(two.astype(np.float64) - one.astype(np.float64)) for one, two in zip(left, right, strict=True)]


@dataclass(frozen=True)
class Theta(Predicate):
    """Any boolean Spark SQL expression over `l` and `r` (or `in0`, `in1`, ...).

    >>> Theta("l.speed > r.limit").text
    'l.speed > r.limit'
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise CallError(f"theta takes a Spark SQL expression, got {self.text!r}", hint='sj.theta("l.a < r.b")')

    def columns(self, number: int) -> tuple[Column, ...]:
        return ()


@dataclass(frozen=True)
class Of(Predicate):
    """A predicate between two inputs of a join of many, by number: the first is its left side.

    >>> Of(Equals("k", "k"), (1, 2)).inputs
    (1, 2)
    """

    predicate: Predicate
    inputs: tuple[int, int]

    def __post_init__(self) -> None:
        two = isinstance(self.inputs, tuple | list) and len(self.inputs) == 2
        whole = two and all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in self.inputs)
        if not whole or self.inputs[0] == self.inputs[1]:
            raise CallError(
                f"of takes the numbers of two different inputs, got {self.inputs!r}", hint="for example of=(0, 1)"
            )
        object.__setattr__(self, "inputs", tuple(self.inputs))

    def columns(self, number: int) -> tuple[Column, ...]:
        return self.predicate.columns(number)


@dataclass(frozen=True)
class Conjunction(Predicate):
    """All of several predicates."""

    parts: tuple[Predicate, ...]


def conjuncts(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """The predicates that must all hold.

    >>> len(conjuncts(equals("a") & equals("b") & theta("l.c < r.c")))
    3
    """
    if predicate is None:
        return ()
    return predicate.parts if isinstance(predicate, Conjunction) else (predicate,)


@says_what_fits
def equals(left: Column, right: Column | None = None, *, of: tuple[int, int] | None = None) -> Any:
    """Equality of `left` on input 0 with `right` (the same name, unless given) on input 1.

    In a join of more than two inputs it is for all of them, or with `of` for these two.

    >>> equals("k").right
    'k'
    """
    return between(Equals(left, left if right is None else right), of)


@says_what_fits
def band(
    left: Column,
    right: Column | None = None,
    *,
    below: Any,
    above: Any,
    closed: Closed = "both",
    of: tuple[int, int] | None = None,
) -> Any:
    """`left - below <= right <= left + above`, tested on the difference.

    In a join of more than two inputs it is for every two of them, the one with the smaller number on the left, or with
    `of` for these two.

    >>> band("bid", "ask", below=0.5, above=0.5).closed
    'both'
    """
    return between(Band(left, left if right is None else right, below, above, closed), of)


@says_what_fits
def overlaps(left: Any, right: Any, *, of: tuple[int, int] | None = None) -> Any:
    """Overlap of half-open value intervals: `overlaps("lo", "hi")`, or a pair of columns for each side.

    In a join of more than two inputs all share a point, or with `of` these two do.

    >>> overlaps("lo", "hi") == overlaps(("lo", "hi"), ("lo", "hi"))
    True
    """
    if isinstance(left, tuple) != isinstance(right, tuple):
        raise CallError(f"overlaps takes two columns or two pairs of columns, got {left!r} and {right!r}")
    if not isinstance(left, tuple):
        left = right = (left, right)
    if len(left) != 2 or len(right) != 2:
        raise CallError(f"an interval has two ends, got {left!r} and {right!r}", hint='overlaps("lo", "hi")')
    return between(Overlaps(left, right), of)


@says_what_fits
def within(
    left: Any,
    right: Any = None,
    *,
    radius: float,
    metric: Metric = "euclidean",
    of: tuple[int, int] | None = None,
) -> Any:
    """A distance of at most `radius` over the axes `left` of input 0 and `right` (the same, unless given) of input 1.

    In a join of more than two inputs it is for every two of them, or with `of` for these two.

    >>> within(("x", "y"), radius=5.0).metric
    'euclidean'
    """
    left = left if isinstance(left, tuple) else (left,)
    right = left if right is None else right if isinstance(right, tuple) else (right,)
    return between(Within(left, right, radius, metric), of)


@says_what_fits
def theta(text: str) -> Theta:
    """A condition in Spark SQL; inputs are `l` and `r`, or `in0`, `in1`, ...

    >>> theta("l.a < r.b")
    Theta(text='l.a < r.b')
    """
    return Theta(text)


def between(predicate: Predicate, inputs: tuple[int, int] | None) -> Predicate:
    """A predicate, of these two inputs if they are named."""
    return predicate if inputs is None else Of(predicate, inputs)


def exact_difference(a: Values, b: Values) -> Values:
    """`a - b`; integers too far apart saturate at +-(2**63 - 1) instead of wrapping around. The same on both sides, so
    that a bound of 2**63 - 1 is no bound, upwards and downwards.

    >>> exact_difference(np.array([2**62]), np.array([-(2**62)])).tolist() == [2**63 - 1]
    True
    """
    with np.errstate(over="ignore", invalid="ignore"):
        difference = a - b
    if difference.dtype.kind == "i":
        most = np.iinfo(difference.dtype).max
        difference = np.where((a >= b) & (difference < 0), most, difference)
        difference = np.where((a < b) & ((difference > 0) | (difference < -most)), -most, difference)
    return difference


def haversine(lat_a: Values, lon_a: Values, lat_b: Values, lon_b: Values) -> Values:
    """Great-circle distance in metres on a sphere with the Earth's mean radius.

    >>> float(haversine(np.array([0.0]), np.array([0.0]), np.array([0.0]), np.array([180.0]))[0]) // 1000
    20015.0
    """
    phi_a, phi_b = np.radians(lat_a), np.radians(lat_b)
    half_phi, half_lambda = (phi_b - phi_a) / 2, (np.radians(lon_b) - np.radians(lon_a)) / 2
    h = np.sin(half_phi) ** 2 + np.cos(phi_a) * np.cos(phi_b) * np.sin(half_lambda) ** 2
    return np.asarray(2 * EARTH_RADIUS_METRES * np.arcsin(np.sqrt(np.minimum(1.0, h))))
