"""Progress: it only grows, and an input waits for all the others."""

from __future__ import annotations

import random

import pytest

from streamjoin.algebra import FOREVER, NEVER, Progress


def test_an_input_that_has_said_nothing_blocks() -> None:
    progress = Progress(2)
    progress.advance(0, 100)
    assert progress.least() == NEVER
    assert (progress.of(0), progress.of(1)) == (100, NEVER)


@pytest.mark.parametrize("seed", range(10))
def test_progress_never_goes_back(seed: int) -> None:
    rng = random.Random(seed)
    progress, largest = Progress(3), [NEVER] * 3
    for _ in range(50):
        number, time = rng.randrange(3), rng.randint(-5, 5)
        moved = progress.advance(number, time)
        assert moved == (time > largest[number]), f"seed {seed}"
        largest[number] = max(largest[number], time)
        assert [progress.of(i) for i in range(3)] == largest, f"seed {seed}"
        assert progress.least() == min(largest), f"seed {seed}"


def test_others_leaves_out_the_input_itself() -> None:
    progress = Progress(3, [5, 1, 9])
    assert [progress.of_others(number) for number in range(3)] == [1, 5, 1]


def test_a_single_input_has_no_others_to_wait_for() -> None:
    assert Progress(1, [5]).of_others(0) == FOREVER


def test_finished_inputs_are_at_infinity() -> None:
    progress = Progress(2, [3, 4])
    progress.finish()
    assert progress.times == [FOREVER, FOREVER]
    assert not progress.advance(0, FOREVER)
