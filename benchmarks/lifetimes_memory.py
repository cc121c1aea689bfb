"""What a query keeps in memory, and how much of that is there because ends are not known.

For holders: the numbers themselves (beside time stamps in row windows, beside rows in areas), the indexes that find
elements by them, and the ends of pairs that wait for their members' ends. Plus and minus tuples have numbers too, but
no holders.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.lifetimes_plan import Operators
from streamjoin.operators.row_window import RunningRowWindow
from streamjoin.operators.temporal_join import RunningTemporalJoin


@dataclass(frozen=True)
class Memory:
    """Bytes kept, and those of them that holders take."""

    nbytes: int = 0
    holders: int = 0

    @property
    def share(self) -> float:
        """The part that holders take."""
        return self.holders / self.nbytes if self.nbytes else 0.0


def memory_of(operators: Operators) -> Memory:
    """What the operators of a plan by the direct method keep now; of the other one no holders are found."""
    total = holders = 0
    for operator in operators.running:
        total += operator.footprint.nbytes
        if isinstance(operator, RunningRowWindow):
            holders += operator.order.rings.holder_nbytes
        elif isinstance(operator, RunningTemporalJoin):
            holders += sum(area.holder_nbytes for area in operator.areas) + operator.pending.nbytes
    return Memory(total, holders)
