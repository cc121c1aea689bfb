"""When to kill. Some kills are aimed at a step of a micro-batch, others fall anywhere.

    batch     up to 0.3 seconds after a batch has begun
    state     just after a bucket has written its state of a batch
    sink      just after the sink has taken a batch's results, before the batch is over
    random    any time from the start of the query on

A cold driver takes seconds for its first batch, and what it has to recover is part of that batch: where an aim is at
the first batch of a life, its whole length counts.

The seed decides about all of it; how fast the machine is decides what is hit. So a kill says afterwards where it fell.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from chaos.checkpoint import Checkpoint
from chaos.lives import POLL_SECONDS, Life

Moment = Literal["batch", "state", "sink", "random"]
MOMENTS: Final[tuple[Moment, ...]] = get_args(Moment)
_WITHIN_SECONDS: Final[Mapping[Moment, float]] = {"batch": 0.3, "state": 0.1, "sink": 0.01}


@dataclass(frozen=True)
class Aim:
    """One kill, as planned."""

    moment: Moment
    skip: int  # batches that this life may finish first
    room: int  # batches that this life may take at most, so that others have some left to be killed in
    fraction: float  # of the time in which the kill may fall, once its moment has come


def draw_aim(rng: random.Random, moment: Moment, batches_left: int, kills_left: int) -> Aim:
    """An aim that leaves batches for the kills after it, and for the end.

    >>> aim = draw_aim(random.Random(1), "state", batches_left=12, kills_left=3)
    >>> aim.moment, aim.room, aim.skip < aim.room
    ('state', 3, True)
    """
    room = max(1, batches_left // (kills_left + 1))
    return Aim(moment, rng.randrange(room), room, rng.random())


@dataclass
class Pace:
    """How long batches take here: a guess at first, then as the last life had it."""

    first: float = 5.0
    each: float = 0.8
    stretch: float = 1.0

    def learn(self, over: list[float], *, cold: bool) -> None:
        """Take the seconds after which batches were over; a cold driver's, from the start of its query on."""
        if over and cold:
            self.first = over[0]
        if len(over) > 1:
            self.each = (over[-1] - over[0]) / (len(over) - 1)

    def missed(self) -> None:
        """A query ended before its kill: the next ones come sooner."""
        self.stretch *= 0.7

    def seconds(self, aim: Aim, *, cold: bool) -> float:
        """How long after its moment an aim's kill falls."""
        if aim.moment == "random":
            reach = self.stretch * (self.first + self.each * (aim.room - 1))
        elif aim.moment == "batch" and aim.skip == 0 and cold:
            reach = self.first
        else:
            reach = _WITHIN_SECONDS[aim.moment]
        return aim.fraction * reach


def wait_for(aim: Aim, life: Life, checkpoint: Checkpoint, pace: Pace, *, cold: bool = True) -> bool:
    """Wait until it is time to kill; False when the driver ended before. `cold`: this life has done nothing yet."""
    sign = _sign_of(aim, life, checkpoint)
    if not life.wait_for_start():
        return False
    start, known = time.monotonic(), checkpoint.committed()
    over: list[float] = []

    def goes_on() -> bool:
        """Whether the driver does; meanwhile, see how fast it is."""
        over.extend([time.monotonic() - start] * (checkpoint.committed() - known - len(over)))
        time.sleep(POLL_SECONDS)
        return not life.ended()

    going = True
    while going and not sign():
        going = goes_on()
    moment = time.monotonic() + pace.seconds(aim, cold=cold)
    while going and time.monotonic() < moment:
        going = goes_on()
    pace.learn(over, cold=cold)
    return going


def _sign_of(aim: Aim, life: Life, checkpoint: Checkpoint) -> Callable[[], bool]:
    """What to look for. A batch that an earlier life left half done is the first of this one."""
    committed, delivered = checkpoint.committed(), checkpoint.delivered()
    if aim.moment == "batch":
        return lambda: checkpoint.begun() > committed + aim.skip
    if aim.moment == "state":
        # An earlier life may have written these files before: only new ones count.
        return lambda: any(_written_by(life, file) for file in checkpoint.state_files(committed + aim.skip))
    if aim.moment == "sink":
        # The sink takes nothing twice: a batch that it has is not shown to it again.
        return lambda: checkpoint.delivered() > max(committed, delivered) + aim.skip
    return lambda: True


def _written_by(life: Life, file: Path) -> bool:
    try:
        return file.stat().st_mtime > life.began
    except FileNotFoundError:
        return False
