"""When kills fall."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import cast

import pytest

from chaos.aims import MOMENTS, Aim, Moment, Pace, draw_aim, wait_for
from chaos.checkpoint import Checkpoint
from chaos.lives import Life


class FakeLife:
    """A driver that is up, and writes what it is told to, one step each time that somebody looks."""

    def __init__(self, folder: Path, steps: list[str]) -> None:
        self.folder, self.steps, self.began = folder, steps, time.time() - 1

    def wait_for_start(self) -> bool:
        return True

    def ended(self) -> bool:
        if not self.steps:
            return True
        path = self.folder / self.steps.pop(0)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return False


def steps_of(first: int, last: int) -> list[str]:
    return [
        step
        for batch in range(first, last + 1)
        for step in (
            f"checkpoint/offsets/{batch}",
            f"checkpoint/state/0/0/{batch + 1}.changelog",
            f"out/_spark_metadata/{batch}",
            f"checkpoint/commits/{batch}",
        )
    ]


@pytest.mark.parametrize(("moment", "last"), [("batch", "offsets/2"), ("state", "3.changelog"), ("sink", "metadata/2")])
def test_an_aim_waits_for_its_step_of_its_batch(tmp_path: Path, moment: Moment, last: str) -> None:
    steps = steps_of(0, 4)
    life = FakeLife(tmp_path, steps)
    aim = Aim(moment, skip=2, room=5, fraction=0.0)
    assert wait_for(aim, cast(Life, life), Checkpoint(tmp_path), Pace())
    assert steps_of(0, 4)[-len(steps) - 1].endswith(last)


def test_what_an_earlier_life_left_is_no_sign_of_this_one(tmp_path: Path) -> None:
    before = FakeLife(tmp_path, steps_of(0, 2)[:-1])  # killed before the commit of batch 2
    while not before.ended():
        pass
    life = FakeLife(tmp_path, ["checkpoint/other", *steps_of(3, 4)])
    life.began = time.time() + 1
    for moment, seen in (("state", False), ("batch", True)):
        aim = Aim(cast(Moment, moment), skip=0, room=1, fraction=0.0)
        life.steps = ["checkpoint/other"] * 3
        assert wait_for(aim, cast(Life, life), Checkpoint(tmp_path), Pace()) == seen


def test_a_driver_that_ends_is_not_killed(tmp_path: Path) -> None:
    life = FakeLife(tmp_path, steps_of(0, 1))
    aim = Aim("sink", skip=2, room=5, fraction=0.0)
    assert not wait_for(aim, cast(Life, life), Checkpoint(tmp_path), Pace())


def test_aims_leave_batches_for_those_after_them() -> None:
    rng = random.Random(1)
    for _ in range(200):
        batches, kills = rng.randint(0, 20), rng.randint(1, 9)
        aim = draw_aim(rng, rng.choice(MOMENTS), batches, kills)
        assert 0 <= aim.skip < aim.room <= max(1, batches // (kills + 1))
        assert 0 <= aim.fraction < 1


def test_the_pace_is_learned_and_shortened() -> None:
    pace = Pace(first=9.0, each=9.0)
    pace.learn([4.0, 4.5, 5.5], cold=True)
    assert (pace.first, pace.each) == (4.0, 0.75)
    pace.learn([0.1], cold=False)
    assert (pace.first, pace.each) == (4.0, 0.75)
    aim = Aim("random", skip=0, room=3, fraction=0.5)
    assert pace.seconds(aim, cold=True) == pytest.approx(2.75)
    pace.missed()
    assert pace.seconds(aim, cold=True) < 2.75
    first = Aim("batch", skip=0, room=3, fraction=0.5)
    assert pace.seconds(first, cold=True) == 2.0
    assert pace.seconds(first, cold=False) == 0.15
