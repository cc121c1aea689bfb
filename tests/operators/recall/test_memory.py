"""What the controller remembers: after pauses, with a slack of many periods, after a restart with another ladder."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.operators.recall.controller import Aim, Controller
from streamjoin.operators.recall.counts import Counts, counted
from streamjoin.operators.recall.model import RecallModel, RunningRecall

PERIOD = 120


def hear(model: RunningRecall, ts: list[np.ndarray]) -> None:  # type: ignore[type-arg]
    """A micro-batch of both inputs, of five keys."""
    counts: list[Counts | None] = [counted(np.arange(len(each)) % 5, each, width=2, bits=16) for each in ts]
    model.hear(counts, [int(each.max()) for each in ts], list(model.promised))


@pytest.mark.parametrize("periods", [1, 15, 25, 100])
def test_after_a_pause_it_goes_on_with_what_is_left(periods: int) -> None:
    """Both inputs jump within a micro-batch, and bring rows of before as well. What was remembered is too old then."""
    rng, model = np.random.default_rng(1), RecallModel(Aim(0.9, PERIOD, 10, 2), (40, 40)).build()

    def batch(begin: int, late: int) -> np.ndarray:  # type: ignore[type-arg]
        return begin + rng.integers(0, 10, 100) - late * (np.arange(100) < 20)

    end = 14 * PERIOD
    for begin in range(0, end, 10):
        hear(model, [batch(begin, 60) for _ in (0, 1)])
    assert model.controller.older
    after = end + periods * PERIOD
    hear(model, [np.append(batch(end - 30, 20), batch(after, 0)) for _ in (0, 1)])
    for begin in range(after, after + 4 * PERIOD, 10):
        hear(model, [batch(begin, 60) for _ in (0, 1)])
    assert min(model.slack) > 0
    assert model.expected is not None


@pytest.mark.parametrize("periods", [0, 3, 6, 12])
def test_twenty_periods_are_remembered_whatever_the_slack_is(periods: int) -> None:
    """A large slack keeps all of them in detail: nothing is remembered by the period then."""
    controller = Controller(Aim(0.0, PERIOD, 10, 2))  # it does not choose
    for now in range(0, 30 * PERIOD, 10):
        controller.slack[:] = periods * PERIOD
        controller.hear(now, np.zeros((2, len(controller.edges))), 1.0, 0.0, np.ones(2))
    assert bool(controller.older) == (periods < 5)
    whole = controller._since(now - 10 * PERIOD)
    first = controller._all(now, whole)[0].begin
    assert now - 20 * PERIOD <= first <= now - 19 * PERIOD


@pytest.mark.parametrize("elapsed", [1, 4, 9])
def test_in_the_first_ten_periods_it_is_a_whole_number_of_them(elapsed: int) -> None:
    controller = Controller(Aim(0.0, PERIOD, 10, 2))
    for now in range(0, elapsed * PERIOD + 50, 10):
        controller.hear(now, np.zeros((2, len(controller.edges))), 1.0, 0.0, np.ones(2))
    whole = controller._since(now - elapsed * PERIOD)
    assert controller._all(now, whole) == whole


def test_with_another_ladder_slack_does_not_fall_before_a_period_has_told_anything() -> None:
    rng, model = np.random.default_rng(1), RecallModel(Aim(0.9, PERIOD, 10, 2), (40, 40)).build()
    for begin in range(0, 14 * PERIOD, 10):
        hear(model, [begin + rng.integers(0, 10, 100) - 60 * (np.arange(100) < 20) for _ in (0, 1)])
    before, now = model.controller.slack.copy(), model.controller.now
    assert now is not None
    assert before.max() > 30
    again = RecallModel(Aim(0.9, PERIOD, 10, 2, max_delay=5 * PERIOD), (40, 40)).build()
    again.restore(model.snapshot())
    slacks = []
    for begin in range(14 * PERIOD, 19 * PERIOD, 10):
        if begin == 14 * PERIOD + 50:  # and once more, by the same ladder
            model, again = again, RecallModel(again.config.aim, (40, 40)).build()
            again.restore(model.snapshot())
        hear(again, [begin + rng.integers(0, 10, 100) for _ in (0, 1)])  # nobody is late any more
        slacks.append(again.controller.slack.copy())
        assert again.controller.now is not None
        assert (again.expected is None) == (again.controller.now - now < PERIOD / 6)
    assert (np.array(slacks[: PERIOD // 10 - 1]) >= before).all()
    assert slacks[-1].max() < before.max()
    assert (again.controller.first, again.controller.since) == (model.controller.first, now)
