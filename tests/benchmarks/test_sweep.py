"""How postorder is judged beside level order: by shares, which cannot grow without bounds, and it can lose."""

from __future__ import annotations

import pytest

from benchmarks import sweep

EARLY = [(10, 40), (50, 80), (90, 100)]
LATE = [(99, 0), (100, 100)]


def test_who_has_nothing_until_late_is_behind_by_no_more_than_everything() -> None:
    verdict = sweep.earlier(EARLY, LATE)
    assert verdict.measured == pytest.approx((0.4 + 0.8 + 0.8) / 3)
    assert verdict.met
    assert "40%, 80%, 80% of the results have left, in level order 0%, 0%, 0%" in verdict.text


@pytest.mark.parametrize(
    ("postorder", "level_order"),
    [(LATE, EARLY), (EARLY, EARLY), (LATE, LATE), ([(10, 45), (50, 85), (90, 100)], EARLY)],
    ids=["later", "as early", "as late", "hardly earlier"],
)
def test_postorder_fails_where_it_is_not_earlier(postorder: sweep.Left, level_order: sweep.Left) -> None:
    verdict = sweep.earlier(postorder, level_order)
    assert -1 <= verdict.measured < sweep.EARLIER
    assert not verdict.met


def test_both_are_looked_at_after_the_same_number_of_accesses() -> None:
    """Of a curve that ends sooner, half of its own accesses are a quarter of the other's."""
    assert sweep.earlier([(50, 1)], [(100, 1)]).measured == pytest.approx(2 / 3)
