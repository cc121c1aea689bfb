"""Lateness: how far behind the largest time stamp of its input a row may be. Three ways to say it, as frozen values.

Grace(d)      a fixed slack: what is later is late
MaxDelay()    the largest delay seen so far
Recall(q)     as much slack as it takes to find a share `q` of the true results of a join, and no more
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from streamjoin.algebra.interval import NEVER
from streamjoin.algebra.time import Duration, TimeAxis
from streamjoin.errors import CallError, says_what_fits


@says_what_fits
@dataclass(frozen=True)
class Grace:
    """A fixed slack: elements may come up to `delay` behind the largest time stamp seen on their input.

    >>> Grace("2 seconds").resolve(TimeAxis.TIMESTAMP).progress(5_000_000)
    3000000
    """

    delay: Duration

    def resolve(self, axis: TimeAxis) -> Grace:
        """The same slack in ticks of `axis`."""
        ticks = axis.ticks(self.delay, "lateness")
        if ticks < 0:
            raise CallError(f"lateness must not be negative, got {self.delay!r}", hint="Grace of zero expects order")
        return Grace(ticks)

    def progress(self, largest: int) -> int:
        """The progress of an input whose largest time stamp is `largest`."""
        assert isinstance(self.delay, int), "resolve the lateness first"
        return max(NEVER, largest - self.delay)


@says_what_fits
@dataclass(frozen=True)
class MaxDelay:
    """The largest delay seen so far is the slack: nothing to guess, and nothing forgotten. A row's delay is how far it
    is behind the largest time stamp that its input had before its micro-batch.

    One row that is very late lets everything wait, and be kept, for ever after. A row that is later than any before is
    still late: `late=` says what happens to it.

    >>> MaxDelay().resolve(TimeAxis.TIMESTAMP)
    MaxDelay()
    """

    def resolve(self, axis: TimeAxis) -> MaxDelay:
        """It has no sizes."""
        return self


@says_what_fits
@dataclass(frozen=True)
class Recall:
    """As much slack as it takes to find a share `target` of the true results of a join of two streams.

    Rows join on arrival, late ones too, with what is still kept; how long rows are kept adapts to how late rows are.

    Parameters
        target       the share of the true results, between 0 (the bare window) and 1 (which needs `max_delay`)
        period       over which the target is to hold, and about which the past tells: longer than the distance between
                     two bursts of late rows
        interval     how often slack is decided anew, in event time
        granularity  the width of the cells of time in which rows are counted; a fortieth of both windows by default
        max_delay    no slack is larger; where it is left out none is larger than ten periods, or twice `initial` if
                     that is more: partners of rows that are later are not kept, whatever the target
        initial      a slack to begin with, held for twice its length: long delays cannot be known early

    On an integer time axis all of them are numbers.

    >>> Recall(0.95, period="1 minute", interval="1 s", max_delay="5 minutes").resolve(TimeAxis.TIMESTAMP).max_delay
    300000000
    """

    target: float
    period: Duration = "60 s"
    interval: Duration = "1 s"
    granularity: Duration | None = None
    max_delay: Duration | None = None
    initial: Duration | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.target, int | float) and not isinstance(self.target, bool)
        if not number or not 0 <= self.target <= 1:
            raise CallError(
                f"a recall target is a share between 0 and 1, got {self.target!r}", hint="sj.Recall(0.95) for 95%"
            )
        if self.target == 1 and self.max_delay is None:
            raise CallError(
                "a recall target of 1 needs max_delay=: nobody knows how late a row can be that has not come",
                hint='sj.Recall(1.0, max_delay="10 minutes") is exact if no row is later; or a target below 1',
            )

    def resolve(self, axis: TimeAxis) -> Recall:
        """The same target with all sizes in ticks of `axis`."""
        sizes: dict[str, Any] = {}
        for name in ("period", "interval", "granularity", "max_delay", "initial"):
            given = getattr(self, name)
            if given is None:
                continue
            sizes[name] = axis.ticks(given, f"{name} of a recall target")
            least, rule = (0, "not be negative") if name in ("max_delay", "initial") else (1, "be positive")
            if sizes[name] < least:
                raise CallError(f"{name} of a recall target must {rule}, got {given!r}")
        if sizes["interval"] > sizes["period"]:
            raise CallError(
                f"a recall target is decided more often than once a period, got interval={self.interval!r} and "
                f"period={self.period!r}",
                hint="leave interval out, or make it shorter",
            )
        if sizes.get("max_delay", 0) < sizes.get("initial", 0) and self.max_delay is not None:
            raise CallError(
                f"a slack to begin with cannot be above the largest one, got initial={self.initial!r} and "
                f"max_delay={self.max_delay!r}",
                hint="make max_delay larger",
            )
        return replace(self, **sizes)


LatenessPolicy = Grace | MaxDelay | Recall
