"""The sweep over multiplicities, by hand: what opens, what closes, and where the free places are."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.kernels import OPERATORS, multiplicity_sweep

WANTED = {  # by (m, n), for (0, 0), (1, 0), (3, 0), (0, 2), (1, 2), (3, 2)
    "distinct": [0, 1, 1, 0, 1, 1],
    "except": [0, 1, 1, 0, 0, 0],
    "intersect": [0, 0, 0, 0, 1, 1],
    "except all": [0, 1, 3, 0, 0, 1],
    "intersect all": [0, 0, 0, 0, 1, 2],
}
COUNTS = [(0, 0), (1, 0), (3, 0), (0, 2), (1, 2), (3, 2)]


class Pool:
    """Places for pieces, all of them free."""

    def __init__(self, codes: int, places: int) -> None:
        self.counts, self.newest = np.zeros((codes, 2), np.int64), np.full(codes, -1)
        self.pool = np.stack([np.append(np.arange(1, places), -1), np.zeros(places), np.zeros(places)]).astype(np.int64)
        self.free, self.next_id = 0, 100

    def sweep(self, operator: str, *events: tuple[int, int, int, int]) -> tuple[list[list[int]], list[list[int]]]:
        columns = [np.array(column) for column in zip(*events, strict=True)]
        opened, closed, self.free = multiplicity_sweep(
            OPERATORS.index(operator), columns, self.counts, self.newest, self.pool, self.free, self.next_id
        )
        self.next_id += opened.shape[1]
        return opened.T.tolist(), closed.T.tolist()

    def free_places(self) -> int:
        place, count = self.free, 0
        while place >= 0:
            place, count = self.pool[0, place], count + 1
        return count


@pytest.mark.parametrize("operator", OPERATORS)
def test_oracle_how_often_a_payload_is_in_the_result(operator: str) -> None:
    for (m, n), expected in zip(COUNTS, WANTED[operator], strict=True):
        events = [(0, 5, 0, 1)] * m + [(0, 5, 1, 1)] * n
        if events:
            opened, closed = Pool(1, 10).sweep(operator, *events)
            assert (opened, closed) == ([[0, 5, 100 + i] for i in range(expected)], []), (operator, m, n)


def test_places_are_taken_and_given_back() -> None:
    pool = Pool(2, 4)
    pool.sweep("except all", (0, 1, 0, 1), (0, 1, 0, 1), (1, 1, 0, 1))
    assert pool.free_places() == 1
    assert pool.sweep("except all", (0, 4, 1, 1), (1, 3, 0, -1)) == ([], [[0, 1, 101, 4], [1, 1, 102, 3]])
    assert pool.free_places() == 3
    assert pool.sweep("except all", (0, 6, 0, -1), (0, 6, 1, -1)) == ([], [])
    assert pool.sweep("except all", (0, 7, 0, -1))[1] == [[0, 1, 100, 7]]
    assert pool.free_places() == 4
    assert pool.newest.tolist() == [-1, -1]


def test_only_the_difference_at_an_instant_counts() -> None:
    pool = Pool(1, 4)
    assert pool.sweep("distinct", (0, 1, 0, 1), (0, 1, 0, -1)) == ([], [])
    assert pool.sweep("intersect", (0, 2, 0, 1), (0, 2, 1, 1), (0, 2, 1, -1)) == ([], [])
