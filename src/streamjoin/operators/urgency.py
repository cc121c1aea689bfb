"""Urgency: the priority of results, and urgent ones before the others.

A result has the largest priority of its members, or what a function of theirs says. One that is larger than 0 makes it
urgent. Pairs are told apart by that while they are still indices, before any payload is copied, so the urgent ones are
there first. Rows without priorities cost nothing here.

An urgent row may be far ahead of progress. A result that has one as a member and is not urgent itself must not be: who
reads results goes by those that are not urgent, and would take others for late. Until it leaves its operator it is
marked (`WAITS`), and waits until progress has passed it (`HeldResults.kept_back`), however results are emitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np

from streamjoin.state.batch import Batch, Indices, Priorities

# In the place of the priority of a result that is not urgent, though a member is.
WAITS: Final = -1


class NewPriority(Protocol):
    """Says the priority of results by those of their members."""

    def of(self, members: Sequence[Priorities]) -> Priorities:
        """One of each result, from one of each member."""
        ...


def priority_of(members: Sequence[Priorities | None], rows: int, new: NewPriority | None = None) -> Priorities | None:
    """The priority of results with such members, or `WAITS`; None where none is urgent, and no member is.

    >>> priority_of([np.array([0, 3]), None], 2).tolist(), priority_of([None, None], 2)
    ([0, 3], None)
    """
    largest: Priorities | None = None
    for each in members:
        if each is not None:
            largest = each if largest is None else np.maximum(largest, each)
    if new is None:
        return largest
    found = new.of([np.zeros(rows, np.int64) if each is None else each for each in members])
    return lowered(found, largest)


def lowered(priority: Priorities, largest: Priorities | None) -> Priorities | None:
    """Priorities of results of whose members the largest is known: those that are not urgent wait, if that is.

    >>> lowered(np.array([0, 2, -3]), np.array([5, 5, 0])).tolist(), lowered(np.array([0, -3]), None)
    ([-1, 2, 0], None)
    """
    own = np.maximum(priority, 0)
    if largest is not None:
        own = np.where((own == 0) & (largest > 0), WAITS, own)
    return own if own.any() else None


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
    """Which results are urgent, and then which are not, and whether any of them has a priority, or waits; all at once
    where there is but one kind.

    >>> [(which.tolist(), urgent) for which, urgent in urgent_first(np.array([0, 7, 0]))]
    [([1], True), ([0, 2], False)]
    """
    urgent = None if priority is None else priority > 0
    if priority is None or urgent is None or not priority.any():
        yield slice(None), False
    elif urgent.all() or not urgent.any():
        yield slice(None), True
    else:
        others = np.flatnonzero(~urgent)
        yield np.flatnonzero(urgent), True
        yield others, bool(priority[others].any())
