"""Policies: the spellings of join types, the choices of each mode, and the slack of an input."""

from __future__ import annotations

import datetime
from typing import get_args

import pytest

from streamjoin.algebra import NEVER, Emit, Grace, How, InvalidPolicy, LatePolicy, Outer, TimeAxis, join_type
from streamjoin.algebra.policy import Hold, one_of
from streamjoin.errors import CallError

SPARK_SPELLINGS = {
    "inner": ["inner"],
    "left": ["left", "leftouter", "left_outer"],
    "right": ["right", "rightouter", "right_outer"],
    "full": ["outer", "full", "fullouter", "full_outer"],
    "semi": ["semi", "leftsemi", "left_semi"],
    "anti": ["anti", "leftanti", "left_anti"],
}


@pytest.mark.parametrize(("how", "spelling"), [(how, one) for how, all_ in SPARK_SPELLINGS.items() for one in all_])
def test_every_spelling_of_spark(how: str, spelling: str) -> None:
    assert join_type(spelling) == how
    assert join_type(spelling.upper()) == how
    assert join_type(spelling.title()) == how


def test_every_join_type_has_a_spelling() -> None:
    assert set(SPARK_SPELLINGS) == set(get_args(How))


@pytest.mark.parametrize("how", ["cross", "", "left outer", "rightsemi", "right_anti", None])
def test_an_unknown_join_type_is_refused_with_the_choices(how: object) -> None:
    with pytest.raises(CallError, match=r"unknown join type how=.* Hint: use one of inner, left, right, full, semi"):
        join_type(how)


@pytest.mark.parametrize(
    ("choices", "values"),
    [
        (Outer, ["row", "snapshot"]),
        (Emit, ["eager", "ordered"]),
        (Hold, ["outputs", "inputs"]),
        (LatePolicy, ["drop", "fail", "output", "join"]),
        (InvalidPolicy, ["fail", "drop", "output"]),
    ],
)
def test_one_of_takes_exactly_the_choices(choices: object, values: list[str]) -> None:
    assert [one_of(value, choices, "mode") for value in values] == values
    for wrong in ("Eager!", "", None, 1):
        with pytest.raises(CallError, match=f"mode must be one of {', '.join(map(repr, values))}, got {wrong!r}"):
            one_of(wrong, choices, "mode")


def test_grace_lets_progress_follow_behind_the_largest_time_stamp() -> None:
    assert Grace(3).resolve(TimeAxis.INTEGER).progress(10) == 7
    assert Grace(0).resolve(TimeAxis.INTEGER).progress(-10) == -10
    assert Grace("1 second").resolve(TimeAxis.TIMESTAMP).progress(5_000_000) == 4_000_000
    assert Grace(datetime.timedelta(days=2)).resolve(TimeAxis.DATE).progress(5) == 3


def test_grace_never_falls_below_the_beginning_of_time() -> None:
    assert Grace(10).resolve(TimeAxis.INTEGER).progress(NEVER + 4) == NEVER


@pytest.mark.parametrize(("delay", "axis"), [(-1, TimeAxis.INTEGER), ("-1 s", TimeAxis.TIMESTAMP)])
def test_negative_grace_is_refused(delay: object, axis: TimeAxis) -> None:
    with pytest.raises(CallError, match=f"lateness must not be negative, got {delay!r}"):
        Grace(delay).resolve(axis)


def test_grace_needs_a_unit_where_a_window_does() -> None:
    with pytest.raises(CallError, match="lateness must say its unit"):
        Grace(5).resolve(TimeAxis.TIMESTAMP)


def test_grace_must_be_resolved_before_it_is_used() -> None:
    with pytest.raises(AssertionError, match="resolve the lateness first"):
        Grace("5 s").progress(1)
