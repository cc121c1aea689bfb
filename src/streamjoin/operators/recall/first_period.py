"""What may be lost before a period is over, when nothing is known of the streams yet.

A share of so few pairs says little of a period: streams may begin with a burst of late rows that the whole period can
afford, and to answer it would keep what nobody needs. On the other hand delays may be like that always, and then a
period has lost what it may long before it is over. So a part of the period's allowance is there from the beginning, and
the rest comes with time:

    at its beginning    a tenth of (1 - q) x the pairs of a period
    at its end          all of it, and between them as much as time has passed

Slack is the least with which all that was heard so far would have lost no more. With delays that are always alike this
loses more than the target allows in the first period: the debt is paid back by the next ones.
"""

from __future__ import annotations

from typing import Final

AT_ONCE: Final = 0.1  # of the allowance of a period


def allowance(target: float, pairs: float, elapsed: int, period: int) -> float:
    """How many pairs may have been lost after a part of the first period that had so many of them.

    >>> round(allowance(0.75, 100.0, 30, 60), 3), allowance(0.75, 200.0, 60, 60)
    (27.5, 50.0)
    """
    part = elapsed / period
    return (1 - target) * pairs / part * (AT_ONCE + (1 - AT_ONCE) * part)
