"""Urgency: the priority of results, and urgent ones before the others.

A result has the largest priority of its members, or what a function of theirs says. One that is larger than 0 makes it
urgent. Pairs are told apart by that while they are still indices, before any payload is copied, so the urgent ones are
there first. Rows without priorities cost nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from streamjoin.state.batch import Batch, Indices, Priorities


class NewPriority(Protocol):
    """Says the priority of results by those of their members."""

    def of(self, members: Sequence[Priorities]) -> Priorities:
        """One of each result, from one of each member."""
        ...


def priority_of(members: Sequence[Priorities | None], rows: int, new: NewPriority | None = None) -> Priorities | None:
    """The priority of results with such members; None where none is urgent.

    >>> priority_of([np.array([0, 3]), None], 2).tolist(), priority_of([None, None], 2)
    ([0, 3], None)
    """
    if new is not None:
        return at_least_0(new.of([np.zeros(rows, np.int64) if each is None else each for each in members]))
    there = [each for each in members if each is not None]
    if not there:
        return None
    largest = there[0]
    for other in there[1:]:
        largest = np.maximum(largest, other)
    return largest


def at_least_0(priority: Priorities) -> Priorities | None:
    """A negative priority is none; where no row has one there is no column.

    >>> at_least_0(np.array([-1, 2])).tolist(), at_least_0(np.array([-1, 0]))
    ([0, 2], None)
    """
    return np.maximum(priority, 0) if (priority > 0).any() else None


def taken(rows: Batch, which: Indices) -> Priorities | None:
    """The priorities of some rows."""
    return None if rows.priority is None else rows.priority[which]


def urgent_first(priority: Priorities | None) -> Iterator[tuple[Indices | slice, bool]]:
    """Which results are urgent, and then which are not, with which they are; all at once where there is but one kind.

    >>> [(which.tolist(), urgent) for which, urgent in urgent_first(np.array([0, 7, 0]))]
    [([1], True), ([0, 2], False)]
    """
    urgent = None if priority is None else priority > 0
    if urgent is None or not urgent.any():
        yield slice(None), False
    elif urgent.all():
        yield slice(None), True
    else:
        yield np.flatnonzero(urgent), True
        yield np.flatnonzero(~urgent), False
