"""The document's priority-aware join (Algorithms 1 and 2), element by element, with its two errors to be switched on.

any_moves   Algorithm 1, line 15, as printed: any element sets its input's time. Ours: only one with priority 0
by_end      Algorithm 2, line 4, as printed: a result leaves when its *end* is not after the least time. Ours: when
            its start is before it, strictly, and sorted by (ts, te)
any_purges  any element purges the other input's area. Ours: only one with priority 0
"""

from __future__ import annotations

from collections import Counter

Element = tuple[int, str, int, int, int]  # input, id, ts, te, priority
Result = tuple[tuple[str, str], int, int, int]  # ids, ts, te, priority


def document_join(
    arrivals: list[Element], *, any_moves: bool = False, by_end: bool = False, any_purges: bool = False
) -> list[Result]:
    """Results in the order in which they leave."""
    areas: tuple[list[Element], list[Element]] = ([], [])
    times: list[int | None] = [None, None]
    least: int | None = None
    queue: list[Result] = []
    left: list[Result] = []
    for element in arrivals:
        number, name, start, end, priority = element
        others = areas[1 - number]
        if any_purges or priority == 0:
            others[:] = [other for other in others if not start > other[3]]
        areas[number].append(element)
        for _, other_name, other_start, other_end, other_priority in others:
            ts, te = max(start, other_start), min(end, other_end)
            if ts < te:
                pair = (name, other_name) if number == 0 else (other_name, name)
                queue.append((pair, ts, te, max(priority, other_priority)))
        if any_moves or priority == 0:
            times[number] = start
        known = [time for time in times if time is not None]
        if priority == 0 and len(known) == 2:
            least = min(known)
        queue.sort(key=lambda result: (-result[3], result[1], 0 if by_end else result[2]))
        while queue and (queue[0][3] > 0 or _ready(queue[0], least, by_end=by_end)):
            left.append(queue.pop(0))
    return left + sorted(queue, key=lambda result: (-result[3], result[1], result[2]))


def _ready(result: Result, least: int | None, *, by_end: bool) -> bool:
    return least is not None and (result[2] <= least if by_end else result[1] < least)


def by_loops(arrivals: list[Element]) -> Counter[tuple[tuple[str, str], int, int]]:
    """What a temporal join gives, whatever the priorities."""
    return Counter(
        ((one[1], two[1]), max(one[2], two[2]), min(one[3], two[3]))
        for one in arrivals
        for two in arrivals
        if one[0] == 0 and two[0] == 1 and max(one[2], two[2]) < min(one[3], two[3])
    )
