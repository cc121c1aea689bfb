"""What each predicate means over aligned arrays, against arithmetic with Python's exact numbers."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from streamjoin.algebra import Band, Predicate, band, equals, overlaps, within
from streamjoin.algebra.predicate import EARTH_RADIUS_METRES, exact_difference, haversine

CLOSED = ("both", "left", "right", "neither")
FAR = [-(2**63), -(2**63) + 1, -(2**62), -1, 0, 1, 2**62, 2**63 - 2, 2**63 - 1]


def holds(predicate: Predicate, left: list[tuple], right: list[tuple]) -> list[bool]:
    mask = predicate.holds(
        [np.array(column) for column in zip(*left, strict=True)],
        [np.array(column) for column in zip(*right, strict=True)],
    )
    assert mask.dtype == np.bool_
    return mask.tolist()


def crossed(values: list) -> tuple[list[tuple], list[tuple]]:
    pairs = list(itertools.product(values, repeat=2))
    return [(one,) for one, _ in pairs], [(two,) for _, two in pairs]


def in_band(gap: float, below: float, above: float, closed: str) -> bool:
    low = gap >= -below if closed in ("both", "left") else gap > -below
    return low and (gap <= above if closed in ("both", "right") else gap < above)


def test_equality_of_numbers_and_strings() -> None:
    assert holds(equals("k"), [(1,), (2,), (-0.0,)], [(1,), (3,), (0.0,)]) == [True, False, True]
    assert holds(equals("k"), [("a",), ("a",)], [("a",), ("A",)]) == [True, False]
    assert holds(equals("k"), [(math.nan,)], [(math.nan,)]) == [False]


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(("below", "above"), [(0, 0), (1, 2), (-1, 2), (2, -1), (0.5, 0.5)])
def test_oracle_a_band_is_a_condition_on_the_difference(closed: str, below: float, above: float) -> None:
    left, right = crossed([-2, -1, 0, 1, 2, 3])
    expected = [in_band(two - one, below, above, closed) for (one,), (two,) in zip(left, right, strict=True)]
    assert holds(Band("a", "b", below, above, closed), left, right) == expected


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(("below", "above"), [(0, 0), (1, 1), (2**62, 2**62), (0, 2**63 - 2), (-(2**62), 2**63 - 2)])
def test_oracle_a_band_over_int64_never_wraps_around(closed: str, below: int, above: int) -> None:
    left, right = crossed(FAR)
    # Python's integers have no bounds.
    expected = [in_band(two - one, below, above, closed) for (one,), (two,) in zip(left, right, strict=True)]
    assert holds(Band("a", "b", below, above, closed), left, right) == expected


@pytest.mark.parametrize(("below", "above"), [(2**63 - 1, 2**63 - 1), (2**63 - 1, 0), (0, 2**63 - 1)])
def test_a_bound_at_the_end_of_int64_is_no_bound(below: int, above: int) -> None:
    left, right = crossed(FAR)
    sides = zip(left, right, strict=True)
    expected = [(two >= one or below > 0) and (two <= one or above > 0) for (one,), (two,) in sides]
    assert holds(band("a", below=below, above=above), left, right) == expected


def test_a_band_is_tested_on_the_difference_not_on_sums() -> None:
    """Forming `left + above` beforehand would lose one pair and invent another."""
    tenths = [tenth / 10 for tenth in range(60)]
    left, right = crossed(tenths)
    by_difference = [two - one <= 0.7 for (one,), (two,) in zip(left, right, strict=True)]
    by_sum = [two <= one + 0.7 for (one,), (two,) in zip(left, right, strict=True)]
    assert (True, False) in zip(by_difference, by_sum, strict=True), "the example itself is wrong: nothing is lost"
    assert (False, True) in zip(by_difference, by_sum, strict=True), "the example itself is wrong: nothing is invented"
    assert holds(band("a", below=math.inf, above=0.7), left, right) == by_difference


def test_infinities_and_nan_in_a_band() -> None:
    left = [(math.inf,), (math.inf,), (-math.inf,), (0.0,), (math.nan,)]
    right = [(math.inf,), (0.0,), (0.0,), (math.inf,), (0.0,)]
    assert holds(band("a", below=5, above=5), left, right) == [False] * 5
    assert holds(band("a", below=math.inf, above=5), left, right) == [False, True, False, False, False]
    assert holds(band("a", below=5, above=math.inf), left, right) == [False, False, True, True, False]


def test_oracle_overlap_means_a_common_point_of_half_open_intervals() -> None:
    ends = list(itertools.product(range(4), repeat=2))  # the empty ones too
    left, right = zip(*itertools.product(ends, repeat=2), strict=True)
    expected = [any(a[0] <= p < a[1] and b[0] <= p < b[1] for p in range(4)) for a, b in zip(left, right, strict=True)]
    assert holds(overlaps("lo", "hi"), list(left), list(right)) == expected


def test_an_empty_value_interval_matches_nothing_not_even_itself() -> None:
    assert holds(overlaps("lo", "hi"), [(2, 2), (3, 1)], [(0, 9), (0, 9)]) == [False, False]


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_oracle_distances_on_numbers_that_doubles_hold_exactly(metric: str, axes: int, seed: int) -> None:
    rng = random.Random(seed)
    radius = rng.choice([0.0, 1.0, 2.5, 5.0])
    draw = [[tuple(rng.randint(-4, 4) / 2 for _ in range(axes)) for _ in range(300)] for _ in range(2)]
    expected = []
    for a, b in zip(*draw, strict=True):
        gaps = [abs(Fraction(q) - Fraction(p)) for p, q in zip(a, b, strict=True)]
        measure = {
            "euclidean": sum(gap * gap for gap in gaps) <= Fraction(radius) ** 2,
            "manhattan": sum(gaps) <= radius,
            "chebyshev": max(gaps) <= radius,
        }
        expected.append(measure[metric])
    predicate = within(tuple("xyz"[:axes]), radius=radius, metric=metric)
    assert holds(predicate, *draw) == expected, f"seed {seed}"


def test_distances_of_integers_do_not_wrap_around() -> None:
    far = 4_000_000_000
    for metric, expected in {"euclidean": False, "manhattan": False, "chebyshev": True}.items():
        predicate = within(("x", "y"), radius=5_000_000_000, metric=metric)
        assert holds(predicate, [(0, 0)], [(far, far)]) == [expected], metric
    assert holds(within("x", radius=1), [(-(2**63),)], [(2**63 - 1,)]) == [False]


def test_squares_that_vanish_do_not_bring_points_together() -> None:
    assert holds(within(("x", "y"), radius=1e-200), [(0.0, 0.0)], [(2e-200, 0.0)]) == [False]
    assert holds(within(("x", "y"), radius=0.0), [(0.0, 0.0)], [(1e-200, 0.0)]) == [False]


@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        ((0.0, 0.0), (0.0, 180.0), math.pi * EARTH_RADIUS_METRES),
        ((90.0, 0.0), (-90.0, 17.0), math.pi * EARTH_RADIUS_METRES),
        ((0.0, 179.5), (0.0, -179.5), math.radians(1) * EARTH_RADIUS_METRES),
        ((60.0, 0.0), (60.0, 0.0), 0.0),
        ((0.0, 10.0), (1.0, 10.0), math.radians(1) * EARTH_RADIUS_METRES),
        ((90.0, 0.0), (90.0, 123.0), 0.0),
    ],
)
def test_the_great_circle_over_poles_and_the_date_line(a: tuple, b: tuple, metres: float) -> None:
    one, two = ([np.array([value]) for value in point] for point in (a, b))
    assert haversine(*one, *two)[0] == pytest.approx(metres, abs=1e-6)
    around = within(("lat", "lon"), radius=metres + 1, metric="haversine")
    assert holds(around, [a], [b]) == [True]
    if metres > 1:
        assert holds(within(("lat", "lon"), radius=metres - 1, metric="haversine"), [a], [b]) == [False]


def test_differential_differences_saturate_alike_on_both_sides() -> None:
    a, b = (np.array(column) for column in zip(*itertools.product(FAR, repeat=2), strict=True))
    most = 2**63 - 1
    expected = [max(-most, min(most, int(x) - int(y))) for x, y in zip(a, b, strict=True)]
    assert exact_difference(a, b).tolist() == expected
    assert exact_difference(b, a).tolist() == [-gap for gap in expected]
    assert exact_difference(np.array([0.5]), np.array([2.0])).tolist() == [-1.5]


def test_an_infinite_coordinate_is_near_nothing() -> None:
    for metric in ("euclidean", "manhattan", "chebyshev"):
        far = [(math.inf, 0.0), (math.inf, 0.0), (1e308, 1e308)]
        near = [(math.inf, 0.0), (-math.inf, 0.0), (-1e308, 0.0)]
        assert holds(within(("x", "y"), radius=1e300, metric=metric), far, near) == [False] * 3, metric
