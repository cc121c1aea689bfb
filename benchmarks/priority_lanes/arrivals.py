"""Which rows arrive when. A step of the clock brings a file of urgent rows, a file of the others, and now and then a
file of limits that says how far that stream is.

    warm-up     the first steps, which appear without the clock
    overload    all others, one each STEP seconds

Files are prepared and then linked into the folders that a query reads, so that they appear whole, and all runs read the
same ones. Spark takes files in the order of their times: each gets a later one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STEP: Final = 0.1  # seconds
SHARE: Final = 0.01  # of urgent rows
PLANTS: Final = 1000
LANES: Final = ("limits", "urgent", "normal")  # as they appear: whoever is looked up, then whoever overtakes
EPOCH_US: Final = 1_700_000_000_000_000
STEP_US: Final = round(STEP * 1_000_000)
# Steps. As many files on each core: with five on two cores one of these would wait for a fifth of the time.
LIMITS_EVERY: Final = 10
STATUS: Final = "ts timestamp, plant bigint, value bigint, id bigint, urgent boolean"
LIMITS: Final = "ts timestamp, plant bigint, high bigint"


@dataclass(frozen=True)
class Step:
    """Rows that arrive together: number `first` and on, the urgent ones first."""

    number: int
    first: int
    urgent: int
    normal: int

    @property
    def rows(self) -> int:
        return self.urgent + self.normal

    def status(self, lane: str) -> pa.Table:
        """The rows of a lane, in order of time."""
        count, first = (self.urgent, 0) if lane == "urgent" else (self.normal, self.urgent)
        rng = np.random.default_rng([self.number, LANES.index(lane)])
        ts = EPOCH_US + self.number * STEP_US + np.arange(count) * STEP_US // max(count, 1)
        return pa.table({
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
            "plant": rng.integers(0, PLANTS, count),
            "value": rng.integers(0, 100, count),
            "id": np.arange(count) + self.first + first,
            "urgent": np.full(count, lane == "urgent"),
        })  # fmt: skip

    def limits(self) -> pa.Table:
        """All plants' at first; and a row of no plant, so that it is known that nothing changes until the next file."""
        plants = np.append(np.arange(PLANTS if self.number == 0 else 0), -1)
        ts = np.full(len(plants), EPOCH_US + self.number * STEP_US)
        ts[-1] += LIMITS_EVERY * STEP_US
        times = pa.array(ts, pa.timestamp("us", tz="UTC"))
        return pa.table({"ts": times, "plant": plants, "high": np.full(len(plants), 90)})

    def files(self) -> list[tuple[str, str]]:
        """Lane and name of each, as they appear."""
        name = f"{self.number:06d}.parquet"
        return [(lane, name) for lane in LANES if lane != "limits" or self.number % LIMITS_EVERY == 0]


def steps_of(rows: list[int], share: float = SHARE) -> list[Step]:
    """A step for each number of rows.

    >>> [(step.first, step.urgent, step.normal) for step in steps_of([200, 100])]
    [(0, 2, 198), (200, 1, 99)]
    """
    firsts = np.cumsum([0, *rows])
    urgent = [max(1, round(count * share)) for count in rows]
    return [Step(n, int(firsts[n]), urgent[n], count - urgent[n]) for n, count in enumerate(rows)]


def overload_rows(rate: float, seconds: float, warm: int) -> list[int]:
    """The rows of each step: `rate` a second, for so many seconds, behind the steps of the warm-up.

    >>> overload_rows(1000, 0.3, 2)
    [100, 100, 100, 100, 100]
    """
    return [round(rate * STEP)] * (warm + round(seconds / STEP))


def write_files(steps: list[Step], folder: Path) -> None:
    """All files of all steps, by lane."""
    for lane in LANES:
        (folder / lane).mkdir(parents=True)
    for step in steps:
        for lane, name in step.files():
            file = folder / lane / name
            pq.write_table(step.limits() if lane == "limits" else step.status(lane), file)
            os.utime(file, (EPOCH_US // 1_000_000 + step.number,) * 2)


@dataclass
class Feeder:
    """Lets the files of steps appear in `folders`, by lane; two lanes may share one. Notes when they did."""

    prepared: Path
    folders: dict[str, Path]
    arrived: dict[int, float] = field(default_factory=dict)
    _last_ms: int = 0

    def let_in(self, step: Step) -> None:
        """All files of a step, now. The later ones count from when the first was there."""
        self.arrived[step.number] = time.time()
        for lane, name in step.files():
            file = self.prepared / lane / name
            self._last_ms = max(self._last_ms + 1, int(time.time() * 1000))
            os.utime(file, ns=(self._last_ms * 1_000_000,) * 2)
            os.link(file, self.folders[lane] / f"{lane}-{name}")

    def by_the_clock(self, steps: list[Step], check: Callable[[], None]) -> Iterator[float]:
        """A step each STEP seconds, and how late it was."""
        began = time.time()
        for count, step in enumerate(steps):
            due = began + count * STEP
            time.sleep(max(0.0, due - time.time()))
            check()
            self.let_in(step)
            yield self.arrived[step.number] - due
