"""Pairs of counts by class and cell against each with each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamjoin.kernels import count_pairs, needs_of_pairs

Entries = tuple[Any, Any, Any]


def drawn(seed: int) -> tuple[Entries, Entries]:
    """Entries of two inputs, by class and cell; some classes are only here, some only there."""
    rng = np.random.default_rng(seed)
    number, own = np.unique(rng.integers(0, 5 * 60, 80)), np.unique(rng.integers(60, 7 * 60, 90))
    others = number // 60, number % 60 - 7, rng.integers(1, 9, len(number))
    return (own // 60, own % 60, rng.integers(1, 5, len(own))), others


@pytest.mark.parametrize("width", [1, 10])
@pytest.mark.parametrize("reach", [-3, 17, 40, 400])
def test_pairs_are_those_of_each_with_each(width: int, reach: int) -> None:
    one, two = drawn(width)
    low, high = (one[1] * 3 + 1.5)[:, None] + np.array([[-19.5], [reach - 0.5]])[:, :, None]
    begin, end = two[1] * width, (two[1] + 1) * width
    inside = np.maximum(np.minimum(high, end) - np.maximum(low, begin), 0.0)
    pairs = one[2][:, None] * (one[0][:, None] == two[0]) * inside / width * two[2]
    assert count_pairs(one, two, (3, width), (20, reach)) == pytest.approx(float(pairs.sum()))


@pytest.mark.parametrize("width", [1, 10])
@pytest.mark.parametrize("reach", [-3, 17, 400])
@pytest.mark.parametrize("ended", [-5, 40, 300])
def test_needs_are_those_of_each_with_each(width: int, reach: int, ended: int) -> None:
    one, two = drawn(width)
    edges, expected = np.array([0, 5, 30, 100]), np.zeros(4)
    for cls, cell, weight in zip(*one, strict=True):
        low, high = cell * 3 - 18.0, min(cell * 3 + reach + 1.0, ended + 1.0)
        for other, place, rows in zip(*two, strict=True):
            since, until = max(low, place * width), min(high, (place + 1) * width)
            if cls == other and until > since:
                need = np.floor(ended - (since + until - 1) / 2)
                expected[np.searchsorted(edges, need, "right") - 1] += weight * rows * (until - since) / width
    assert needs_of_pairs(one, two, (3, width), (20, reach), ended, edges) == pytest.approx(expected)


@pytest.mark.parametrize("far", [10**17, 2**62 + 2**61])
def test_cells_of_another_age_meet_their_own(far: int) -> None:
    zeros, ones = np.zeros(2, np.int64), np.ones(2, np.int64)
    both, late = (zeros, np.array([-far, 2**61]), ones), (zeros[:1], np.array([-far]), ones[:1])
    now = (zeros[:1], np.array([2**61]), ones[:1])
    assert [count_pairs(one, both, (1, 1), (5, 5)) for one in (both, late, now)] == [2.0, 1.0, 1.0]
    assert [count_pairs(both, one, (1, 1), (5, 5)) for one in (both, late, now)] == [2.0, 1.0, 1.0]
    assert needs_of_pairs(both, both, (1, 1), (5, 5), 2**61 + 3, np.array([0, 4, 9])).tolist() == [1.0, 0.0, 1.0]
