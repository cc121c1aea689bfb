"""As-of: of the right rows with a left row's key, the nearest in time in one direction.

    backward   the newest at or before the left row's time
    forward    the oldest at or after it
    nearest    whichever of the two is nearer; at equal distance the one before

`exact=False` leaves equal times out. `tolerance` is the largest distance, in ticks. Among rows of the same time the one
that is greatest by the columns `tie_break` is taken, then the one with the greatest content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Direction = Literal["backward", "forward", "nearest"]


@dataclass(frozen=True)
class AsOf:
    """Which right row a left row takes.

    >>> AsOf("backward", tolerance=5).reach
    (5, 0)
    """

    direction: Direction = "backward"
    tolerance: int | None = None
    exact: bool = True
    tie_break: tuple[str, ...] = ()

    @property
    def looks_back(self) -> bool:
        """Whether earlier right rows can be taken."""
        return self.direction != "forward"

    @property
    def looks_ahead(self) -> bool:
        """Whether later right rows can be taken."""
        return self.direction != "backward"

    @property
    def reach(self) -> tuple[int | None, int | None]:
        """How far before and after a left row the taken right row can lie; None for any distance."""
        return (self.tolerance if self.looks_back else 0, self.tolerance if self.looks_ahead else 0)

    def describe(self, in_units: Callable[[int], str] = str) -> str:
        """In words, for `explain`.

        >>> AsOf("nearest", tolerance=5, exact=False).describe()
        'the nearest right row, at most 5 away, not at the same time'
        """
        which = {
            "backward": "newest right row up to its time",
            "forward": "oldest right row from its time on",
            "nearest": "nearest right row",
        }
        far = "" if self.tolerance is None else f", at most {in_units(self.tolerance)} away"
        return f"the {which[self.direction]}{far}{'' if self.exact else ', not at the same time'}"
