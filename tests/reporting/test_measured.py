"""Histories: what becomes of many micro-batches, and how long rows take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamjoin.reporting.measured import History, latencies
from tests.reporting.making import micro_batch, report


def test_sums_stay_however_many_micro_batches_there_are() -> None:
    history, batches = History(most=16), [micro_batch(number) for number in range(1001)]
    for batch in batches:
        history.add(batch)
    kept = history.batches
    assert len(kept) <= 16
    for name in ("rows_in", "rows_out", "late"):
        assert sum(each.total(name) for each in kept) == sum(each.total(name) for each in batches)
    assert sum(each.busy for each in kept) == pytest.approx(1.5 * 1001)
    key = ("streamjoin-1", "rows_of", "0")
    assert sum(each.figures[key] for each in kept) == sum(each.figures[key] for each in batches)
    assert kept[-1].total("state_rows") == batches[-1].total("state_rows"), "of what is kept, the last holds"
    assert (kept[0].first, kept[-1].last) == (0, 1000)
    assert [one.last + 1 for one in kept[:-1]] == [two.first for two in kept[1:]], "no gaps"


def test_what_another_run_kept_does_not_count_twice() -> None:
    """A query that was started again tells its figures under another name."""
    before, after = micro_batch(3), micro_batch(4)
    after = replace(after, figures={("streamjoin-2", *key[1:]): value for key, value in after.figures.items()})
    both = before.followed_by(after)
    assert both.total("state_rows") == after.total("state_rows")
    assert both.total("rows_in") == before.total("rows_in") + after.total("rows_in")


def test_a_micro_batch_counts_once_whoever_tells_it() -> None:
    history = History()
    for number in (0, 1, 1, 0, 2):
        history.add(micro_batch(number))
    assert [each.last for each in history.batches] == [0, 1, 2]


def test_oracle_latencies_are_those_of_rows_that_arrive_evenly() -> None:
    """Each micro-batch took 1.5 s, and nobody had looked for 2 s before: evenly from 1.5 to 3.5 s."""
    rows = 1.5 + 2 * np.random.default_rng(3).uniform(size=100_000)
    found = latencies([micro_batch(number) for number in range(10)], (0.5, 0.9, 0.99))
    assert found == pytest.approx(np.quantile(rows, (0.5, 0.9, 0.99)), abs=0.03)


def test_rows_that_lay_there_before_the_start_have_no_latency() -> None:
    assert micro_batch(0).latency(0.5) is None
    assert latencies([micro_batch(0)], (0.5,)) is None


def test_joined_micro_batches_have_the_mean_latency_of_rows_of_which_it_is_known() -> None:
    quick, slow, unknown = micro_batch(1, rows_in=300), micro_batch(2, rows_in=100), micro_batch(0, rows_in=9000)
    both = quick.followed_by(replace(slow, took=5.5, unseen=6.0))
    assert (both.took, both.unseen, both.timed_rows) == (2.5, 3.0, 400)
    every = unknown.followed_by(both)
    assert (every.took, every.unseen, every.timed_rows) == (2.5, 3.0, 400)
    found = latencies([unknown.followed_by(replace(slow, took=5.5)), quick], (0.5,))
    assert found == pytest.approx([2.8], abs=0.2), "three of four rows took from 1.5 to 3.5 s"


def test_figures_are_columns_of_one_length() -> None:
    columns = report(7).figures()
    assert {len(column) for column in columns.values()} == {7}
    assert columns["streamjoin-1 lag 0"] == [2.0] * 7
    assert columns["latency_p50"][:2] == [None, 2.5]
