"""Progress: what can no longer come.

The progress `P` of an input promises that no on-time element with `ts < P` comes any more. Progress only grows. An
input that has shown nothing is at `NEVER` and blocks; a finished one is at `FOREVER`. An element with `ts < P` at its
arrival is late. The progress of an output is the least of its inputs' progress and of what can still leave (operators
say that).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streamjoin.algebra.interval import FOREVER, NEVER


@dataclass
class Progress:
    """Progress per input.

    >>> progress = Progress(2)
    >>> progress.advance(0, 5), progress.advance(0, 3), progress.of(0)
    (True, False, 5)
    >>> progress.of_others(1), progress.least() == NEVER
    (5, True)
    """

    inputs: int
    times: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.times = self.times or [NEVER] * self.inputs

    def of(self, number: int) -> int:
        """How far input `number` is."""
        return self.times[number]

    def advance(self, number: int, time: int) -> bool:
        """Move input `number` forward to `time`; False (and nothing happens) when it is there already."""
        if time <= self.times[number]:
            return False
        self.times[number] = time
        return True

    def of_others(self, number: int) -> int:
        """The least progress of all inputs but `number`: what that input's elements can still meet."""
        return min((time for i, time in enumerate(self.times) if i != number), default=FOREVER)

    def least(self) -> int:
        """The least progress of all inputs."""
        return min(self.times)

    def finish(self) -> None:
        """Every input has ended."""
        self.times = [FOREVER] * self.inputs
