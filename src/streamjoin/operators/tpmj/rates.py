"""How much comes, by event time: what Adaptive goes by. No clock, so a micro-batch that is run again decides alike."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from streamjoin.algebra.interval import FOREVER, NEVER


@dataclass
class Rates:
    """Bytes that have not been credited, those since progress moved last, and those before; where progress was at first
    and is; and bytes per tick at last.
    """

    unpaid: float = 0.0
    since: float = 0.0
    total: float = 0.0
    first: int = NEVER
    last: int = NEVER
    now: float = 0.0

    def come(self, nbytes: float) -> None:
        """Rows have come."""
        self.unpaid += nbytes
        self.since += nbytes

    def paid(self) -> float:
        """What has come since this was asked last."""
        nbytes, self.unpaid = self.unpaid, 0.0
        return nbytes

    def moved(self, progress: int) -> None:
        """The least progress of all inputs is here now."""
        if progress in (NEVER, FOREVER) or progress <= self.last:
            return
        if self.last == NEVER:
            self.first = progress
        else:
            self.now = self.since / (progress - self.last)
        self.total, self.since, self.last = self.total + self.since, 0.0, progress

    def load(self, cost: float, credit: float) -> float:
        """The share of what credit pays for that is needed when each byte that comes costs so many, at the rate of now.

        Credit grows with what comes, so over time it pays for so many bytes per tick as come on average, times credit.

        >>> rates = Rates()
        >>> for progress in (0, 100, 200):
        ...     rates.come(300.0)
        ...     rates.moved(progress)
        >>> rates.load(cost=2.0, credit=4.0)
        0.3333333333333333
        """
        ticks = self.last - self.first
        if ticks <= 0 or self.total <= 0 or credit <= 0:
            return 0.0
        return cost * self.now / (credit * self.total / ticks)

    def saved(self) -> list[Any]:
        """As plain values."""
        return list(astuple(self))
