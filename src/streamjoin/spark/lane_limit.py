"""How much of a normal lane a micro-batch may take, so that it is as short as it shall be.

    seconds of a micro-batch = a + b * rows        a: what every micro-batch takes, b: what a row takes
    rows = (seconds - a) / b                       what it may take of all streams together
    1 - a / seconds                                what is left of the throughput of endless micro-batches

a and b are those of the straight line nearest to the micro-batches that a query has run. The first one is left out: it
starts workers and compiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamjoin.errors import CallError
from streamjoin.spark.jobs import did_run, rows_read


@dataclass(frozen=True)
class LaneLimit:
    """How many `rows` a micro-batch may take, those of all streams together; what every micro-batch takes, and what a
    row takes, in seconds; and which share of the `throughput` is left.
    """

    rows: int
    seconds_per_batch: float
    seconds_per_row: float
    throughput: float


class NeverSoShortError(CallError):
    """What every micro-batch takes is more than it shall take: no limit helps."""


def ran_of(progress: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The micro-batches that had rows."""
    return [each for each in progress if did_run(each) and rows_read(each)]


def limit_of(progress: Sequence[dict[str, Any]], batch_seconds: Any) -> LaneLimit:
    """The limit that keeps micro-batches so short, by what the last ones took."""
    if isinstance(batch_seconds, bool) or not isinstance(batch_seconds, int | float) or not 0 < batch_seconds < 1e6:
        raise CallError(f"batch_seconds must be a positive number, got {batch_seconds!r}", hint="batch_seconds=2")
    ran = ran_of(progress)
    ran = ran[1:] if len(ran) > 2 else ran
    rows = np.array([float(rows_read(each)) for each in ran])
    seconds = np.array([each["durationMs"]["triggerExecution"] / 1000 for each in ran])
    if len(ran) < 2 or rows.max() < 1.2 * rows.min():
        sizes = ", ".join(f"{int(each):,}" for each in rows) or "none"
        raise CallError(
            f"too little is known of how long micro-batches take: rows of those that count are {sizes}",
            hint="let it run some, of different sizes: one before and one after changing the limit will do",
        )
    b, a = np.polyfit(rows, seconds, 1)
    if b <= 0:
        raise CallError(
            "larger micro-batches of this query took no longer than small ones", hint="let it run more of them"
        )
    a = max(0.0, float(a))
    if batch_seconds <= a:
        raise NeverSoShortError(
            f"a micro-batch of this query takes {a:.2f} s without any row, so none is over in {batch_seconds} s",
            hint=f"batch_seconds={2 * a:.1f} would leave half of the throughput",
        )
    return LaneLimit(max(1, round((batch_seconds - a) / float(b))), a, float(b), 1 - a / batch_seconds)
