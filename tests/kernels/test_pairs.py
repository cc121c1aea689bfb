"""The driver of pair kernels, and the searches that all of them use."""

from __future__ import annotations

import itertools
import os

import numba
import numpy as np
import pytest

from streamjoin.kernels.pairs import difference, end_of_group, first_not_below, frozen, in_chunks
from tests.kernels.drawing import POOLS


@pytest.mark.parametrize("seed", range(20))
def test_differential_galloping_finds_what_binary_search_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    column = np.sort(rng.integers(0, 10, rng.integers(1, 60)))
    for _ in range(30):
        start = int(rng.integers(0, len(column) + 1))
        end = int(rng.integers(start, len(column) + 1))
        value = int(rng.integers(-1, 11))
        expected = start + int(np.searchsorted(column[start:end], value))
        assert first_not_below(column, value, start, end) == expected, f"seed {seed}"
        if start < end:
            last = start + int(np.searchsorted(column[start:end], column[start], side="right"))
            assert end_of_group(column, start, end) == last, f"seed {seed}"


def test_the_first_position_is_found_far_away_too() -> None:
    column = np.arange(10_000)
    assert [first_not_below(column, value, 3, 9_000) for value in (0, 3, 4, 8_999, 20_000)] == [3, 3, 4, 8_999, 9_000]
    assert end_of_group(np.zeros(777, np.int64), 5, 777) == 777


def test_differential_differences_of_far_integers() -> None:
    most = 2**63 - 1
    for one, two in itertools.product(POOLS["extreme"].tolist(), repeat=2):
        assert difference(one, two) == max(-most, min(most, one - two))
    assert difference(0.5, 2.0) == -1.5


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="compares plain with compiled Python")
def test_differential_compiled_differences_are_the_plain_ones() -> None:
    compiled = numba.njit(lambda one, two: difference(one, two))
    for pool in ("extreme", "tenths"):
        for one, two in itertools.product(POOLS[pool], repeat=2):
            assert compiled(one, two) == difference(one, two), (one, two)


def test_frozen_arrays_are_contiguous_read_only_and_leave_their_source_alone() -> None:
    source = np.arange(10)[::2]
    view = frozen(source)
    assert not view.flags.writeable
    assert view.flags.c_contiguous
    assert source.flags.writeable
    assert view.tolist() == source.tolist()


def test_chunks_go_on_where_the_last_one_stopped() -> None:
    """A kernel that finds as many pairs per row as the row says, and stops at a row's end."""

    def kernel(counts: np.ndarray, row: int, limit: int, first: np.ndarray | None, second: np.ndarray | None) -> tuple:
        found = 0
        while row < len(counts) and found < limit:
            for _ in range(counts[row]):
                if first is not None and second is not None:
                    first[found], second[found] = row, found
                found += 1
            row += 1
        return found, row >= len(counts), row

    chunks = list(in_chunks(kernel, (np.array([1, 0, 5, 1, 1, 0, 0]),), (0,), 2))
    assert [i.tolist() for i, _ in chunks] == [[0, 2, 2, 2, 2, 2], [3, 4]]
    assert list(in_chunks(kernel, (np.array([0, 0]),), (0,), 2)) == []
