"""One micro-batch: rows of all inputs first, then progress."""

from __future__ import annotations

from streamjoin.runtime import finish, run_micro_batch
from tests.operators.driving import results, rows, temporal


def test_a_row_is_late_only_against_progress_that_earlier_micro_batches_made() -> None:
    join = temporal()
    first = {0: rows((1, 0, 50), (2, 100, 150)), 1: rows((7, 3, 5))}
    assert results(run_micro_batch(join, first, {0: 100, 1: 3})) == [(1, 7, 3, 5)]
    assert join.figures["late"] == 0
    assert results(run_micro_batch(join, {0: rows((3, 4, 50))}, {})) == []
    assert join.figures["late"] == 1


def test_a_batch_is_joined_with_its_own_micro_batch_before_anything_is_purged() -> None:
    join = temporal()
    both = {1: rows((7, 0, 5)), 0: rows((1, 0, 5))}
    assert results(run_micro_batch(join, both, {0: 1_000, 1: 1_000})) == [(1, 7, 0, 5)]
    assert join.state_rows == 0


def test_inputs_without_news_are_left_out() -> None:
    join = temporal(how="left")
    assert results(run_micro_batch(join, {0: rows(), 1: rows()}, {})) == []
    assert join.figures["rows_in"] == 0
    assert results(run_micro_batch(join, {0: rows((1, 0, 5))}, {0: 9})) == []
    assert results(run_micro_batch(join, {}, {1: 9})) == [(1, None, 0, 5)]


def test_the_end_lets_everything_go() -> None:
    join = temporal(how="full", emit="ordered")
    list(run_micro_batch(join, {0: rows((1, 5, 9)), 1: rows((7, 0, 3))}, {}))
    assert results(finish(join)) == [(None, 7, 0, 3), (1, None, 5, 9)]
