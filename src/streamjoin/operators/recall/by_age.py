"""How much the loss of a period differs, where one group tells of several periods: by the age of what is lost.

A group has what is heard in it, but a result belongs to the period of its time stamps. A phone that comes back after
five minutes brings at once what belongs to five periods of a minute, and each of them has a fifth of it. What a pair
needs says how old it is, so what a group loses is told apart by age, in periods. Those parts go to different periods:
so their squares are added, and not the square of their sum.

    needs of a group, by age in periods | 0: 1   1: 2 + 4 |    squares 1^2 + 6^2 = 37, and not 7^2
"""

from __future__ import annotations

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.operators.recall.counts import Floats
from streamjoin.operators.recall.needs import tails


def ages(edges: Times, period: int) -> Times:
    """How old pairs of each place of a ladder of needs are, in whole periods.

    >>> ages(np.array([0, 20, 40, 60, 120]), 60).tolist()
    [0, 0, 1, 1, 2]
    """
    return (edges + period // 2) // period


def squares(needs: Floats, age: Times) -> Floats:
    """At each slack what is lost of each age, squared and added up, along the last axis.

    >>> squares(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 1])).tolist()
    [37.0, 36.0, 16.0]
    """
    first = np.flatnonzero(np.diff(age, prepend=-1))
    of_age = np.searchsorted(first, np.arange(len(age)), "right") - 1
    loss = tails(needs)
    older = np.append(loss[..., first[1:]], np.zeros_like(loss[..., :1]), axis=-1)
    own = loss - older[..., of_age]
    whole = tails(own[..., first] ** 2)
    beyond = np.append(whole[..., 1:], np.zeros_like(whole[..., :1]), axis=-1)
    return np.asarray(own**2 + beyond[..., of_age])
