"""Rings in one pool, by hand: who is pushed out, and where rings are after they were moved."""

from __future__ import annotations

import numpy as np

from streamjoin.kernels import move_rings, push_rings


def one(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def lines(*rows: tuple[int, int, int]) -> np.ndarray:
    """Rows (time, id, label) as lines of columns."""
    return np.array(rows, np.int64).T.copy()


def test_a_ring_that_is_not_full_ends_nobody() -> None:
    pool, rings = np.zeros((3, 4), np.int64), (one(0), one(4), one(0), one(0))
    out = push_rings(one(0, 0), lines((3, 100, 7), (5, 101, 7)), 3, rings, pool)
    assert out.shape == (4, 0)
    assert pool[1].tolist() == [100, 101, 0, 0]
    assert [each.tolist() for each in rings] == [[0], [4], [0], [2]]


def test_the_oldest_leaves_with_the_time_of_the_one_that_takes_its_place() -> None:
    pool, rings = np.zeros((3, 5), np.int64), (one(0, 2), one(2, 3), one(0, 0), one(0, 0))
    rows = lines((1, 10, 0), (2, 11, 0), (3, 12, 0), (4, 13, 0), (5, 14, 0), (6, 15, 1))
    out = push_rings(one(0, 1, 0, 0, 1, 0), rows, 2, rings, pool)
    assert out.T.tolist() == [[10, 4, 0, 1], [12, 6, 0, 3]]
    assert [each.tolist() for each in rings] == [[0, 2], [2, 3], [0, 0], [2, 2]]
    assert pool[1].tolist() == [13, 15, 11, 14, 0]


def test_a_window_of_one_row() -> None:
    pool, rings = np.zeros((3, 1), np.int64), (one(0), one(1), one(0), one(0))
    out = push_rings(one(0, 0, 0), lines((1, 10, 0), (1, 11, 0), (2, 12, 0)), 1, rings, pool)
    assert out[:2].T.tolist() == [[10, 1], [11, 2]]


def test_moved_rings_begin_at_their_first_row() -> None:
    """Group 1 has turned: its first row is at its last place."""
    old = lines((4, 14, 0), (3, 13, 0), (1, 11, 0), (2, 12, 0))
    rings = (one(1, 2, 0), one(1, 2, 0), one(0, 1, 0), one(1, 2, 0))
    new = np.zeros((3, 8), np.int64)
    move_rings(one(1, 2), one(0, 3), one(3, 2), rings, old, new)
    assert new[1].tolist() == [12, 11, 0, 0, 0, 0, 0, 0]
    assert [each.tolist() for each in rings] == [[1, 0, 3], [1, 3, 2], [0, 0, 0], [1, 2, 0]]


def test_rings_move_within_one_pool() -> None:
    pool = np.zeros((3, 6), np.int64)
    pool[:, :2] = lines((2, 12, 0), (1, 11, 0))
    rings = (one(0), one(2), one(1), one(2))
    move_rings(one(0), one(2), one(4), rings, pool, pool)
    assert pool[1].tolist() == [12, 11, 11, 12, 0, 0]
    out = push_rings(one(0, 0, 0), lines((3, 13, 0), (4, 14, 0), (5, 15, 0)), 4, rings, pool)
    assert out[:2].T.tolist() == [[11, 5]]
