"""What the tests of sweep areas share: putting rows in, marking them as met, seeing who is left and who has gone."""

from __future__ import annotations

import numpy as np

from streamjoin.algebra import Band, Within
from streamjoin.state import Batch, Decided, Matching, SweepArea
from tests.state.making import ids

Piece = tuple[int, int]

POOL = np.array([-1.0, 0.0, 0.5, 3.0])
MATCHINGS = {
    "time": Matching(),
    "band": Matching(Band("v", "v", 1, 1)),
    "grid": Matching(Within(("x", "y"), ("x", "y"), 1.0)),
    "sphere": Matching(Within(("x", "y"), ("x", "y"), 1.0, "haversine")),
}


def put(area: SweepArea, rows: Batch) -> None:
    area.insert(area.matching.sorted_run(rows))


def purge(area: SweepArea, progress: int) -> list[int]:
    """Move progress; the ids of rows that a tracked area hands out."""
    return [number for decided in area.purge(progress) for number in ids(decided.rows)]


def kept_ids(area: SweepArea) -> list[int]:
    """The ids of all rows that have not been removed, wherever they lie."""
    found = []
    for kept in area.kept:
        alive = kept.living(area.progress)
        found += ids(kept.run.rows if alive is None else kept.run.rows.take(alive))
    return sorted(found)


def met(area: SweepArea, place: int, rows: list[int], pieces: list[Piece] | None = None) -> None:
    """Note that these rows of a run have met someone (in these parts of their validity)."""
    kept = area.kept[place]
    kept.meetings.meet(np.array(rows, np.int64))
    if pieces is not None:
        start, end = (np.array(column, np.int64) for column in zip(*pieces, strict=True))
        kept.meetings.cover(np.array(rows, np.int64), start, end, None)


def fates(decided: list[Decided]) -> dict[int, tuple[bool, list[Piece]]]:
    """Of each row that was handed out: whether it met someone, and the pieces. A row twice is an error."""
    found: dict[int, tuple[bool, list[Piece]]] = {}
    for part in decided:
        numbers = ids(part.rows)
        assert not set(numbers) & set(found), "handed out twice"
        assert len(set(numbers)) == len(numbers), "handed out twice"
        pieces: dict[int, list[Piece]] = {number: [] for number in numbers}
        for row, start, end in zip(*(column.tolist() for column in part.pieces), strict=True):
            pieces[numbers[row]].append((start, end))
        found |= {
            number: (flag, sorted(pieces[number])) for number, flag in zip(numbers, part.matched.tolist(), strict=True)
        }
    return found


def ids_at(area: SweepArea, place: int, numbers: list[int]) -> list[int]:
    """Where the rows with these ids lie in a run."""
    order = ids(area.kept[place].run.rows)
    return [order.index(number) for number in numbers]
