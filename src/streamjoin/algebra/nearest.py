"""Nearest: of the right rows within a radius, the k that are nearest.

Rows at the same distance: the one that is greatest by the columns `tie_break` is nearer, then the one with the greatest
content. So the answer never depends on the order in which rows came. With `tolerance`, in ticks, only rows count whose
time is at most so far away, before or after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class NearestOf:
    """Which right rows a left row takes.

    >>> NearestOf(3, tolerance=5).describe()
    'the 3 nearest right rows, at most 5 away in time'
    """

    k: int = 1
    tolerance: int | None = None
    tie_break: tuple[str, ...] = ()

    @property
    def reach(self) -> tuple[int, int]:
        """How far before and after a left row, in time, a taken right row can lie."""
        return (self.tolerance or 0, self.tolerance or 0)

    def describe(self, in_units: Callable[[int], str] = str) -> str:
        """In words, for `explain`."""
        which = "nearest right row" if self.k == 1 else f"{self.k} nearest right rows"
        return f"the {which}" + ("" if self.tolerance is None else f", at most {in_units(self.tolerance)} away in time")
