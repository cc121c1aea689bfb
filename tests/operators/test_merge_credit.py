"""What pays for merges of sorted runs: a credit by the bytes that come, and nothing where there are too many groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Greedy, MaxFanIn
from streamjoin.operators.tpmj import Shares, Tpmj, ValueOrder
from streamjoin.operators.tpmj.running import RunningTpmj
from streamjoin.state import Batch

SIDE, PAGE = 50, 10  # rows of each input that come at a time, and of a page; each has a byte
SHARES = Shares(lists=2 * SIDE, pages=8 * PAGE, results=10_000)
STEP = 2 * SHARES.pages  # bytes that a step moves, at most: all pages are read, and written


def operator(**options: Any) -> RunningTpmj:
    """What comes at a time is a group; nothing ever ends, and nobody matches."""
    schema = pa.schema([("id", pa.int64())])
    made: RunningTpmj = Tpmj(
        (schema, schema), ValueOrder((0, 0), interval=True), memory=SHARES, page_bytes=PAGE, row_bytes=(1, 1),
        leaf_emits=False, **options,
    ).build()  # fmt: skip
    return made


def fed(running: RunningTpmj, times: int) -> Iterator[int]:
    """Bytes that were read and written in merges, each time that a group has come."""
    low = np.arange(SIDE, dtype=np.float64)
    for number in range(times):
        ts = np.full(SIDE, number)
        for side in (0, 1):
            assert list(running.on_batch(side, Batch(pa.table({"id": ts}), ts, ts + 1000, 0 * ts, (low, low)))) == []
        before = moved(running)
        for side in (0, 1):
            assert list(running.on_progress(side, number)) == []
        yield moved(running) - before


def moved(running: RunningTpmj) -> int:
    return PAGE * (running.figures["pages_read"] + running.figures["pages_written"])


def test_more_groups_on_a_level_than_twice_the_fan_in_are_merged_without_credit() -> None:
    running = operator(merge=MaxFanIn(2), credit=1e-9)
    assert running.tree.fan_in == 2
    merges, most = [], []
    for _ in fed(running, 12):
        merges.append(running.figures["merges"])
        most.append(max(Counter(group.level for group in running.tree.groups).values()))
    assert merges[:5] == [0, 0, 0, 0, 1], "four groups may wait, and the fifth does not"
    assert merges[-1] > 1
    assert max(most) == 4
    assert running.tree.credit < 0, "what they have cost is owed"
    patient = operator(merge=MaxFanIn(2), credit=1e-9, compulsory=None)
    assert sum(fed(patient, 12)) <= STEP, "any credit pays for a step"
    assert (patient.figures["merges"], len(patient.tree.groups)) == (0, 12)


@pytest.mark.parametrize("given", [None, 0.5])
def test_merges_move_three_times_the_bytes_that_come_or_as_many_times_as_is_said(given: float | None) -> None:
    """Greedily, so that there is always something to merge; more by a step at most, and less by what could not be kept
    while there was nothing yet.
    """
    credit, times = (3.0 if given is None else given), 40
    running = operator(merge=Greedy(2), compulsory=None, **({} if given is None else {"credit": given}))
    done = sum(fed(running, times))
    assert running.tree.owes, "the case itself is wrong: nothing is left to merge"
    paid = credit * 2 * SIDE * times
    last_pages = 2 * PAGE * running.figures["merges"]  # of a merge, which are written without being counted as a step
    assert paid - credit * 2 * SIDE <= done <= paid + STEP + last_pages
