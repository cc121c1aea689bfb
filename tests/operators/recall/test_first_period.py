"""The beginning: what the first period may lose, and when; and no margin before periods can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamjoin.operators.recall.controller import WARM_UP, Aim, Controller
from streamjoin.operators.recall.first_period import AT_ONCE, allowance
from streamjoin.state import Snapshot

AIM = Aim(0.9, 1200, 100, 10)
NEED = 50


def test_the_allowance_by_hand() -> None:
    # 20 pairs in a quarter of a period: 80 in all of it, of which 8 may be lost; a tenth of them, and a quarter of
    # the rest, so far.
    assert allowance(0.9, 20.0, 15, 60) == pytest.approx(8 * (0.1 + 0.9 / 4))


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


def test_a_burst_at_the_beginning_that_a_period_can_afford_is_not_answered() -> None:
    late = np.zeros(12)
    late[4] = 50.0  # 500 pairs in a third of a period: 0.1 x 1500 x (0.1 + 0.9 / 3) = 60 may be lost
    assert slacks(late).tolist() == [0] * 12


def test_one_that_it_cannot_afford_is_answered_at_once() -> None:
    late = np.zeros(12)
    late[4] = 70.0  # of 60
    assert slacks(late)[3:5].tolist() == [0, NEED]


def test_delays_that_are_always_alike_are_answered_long_before_the_period_is_over() -> None:
    said = slacks(np.full(12, 30.0))
    # After three micro-batches 90 pairs needed it, and 0.1 x 1800 x (0.1 + 0.9 / 6) = 45 may be lost.
    assert (said[2:] == NEED).all()


@pytest.mark.parametrize(("period", "answered"), [(WARM_UP - 1, False), (WARM_UP, True), (5, True)])
def test_the_margin_begins_when_periods_can_be_compared(period: int, answered: bool) -> None:
    """A period can afford a burst, but not two: it is answered with a margin, and is not without one."""
    late = np.zeros(12 * (period + 1))
    late[12 * period + 3] = 70.0  # of 120
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
