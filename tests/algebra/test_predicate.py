"""Predicates as values: how they are written, combined, and refused."""

from __future__ import annotations

import math

import pytest

from streamjoin.algebra import (
    Band,
    Conjunction,
    Equals,
    Overlaps,
    Predicate,
    Theta,
    Within,
    band,
    equals,
    overlaps,
    theta,
    within,
)
from streamjoin.algebra.predicate import conjuncts
from streamjoin.errors import CallError


def test_short_forms_repeat_the_name_for_the_other_input() -> None:
    assert equals("k") == Equals("k", "k")
    assert equals("k", "key") == Equals("k", "key")
    assert band("v", below=1, above=2) == Band("v", "v", 1, 2, "both")
    assert band("v", "w", below=1, above=2, closed="left") == Band("v", "w", 1, 2, "left")
    assert overlaps("lo", "hi") == Overlaps(("lo", "hi"), ("lo", "hi"))
    assert overlaps(("a", "b"), ("c", "d")) == Overlaps(("a", "b"), ("c", "d"))
    assert within("x", radius=1) == Within(("x",), ("x",), 1)
    assert within("x", "px", radius=1) == Within(("x",), ("px",), 1)
    assert within(("x", "y"), radius=1, metric="manhattan") == Within(("x", "y"), ("x", "y"), 1, "manhattan")
    assert within(("x", "y"), ("px", "py"), radius=1).right == ("px", "py")
    assert theta("l.a < r.b") == Theta("l.a < r.b")


@pytest.mark.parametrize(
    ("predicate", "left", "right"),
    [
        (equals("a", "b"), ("a",), ("b",)),
        (band("a", "b", below=0, above=0), ("a",), ("b",)),
        (overlaps(("a", "b"), ("c", "d")), ("a", "b"), ("c", "d")),
        (within(("a", "b"), ("c", "d"), radius=0), ("a", "b"), ("c", "d")),
        (theta("l.a = r.b"), (), ()),
    ],
)
def test_columns_per_input(predicate: Predicate, left: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert (predicate.columns(0), predicate.columns(1)) == (left, right)


def test_conjunctions_are_flat_and_in_order() -> None:
    a, b, c = equals("a"), theta("l.b < r.b"), overlaps("lo", "hi")
    assert a & b & c == Conjunction((a, b, c))
    assert a & (b & c) == Conjunction((a, b, c))
    assert conjuncts(a & b) == (a, b)
    assert conjuncts(a) == (a,)
    assert conjuncts(None) == ()


@pytest.mark.parametrize("other", ["l.a < r.b", None, 1])
def test_only_predicates_can_be_combined(other: object) -> None:
    with pytest.raises(CallError, match=r'can only be combined with a predicate, got .* Hint: write sj.theta\("..."\)'):
        equals("a") & other


def test_an_abstract_predicate_has_no_meaning() -> None:
    with pytest.raises(NotImplementedError):
        Predicate().columns(0)
    with pytest.raises(NotImplementedError):
        theta("l.a = 1").holds([], [])


@pytest.mark.parametrize(
    ("closed", "low", "high"),
    [("both", True, True), ("left", True, False), ("right", False, True), ("neither", False, False)],
)
def test_closed_says_which_bounds_belong_to_a_band(closed: str, low: bool, high: bool) -> None:
    one = Band("a", "b", 1, 1, closed)
    assert (one.low_closed, one.high_closed) == (low, high)


def test_an_unknown_closed_is_refused() -> None:
    with pytest.raises(CallError, match="closed must be one of both, left, right, neither, got 'open'"):
        band("a", below=0, above=0, closed="open")


@pytest.mark.parametrize(("below", "above", "name"), [(math.nan, 1, "below"), (1, math.nan, "above")])
def test_a_band_bound_of_nan_is_refused(below: float, above: float, name: str) -> None:
    with pytest.raises(CallError, match=f"{name} must be a number, got NaN"):
        band("a", below=below, above=above)


@pytest.mark.parametrize(("below", "above"), [(-2, 1), (0, -1), (-0.5, 0.25)])
def test_an_empty_band_is_refused(below: float, above: float) -> None:
    with pytest.raises(CallError, match=f"the band from -below = {-below} to above = {above} is empty"):
        band("a", below=below, above=above)


def test_a_band_on_one_side_and_a_band_of_times_are_fine() -> None:
    assert band("a", below=-1, above=3).below == -1
    assert band("a", below=1, above=-1).above == -1
    assert band("a", below=math.inf, above=math.inf).above == math.inf
    assert band("a", below="5 seconds", above="0 s").below == "5 seconds"


@pytest.mark.parametrize(("left", "right"), [("lo", ("lo", "hi")), (("lo", "hi"), "lo")])
def test_overlaps_takes_two_columns_or_two_pairs(left: object, right: object) -> None:
    with pytest.raises(CallError, match="overlaps takes two columns or two pairs of columns"):
        overlaps(left, right)


@pytest.mark.parametrize("pair", [("a",), ("a", "b", "c")])
def test_an_interval_has_two_ends(pair: tuple[str, ...]) -> None:
    with pytest.raises(CallError, match="an interval has two ends"):
        overlaps(pair, ("a", "b"))


@pytest.mark.parametrize("radius", [math.nan, math.inf, -math.inf, "5", None, True])
def test_a_radius_must_be_a_finite_number(radius: object) -> None:
    with pytest.raises(CallError, match="radius must be a finite number, got"):
        within("x", radius=radius)


def test_a_negative_radius_is_refused() -> None:
    with pytest.raises(CallError, match="radius must not be negative, got -1"):
        within("x", radius=-1)


def test_within_needs_as_many_axes_on_both_sides() -> None:
    with pytest.raises(CallError, match="as many axes on both sides, got 2 and 1"):
        within(("x", "y"), "x", radius=1)
    with pytest.raises(CallError, match="as many axes on both sides, got 0 and 0"):
        within((), radius=1)


def test_haversine_needs_latitude_and_longitude() -> None:
    with pytest.raises(CallError, match=r"haversine needs \(latitude, longitude\), got 3 axes"):
        within(("a", "b", "c"), radius=1, metric="haversine")


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(
        CallError, match="metric must be one of euclidean, manhattan, chebyshev, haversine, got 'cosine'"
    ):
        within("x", radius=1, metric="cosine")


@pytest.mark.parametrize("text", ["", "   ", None, 5, equals("a")])
def test_theta_takes_text(text: object) -> None:
    with pytest.raises(CallError, match="theta takes a Spark SQL expression, got"):
        theta(text)
