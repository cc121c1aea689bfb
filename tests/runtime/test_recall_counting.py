"""What a task counts for a recall target: the same, however its rows come in."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.kernels import hash_integers
from streamjoin.operators.recall.counts import Counts
from streamjoin.runtime import recall
from streamjoin.runtime.recall import MOST_REPORTED, CellsSeen
from streamjoin.state import Batch

STEP, BITS = 50, 16


def batch(group: Any, ts: Any, matchable: Any = None) -> Batch:
    return Batch(pa.table({"row": np.arange(len(ts))}), ts=ts, te=ts + 1, group=group, matchable=matchable)


@pytest.mark.parametrize("rows", [900, 70_000])
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("some", [False, True])
def test_parts_are_counted_as_the_whole(rows: int, parts: int, some: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(rows)
    group, ts = rng.integers(0, 2**60, 60)[rng.integers(0, 60, rows)], np.sort(rng.integers(0, 5000, rows))
    keep, matchable = (rng.random(rows) < 0.9 if some else np.ones(rows, np.bool_) for _ in (0, 1))
    seen = CellsSeen(STEP, BITS)
    for at in np.array_split(np.arange(rows), parts):
        masks = (matchable[at], keep[at]) if some else (None, None)
        seen.see(batch(group[at], ts[at], masks[0]), masks[1])
    seen.see(batch(group[:0], ts[:0]))
    report = seen.report()
    kept = keep & matchable
    told = Counts.from_bytes(base64.b64decode(report["counts"]))
    assert report["largest"] == ts.max()
    assert told.width == STEP
    # Each row once, in its cell and class: however many bits these have.
    cls = hash_integers(group[kept]) & ((1 << told.bits) - 1)
    entries, count = np.unique(np.stack([cls, ts[kept] // STEP]), axis=1, return_counts=True)
    assert all(map(np.array_equal, told.columns, (*entries, count)))
    # As many bits as there is room for, or nearly: halving what is too much is the least that helps.
    every = np.unique(np.stack([hash_integers(group[kept]) & 0xFFFF, ts[kept] // STEP]), axis=1).shape[1]
    assert len(told) == every if every <= MOST_REPORTED else MOST_REPORTED / 2 < len(told) <= MOST_REPORTED
    # Where more than that is counted at a time, the parts are put together.
    monkeypatch.setattr(recall, "AT_ONCE", 100)
    for at in np.array_split(np.arange(rows), parts):
        seen.see(batch(group[at], ts[at]))
    assert Counts.from_bytes(base64.b64decode(seen.report()["counts"])).total == told.total + rows


def test_rows_that_do_not_go_on_say_how_far_it_is() -> None:
    seen = CellsSeen(STEP, BITS)
    seen.see(batch(np.zeros(2, np.int64), np.array([7, 3])), np.zeros(2, np.bool_))
    assert seen.report() == {"largest": 7}
