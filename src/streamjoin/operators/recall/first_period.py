"""What the first period may lose, when nothing is known of the streams yet.

A share of so few pairs says little of a period: streams may begin with a burst of late rows that the whole period can
afford, and to answer it would keep what nobody needs. On the other hand delays may be like that always, and then a
period has lost what it may long before it is over. One stretch does not tell these apart, but two do:

    one group       a quarter of (1 - q) x the pairs of a period may be lost at once, and the rest as time passes
    several         a group that has lost three times as much as the others would have is a burst, and the rest of the
                    period loses the share that the others do. Of groups that are alike the worst one is chance, and
                    all of them count

    groups of 10 pairs | 6 0 0 |    in a period of 12 of them   0 x 120 = 0, and 6 that are lost
                       | 3 2 1 |                                0.2 x 120 = 24

What is lost is lost: beyond what the target allows it is a debt, and the rest of the period, and the next ones, may
lose as much less. Where late rows come in a rhythm a debt goes up with each burst, and down again until the next; only
what it never falls below is owed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.operators.recall.counts import Floats

AT_ONCE: Final = 0.25  # of the allowance of a period
BURST: Final = 3.0  # times what the other groups would have lost


def allowance(target: float, pairs: float, elapsed: int, period: int) -> float:
    """How many pairs may have been lost after a part of the first period that had so many of them.

    >>> round(allowance(0.75, 100.0, 30, 60), 3), allowance(0.75, 200.0, 60, 60)
    (31.25, 50.0)
    """
    part = elapsed / period
    return (1 - target) * pairs / part * (AT_ONCE + (1 - AT_ONCE) * part)


def loss_of_period(loss: Floats, pairs: Floats, whole: float) -> Floats:
    """How many of `whole` pairs a period loses at each slack in which no burst comes again; falls with slack.

    `loss`: of each group, input and slack; `pairs`: of each group, and more than one of them has some.

    >>> loss_of_period(np.array([6.0, 0, 0]).reshape(3, 1, 1), np.full(3, 10.0), 120.0)
    array([[0.]])
    >>> loss_of_period(np.array([3.0, 2, 1]).reshape(3, 1, 1), np.full(3, 10.0), 120.0)
    array([[24.]])
    """
    worst, own = loss.max(axis=0), pairs[loss.argmax(axis=0)]
    others = (loss.sum(axis=0) - worst) / (pairs.sum() - own)
    share = np.where(worst > BURST * others * own, others, loss.sum(axis=0) / pairs.sum())
    return np.maximum.accumulate(share[:, ::-1], axis=1)[:, ::-1] * whole


def least_debt(debts: Floats, ends: Times, since: int) -> float:
    """The smallest sum of debts up to any of the ends from `since` on. `debts`: of each group, and when those end.

    >>> least_debt(np.array([9.0, -4.0, 9.0, -4.0, 9.0]), np.array([10, 20, 30, 40, 50]), 30)
    10.0
    """
    return float(np.cumsum(debts)[ends >= since].min())
