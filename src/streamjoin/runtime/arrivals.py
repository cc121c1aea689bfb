"""How far each input is, from what its tasks report: the largest time stamp they saw, and the clock of their batch.

    progress of an input   its largest time stamp so far, less its slack; an input that has ended is past everything
    idle                   an input that has not delivered for `idle_after` by the batch's clock no longer holds others
                           back: it is moved up to the least progress of those that are not idle, or, when all are, to
                           the largest. When it wakes, its rows behind that are late

The clock is the batch's own, so that a batch that is run again decides the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamjoin.algebra import FOREVER, NEVER, Grace


@dataclass(frozen=True)
class Arrivals:
    """What is known beforehand of each input: its slack (None: it never makes progress), and whether it has ended.

    >>> arrivals = Arrivals((Grace(2), Grace(0))).build()
    >>> arrivals.heard(0, largest=9)
    >>> arrivals.progress()
    {0: 7}
    """

    lateness: tuple[Grace | None, ...]
    ended: tuple[bool, ...] = ()
    idle_after: int | None = None

    def has_ended(self, number: int) -> bool:
        """Whether an input was complete before the others began; without `ended`, none was."""
        return bool(self.ended) and self.ended[number]

    def build(self) -> RunningArrivals:
        """Nothing has arrived yet."""
        return RunningArrivals(self)


@dataclass
class RunningArrivals:
    """What has been heard of each input."""

    config: Arrivals
    largest: list[int | None] = field(default_factory=list)
    last: list[int | None] = field(default_factory=list)  # the clock when each input last delivered
    first_clock: int | None = None
    clock: int | None = None

    def __post_init__(self) -> None:
        inputs = len(self.config.lateness)
        self.largest, self.last = self.largest or [None] * inputs, self.last or [None] * inputs

    def heard(self, number: int, largest: int | None = None, clock: int | None = None) -> None:
        """An input has delivered."""
        known = self.largest[number]
        if largest is not None:
            self.largest[number] = largest if known is None else max(known, largest)
        if clock is not None:
            self.tick(clock)
            self.last[number] = self.clock

    def tick(self, clock: int) -> None:
        """It is so late now; a clock that was set back is not believed."""
        self.clock = clock if self.clock is None else max(self.clock, clock)
        self.first_clock = self.clock if self.first_clock is None else self.first_clock

    def progress(self) -> dict[int, int]:
        """How far each input is, of which anything is known."""
        known: dict[int, int] = {}
        for number, lateness in enumerate(self.config.lateness):
            largest = self.largest[number]
            if self.config.has_ended(number):
                known[number] = FOREVER
            elif lateness is not None and largest is not None:
                known[number] = lateness.progress(largest)
        idle = [number for number in range(len(self.largest)) if self._idle(number)]
        if idle:
            alive = [number for number in range(len(self.largest)) if not self.config.has_ended(number)]
            active = [known.get(number, NEVER) for number in alive if number not in idle]
            bound = min(active) if active else max(known.get(number, NEVER) for number in alive)
            known |= {number: max(bound, known.get(number, NEVER)) for number in idle if bound > NEVER}
        return known

    def _idle(self, number: int) -> bool:
        if self.config.idle_after is None or self.clock is None or self.config.has_ended(number):
            return False
        last = self.last[number]
        since = self.first_clock if last is None else last
        assert since is not None
        return self.clock - since > self.config.idle_after

    @property
    def newest(self) -> int | None:
        """The largest time stamp of all inputs."""
        return max((largest for largest in self.largest if largest is not None), default=None)

    def to_json(self) -> dict[str, Any]:
        """To be stored."""
        return {"largest": self.largest, "last": self.last, "first_clock": self.first_clock, "clock": self.clock}

    def restore(self, stored: dict[str, Any]) -> None:
        """The inverse of `to_json`."""
        self.largest, self.last = list(stored["largest"]), list(stored["last"])
        self.first_clock, self.clock = stored["first_clock"], stored["clock"]
