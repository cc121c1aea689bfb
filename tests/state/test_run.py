"""Runs: sorted rows, merged without sorting anew."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, Band, Within
from streamjoin.state import Batch, Matching
from streamjoin.state.run import merged_order
from tests.kernels import twins
from tests.state.making import batch, drawn

MATCHINGS = {
    "time": Matching(),
    "band": Matching(Band("v", "v", 1, 1)),
    "grid": Matching(Within(("x", "y"), ("x", "y"), 1.0)),
}
POOL = np.array([-1.0, 0.0, 0.5, 3.0])


def test_a_run_knows_when_its_first_and_its_last_row_can_go() -> None:
    run = Matching().sorted_run(batch([(0, 9), (1, 4), (2, FOREVER)]))
    assert (run.first_end, run.last_end) == (4, FOREVER)
    assert run.rows.te[run.by_end].tolist() == [4, 9, FOREVER]
    assert len(run) == 3


def test_runs_have_names_that_no_other_uses() -> None:
    rows = batch([(0, 1)])
    names = {Matching().sorted_run(rows).id for _ in range(100)}
    assert len(names) == 100


@pytest.mark.parametrize("matching", MATCHINGS.values(), ids=MATCHINGS)
@pytest.mark.parametrize("seed", range(5))
def test_differential_merging_runs_equals_sorting_their_rows(matching: Matching, seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs = [matching.sorted_run(drawn(rng, rows, values=[POOL, POOL], groups=3)) for rows in (7, 1, 12)]
    together = matching.run_of(Batch.concat([run.rows for run in runs]))
    order = merged_order(runs)
    assert order.tolist() == twins.sort_order(together.sort_columns), f"seed {seed}"
    merged = matching.run_of(together.rows.take(order))
    assert twins.sort_order(merged.sort_columns) == list(range(20)), f"seed {seed}"


def test_the_grid_row_sorts_before_the_value_and_only_where_there_is_a_grid() -> None:
    rows = batch([(0, 1), (0, 1)], values=[[5.0, 1.0], [0.0, 9.0]])
    assert len(MATCHINGS["band"].run_of(rows).sort_columns) == 2
    assert len(MATCHINGS["grid"].run_of(rows).sort_columns) == 3
    assert MATCHINGS["grid"].sorted_run(rows).rows.payload["id"].to_pylist() == [0, 1]
