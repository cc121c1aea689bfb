"""Counting by class and cell against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from streamjoin.algebra.interval import Times
from streamjoin.kernels import (
    classes_of,
    count_cells,
    entries_of,
    extents,
    hash_integers,
    merge_counts,
    steps_between,
    tally,
)

ROWS = 3000


def in_order(rng: np.random.Generator) -> Times:
    return np.sort(rng.integers(-4000, 4000, ROWS))


def of_one_time(rng: np.random.Generator) -> Times:
    return np.full(ROWS, -3)


def any_order(rng: np.random.Generator) -> Times:
    return rng.integers(-4000, 4000, ROWS)


def nearly_in_order(rng: np.random.Generator) -> Times:
    return np.maximum(np.sort(rng.integers(-4000, 4000, ROWS)) - 500 * (rng.random(ROWS) < 0.01), -4000)


@pytest.mark.parametrize(("bits", "width"), [(0, 1), (3, 7), (10, 250), (16, 4000)])
@pytest.mark.parametrize("drawn", [in_order, of_one_time, any_order, nearly_in_order])
def test_rows_are_counted_where_they_belong(
    bits: int, width: int, drawn: Callable[[np.random.Generator], Times]
) -> None:
    rng = np.random.default_rng(bits)
    group, ts = rng.integers(-(2**62), 2**62, ROWS), drawn(rng)
    first, span, kept = -4000 // width, 3999 // width - -4000 // width + 1, min(bits, 8)
    table = count_cells(classes_of(group, bits), ts, extents(ts), width, first, (span, 1 << kept))
    expected = np.zeros_like(table)
    np.add.at(expected, (ts // width - first, hash_integers(group) & ((1 << kept) - 1)), 1)
    assert np.array_equal(table, expected)
    cls, cells, rows = entries_of(table, first)
    by_class = np.nonzero(expected.T)
    assert np.array_equal(cls, by_class[0])
    assert np.array_equal(cells, by_class[1] + first)
    assert np.array_equal(rows, expected.T[by_class])


@pytest.mark.parametrize("rows", [1, 255, 256, 257, 1000])
def test_extents_are_those_of_each_block(rows: int) -> None:
    ts = np.random.default_rng(rows).integers(-(2**62), 2**62, rows)
    blocks = np.split(ts, range(256, rows, 256))
    assert extents(ts).tolist() == [[each.min() for each in blocks], [each.max() for each in blocks]]


def test_no_rows_are_of_no_block_and_no_class() -> None:
    none = np.zeros(0, np.int64)
    assert extents(none).shape == (2, 0)
    assert not len(classes_of(none, 4))
    assert count_cells(classes_of(none, 4), none, extents(none), 1, 0, (2, 1)).tolist() == [[0], [0]]


@pytest.mark.parametrize(("keys", "bits"), [(1, 16), (5, 0), (100, 3), (100, 16), (60_000, 16)])
@pytest.mark.parametrize("far", [0, 10**17, 2**62])
def test_a_tally_is_of_all_rows_or_there_is_no_room(keys: int, bits: int, far: int) -> None:
    rng = np.random.default_rng(keys)
    classes, ts = classes_of(rng.integers(0, keys, 2000), 16), rng.integers(-40, 40, 2000)
    ts[::7] -= far
    own, rows = np.unique(np.stack([classes & ((1 << bits) - 1), ts // 7]), axis=1, return_counts=True)
    assert tally(classes, ts, 7, bits, own.shape[1] - 1) is None
    for room in (own.shape[1], 5000):
        found = tally(classes, ts, 7, bits, room)
        assert found is not None
        order = np.lexsort(found[1::-1])
        assert all(np.array_equal(each[order], wanted) for each, wanted in zip(found, (*own, rows), strict=True))


@pytest.mark.parametrize("apart", [0, 40])
def test_counts_are_merged_by_class_and_cell(apart: int) -> None:
    rng = np.random.default_rng(apart)
    numbers = [np.unique(rng.integers(low, low + 60, 50)) for low in (0, apart)]
    parts = [(each % 7, each // 7, rng.integers(1, 9, len(each))) for each in numbers]
    parts = [tuple(column[np.lexsort((part[1], part[0]))] for column in part) for part in parts]
    added: dict[tuple[int, int], int] = {}
    for cls, cell, rows in [entry for part in parts for entry in zip(*(each.tolist() for each in part), strict=True)]:
        added[cls, cell] = added.get((cls, cell), 0) + rows
    for one, two in (parts, parts[::-1]):
        merged = [each.tolist() for each in merge_counts(one, two)]
        assert list(zip(*merged, strict=True)) == [(*at, rows) for at, rows in sorted(added.items())]
    nothing = (np.zeros(0, np.int64),) * 3
    assert all(map(np.array_equal, merge_counts(parts[0], nothing), parts[0]))
    assert all(map(np.array_equal, merge_counts(nothing, parts[0]), parts[0]))


@pytest.mark.parametrize("values", [[], [0], [-1], [127, 0], [0, 128], [5, -124], [5, -123], [-(2**61), 2**61]])
def test_steps_say_how_much_room_they_need(values: list[int]) -> None:
    steps, most = steps_between(np.array(values, np.int64))
    assert np.array_equal(np.cumsum(steps), values)
    assert most == max([0, *(max(each, -1 - each) for each in steps.tolist())])
