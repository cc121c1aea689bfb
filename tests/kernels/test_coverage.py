"""Coverage: the parts of a validity with a partner, and those without, against a walk over every tick."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.kernels import parts_of_validity
from tests.kernels import twins

Part = tuple[int, int, int]


def parts(ts: list[int], te: list[int], pieces: list[Part], covered: bool) -> list[Part]:
    columns = tuple(np.array([piece[c] for piece in pieces], np.int64) for c in range(3))
    found = parts_of_validity(np.array(ts, np.int64), np.array(te, np.int64), columns, covered=covered)
    return list(zip(*(column.tolist() for column in found), strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_differential_parts_against_every_tick(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(0, 6))
    ts = rng.integers(-5, 5, rows)
    te = ts + rng.integers(1, 12, rows)
    row = rng.integers(0, rows, rng.integers(0, 12)) if rows else np.empty(0, np.int64)
    start = ts[row] + (rng.random(len(row)) * (te - ts)[row]).astype(np.int64)
    end = start + 1 + (rng.random(len(row)) * (te[row] - start - 1)).astype(np.int64)
    for covered in (True, False):
        expected = twins.parts_of_validity(ts, te, (row, start, end), covered)
        pieces = list(zip(row.tolist(), start.tolist(), end.tolist(), strict=True))
        assert parts(ts.tolist(), te.tolist(), pieces, covered) == expected, f"seed {seed}"


def test_parts_are_maximal() -> None:
    """Pieces that touch, contain each other or repeat are one part."""
    pieces = [(0, 5, 7), (0, 2, 4), (0, 4, 5), (0, 2, 3), (0, 2, 4)]
    assert parts([0], [9], pieces, True) == [(0, 2, 7)]
    assert parts([0], [9], pieces, False) == [(0, 0, 2), (0, 7, 9)]


def test_a_row_without_pieces_is_free_as_a_whole() -> None:
    assert parts([0, 5], [9, 6], [], False) == [(0, 0, 9), (1, 5, 6)]
    assert parts([0, 5], [9, 6], [], True) == []


def test_a_row_that_is_met_all_the_time_has_no_free_part() -> None:
    assert parts([0, 3], [9, 4], [(0, 0, 9)], False) == [(1, 3, 4)]
    assert parts([0, 3], [9, 4], [(0, 0, 9)], True) == [(0, 0, 9)]


def test_parts_reach_to_infinity() -> None:
    pieces = [(0, 0, 5), (0, 9, FOREVER)]
    assert parts([NEVER], [FOREVER], pieces, False) == [(0, NEVER, 0), (0, 5, 9)]
    assert parts([NEVER], [FOREVER], pieces, True) == [(0, 0, 5), (0, 9, FOREVER)]


def test_no_rows_no_parts() -> None:
    assert parts([], [], [], True) == parts([], [], [], False) == []
