"""How often a payload is in the result of a set operator, from how often it is in the inputs.

    m, n        multiplicities in input 0 and input 1 at an instant
    DISTINCT    min(1, m)              EXCEPT         m > 0 and n = 0        INTERSECT       m > 0 and n > 0
                                       EXCEPT ALL     max(0, m - n)          INTERSECT ALL   min(m, n)

Where the multiplicity of the result rises a piece is opened, where it falls the youngest open piece is closed: which
one does not matter, they are all alike. Open pieces of a payload are a linked list in a pool.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamjoin.kernels.pairs import compiled, frozen

OPERATORS: Final = ("distinct", "except", "intersect", "except all", "intersect all")


@compiled
def _wanted(operator: int, m: int, n: int) -> int:
    if operator == 0:
        return 1 if m > 0 else 0
    if operator == 1:
        return 1 if m > 0 and n == 0 else 0
    if operator == 2:
        return 1 if m > 0 and n > 0 else 0
    if operator == 3:
        return max(0, m - n)
    return min(m, n)


@compiled
def _sweep(
    operator: int, code: Any, time: Any, number: Any, sign: Any,
    counts: Any, newest: Any, before: Any, start: Any, free: int, next_id: int, ids: Any,
    opened: Any, closed: Any,
) -> Any:  # fmt: skip
    opens, closes, event, used = 0, 0, 0, next_id
    while event < len(code):
        c, t = code[event], time[event]
        have = _wanted(operator, counts[c, 0], counts[c, 1])
        while event < len(code) and code[event] == c and time[event] == t:
            counts[c, number[event]] += sign[event]
            event += 1
        want = _wanted(operator, counts[c, 0], counts[c, 1])
        while have < want:
            place = free
            free = before[place]
            before[place], start[place], ids[place] = newest[c], t, used
            newest[c] = place
            opened[0, opens], opened[1, opens], opened[2, opens] = c, t, used
            used += 1
            opens += 1
            have += 1
        while have > want:
            place = newest[c]
            newest[c] = before[place]
            before[place] = free
            free = place
            closed[0, closes], closed[1, closes] = c, start[place]
            closed[2, closes], closed[3, closes] = ids[place], t
            closes += 1
            have -= 1
    return opens, closes, free


def multiplicity_sweep(
    operator: int, events: Any, counts: Any, newest: Any, pool: Any, free: int, next_id: int
) -> tuple[Any, Any, int]:
    """Go through events (code, time, input, sign), sorted by code and time: the pieces opened (code, start, id), those
    closed (code, start, id, end), and where the pool's free places begin now.

    `pool` has (the next older piece or free place, start, id) in lines; there must be a free place for every event.

    >>> events = [np.array(column) for column in ([0, 0], [3, 8], [0, 0], [1, -1])]
    >>> pool = np.array([[1, -1], [0, 0], [0, 0]])
    >>> opened, closed, _ = multiplicity_sweep(0, events, np.zeros((1, 2), np.int64), np.array([-1]), pool, 0, 100)
    >>> opened.tolist(), closed.tolist()
    ([[0], [3], [100]], [[0], [3], [100], [8]])
    """
    rows = len(events[0])
    opened, closed = np.empty((3, rows), np.int64), np.empty((4, rows), np.int64)
    code, time, number, sign = (frozen(np.asarray(column, np.int64)) for column in events)
    opens, closes, free = _sweep(
        operator, code, time, number, sign, counts, newest, pool[0], pool[1], free, next_id, pool[2], opened, closed
    )
    return opened[:, :opens], closed[:, :closes], int(free)
