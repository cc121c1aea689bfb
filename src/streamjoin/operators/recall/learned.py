"""What groups say of a period: how much it loses at each slack, how much periods differ, and what may have changed.

A mean of a few groups is noisy, and slack follows the noise where more of it hardly finds more. So all that is
remembered counts, unless what was heard lately differs from it by more than chance would explain: delays have changed,
and only what was heard lately counts. That is decided at each slack of each input.

In the beginning long needs are missing from what is remembered. After three minutes nobody can have been away for
five; so what needs as much is compared with the pairs that were heard when it could have been.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.operators.recall.by_age import squares
from streamjoin.operators.recall.counts import Floats
from streamjoin.operators.recall.needs import tails

# Standard deviations by which the recent share is another one: slack goes up more easily than down.
UP: Final = 2.5
DOWN: Final = 3.5
LEAST: Final = 0.25  # of all pairs: fewer say nothing of a long need


@dataclass(frozen=True)
class Learned:
    """Of some groups, at each slack of each input: the share that is lost; how much a period differs in what is heard
    to be lost in it, and in what its own results lose. They tell of so many periods.
    """

    share: Floats
    heard: Floats
    own: Floats
    periods: float

    @staticmethod
    def of(needs: Floats, pairs: Floats, periods: float, wanted: float, age: Times) -> Learned:
        """`needs` and `pairs`: of each group; `wanted`: pairs of a period; `age`: of each place, in periods.

        >>> one = Learned.of(np.array([[[1.0]], [[3.0]]]), np.array([10.0, 10.0]), 1.0, 20.0, np.array([0]))
        >>> one.share.tolist(), one.heard.tolist(), one.own.tolist()
        ([[0.2]], [[4.0]], [[4.0]])
        """
        groups, total = len(pairs), pairs.sum()
        residual = needs - needs.sum(axis=0) / total * pairs[:, None, None]
        # Of all groups, to one period of so many pairs.
        scale = groups / max(1, groups - 1) / periods * (wanted * periods / total) ** 2
        heard, own = (tails(residual) ** 2).sum(axis=0) * scale, squares(residual, age).sum(axis=0) * scale
        return Learned(tails(needs.sum(axis=0)) / total, heard, own, periods)

    @property
    def variance(self) -> Floats:
        """Of the loss of a period about the share that is known: its own, and how well that is known."""
        return self.own + self.heard / self.periods


def share_since_possible(needs: Floats, pairs: Floats, begins: Times, edges: Times) -> Floats:
    """The share of the pairs that is lost at each slack: of each need of the pairs that were heard when the streams
    were as old. `begins`: of each group, since the beginning of the streams.

    >>> needs, pairs = np.array([[[0.0, 0.0]], [[1.0, 1.0]]]), np.array([10.0, 10.0])
    >>> share_since_possible(needs, pairs, np.array([0, 60]), np.array([0, 50]))
    array([[0.15, 0.1 ]])
    """
    since = np.append(np.cumsum(pairs[::-1])[::-1], 0.0)[np.searchsorted(begins, edges)]
    return tails(needs.sum(axis=0) / np.maximum(since, LEAST * pairs.sum()))


def expected(recent: Learned, remembered: Learned, share: Floats, wanted: float) -> tuple[Floats, Floats]:
    """Mean and variance of a period's loss of `wanted` pairs, at each slack; `share` is what is remembered, with long
    needs as often as they would be.
    """
    unsure = np.sqrt(recent.heard * (1 / recent.periods + 1 / remembered.periods)) / wanted
    more = recent.share - remembered.share
    changed = (more > UP * unsure) | (-more > DOWN * unsure)
    mean = np.where(changed, recent.share, share) * wanted
    var = np.where(changed, recent.variance, remembered.variance)
    return _falling(mean), _falling(var)


def _falling(values: Floats) -> Floats:
    """With more slack no more is lost."""
    return np.asarray(np.maximum.accumulate(values[:, ::-1], axis=1)[:, ::-1])
