"""Counting by class and cell against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from streamjoin.algebra.interval import Times
from streamjoin.kernels import (
    bits_for,
    classes_of,
    count_cells,
    count_pairs,
    entries_of,
    extents,
    hash_integers,
    merge_counts,
    steps_between,
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


@pytest.mark.parametrize("keys", [1, 5, 100, 60_000])
@pytest.mark.parametrize("enough", [0, 1, 20, 10_000])
def test_bits_are_as_many_as_leave_few_classes(keys: int, enough: int) -> None:
    classes = classes_of(np.random.default_rng(keys).integers(0, keys, 7000), 16)
    few = [bits for bits in range(1, 13) if len(np.unique(classes[::3] & ((1 << bits) - 1))) <= enough]
    assert bits_for(classes, 3, 12, enough) == max(few, default=0)


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


@pytest.mark.parametrize("width", [1, 10])
@pytest.mark.parametrize("reach", [-3, 17, 40, 400])
def test_pairs_are_those_of_each_with_each(width: int, reach: int) -> None:
    rng = np.random.default_rng(width)
    number = np.unique(rng.integers(0, 5 * 60, 80))
    cls, cells, rows = number // 60, number % 60 - 7, rng.integers(1, 9, len(number))
    own = np.unique(rng.integers(60, 7 * 60, 90))  # some classes are only here, some only there
    times, weight, own_width = own % 60, rng.integers(1, 5, len(own)), 3
    own //= 60
    middle = times * own_width + own_width / 2
    low, high = middle - 20 + 0.5, middle + reach - 0.5
    begin, end = cells * width, (cells + 1) * width
    inside = np.minimum(high[:, None], end) - np.maximum(low[:, None], begin)
    share = np.where(own[:, None] == cls, np.maximum(inside, 0.0), 0.0) / width
    first = int(cells.min())
    found = count_pairs((own, times, weight), (cls, cells, rows), (own_width, width), (20, reach), first)
    assert found == pytest.approx(float((weight[:, None] * share * rows).sum()))
