"""Passing: what comes goes on as it is, with its holders and signs; and nothing is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamjoin.algebra import FOREVER
from streamjoin.operators import Footprint, Passing, Results
from streamjoin.state import Batch, Ends

CONFIG = Passing(pa.schema([("a", pa.int64())]))


def batch(**columns: np.ndarray) -> Batch:
    table = pa.table({"a": [1, 2]})
    return Batch(table, np.array([3, 5]), np.array([9, FOREVER]), np.zeros(2, np.int64), **columns)


def test_elements_pass_with_their_holders_and_signs() -> None:
    given = batch(holder=np.array([-1, 7]), sign=np.array([1, -1], np.int8))
    (result,) = CONFIG.build().on_batch(0, given)
    assert isinstance(result, Results)
    assert result.payload == given.payload
    for name in ("ts", "te", "holder", "sign"):
        assert getattr(result, name).tolist() == getattr(given, name).tolist()


def test_ends_pass_and_progress_is_that_of_the_input() -> None:
    running, ends = CONFIG.build(), Ends(np.array([7]), np.array([8]))
    assert list(running.on_ends(0, ends)) == [ends]
    assert list(running.on_progress(0, 6)) == []
    assert running.progress == 6
    assert list(running.on_end()) == []
    assert running.progress == FOREVER


def test_nothing_is_kept_but_progress() -> None:
    running, again = CONFIG.build(), CONFIG.build()
    list(running.on_batch(0, batch()))
    list(running.on_progress(0, 6))
    again.restore(running.snapshot())
    assert running.footprint == Footprint()
    assert not running.snapshot().blobs
    assert (again.progress, again.figures) == (6, {"rows_in": 2, "results": 2})


def test_what_makes_rows_plain_shares_no_snapshot_with_what_does_not() -> None:
    assert replace(CONFIG, plain=True).fingerprint != CONFIG.fingerprint
    assert "plain" not in CONFIG.fingerprint, "what was stored before priorities goes on"
