"""Counts per class and cell: however they are made smaller, no row is lost, and equal keys stay together."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from streamjoin.algebra.interval import Times
from streamjoin.operators.recall import counts as module
from streamjoin.operators.recall.counts import Counts, counted, fitted, together


def drawn(rows: int, keys: int, span: int, seed: int = 0, **options: int) -> Counts:
    rng = np.random.default_rng(seed)
    return counted(rng.integers(0, keys, rows), rng.integers(-span, span, rows), **{"width": 5, "bits": 16} | options)


def same(one: Counts, two: Counts) -> bool:
    alike = [np.array_equal(getattr(one, name), getattr(two, name)) for name in ("cls", "cell", "rows")]
    return (one.width, one.bits) == (two.width, two.bits) and all(alike)


def test_rows_in_tasks_are_the_rows_of_all() -> None:
    rng = np.random.default_rng(1)
    keys, ts = rng.integers(0, 9, 500), rng.integers(-300, 300, 500)
    whole = counted(keys, ts, width=7, bits=4)
    parts = [counted(keys[at::3], ts[at::3], width=7, bits=4) for at in range(3)]
    assert same(together(parts), whole)
    assert whole.total == 500


def test_many_rows_are_counted_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    few = drawn(3000, 50, 400, bits=10)
    monkeypatch.setattr(module, "MANY_ROWS", 1000)
    assert same(drawn(3000, 50, 400, bits=10, most=4000), few), "in no table"
    monkeypatch.setattr(module, "PLACES", 1 << 20)
    assert same(drawn(3000, 50, 400, bits=10, most=4000), few), "in a table"


MOST = 1 << 12


def told(keys: Times, ts: Times, most: int = MOST, width: int = 10**5) -> Counts:
    """What a task tells of its rows."""
    return fitted(counted(keys, ts, width=width, bits=16, most=most), most, 10 * width)


@pytest.mark.parametrize("late", [1, 5, 50])
def test_a_few_rows_that_are_late_take_no_classes(late: int) -> None:
    """Three cells of a thousand keys, and late rows over 900 cells: a few entries more, and as detailed as before."""
    rng = np.random.default_rng(1)
    keys, ts = rng.integers(0, 1000, 100_000), rng.integers(0, 300, 100_000) + 100_000
    ts[:late] -= rng.integers(1000, 90_000, late)
    some = told(keys, ts, width=100)
    assert (some.width, some.bits) == (100, 16)
    assert same(some, counted(keys, ts, width=100, bits=16))


@pytest.mark.parametrize("cells", [100, 600, 1000, 5000])
def test_cells_that_are_many_take_no_classes_where_entries_are_few(cells: int) -> None:
    rng = np.random.default_rng(2)
    keys = np.where(rng.random(80_000) < 0.9, 5, rng.integers(0, 200, 80_000))
    ts = np.where(keys == 5, rng.integers(0, 3, 80_000), keys * cells // 200)
    some = told(keys, ts, width=1)
    assert some.bits == 16
    assert same(some, counted(keys, ts, width=1, bits=16))


@pytest.mark.parametrize("tasks", [1, 2, 4])
def test_however_rows_are_cut_over_tasks_as_many_classes_are_told(tasks: int) -> None:
    """Of 2 x 75,000 rows each of one or two tasks has many, and each of four has few."""
    rng = np.random.default_rng(3)
    keys, ts = rng.integers(0, 300, 150_000), 10**12 + rng.integers(0, 10**6, 150_000)
    ts[:400] -= rng.integers(0, 80 * 10**6, 400)
    rows = rng.permutation(150_000)
    cut = together([told(keys[at], ts[at]) for at in np.array_split(rows, tasks)])
    assert same(cut, counted(keys, ts, width=10**5, bits=16))


@pytest.mark.parametrize("cells", [100, 1 << 20])
def test_more_entries_than_a_sample_shows_are_counted_in_less_detail(cells: int) -> None:
    """Six rows of ten are alike, and the others all differ: of some rows there are few entries, of all far too many."""
    rng, rows = np.random.default_rng(4), 120_000
    rare = rng.random(rows) < 0.4
    keys, ts = np.where(rare, rng.integers(0, 2**60, rows), 7), np.where(rare, rng.integers(0, cells, rows), 50)
    some = counted(keys, ts, width=1, bits=16, most=MOST)
    assert len(some) <= module.MANY_TIMES * MOST
    assert same(some, counted(keys, ts, width=1, bits=16).with_width(some.width).with_bits(some.bits))
    assert len(told(keys, ts, width=1)) <= MOST


@pytest.mark.parametrize("far", [[0], [0, 2**61], [10**12 + 3600 * 10**6], [0] * 200, [-(10**9), 5 * 10**15, 0] * 7])
def test_a_few_rows_far_from_the_others_change_nothing_for_these(far: list[int]) -> None:
    """A device without a clock sends time 0: the cells and classes of all other rows are those that they have alone."""
    rng = np.random.default_rng(4)
    keys, ts = rng.integers(0, 40, 90_000), 10**12 + rng.integers(0, 10**7, 90_000)
    alone = counted(keys, ts, width=10**5, bits=16, most=MOST)
    places = rng.integers(0, len(ts), len(far))
    with_far = counted(
        np.insert(keys, places, 7), np.insert(ts, places, np.array(far)), width=10**5, bits=16, most=MOST
    )
    assert (with_far.width, with_far.bits) == (alone.width, alone.bits)
    assert with_far.total == 90_000 + len(far)
    near = with_far._some((with_far.cell >= alone.first) & (with_far.cell <= alone.last))
    assert same(near, alone)


def test_two_dense_stretches_far_apart_are_both_counted_in_detail() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 8, 200_000)
    ts = rng.integers(0, 10**6, 200_000) + rng.choice([0, 10**13], 200_000)
    table = counted(keys, ts, width=10**4, bits=16, most=MOST)
    assert (table.width, table.total) == (10**4, 200_000)
    assert table.classes == 8


def test_rows_spread_over_more_cells_than_can_be_told_get_wider_cells() -> None:
    rng = np.random.default_rng(6)
    ts = rng.integers(0, 10**12, 70_000)
    counts = counted(np.zeros(70_000, np.int64), ts, width=1, bits=16, most=MOST)
    assert counts.total == 70_000
    assert MOST / 4 < len(counts) <= module.MANY_TIMES * MOST


def test_fewer_classes_and_wider_cells_commute() -> None:
    counts = drawn(800, 40, 900)
    assert same(counts.with_bits(3).with_width(20), counts.with_width(20).with_bits(3))
    assert counts.with_bits(0).with_width(20).total == 800


@pytest.mark.parametrize(("keys", "span"), [(5000, 50), (1, 100_000), (300, 3000)])
def test_what_is_fitted_fits(keys: int, span: int) -> None:
    counts = drawn(5000, keys, span)
    small = fitted(counts, 500, 40)
    assert len(small) <= 500 < len(counts)
    assert small.total == 5000


def test_single_rows_keep_their_classes() -> None:
    sparse = drawn(2000, 20, 1_000_000)
    assert fitted(sparse, 1900).bits == 16, "halving classes saves nothing where cells hold one row"
    dense = drawn(60_000, 500, 100)
    assert fitted(dense, 12_000).width == 5


@pytest.mark.parametrize("times", [1, 10**3, 10**6, 10**12])
def test_numbers_of_any_size_are_stored_and_read(times: int) -> None:
    counts = drawn(700, 30, 900)
    larger = Counts(counts.width, counts.bits, counts.cls, counts.cell * times, counts.rows * times)
    assert same(Counts.from_bytes(larger.to_bytes()), larger)
    none = counts.since(10**9)
    assert same(Counts.from_bytes(none.to_bytes()), none)


@pytest.mark.parametrize("rows", [1, 700])
def test_what_was_stored_in_eight_bytes_is_read(rows: int) -> None:
    counts = drawn(rows, 30, 900)
    columns = np.stack([np.diff(counts.cls, prepend=0), np.diff(counts.cell, prepend=0), counts.rows])
    head = np.array([counts.width, counts.bits], "<i8").tobytes()
    assert same(Counts.from_bytes(head + zlib.compress(columns.astype("<i8").tobytes(), 1)), counts)


def test_far_apart_is_counted_as_well() -> None:
    far = counted(np.array([1, 2, 1, 2, 1]), np.array([0, 2**61, 2**61, 0, 0]), width=1, bits=16)
    assert far.rows.tolist().count(2) == 1
    assert far.total == 5
    assert [len(far), far.classes] == [4, 2]


def test_cuts_keep_all_rows() -> None:
    counts = drawn(700, 30, 900)
    assert counts.split(-100)[0].total + counts.split(-100)[1].total == 700
    assert (counts.since(0).cell * 5 >= -4).all()
