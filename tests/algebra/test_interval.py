"""Helpers of validity: adding without wrapping around, and who shares an instant with whom."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.algebra.interval import saturating_add, share_an_instant

EDGES = [NEVER, NEVER + 1, NEVER + 7, -1, 0, 1, FOREVER - 7, FOREVER - 1, FOREVER]


def exactly(time: int, ticks: int) -> int:
    """`time + ticks` with Python's unbounded integers; the infinities stay where they are."""
    return time if time in (NEVER, FOREVER) else min(FOREVER, max(NEVER, time + ticks))


def test_the_infinities_are_the_ends_of_int64() -> None:
    assert (NEVER, FOREVER) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize("ticks", [0, 1, 6, 7, 8, 2**62, FOREVER, -1, -6, -7, -8, -(2**62), NEVER])
def test_differential_saturating_add_agrees_with_unbounded_integers(ticks: int) -> None:
    assert saturating_add(np.array(EDGES), ticks).tolist() == [exactly(time, ticks) for time in EDGES]


@pytest.mark.parametrize("seed", range(10))
def test_differential_saturating_add_of_an_array(seed: int) -> None:
    rng = random.Random(seed)
    times = [rng.choice(EDGES) for _ in range(50)]
    ticks = [rng.choice([*EDGES, 5, -5]) for _ in times]
    sums = saturating_add(np.array(times), np.array(ticks)).tolist()
    assert sums == [exactly(time, tick) for time, tick in zip(times, ticks, strict=True)], f"seed {seed}"


def test_oracle_two_validities_share_an_instant_iff_some_tick_is_in_both() -> None:
    ends = [(ts, te) for ts in range(5) for te in range(5)]  # the empty ones too
    pairs = [(a, b) for a in ends for b in ends]
    a_ts, a_te, b_ts, b_te = (np.array(column) for column in zip(*[(*a, *b) for a, b in pairs], strict=True))
    expected = [bool(set(range(*a)) & set(range(*b))) for a, b in pairs]
    assert share_an_instant(a_ts, a_te, b_ts, b_te).tolist() == expected


def test_validities_that_only_touch_share_no_instant_even_at_infinity() -> None:
    a = np.array([NEVER, NEVER]), np.array([0, FOREVER])
    b = np.array([0, FOREVER - 1]), np.array([FOREVER, FOREVER])
    assert share_an_instant(*a, *b).tolist() == [False, True]
