"""Windows: who gives an element its end.

A window turns a time stamp `ts` into a validity `[ts, te)`:

    Range(T)            te = ts + T                    |----T----)
    Range(T, slide=s)   te = floor(ts/s)*s + T         ends only on the grid of the slide
    Fixed(m)            te = the next multiple of m    tumbling: an element exactly on k*m ends at (k+1)*m
    Now()               te = ts + 1 tick
    Unbounded()         te = forever
    Validity(a, b)      the element brings both ends itself; NULL b means forever
    Rows(n)             te = the time stamp of the n-th later element, unknown until it comes

Windows are frozen values. What a user writes (`Range("2 seconds")`) is resolved against the time axis once, when the
call is made; `ends` then works on ticks alone. A window whose ends are only learned from later elements (row windows)
has `ends_known = False`, and a state that keeps such elements must wait for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from streamjoin.algebra.interval import FOREVER, Times, saturating_add
from streamjoin.algebra.time import Duration, TimeAxis
from streamjoin.errors import CallError, says_what_fits


class Window(ABC):
    """A rule that gives an element its end."""

    ends_known: ClassVar[bool] = True

    @abstractmethod
    def resolve(self, axis: TimeAxis) -> Window:
        """The same window with its sizes in ticks of `axis`; the place where wrong sizes are refused."""

    @abstractmethod
    def ends(self, ts: Times) -> Times:
        """The end of every element; only on a resolved window."""

    @property
    def longest(self) -> int | None:
        """The longest validity this window can give, in ticks; None when there is no bound."""
        return None


def _positive(axis: TimeAxis, size: Duration, what: str, instead: str) -> int:
    ticks = axis.ticks(size, what)
    if ticks <= 0:
        raise CallError(f"{what} must be positive, got {size!r}", hint=instead)
    return ticks


@says_what_fits
@dataclass(frozen=True)
class Range(Window):
    """Valid for `size` from its own time stamp on; with `slide` the end is counted from the slide's last grid point.

    >>> Range("5 seconds", slide="1 second").resolve(TimeAxis.TIMESTAMP).ends(np.array([1_400_000])).tolist()
    [6000000]
    """

    size: Duration
    slide: Duration | None = None

    def resolve(self, axis: TimeAxis) -> Range:
        size = _positive(axis, self.size, "window size", "use Now() for the current instant only")
        if self.slide is None:
            return replace(self, size=size)
        return Range(
            size, _positive(axis, self.slide, "window slide", "leave slide out for a window that moves freely")
        )

    def ends(self, ts: Times) -> Times:
        assert isinstance(self.size, int), "resolve the window first"
        if self.slide is None:
            return saturating_add(ts, self.size)
        assert isinstance(self.slide, int)
        return saturating_add(ts, self.size - ts % self.slide)  # the grid point itself may lie before all time

    @property
    def longest(self) -> int | None:
        return self.size if isinstance(self.size, int) else None


@says_what_fits
@dataclass(frozen=True)
class Fixed(Window):
    """Tumbling windows of one size: all elements between two multiples of `size` end together at the second.

    >>> Fixed(10).resolve(TimeAxis.INTEGER).ends(np.array([0, 9, 10])).tolist()
    [10, 10, 20]
    """

    size: Duration

    def resolve(self, axis: TimeAxis) -> Fixed:
        return Fixed(_positive(axis, self.size, "window size", "use Now() for the current instant only"))

    def ends(self, ts: Times) -> Times:
        assert isinstance(self.size, int), "resolve the window first"
        return saturating_add(ts, self.size - ts % self.size)

    @property
    def longest(self) -> int | None:
        return self.size if isinstance(self.size, int) else None


@says_what_fits
@dataclass(frozen=True)
class Now(Window):
    """Valid at its own instant only.

    >>> Now().resolve(TimeAxis.INTEGER).ends(np.array([7])).tolist()
    [8]
    """

    def resolve(self, axis: TimeAxis) -> Now:
        return self

    def ends(self, ts: Times) -> Times:
        return saturating_add(ts, 1)

    @property
    def longest(self) -> int | None:
        return 1


@says_what_fits
@dataclass(frozen=True)
class Unbounded(Window):
    """Valid from its time stamp on, for good. On a stream nothing of it is ever forgotten.

    >>> Unbounded().resolve(TimeAxis.INTEGER).ends(np.array([7])).tolist() == [FOREVER]
    True
    """

    def resolve(self, axis: TimeAxis) -> Unbounded:
        return self

    def ends(self, ts: Times) -> Times:
        return np.full(len(ts), FOREVER, np.int64)


@says_what_fits
@dataclass(frozen=True)
class Rows(Window):
    """The newest `size` elements, by time stamp and then by arrival; with `by`, of each group.

    An element ends when the `size`-th later one starts. Until that one is there its end is unknown, and what depends on
    it waits. When the input ends, the last elements stay without an end; with `drain` they end just after the last one.

    >>> Rows(100, by=("sensor",)).resolve(TimeAxis.INTEGER).ends_known
    False
    """

    ends_known: ClassVar[bool] = False

    size: int
    by: object = None
    drain: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int):
            raise CallError(f"a row window counts rows, got {self.size!r}", hint="sj.Rows(100); for a time, sj.Range")
        if self.size < 1:
            raise CallError(
                f"row window size must be at least 1, got {self.size}", hint="use Now() for the current instant only"
            )
        if not isinstance(self.drain, bool):
            raise CallError(f"drain must be True or False, got {self.drain!r}")
        if isinstance(
            self.by, str | list
        ):  # one value, or several: a window is a value, and can be compared and stored
            object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))

    def resolve(self, axis: TimeAxis) -> Rows:
        return self

    def ends(self, ts: Times) -> Times:
        raise AssertionError("the ends of a row window come with later rows")


@says_what_fits
@dataclass(frozen=True)
class Validity(Window):
    """The element brings its validity in two columns (bitemporal tables, slowly changing dimensions).

    >>> Validity("valid_from", "valid_to").start
    'valid_from'
    """

    start: object
    end: object

    def resolve(self, axis: TimeAxis) -> Validity:
        return self

    def ends(self, ts: Times) -> Times:
        raise AssertionError("the ends of Validity come with the rows")
