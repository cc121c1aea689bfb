"""Expiry: who is behind progress."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.kernels import expired_mask
from tests.kernels import twins

UNTIL = np.array([NEVER, NEVER + 1, -1, 0, 0, 1, FOREVER - 1, FOREVER])


@pytest.mark.parametrize("progress", [NEVER, NEVER + 1, -1, 0, 1, FOREVER - 1, FOREVER])
def test_differential_expiry_at_every_edge(progress: int) -> None:
    alive, expired = expired_mask(UNTIL, progress)
    assert (alive.tolist(), expired) == twins.expired_mask(UNTIL, progress)


def test_a_row_goes_at_its_end_not_before() -> None:
    assert [expired_mask(np.array([5]), progress)[1] for progress in (4, 5, 6)] == [0, 1, 1]


def test_no_rows_nothing_expires() -> None:
    alive, expired = expired_mask(np.empty(0, np.int64), 5)
    assert (alive.tolist(), expired) == ([], 0)
