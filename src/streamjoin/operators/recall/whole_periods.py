"""How much whole periods differ, where enough of them are remembered: late rows may come in a rhythm.

What a period loses is the sum of what its groups lose. If groups were independent, the variance of the sum would follow
from theirs; where late rows come in bursts at regular distances, every period has as many of them, and periods differ
far less than that. So sums over all stretches of one period are compared, whole groups each:

    groups       | 9 0 0 9 0 0 9 0 0 9 |     period: 3 groups
    stretches      9 9 9 9 9 9 9 9           mean 9, variance 0; of independent groups it would be 3 x 18 = 54

Stretches overlap, and a few of them can be alike by chance. The variance is divided by what that of independent groups
is above in all but one case of a hundred: so it is hardly ever too small where there is no rhythm.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.operators.recall.counts import Floats

# By the length of the history in periods: of the variance of sums over periods of independent groups, as computed from
# all stretches of such a history, over the true one, the quantile of 1%. Six groups a period; more have a larger one.
HISTORIES: Final = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
BY_CHANCE: Final = (0.006, 0.032, 0.082, 0.126, 0.209, 0.270, 0.323)


def variance_of_periods(loss: Floats, pairs: Floats, times: Times, period: int) -> Floats | None:
    """How much a period's loss may differ from the mean at each slack, and how well that is known; falls with slack.

    `loss`: of each group, input and slack; `pairs`: of each group; `times`: where groups begin, and the last one ends.
    None where there is not history enough.

    >>> loss, pairs = np.array([9.0, 0, 0] * 4).reshape(12, 1, 1), np.full(12, 10.0)
    >>> variance_of_periods(loss, pairs, np.arange(13), 3)
    array([[0.]])
    >>> variance_of_periods(loss, pairs, np.arange(13), 10) is None
    True
    """
    history = float(times[-1] - times[0]) / period
    whole = np.flatnonzero(times - period >= times[0])
    if history < HISTORIES[0] or len(whole) < 2:
        return None
    share = loss.sum(axis=0) / pairs.sum()
    residual = np.cumsum(loss - share * pairs[:, None, None], axis=0)
    residual = np.concatenate([np.zeros_like(residual[:1]), residual])
    begin = np.searchsorted((times[1:] + times[:-1]) / 2, times[whole] - period)  # the nearest
    var = (residual[whole] - residual[begin]).var(axis=0)
    var *= (1 + 1 / history) / np.interp(history, HISTORIES, BY_CHANCE)
    return np.maximum.accumulate(var[:, ::-1], axis=1)[:, ::-1]
