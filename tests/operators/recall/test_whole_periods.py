"""How much whole periods differ: by hand, by chance, and what the controller makes of a rhythm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamjoin.operators.recall.controller import Aim, Controller
from streamjoin.operators.recall.whole_periods import BY_CHANCE, HISTORIES, variance_of_periods


def test_stretches_of_a_period_by_hand() -> None:
    # Periods of two groups; stretches lose 4, 2, 4, 6, 4: mean 4, variance 8 / 5.
    loss, pairs = np.array([3.0, 1.0, 1.0, 3.0, 3.0, 1.0]).reshape(6, 1, 1), np.full(6, 10.0)
    found = variance_of_periods(loss, pairs, np.arange(0, 70, 10), 20)
    assert found is not None
    assert found.item() == pytest.approx(8 / 5 * (1 + 1 / 3) / BY_CHANCE[HISTORIES.index(3.0)])


def test_it_does_not_grow_with_slack() -> None:
    loss = np.random.default_rng(1).random((30, 2, 5))
    found = variance_of_periods(loss, np.full(30, 10.0), np.arange(31), 10)
    assert found is not None
    assert (np.diff(found, axis=1) <= 0).all()


@pytest.mark.parametrize("groups", [6, 12])
@pytest.mark.parametrize("history", HISTORIES)
def test_without_a_rhythm_it_is_hardly_ever_too_small(groups: int, history: float) -> None:
    count = int(groups * history)
    loss = np.random.default_rng(3).standard_normal((count, 3000, 1))  # as if there were so many inputs
    found = variance_of_periods(loss, np.ones(count), np.arange(count + 1), groups)
    assert found is not None
    assert (found < groups * (1 + 1 / history)).mean() < 0.015


def slacks(bursts: Any) -> Any:
    """What the controller says, after each group, where some lose a fiftieth of a period's pairs if slack is below 50.

    A period is 12 groups, each a micro-batch; of its pairs a twentieth may be lost.
    """
    controller = Controller(Aim(0.95, 1200, 100, 10))
    said = []
    for at, burst in enumerate(bursts):
        needs = np.zeros((2, len(controller.edges)))
        needs[0, np.searchsorted(controller.edges, 50) - 1] = 24.0 * burst
        said.append(controller.hear(100 * at, needs, 100.0, 0.0, np.ones(2))[0])
    return np.array(said)


def test_bursts_in_a_rhythm_are_let_go_when_periods_can_lose_them() -> None:
    rhythm = np.arange(120) % 6 == 2  # two in each period: a twenty-fifth is lost
    assert slacks(rhythm)[12:36].max() == 0, "there is no margin yet"
    assert slacks(rhythm)[36:].max() == 0, "three periods tell a rhythm from chance"


def test_as_many_bursts_without_a_rhythm_are_not() -> None:
    rng = np.random.default_rng(5)
    kept = [slacks(rng.permutation(np.arange(120) % 6 == 2))[36:] for _ in range(5)]
    assert np.mean(np.array(kept) == 50) > 0.9


def test_a_rhythm_is_judged_by_a_whole_number_of_periods() -> None:
    """One burst a period, which loses 4.4% of it. Just after the fourth one four are in little more than three periods:
    that would be 5.6%, where 5% may be lost.
    """
    rhythm = 2.2 * (np.arange(120) % 12 == 2)
    assert slacks(rhythm)[37:].max() == 0
