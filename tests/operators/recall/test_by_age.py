"""Squares of losses by age: parts of one group that go to different periods do not add up."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.operators.recall.by_age import ages, squares
from streamjoin.operators.recall.needs import tails


def test_ages_are_whole_periods_to_the_nearest() -> None:
    assert ages(np.array([0, 29, 30, 89, 90, 600]), 60).tolist() == [0, 0, 1, 1, 2, 10]


def test_squares_by_hand() -> None:
    # Ages 0, 0, 1, 3, 3. Without slack 1 + 2, 3 and 4 + 5 are lost of them; with the second slack 2, 3 and 9; ...
    needs, age = np.array([1.0, 2, 3, 4, 5]), np.array([0, 0, 1, 3, 3])
    assert squares(needs, age).tolist() == [9 + 9 + 81, 4 + 9 + 81, 9 + 81, 81, 25]


def test_of_one_age_it_is_the_square_of_what_is_lost() -> None:
    needs = np.random.default_rng(1).random((4, 2, 9))
    assert squares(needs, np.zeros(9, np.int64)) == pytest.approx(tails(needs) ** 2)


def test_where_each_place_is_an_age_squares_are_added() -> None:
    needs = np.random.default_rng(2).random((4, 2, 9))
    assert squares(needs, np.arange(9)) == pytest.approx(tails(needs**2))


def test_residuals_of_two_signs_do_not_make_up_for_each_other_at_different_ages() -> None:
    assert squares(np.array([-3.0, 3.0]), np.array([0, 1])).tolist() == [18.0, 9.0]
    assert squares(np.array([-3.0, 3.0]), np.array([0, 0])).tolist() == [0.0, 9.0]
