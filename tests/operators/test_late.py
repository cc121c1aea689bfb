"""Late rows: behind their input's progress at their arrival. Each policy, and what it says."""

from __future__ import annotations

import pytest

from streamjoin.errors import CallError, LateRowError
from streamjoin.operators import Rows, TemporalJoin
from streamjoin.state import Matching
from tests.operators.driving import SCHEMAS, end, named, progress, put, results, rows, temporal


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


def test_fail_names_the_input_the_progress_and_a_row() -> None:
    join = temporal(late=("drop", "fail"))
    progress(join, 10, 10)
    assert put(join, 0, (1, 3, 5)) == []
    wanted = (
        r"input 1 brought 2 row\(s\) behind its progress 10, the first is \{'id': 8, 'note': 'row 8'\}. "
        r'Hint: allow more lateness, or choose late="drop", "output" or "join".'
    )
    with pytest.raises(LateRowError, match=wanted):
        put(join, 1, (7, 10, 20), (8, 9, 20), (9, 1, 20))


def test_output_shows_the_row_unjoined() -> None:
    join = temporal(how="full", late=("output", "drop"))
    put(join, 1, (7, 0, 50))
    progress(join, 10, 5)
    outputs = list(join.on_batch(0, rows((1, 9, 20), (2, 10, 20), (3, 3, 4))))
    assert named(output for output in outputs if isinstance(output, Rows)) == [("late", 0, [1, 3])]
    assert results(output for output in outputs if not isinstance(output, Rows)) == [(2, 7, 10, 20)]
    assert end(join) == []


def test_output_shows_a_row_that_lives_in_several_buckets_once() -> None:
    """Only the replica at home is shown and counted."""
    join = temporal(how="left", late=("output", "drop"), replicated=(True, False))
    progress(join, 10, 10)
    late = rows((1, 0, 5), (2, 0, 5), origin=[11, 12], home=[False, True])
    assert named(join.on_batch(0, late)) == [("late", 0, [12])]
    assert join.figures["late"] == 1
    assert named(join.on_end()) == []


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
