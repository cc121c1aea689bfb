"""What groups say of a period: means, variances, and whether delays have changed."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.operators.recall.learned import DOWN, UP, Learned, expected, share_since_possible

AGE = np.zeros(2, np.int64)


def test_share_and_variances_by_hand() -> None:
    """Three groups of 10, 20 and 30 pairs, one and a half periods; half of what they lose is of the period before."""
    needs = np.array([[2.0, 2.0], [4.0, 0.0], [0.0, 4.0]]).reshape(3, 1, 2)
    found = Learned.of(needs, np.array([10.0, 20.0, 30.0]), 1.5, 40.0, np.array([0, 1]))
    assert found.share.tolist() == [[12 / 60, 6 / 60]]
    # Lost beside the share of each place, a tenth of the pairs: (1, 1), (2, -2), (-3, 1). By the hearing their sums
    # are squared, 4 + 0 + 4, by age each of them. Of three groups, where two are free: 3 / 2; of 1.5 periods to one.
    assert found.heard == pytest.approx(np.array([[8.0, 1 + 4 + 1]]) * 3 / 2 / 1.5)
    assert found.own == pytest.approx(np.array([[2 + 8 + 10, 6.0]]) * 3 / 2 / 1.5)
    assert found.variance == pytest.approx(found.own + found.heard / 1.5)


def test_fewer_pairs_than_lately_are_counted_as_more() -> None:
    needs, pairs = np.array([[1.0, 0.0], [3.0, 0.0]]).reshape(2, 1, 2), np.array([10.0, 10.0])
    same, twice = (Learned.of(needs, pairs, 1.0, wanted, AGE) for wanted in (20.0, 40.0))
    assert twice.share.tolist() == same.share.tolist()
    assert twice.heard == pytest.approx(4 * same.heard)
    assert twice.own == pytest.approx(4 * same.own)


def test_long_needs_are_compared_with_pairs_since_they_were_possible() -> None:
    # Three groups, which begin 0, 60 and 120 after the streams did. A need of 100 was possible in the last one only.
    needs = np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 3.0]]).reshape(3, 1, 2)
    share = share_since_possible(needs, np.array([10.0, 10.0, 10.0]), np.array([0, 60, 120]), np.array([0, 100]))
    assert share.tolist() == [[9 / 30 + 3 / 10, 3 / 10]]


def test_a_need_that_was_never_possible_is_not_made_much_of() -> None:
    share = share_since_possible(np.array([[[0.0, 1.0]]]), np.array([10.0]), np.array([0]), np.array([0, 500]))
    assert share.tolist() == [[1 / 2.5, 1 / 2.5]]


def learned(share: float, heard: float, periods: float) -> Learned:
    shares = np.array([[share, share / 2]])
    return Learned(shares, np.full((1, 2), heard), np.full((1, 2), heard / 2), periods)


# Of 100 pairs with a variance of 16, one period against four: a standard deviation of 4 x sqrt(1.25) pairs.
CHANCE = 0.04 * np.sqrt(1.25)


@pytest.mark.parametrize(
    ("recent", "counts"),
    [
        (0.5 + 0.99 * UP * CHANCE, 0.5),
        (0.5 + 1.01 * UP * CHANCE, None),
        (0.5 - 0.99 * DOWN * CHANCE, 0.5),
        (0.5 - 1.01 * DOWN * CHANCE, None),
    ],
)
def test_what_was_heard_lately_counts_where_it_differs_by_more_than_chance(recent: float, counts: float | None) -> None:
    lately, remembered = learned(recent, 16.0, 1.0), learned(0.5, 10.0, 4.0)
    mean, var = expected(lately, remembered, remembered.share, 100.0)
    assert mean[0, 0] == pytest.approx(100 * (counts or recent))
    assert var[0, 0] == pytest.approx(16 / 2 + 16 / 1 if counts is None else 10 / 2 + 10 / 4)


def test_what_is_expected_does_not_grow_with_slack() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        needs, pairs = rng.random((8, 2, 6)), np.full(8, 50.0)
        both = [Learned.of(needs[some], pairs[some], 1.0, 100.0, np.arange(6)) for some in (slice(6, 8), slice(8))]
        mean, var = expected(both[0], both[1], rng.random((2, 6)), 100.0)
        assert (np.diff(mean, axis=1) <= 0).all()
        assert (np.diff(var, axis=1) <= 0).all()
