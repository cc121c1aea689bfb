"""Late rows: behind their input's progress at their arrival. They join, or they do not; what else becomes of them is
decided where they come in (`tests.runtime.test_intake`).
"""

from __future__ import annotations

import pytest

from streamjoin.errors import CallError
from streamjoin.operators import TemporalJoin
from streamjoin.state import Matching
from tests.operators.driving import SCHEMAS, end, progress, put, temporal


def test_late_is_behind_the_progress_of_its_own_input() -> None:
    join = temporal()
    progress(join, 10, 100)
    put(join, 0, (1, 10, 20), (2, 9, 20))
    assert join.figures["late"] == 1
    assert put(join, 1, (7, 100, 101)) == []
    assert join.figures["late"] == 1


def test_drop_counts_and_forgets() -> None:
    join = temporal(late=("drop", "drop"))
    put(join, 1, (7, 0, 50))
    progress(join, 10, 5)
    assert put(join, 0, (1, 9, 20), (2, 10, 20)) == [(2, 7, 10, 20)]
    assert join.figures["late"] == 1
    assert join.state_rows == 2


def test_join_meets_whatever_is_still_kept() -> None:
    join = temporal(late=("join", "join"))
    put(join, 1, (7, 0, 8), (8, 0, 50))
    progress(join, 10, 10)
    assert put(join, 0, (1, 0, 50)) == [(1, 8, 0, 50)], "row 7 was removed at 8, even if it still lies in its run"
    assert join.figures["late"] == 1
    assert put(join, 1, (9, 5, 6)) == [(1, 9, 5, 6)], "a late row meets a late row"


def test_join_meets_a_late_row_of_the_same_micro_batch() -> None:
    join = temporal(late=("join", "join"))
    progress(join, 10, 10)
    put(join, 0, (1, 0, 3))
    assert put(join, 1, (7, 1, 2)) == [(1, 7, 1, 2)], "nothing is purged between the batches of one micro-batch"
    progress(join, 10, 10)
    assert put(join, 1, (8, 1, 2)) == []


def test_with_join_a_row_is_padded_when_it_is_purged_never_before() -> None:
    join = temporal(how="left", late=("join", "join"))
    progress(join, 10, 10)
    assert put(join, 0, (1, 0, 3), (2, 0, 30)) == []
    assert progress(join, 10, 10) == [(1, None, 0, 3)]
    assert put(join, 1, (7, 2, 4)) == [(2, 7, 2, 4)]
    assert end(join) == []


def test_join_with_ordered_emission_is_refused() -> None:
    for late in (("join", "drop"), ("drop", "join")):
        with pytest.raises(CallError, match='late="join" cannot be combined with emit="ordered"'):
            TemporalJoin(Matching(), SCHEMAS, emit="ordered", late=late)


@pytest.mark.parametrize("hold", ["outputs", "inputs"])
def test_late_rows_are_dropped_before_they_are_held(hold: str) -> None:
    join = temporal(emit="ordered", hold=hold)
    put(join, 1, (7, 0, 50))
    progress(join, 10, 5)
    put(join, 0, (1, 9, 20), (2, 10, 20))
    assert join.figures["late"] == 1
    assert end(join) == [(2, 7, 10, 20)]
