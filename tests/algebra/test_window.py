"""Windows: the end that each kind gives to an element."""

from __future__ import annotations

import datetime
import math
import random

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, NEVER, Fixed, Now, Range, TimeAxis, Unbounded, Validity, Window
from streamjoin.errors import CallError

INTEGER, TIMESTAMP, DATE = TimeAxis.INTEGER, TimeAxis.TIMESTAMP, TimeAxis.DATE


def ends(window: Window, *ts: int) -> list[int]:
    result = window.resolve(INTEGER).ends(np.array(ts, np.int64))
    assert result.dtype == np.int64
    return result.tolist()


def test_range_is_valid_for_its_size() -> None:
    assert ends(Range(10), -25, -1, 0, 7) == [-15, 9, 10, 17]


def test_range_with_slide_ends_on_the_grid_of_the_slide() -> None:
    assert ends(Range(10, slide=4), 0, 3, 4, 7, 8) == [10, 10, 14, 14, 18]


def test_range_with_slide_floors_negative_times() -> None:
    assert ends(Range(10, slide=4), -1, -4, -5, -8) == [6, 6, 2, 2]


def test_range_shorter_than_its_slide_leaves_ghosts_between() -> None:
    """The element is visible from its own ts; where its end is not after it, it is in no snapshot."""
    assert ends(Range(2, slide=5), 0, 1, 2, 4, 5) == [2, 2, 2, 2, 7]


def test_fixed_ends_at_the_next_multiple() -> None:
    assert ends(Fixed(10), 0, 1, 9, 10, 11) == [10, 10, 10, 20, 20]


def test_fixed_floors_negative_times() -> None:
    assert ends(Fixed(10), -1, -9, -10, -11, -20) == [0, 0, 0, -10, -10]


def test_now_is_valid_for_one_tick() -> None:
    assert ends(Now(), -3, 0, 7) == [-2, 1, 8]


def test_unbounded_never_ends() -> None:
    assert ends(Unbounded(), -3, 0, 7) == [FOREVER] * 3
    assert ends(Unbounded()) == []


@pytest.mark.parametrize("seed", range(30))
def test_oracle_the_formulas_of_the_semantics(seed: int) -> None:
    rng = random.Random(seed)
    size, slide = rng.randint(1, 9), rng.randint(1, 9)
    ts = [rng.randint(-30, 30) for _ in range(40)]
    assert ends(Range(size), *ts) == [t + size for t in ts], f"seed {seed}"
    assert ends(Range(size, slide), *ts) == [math.floor(t / slide) * slide + size for t in ts], f"seed {seed}"
    smallest = [next(m for m in range(-40 * size, 41 * size, size) if m > t) for t in ts]
    assert ends(Fixed(size), *ts) == smallest, f"seed {seed}"


@pytest.mark.parametrize("window", [Range(10), Range(10, slide=3), Range(5, slide=10), Fixed(10), Now()])
@pytest.mark.parametrize("ts", [NEVER + 1, NEVER + 5, FOREVER - 21, FOREVER - 2, FOREVER - 1])
def test_differential_ends_near_the_ends_of_time_saturate(window: Window, ts: int) -> None:
    if isinstance(window, Fixed):
        exact = (ts // window.size + 1) * window.size
    elif isinstance(window, Range):
        exact = (ts if window.slide is None else ts // window.slide * window.slide) + window.size
    else:
        exact = ts + 1
    assert ends(window, ts) == [min(FOREVER, max(NEVER, exact))]


@pytest.mark.parametrize("window", [Range(10), Range(10, slide=3), Fixed(10), Now(), Unbounded()])
def test_an_element_at_infinity_stays_there(window: Window) -> None:
    assert ends(window, FOREVER) == [FOREVER]


@pytest.mark.parametrize("size", [0, -1])
@pytest.mark.parametrize("kind", [Range, Fixed])
def test_a_size_that_is_not_positive_is_refused(kind: type[Range] | type[Fixed], size: int) -> None:
    wanted = rf"window size must be positive, got {size}\. Hint: use Now\(\) for the current instant only\."
    with pytest.raises(CallError, match=wanted):
        kind(size).resolve(INTEGER)


@pytest.mark.parametrize("slide", [0, -3])
def test_a_slide_that_is_not_positive_is_refused(slide: int) -> None:
    with pytest.raises(CallError, match=f"window slide must be positive, got {slide}. Hint: leave slide out"):
        Range(5, slide=slide).resolve(INTEGER)


@pytest.mark.parametrize("window", [Range("-1 second"), Fixed("0 s"), Range("1 s", slide="-1 s")])
def test_sizes_with_units_are_refused_as_they_were_written(window: Window) -> None:
    with pytest.raises(CallError, match="must be positive, got '"):
        window.resolve(TIMESTAMP)


@pytest.mark.parametrize("window", [Range(5), Fixed(5), Range("5 s", slide=1)])
def test_a_bare_number_is_refused_on_a_timestamp_axis(window: Window) -> None:
    with pytest.raises(CallError, match="must say its unit"):
        window.resolve(TIMESTAMP)


def test_resolving_turns_sizes_into_ticks() -> None:
    assert Range("2 seconds").resolve(TIMESTAMP) == Range(2_000_000)
    assert Range("2 weeks", slide="1 day").resolve(DATE) == Range(14, 1)
    assert Fixed(datetime.timedelta(days=2)).resolve(DATE) == Fixed(2)
    for window in (Now(), Unbounded(), Validity("a", "b")):
        assert window.resolve(TIMESTAMP) is window


def test_the_longest_validity_bounds_every_element() -> None:
    for window in (Range(5), Range(5, slide=2), Fixed(5), Now()):
        longest = window.resolve(INTEGER).longest
        assert longest is not None
        lengths = [te - ts for ts, te in zip(range(-9, 9), ends(window, *range(-9, 9)), strict=True)]
        assert max(lengths) == longest
    assert Range("5 s").longest is None
    assert Fixed("5 s").longest is None
    assert Unbounded().longest is None
    assert Validity("a", "b").longest is None


def test_a_window_must_be_resolved_before_it_is_used() -> None:
    for window in (Range("5 s"), Fixed("5 s")):
        with pytest.raises(AssertionError, match="resolve the window first"):
            window.ends(np.array([1]))


def test_the_ends_of_validity_come_with_the_rows() -> None:
    with pytest.raises(AssertionError, match="come with the rows"):
        Validity("a", "b").ends(np.array([1]))


def test_windows_are_values() -> None:
    assert Range(5) == Range(5)
    assert len({Range(5), Range(5), Fixed(5), Range(5, slide=1), Now(), Now()}) == 4
    assert all(window.ends_known for window in (Range(5), Fixed(5), Now(), Unbounded(), Validity("a", "b")))
