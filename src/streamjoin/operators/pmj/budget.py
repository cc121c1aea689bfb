"""How PMJ divides what it may use of memory.

While rows come, they wait in lists; later, lists are empty and pages are merged. Sorting rows and putting pieces
together needs as much again, and a little more, so each has a quarter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DEFAULT_MEMORY: Final = 256 << 20
SMALLEST_PAGE: Final = 1 << 10
LARGEST_PAGE: Final = 1 << 18
LARGEST_RESULT: Final = 256 << 20
# Of rows that are sorted or merged together: Arrow's text and bytes end at two gigabytes in one column.
LARGEST_SHARE: Final = 1 << 30
# A merge that takes so many generations is worth smaller pages.
WISHED_FAN_IN: Final = 32


@dataclass(frozen=True)
class Budget:
    """Bytes of memory: rows that wait in lists, rows that are merged at a time, a page, results that leave at once.

    >>> Budget.of(64 << 20).fan_in
    32
    >>> Budget.of(100 << 30).lists == Budget.of(100 << 30).pages == 1 << 30
    True
    """

    lists: int
    pages: int
    page: int
    results: int

    @staticmethod
    def of(memory: int) -> Budget:
        """A budget, divided."""
        share = min(LARGEST_SHARE, memory // 4)
        page = min(LARGEST_PAGE, max(SMALLEST_PAGE, share // (4 * WISHED_FAN_IN)))
        return Budget(share, share, page, max(1, min(LARGEST_RESULT, memory // 8)))

    @property
    def fan_in(self) -> int:
        """How many generations a merge takes: a portion of it may have a page of each run more than was aimed at."""
        return max(2, self.pages // (4 * self.page))

    @property
    def portion(self) -> int:
        """How many pages a portion of a merge aims at."""
        return max(1, self.pages // (2 * self.page))
