"""What a slack would lose: the model of recall, one function per formula.

Input 0 is R, input 1 is S; a row of R is valid for `w_R`, one of S for `w_S` (either may be negative, as the bounds of
an interval may be): they match iff `-w_S < s - r < w_R`. The slack of an input keeps rows of the *other* one.

    need        of a pair whose rows came in different micro-batches: the largest time stamp that the later row's input
                had before its micro-batch, less the end of the earlier row. The pair is lost iff need >= slack of the
                later row's input.
    loss(d)     how many pairs need d or more: the tail of a histogram of needs
    recall      1 - (loss_0(d_0) + loss_1(d_1)) / pairs: a sum, because only the later member can lose a pair

All of it from counts per (class, cell): a row stands in the middle of its cell, and partners lie evenly in theirs. With
cells of one tick and a class per key it is exact.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamjoin.algebra.interval import Times
from streamjoin.kernels import count_pairs, needs_of_pairs
from streamjoin.operators.recall.counts import Counts, Floats

GROWTH: Final = 1.04


def ladder(step: int, top: int, growth: float = GROWTH) -> Times:
    """Slacks to choose from: steps of `step`, then of 4 percent, up to `top`.

    >>> ladder(10, 35).tolist()
    [0, 10, 20, 30, 35]
    """
    edges = [0]
    while edges[-1] < top:
        edges.append(min(top, max(edges[-1] + step, int(edges[-1] * growth))))
    return np.array(edges, np.int64)


def tails(histogram: Floats) -> Floats:
    """loss(d): what lies in a bin or above it, along the last axis.

    >>> tails(np.array([1.0, 2.0, 4.0])).tolist()
    [7.0, 6.0, 4.0]
    """
    return np.ascontiguousarray(np.cumsum(histogram[..., ::-1], axis=-1)[..., ::-1])


def predicted_recall(needs: Floats, pairs: float, at: tuple[int, int]) -> float:
    """The share of the pairs that is found with the slacks at these places of the ladder; 1 where there are none.

    >>> predicted_recall(np.array([[3.0, 1.0], [0.0, 2.0]]), 10.0, (1, 0))
    0.7
    """
    lost = float(needs[0, at[0] :].sum() + needs[1, at[1] :].sum())
    return 1.0 if pairs <= 0 else 1.0 - lost / pairs


def lost_at(needs: Floats, slack: int, edges: Times) -> float:
    """How many of the pairs of a histogram need `slack` or more; within a bin they lie evenly.

    >>> lost_at(np.array([4.0, 2.0, 1.0]), 5, np.array([0, 10, 20]))
    5.0
    """
    at = max(0, int(np.searchsorted(edges, slack, "right")) - 1)
    if at + 1 == len(edges):
        return float(needs[at])
    part = min(1.0, float(edges[at + 1] - slack) / float(edges[at + 1] - edges[at]))
    return float(needs[at + 1 :].sum()) + float(needs[at]) * part


def pairs_between(news: Counts, others: Counts, w_own: int, w_other: int) -> float:
    """How many pairs rows make with those of the other input, as far as classes and windows say.

    >>> from streamjoin.operators.recall.counts import counted
    >>> one, keys = np.array([10]), np.array([0])
    >>> others = counted(np.zeros(4, int), np.array([7, 8, 12, 13]), width=1, bits=0)
    >>> pairs_between(counted(keys, one, width=1, bits=0), others, 3, 3)
    2.0
    """
    if not _may_meet(news, others, w_own, w_other):
        return 0.0
    news, others = _same_classes(news, others)
    return count_pairs(news.columns, others.columns, (news.width, others.width), (w_other, w_own))


def need_histogram(news: Counts, others: Counts, largest: int, windows: tuple[int, int], edges: Times) -> Floats:
    """Of new rows of an input, the pairs with rows that the other one had before, by the slack that they need.

    `largest`: the largest time stamp that the new rows' input had before them; `windows`: of its own rows, and of the
    others'. Pairs that need nothing are left out: they are found with slack 0.
    """
    w_own, w_other = windows
    late = _some(news, news.cell * news.width < largest)
    if not _may_meet(late, others, w_own, w_other):
        return np.zeros(len(edges))
    late, others = _same_classes(late, others)
    widths = late.width, others.width
    return needs_of_pairs(late.columns, others.columns, widths, (w_other, w_own), largest - w_other, edges)


def _may_meet(news: Counts, others: Counts, w_own: int, w_other: int) -> bool:
    """Whether any windows reach any of the others: most of what is old is out of reach for rows that are in time."""
    if not len(news) or not len(others):
        return False
    earliest, latest = news.first * news.width - w_other, (news.last + 1) * news.width + w_own
    return earliest <= (others.last + 1) * others.width and others.first * others.width <= latest


def _same_classes(one: Counts, two: Counts) -> tuple[Counts, Counts]:
    bits = min(one.bits, two.bits)
    return one.with_bits(bits), two.with_bits(bits)


def _some(counts: Counts, mask: Any) -> Counts:
    return Counts(counts.width, counts.bits, counts.cls[mask], counts.cell[mask], counts.rows[mask])
