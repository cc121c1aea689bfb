"""The oracle: what a join means, by brute force. Lists of rows in, list of rows out; nothing of streamjoin is used.

A row is a dict with its columns, `ts` and `te`. A result is `(left id, right id, ts, te)`, None for a padded side. The
id stands for the payload: rows may share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

Row = dict
Result = tuple
Match = Callable[[Row, Row], bool]
FOREVER = 2**63 - 1


def join(left: list[Row], right: list[Row], match: Match, how: str, outer: str, validity: bool) -> list[Result]:
    """The join of two finite inputs."""
    if validity:  # ghosts are in no snapshot
        left = [row for row in left if row["ts"] < row["te"]]
        right = [row for row in right if row["ts"] < row["te"]]

    def partners(row: Row, others: Iterable[Row], test: Match) -> list[Row]:
        return [other for other in others if test(row, other) and (not validity or share_an_instant(row, other))]

    results = []
    for row in left:
        found = partners(row, right, match)
        if how in ("inner", "left", "right", "full"):
            results += [pair(row, other, validity) for other in found]
        if how in ("left", "full", "anti"):
            results += [(row["id"], None, *part) for part in lonely_parts(row, found, outer)]
        if how == "semi":
            results += [(row["id"], None, *part) for part in accompanied_parts(row, found, outer)]
    if how in ("right", "full"):
        for row in right:
            found = partners(row, left, lambda row, other: match(other, row))
            results += [(None, row["id"], *part) for part in lonely_parts(row, found, outer)]
    return results


def share_an_instant(a: Row, b: Row) -> bool:
    return max(a["ts"], b["ts"]) < min(a["te"], b["te"])


def pair(left: Row, right: Row, validity: bool) -> Result:
    ts = max(left["ts"], right["ts"])
    return (left["id"], right["id"], ts, min(left["te"], right["te"]) if validity else ts)


def lonely_parts(row: Row, found: list[Row], outer: str) -> list[tuple[int, int]]:
    """The whole validity when nobody was met (by row); its maximal parts without a partner (by snapshot)."""
    if outer == "row":
        return [] if found else [(row["ts"], row["te"])]
    parts, reached = [], row["ts"]
    for start, end in accompanied_parts(row, found, outer):
        if reached < start:
            parts.append((reached, start))
        reached = end
    if reached < row["te"]:
        parts.append((reached, row["te"]))
    return parts


def accompanied_parts(row: Row, found: list[Row], outer: str) -> list[tuple[int, int]]:
    """The whole validity when anybody was met (by row); its maximal parts with a partner (by snapshot)."""
    if outer == "row":
        return [(row["ts"], row["te"])] if found else []
    pieces = sorted((max(row["ts"], other["ts"]), min(row["te"], other["te"])) for other in found)
    parts: list[tuple[int, int]] = []
    for start, end in pieces:
        if parts and start <= parts[-1][1]:
            parts[-1] = (parts[-1][0], max(parts[-1][1], end))
        else:
            parts.append((start, end))
    return parts


def asof(
    left: list[Row],
    right: list[Row],
    keys: tuple[str, ...],
    direction: str,
    tolerance: int | None,
    exact: bool,
    tie_break: tuple[str, ...],
    how: str,
) -> list[Result]:
    """Each left row with the right row that is nearest in time: `(left id, right id)`."""
    results = []
    for row in left:
        allowed = [other for other in right if _may_take(row, other, keys, direction, tolerance, exact)]
        if not allowed:
            results += [(row["id"], None)] if how == "left" else []
            continue
        near = min(abs(other["ts"] - row["ts"]) for other in allowed)
        nearest = [other for other in allowed if abs(other["ts"] - row["ts"]) == near]
        earliest = min(other["ts"] for other in nearest)  # at equal distance the earlier time
        ties = [other for other in nearest if other["ts"] == earliest]
        best = max(ties, key=lambda other: [_rank(other[name]) for name in (*tie_break, *other)])
        results.append((row["id"], best["id"]))
    return results


def best_match(
    left: list[Row],
    right: list[Row],
    keys: tuple[str, ...],
    dimensions: list[tuple[str, float]],
    dominance: str,
    how: str,
) -> list[Result]:
    """Each row with the candidates that no other one dominates: `(left id, right id)`."""
    if how == "right":
        return [(one, two) for two, one in best_match(right, left, keys, dimensions, dominance, "left")]
    results, taken = [], set()
    for row in left:
        candidates = []
        for number, other in enumerate(right):
            vector = _distances(row, other, keys, dimensions)
            if vector is not None:
                candidates.append((vector, number, other))
        best = [
            (number, other)
            for vector, number, other in candidates
            if not any(_dominates(rival, vector, dominance) for rival, _, _ in candidates)
        ]
        taken |= {number for number, _ in best}
        results += [(row["id"], other["id"]) for _, other in best]
        if not best and how in ("left", "full"):
            results.append((row["id"], None))
    if how == "full":
        results += [(None, other["id"]) for number, other in enumerate(right) if number not in taken]
    return results


def nearest(
    left: list[Row],
    right: list[Row],
    keys: tuple[str, ...],
    measure: Callable[[Row, Row], float | None],
    k: int,
    tie_break: tuple[str, ...],
    how: str,
) -> list[Result]:
    """Each left row with the k right rows that are nearest by `measure`, which is None for a pair that is too far."""
    results = []
    for row in left:
        found = []
        for other in right:
            near = all(row[key] is not None and row[key] == other[key] for key in keys)
            distance = measure(row, other) if near else None
            if distance is not None:
                found.append((distance, other))
        # Stable twice: first the greatest content, then the smallest distance.
        found.sort(key=lambda pair: [_rank(pair[1][name]) for name in (*tie_break, *pair[1])], reverse=True)
        found.sort(key=lambda pair: pair[0])
        results += [(row["id"], other["id"]) for _, other in found[:k]]
        if not found and how == "left":
            results.append((row["id"], None))
    return results


def _distances(row: Row, other: Row, keys: tuple[str, ...], dimensions: list[tuple[str, float]]) -> list | None:
    """The distance vector of a candidate; None for a pair that is none."""
    for name in (*keys, *(name for name, _ in dimensions)):
        if row[name] is None or other[name] is None or row[name] != row[name] or other[name] != other[name]:
            return None
    if any(row[key] != other[key] for key in keys):
        return None
    vector = [abs(row[name] - other[name]) for name, _ in dimensions]
    near = all(distance <= epsilon for distance, (_, epsilon) in zip(vector, dimensions, strict=True))
    return vector if near else None


def _dominates(one: list, two: list, dominance: str) -> bool:
    pairs = list(zip(one, two, strict=True))
    if dominance == "strict":
        return all(a < b for a, b in pairs)
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def _may_take(row: Row, other: Row, keys: tuple[str, ...], direction: str, tolerance: int | None, exact: bool) -> bool:
    for key in keys:
        if row[key] is None or row[key] != row[key] or row[key] != other[key]:
            return False
    if row["ts"] is None or other["ts"] is None:
        return False
    gap = other["ts"] - row["ts"]
    if gap == 0 and not exact:
        return False
    if (direction == "backward" and gap > 0) or (direction == "forward" and gap < 0):
        return False
    return tolerance is None or abs(gap) <= tolerance


def _rank(value: object) -> tuple:
    """NULL below NaN below everything else."""
    if value is None:
        return (0,)
    return (1,) if value != value else (2, value)


def normal_form(results: Iterable[Result]) -> dict[tuple, list[list[tuple[int, int]]]]:
    """For every payload and every k >= 1 the maximal intervals on which its multiplicity is at least k."""
    changes: dict[tuple, Counter] = {}
    for left, right, ts, te in results:
        if ts < te:
            payload = changes.setdefault((left, right), Counter())
            payload[ts] += 1
            payload[te] -= 1
    form = {}
    for payload, deltas in changes.items():
        levels: list[list[tuple[int, int]]] = []
        open_since: list[int] = []  # open_since[k]: since when the multiplicity is above k
        for time in sorted(deltas):
            count = len(open_since) + deltas[time]
            while len(open_since) < count:
                open_since.append(time)
            while len(open_since) > count:
                start = open_since.pop()
                while len(levels) <= len(open_since):
                    levels.append([])
                levels[len(open_since)].append((start, time))
        form[payload] = levels
    return form


class Arrivals:
    """The law of lateness, row by row and slowly: what is late, and what late rows still meet.

    Feed it the micro-batches that the operator gets. `late` collects the late rows of each input, `on_time` the others;
    `joined` collects the pairs that an inner join makes when late rows are joined with whatever is still kept. Ghosts
    are dropped before anybody asks whether they are late.
    """

    def __init__(self, match: Match, validity: bool, slack: tuple[int, int]) -> None:
        self.match, self.validity, self.slack = match, validity, slack
        self.progress = [-(2**63), -(2**63)]
        self.largest: list[int | None] = [None, None]
        self.kept: list[list[Row]] = [[], []]
        self.late: list[list[Row]] = [[], []]
        self.on_time: list[list[Row]] = [[], []]
        self.joined: list[Result] = []

    def micro_batch(self, batches: dict[int, list[Row]]) -> None:
        for number, rows in batches.items():
            for row in rows:
                if self.validity and row["ts"] >= row["te"]:
                    continue
                late = row["ts"] is not None and row["ts"] < self.progress[number]
                (self.late if late else self.on_time)[number].append(row)
                if row["ts"] is None:
                    continue
                for other in self.kept[1 - number]:
                    left, right = (row, other) if number == 0 else (other, row)
                    if self.match(left, right) and (not self.validity or share_an_instant(left, right)):
                        self.joined.append(pair(left, right, self.validity))
                self.kept[number].append(row)
        for number, rows in batches.items():
            times = [row["ts"] for row in rows if row["ts"] is not None]
            times += [] if self.largest[number] is None else [self.largest[number]]
            self.largest[number] = max(times, default=None)
            if self.largest[number] is not None:
                self.progress[number] = max(self.progress[number], self.largest[number] - self.slack[number])
        for number in (0, 1):
            self.kept[number] = [row for row in self.kept[number] if row["te"] > self.progress[1 - number]]
