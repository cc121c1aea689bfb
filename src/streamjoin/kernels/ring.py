"""The newest n of each group: a ring per group, all rings in one pool.

    group 0   [ 3 5 8 | . ]     n = 3: a row at 9 takes the place of the one at 3, whose end it is
    group 1   [ 4 . . | . ]     not full: a new row ends nobody

A ring begins small and doubles up to n places, so a group costs what it holds. A ring that has grown leaves its old
places behind; who calls makes the pool anew when half of it is such places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamjoin.kernels.pairs import compiled, frozen


@compiled
def _move(groups: Any, to: Any, room: Any, base: Any, capacity: Any, head: Any, count: Any, old: Any, new: Any) -> None:
    for number in range(len(groups)):
        group = groups[number]
        for place in range(count[group]):
            source = base[group] + (head[group] + place) % capacity[group]
            for column in range(old.shape[0]):
                new[column, to[number] + place] = old[column, source]
        base[group], capacity[group], head[group] = to[number], room[number], 0


def move_rings(groups: Any, to: Any, room: Any, rings: Any, old: Any, new: Any) -> None:
    """Move the rings of these groups from one pool to these places of another (or the same), with so much room.

    `rings` are four arrays that say of each group where its ring begins, how large it is, where its first row is, and
    how many there are; they are changed.
    """
    base, capacity, head, count = rings
    _move(frozen(groups), frozen(to), frozen(room), base, capacity, head, count, old, new)


@compiled
def _push(
    group: Any, rows: Any, size: int, base: Any, capacity: Any, head: Any, count: Any, columns: Any, out: Any
) -> int:
    found = 0
    for row in range(len(group)):
        g = group[row]
        if count[g] == size:
            place = base[g] + head[g]
            out[0, found] = columns[1, place]
            out[1, found] = rows[0, row]
            out[2, found] = columns[2, place]
            out[3, found] = columns[0, place]
            found += 1
            head[g] = (head[g] + 1) % capacity[g]
        else:
            place = base[g] + (head[g] + count[g]) % capacity[g]
            count[g] += 1
        for column in range(columns.shape[0]):
            columns[column, place] = rows[column, row]
    return found


def push_rings(group: Any, rows: Any, size: int, rings: Any, columns: Any) -> Any:
    """Add rows, in order, to the rings of their groups. `rows` and `columns` have (time, id, label) in lines.

    Gives the rows that were pushed out: their ids, the times of those that pushed them out, their labels, and their own
    times.

    >>> one = lambda *numbers: np.array(numbers, np.int64)
    >>> pool = np.zeros((3, 2), np.int64)
    >>> rows = np.array([[3, 5, 8], [100, 101, 102], [0, 0, 0]])
    >>> push_rings(one(0, 0, 0), rows, 2, (one(0), one(2), one(0), one(0)), pool)[:2].tolist()
    [[100], [8]]
    """
    out = np.empty((4, len(group)), np.int64)
    base, capacity, head, count = rings
    found = _push(frozen(group), frozen(rows), size, base, capacity, head, count, columns, out)
    return out[:, :found]
