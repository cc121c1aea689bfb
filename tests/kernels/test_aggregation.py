"""Cutting groups into pieces, against a walk over every tick; and what is counted there."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from streamjoin.errors import StreamjoinError
from streamjoin.kernels import Cuts, Reads, Steps, cut_pieces, fold_counts

Change = tuple[int, int, int]  # group, time, sign


def cut(changes: list[Change], alive: np.ndarray, opened: np.ndarray) -> Cuts:
    changes = sorted(changes, key=lambda change: (change[0], change[1], -change[2]))
    group, time, sign = (np.array([change[i] for change in changes], np.int64) for i in range(3))
    return cut_pieces(group, time, sign.astype(np.int8), alive=alive, opened=opened)


def pieces(cuts: Cuts) -> list[tuple[int, int, int, int]]:
    columns = (cuts.reads.who, cuts.start, cuts.end, cuts.elements)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_oracle_pieces_against_every_tick(seed: int) -> None:
    rng = np.random.default_rng(seed)
    elements = []
    for _ in range(int(rng.integers(0, 12))):
        start = int(rng.integers(0, 9))
        elements.append((int(rng.integers(0, 3)), start, start + int(rng.integers(1, 6))))
    changes = [(group, time, sign) for group, *ends in elements for time, sign in zip(ends, (1, -1), strict=True)]
    expected = []
    for group in range(3):
        times = sorted({time for other, time, _ in changes if other == group})
        for start, end in itertools.pairwise(times):
            valid = sum(other == group and ts <= start < te for other, ts, te in elements)
            if valid:
                expected.append((group, start, end, valid))
    alive, opened, found = np.zeros(3, np.int64), np.zeros(3, np.int64), []
    changes.sort(key=lambda change: (change[1], -change[2]))
    where = sorted(rng.integers(0, len(changes) + 1, 2).tolist())
    for part in (changes[: where[0]], changes[where[0] : where[1]], changes[where[1] :]):
        found += pieces(cut(part, alive, opened))
    assert sorted(found) == expected, f"seed {seed}"
    assert not alive.any()


def test_a_piece_that_was_open_before_is_carried() -> None:
    alive, opened = np.zeros(2, np.int64), np.zeros(2, np.int64)
    assert cut([(0, 1, 1), (0, 3, 1)], alive, opened).carried.tolist() == [False]
    later = cut([(0, 5, -1), (0, 7, -1), (1, 2, 1), (1, 4, -1)], alive, opened)
    assert pieces(later) == [(0, 3, 5, 2), (0, 5, 7, 1), (1, 2, 4, 1)]
    assert later.carried.tolist() == [True, False, False]


def test_an_instant_in_two_sweeps_is_one_cut() -> None:
    alive, opened = np.zeros(1, np.int64), np.zeros(1, np.int64)
    cut([(0, 1, 1), (0, 3, 1)], alive, opened)
    assert pieces(cut([(0, 3, 1)], alive, opened)) == []
    altered = cut([(0, 4, -1)], alive, opened)
    assert pieces(altered) == [(0, 3, 4, 3)]
    assert altered.carried.tolist() == [True]


def test_a_group_that_was_empty_in_between_has_a_piece_of_its_own() -> None:
    alive, opened = np.zeros(1, np.int64), np.zeros(1, np.int64)
    cut([(0, 1, 1)], alive, opened)
    assert pieces(cut([(0, 1, -1)], alive, opened)) == []
    again = cut([(0, 1, 1), (0, 2, -1)], alive, opened)
    assert pieces(again) == [(0, 1, 2, 1)]
    assert again.carried.tolist() == [False]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(StreamjoinError, match="ends more elements than it has"):
        cut([(0, 1, -1)], np.zeros(1, np.int64), np.zeros(1, np.int64))
    with pytest.raises(StreamjoinError, match="changes before the piece that is open"):
        cut([(0, 1, 1)], np.ones(1, np.int64), np.full(1, 5))


def test_counts_of_some_changes_at_all_reads() -> None:
    steps = Steps(
        np.array([0, 0, 0, 1]), np.array([1, 1, -1, 1], np.int8), Reads(np.array([1, 2, 3, 4]), np.array([0, 0, 0, 1]))
    )
    assert fold_counts(steps, np.zeros(2, np.int64)).tolist() == [1, 2, 1, 1]
    some = steps.only(np.array([False, True, True, False]))
    assert fold_counts(some, np.array([5, 7])).tolist() == [5, 6, 5, 7]
    assert fold_counts(Steps.none(np.array([1, 0])), np.array([5, 7])).tolist() == [7, 5]
