"""Six kinds of buffer. Each differs from the others in where an element is put, and what that costs.

    normal    one list, first in, first out
    direct    the same, but prioritised elements skip it and go on at once (not above a source: there it is `normal`)
    weak      prioritised elements to the head, last in, first out; they are not told apart
    strong    prioritised ones in a sorted list of their own, the others in a second one (the document's strong order 2)
    single    all in one sorted list (its strong order)
    lists     a list for each priority

The last three give elements in the same order, by priority and then by arrival. They differ in steps: who inserts into
a sorted list walks past all that stay in front. Lists are linked through `behind`, one link per element.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba
import numpy as np

compiled: Any = numba.njit(nogil=True)

KINDS: Final = ("normal", "direct", "weak", "strong", "single", "lists")
NORMAL, DIRECT, WEAK, STRONG, SINGLE, LISTS = range(6)
NOBODY: Final = -1


class Waiting(NamedTuple):
    """All that wait. A buffer has a list per rank, of which some kinds use the lowest only, or that and the highest."""

    head: Any  # [buffer, list]: its first element, or NOBODY
    tail: Any  # [buffer, list]
    behind: Any  # [element]: the next one in its list
    count: Any  # [buffer, rank]: how many of each rank wait, whatever list they are in
    size: Any  # [buffer]
    most: Any  # [buffer]: the largest size so far
    top: Any  # [buffer]: the highest rank that waits, or NOBODY


def empty(buffers: int, ranks: int, elements: int) -> Waiting:
    """Nobody waits."""
    return Waiting(
        head=np.full((buffers, ranks), NOBODY),
        tail=np.full((buffers, ranks), NOBODY),
        behind=np.full(elements, NOBODY),
        count=np.zeros((buffers, ranks), np.int64),
        size=np.zeros(buffers, np.int64),
        most=np.zeros(buffers, np.int64),
        top=np.full(buffers, NOBODY),
    )


@compiled
def put(waiting: Waiting, kind: int, buffer: int, element: int, rank: int) -> int:
    """Put an element into a buffer; how many it walked past."""
    walked = 0
    if kind == SINGLE or (kind == STRONG and rank > 0):
        for other in range(rank, waiting.count.shape[1]):
            walked += waiting.count[buffer, other]
    if kind == WEAK and rank > 0:
        _first(waiting, buffer, waiting.head.shape[1] - 1, element)
    elif kind in (NORMAL, DIRECT):
        _last(waiting, buffer, 0, element)
    else:
        _last(waiting, buffer, rank, element)
    waiting.count[buffer, rank] += 1
    waiting.size[buffer] += 1
    waiting.most[buffer] = max(waiting.most[buffer], waiting.size[buffer])
    waiting.top[buffer] = max(waiting.top[buffer], rank)
    return walked


@compiled
def take(waiting: Waiting, buffer: int, shown: Any) -> int:
    """Take the next element out of a buffer that has one. `shown` has each element's rank, as far as it is known."""
    place = waiting.head.shape[1] - 1
    while waiting.head[buffer, place] == NOBODY:
        place -= 1
    element = waiting.head[buffer, place]
    waiting.head[buffer, place] = waiting.behind[element]
    if waiting.head[buffer, place] == NOBODY:
        waiting.tail[buffer, place] = NOBODY
    waiting.count[buffer, shown[element]] -= 1
    waiting.size[buffer] -= 1
    while waiting.top[buffer] >= 0 and waiting.count[buffer, waiting.top[buffer]] == 0:
        waiting.top[buffer] -= 1
    return element


@compiled
def _first(waiting: Waiting, buffer: int, place: int, element: int) -> None:
    waiting.behind[element] = waiting.head[buffer, place]
    waiting.head[buffer, place] = element
    if waiting.tail[buffer, place] == NOBODY:
        waiting.tail[buffer, place] = element


@compiled
def _last(waiting: Waiting, buffer: int, place: int, element: int) -> None:
    waiting.behind[element] = NOBODY
    if waiting.tail[buffer, place] == NOBODY:
        waiting.head[buffer, place] = element
    else:
        waiting.behind[waiting.tail[buffer, place]] = element
    waiting.tail[buffer, place] = element
