"""The beginning: what the first period may lose, and when; and no margin before periods can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamjoin.operators.recall.controller import WARM_UP, Aim, Controller
from streamjoin.operators.recall.first_period import AT_ONCE, allowance, least_debt, loss_of_period
from streamjoin.state import Snapshot

AIM = Aim(0.9, 1200, 100, 10)
NEED = 50


def test_the_allowance_by_hand() -> None:
    # 20 pairs in a quarter of a period: 80 in all of it, of which 8 may be lost; a quarter of them, and a quarter of
    # the rest, so far.
    assert allowance(0.9, 20.0, 15, 60) == pytest.approx(8 * (0.25 + 0.75 / 4))


def test_the_allowance_grows_from_a_part_to_all_of_a_period() -> None:
    grown = [allowance(0.8, 10.0 * elapsed, elapsed, 60) for elapsed in range(1, 61)]
    assert (np.diff(grown) > 0).all()
    assert grown[-1] == pytest.approx(0.2 * 600)
    assert grown[0] == pytest.approx(0.2 * 600 * (AT_ONCE + (1 - AT_ONCE) / 60))


def hears(controller: Controller, at: int, late: float) -> Any:
    """A micro-batch of 100 pairs, of which some need a slack of 50. The slack of input 0 after it."""
    needs = np.zeros((2, len(controller.edges)))
    needs[0, np.searchsorted(controller.edges, NEED) - 1] = late
    lost = late if controller.slack[0] < NEED else 0.0
    return controller.hear(100 * at, needs, 100.0, lost, np.ones(2))[0]


def slacks(late: Any) -> Any:
    controller = Controller(AIM)
    return np.array([hears(controller, at, each) for at, each in enumerate(late)])


def test_what_a_period_loses_by_hand() -> None:
    # Groups of 10, 20 and 10 pairs, two slacks. Without any, the second has lost 9, and the others 1 of 20: a burst,
    # more than three times what they would have lost in 20. With slack 2 of 20, beside 1 of 20, is none.
    loss = np.array([[1.0, 0.0], [9.0, 2.0], [0.0, 1.0]]).reshape(3, 1, 2)
    expected = loss_of_period(loss, np.array([10.0, 20.0, 10.0]), 100.0)
    assert expected.tolist() == [[max(5.0, 7.5), 7.5]], "and no less without slack than with it"
    assert loss_of_period(loss[:, :, :1], np.array([10.0, 20.0, 10.0]), 100.0).tolist() == [[5.0]]


@pytest.mark.parametrize(("worst", "share"), [(6.0, 10 / 30), (6.1, 4 / 20)])
def test_a_burst_is_three_times_what_others_would_have_lost(worst: float, share: float) -> None:
    loss = np.array([2.0, worst, 2.0]).reshape(3, 1, 1)
    assert loss_of_period(loss, np.full(3, 10.0), 120.0)[0, 0] == pytest.approx(120 * share)


def test_a_burst_at_the_beginning_that_a_period_can_afford_is_not_answered() -> None:
    late = np.zeros(12)
    late[4] = 110.0  # 500 pairs in a third of a period: 0.1 x 1500 may be lost in all of it
    assert slacks(late).tolist() == [0] * 12


def test_a_second_one_says_that_there_are_more() -> None:
    late = np.zeros(12)
    # Of 900 pairs in two thirds of a period: 70 of 800 in the other groups, or 118 of a period's 1350, where 135 may be
    # lost, less the 140 - 90 that are lost already beyond what 900 pairs may lose.
    late[4] = late[8] = 70.0
    assert slacks(late)[4:9].tolist() == [0, 0, 0, 0, NEED]


def test_delays_that_are_always_alike_are_answered_as_soon_as_there_are_two_groups() -> None:
    said = slacks(np.full(12, 30.0))
    # At first 30 of 100 pairs, and 0.1 x 1200 x (0.25 + 0.75 / 12) = 37.5 may be lost.
    assert said.tolist() == [0] + [NEED] * 11


def test_groups_without_pairs_tell_nothing() -> None:
    controller = Controller(AIM)
    for at in range(4):
        controller.hear(100 * at, np.zeros((2, len(controller.edges))), 0.0, 0.0, np.ones(2))
    # The first with pairs: 30 of 100, and 0.1 x 100 x 12 / 4 x (0.25 + 0.75 x 4 / 12) = 15 may be lost.
    assert hears(controller, 4, 30.0) == NEED
    assert hears(controller, 5, 0.0) == 0


@pytest.mark.parametrize(("period", "answered"), [(WARM_UP - 1, False), (WARM_UP, True), (5, True)])
def test_the_margin_begins_when_periods_can_be_compared(period: int, answered: bool) -> None:
    """A period can afford a burst, but not two: it is answered with a margin, and is not without one."""
    late = np.zeros(12 * (period + 1))
    late[12 * period + 3] = 115.0  # of 120
    said = slacks(late)
    assert said[12 * period + 4 :].max() == (NEED if answered else 0)
    assert said[: 12 * period + 3].max() == 0


def test_a_state_of_before_is_read() -> None:
    """The largest need of each input was stored too, when slack began with it, and the recall that was expected; but
    not by which ladder needs are counted.
    """
    controller, again = Controller(AIM), Controller(AIM)
    for at in range(5):
        hears(controller, at, 30.0)
    kept = controller.snapshot("groups")
    manifest = {name: value for name, value in kept.manifest.items() if name != "ladder"}
    before = Snapshot(manifest | {"numbers": [*kept.manifest["numbers"], [5, 0], 0.9]}, kept.blobs)
    again.restore("groups", before)
    assert [hears(again, at, 30.0) for at in range(5, 30)] == [hears(controller, at, 30.0) for at in range(5, 30)]


def test_what_a_rhythm_has_lost_early_is_no_debt() -> None:
    """Bursts of 9 beyond what is allowed, and 10 less until the next one: nothing is owed, whatever comes last."""
    ends = np.arange(10, 70, 10)
    assert least_debt(np.array([9.0, -10.0, 9.0, -10.0, 9.0, 0.0]), ends, 40) == -2
    assert least_debt(np.array([9.0, 9.0, 9.0, 0.0, 0.0, 0.0]), ends, 40) == 27, "what stays is owed"
    assert least_debt(np.array([9.0, 9.0, 9.0, 9.0, 9.0, 9.0]), ends, 60) == 54
