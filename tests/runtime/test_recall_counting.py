"""What a task counts for a recall target: the same, however its rows come in."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators.recall.counts import Counts, counted, fitted
from streamjoin.runtime import recall
from streamjoin.runtime.recall import CELLS, MOST_REPORTED, CellsSeen
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
    whole = counted(group[kept], ts[kept], width=STEP, bits=BITS, most=MOST_REPORTED)
    whole = fitted(whole, MOST_REPORTED, CELLS * STEP // 4)
    told = Counts.from_bytes(base64.b64decode(report["counts"]))
    assert report["largest"] == ts.max()
    assert (told.width, told.bits) == (whole.width, whole.bits)
    assert all(map(np.array_equal, told.columns, whole.columns))
    # Where more than that is counted at a time, the parts are put together.
    monkeypatch.setattr(recall, "AT_ONCE", 100)
    for at in np.array_split(np.arange(rows), parts):
        seen.see(batch(group[at], ts[at]))
    assert Counts.from_bytes(base64.b64decode(seen.report()["counts"])).total == whole.total + rows


def test_rows_that_do_not_go_on_say_how_far_it_is() -> None:
    seen = CellsSeen(STEP, BITS)
    seen.see(batch(np.zeros(2, np.int64), np.array([7, 3])), np.zeros(2, np.bool_))
    assert seen.report() == {"largest": 7}
