"""Who has met someone: marks and pieces stay with their rows, and every change is known by its name."""

from __future__ import annotations

import numpy as np

from streamjoin.algebra import FOREVER
from streamjoin.state import Ends
from streamjoin.state.meetings import (
    MANY,
    Meetings,
    marks_from_bytes,
    marks_to_bytes,
    pieces_from_bytes,
    pieces_to_bytes,
)
from tests.state.making import batch, ids


def covered(rows: int, *pieces: tuple[int, int, int, int]) -> Meetings:
    meetings = Meetings.nobody(rows, covered=True)
    meetings.cover(*(np.array(column) for column in zip(*pieces, strict=True)))
    return meetings


def test_only_who_had_met_nobody_is_news() -> None:
    meetings = Meetings.nobody(4, covered=False)
    name = meetings.name
    assert meetings.meet(np.array([3, 1, 3])).tolist() == [1, 3]
    assert meetings.name != name
    name = meetings.name
    assert meetings.meet(np.array([1, 3])).tolist() == []
    assert meetings.name == name, "nothing has changed, and nothing need be written"


def test_rows_leave_with_their_pieces_and_the_others_keep_theirs() -> None:
    meetings = covered(3, (0, 1, 4, -1), (2, 2, FOREVER, 7), (0, 5, 6, -1))
    meetings.meet(np.array([0, 2]))
    decided = meetings.hand_out(batch([(0, 9), (0, 9), (1, 8)]), np.array([1, 2]))
    assert (ids(decided.rows), decided.matched.tolist()) == ([1, 2], [False, True])
    assert [column.tolist() for column in decided.pieces] == [[1], [2], [8]], "it lasts as long as its row"
    assert meetings.all_pieces()[0].tolist() == [0, 0]


def test_ends_of_partners_end_pieces_and_may_empty_them() -> None:
    meetings = covered(1, (0, 2, FOREVER, 7), (0, 3, 5, 8))
    meetings.settle(ends := _ends((7, 2), (8, 9)))
    assert [column.tolist() for column in meetings.all_pieces()] == [[0, 0], [2, 3], [2, 5], [-1, -1]]
    name = meetings.name
    meetings.settle(ends)
    assert meetings.name == name
    decided = meetings.hand_out(batch([(0, 9)]), np.array([0]))
    assert [column.tolist() for column in decided.pieces] == [[0], [3], [5]]


def test_merging_moves_marks_and_pieces_with_their_rows() -> None:
    one, two = covered(2, (1, 0, 1, -1)), covered(2, (0, 5, 6, -1), (1, 7, 8, -1))
    one.meet(np.array([1]))
    two.meet(np.array([0]))
    together = Meetings.merged([one, two], np.array([2, 1, 0]))  # the last row of all is left behind
    assert together.met.tolist() == [True, True, False]
    assert sorted(zip(*(column.tolist() for column in together.all_pieces()), strict=True)) == [
        (0, 5, 6, -1),
        (1, 0, 1, -1),
    ]


def test_the_way_through_bytes() -> None:
    meetings = covered(9, (8, 1, 4, -1), (2, 2, FOREVER, 7))
    meetings.meet(np.array([8, 2]))
    assert marks_from_bytes(marks_to_bytes(meetings.met), 9).tolist() == meetings.met.tolist()
    back = pieces_from_bytes(pieces_to_bytes(meetings.all_pieces()))
    assert [column.tolist() for column in back] == [column.tolist() for column in meetings.all_pieces()]


def _ends(*pairs: tuple[int, int]) -> Ends:
    holder, te = (np.array(column) for column in zip(*pairs, strict=True))
    return Ends(holder, te)


def test_pieces_that_meet_are_united_before_they_are_many() -> None:
    meetings = Meetings.nobody(2, covered=True)
    for start in range(0, 4 * MANY, 2):  # row 0 all the time, by two partners each; row 1 for half of it
        meetings.cover(
            np.array([0, 0, 1]), np.array([start, start, start]), np.array([start + 2, start + 1, start + 1]), None
        )
        meetings.all_pieces()
    meetings.cover(np.array([0]), np.array([5]), np.array([9]), np.array([77]))
    row, start, end, holder = meetings.all_pieces()
    assert len(row) <= 3 * MANY + 2
    assert meetings.nbytes >= 32 * len(row)
    open_ended = holder != -1
    assert (row[open_ended], start[open_ended], end[open_ended]) == ([0], [5], [9])
    known = ~open_ended
    covered = {(r, t) for r, s, e in zip(row[known], start[known], end[known], strict=True) for t in range(s, e)}
    assert covered == {(0, t) for t in range(4 * MANY)} | {(1, t) for t in range(0, 4 * MANY, 2)}
