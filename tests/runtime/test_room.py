"""Batches under a budget: what is in memory while pieces of the inputs come; `batch_simulator` compares results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import AsOf
from streamjoin.operators import NwayJoin
from streamjoin.operators.asof import AsofJoin
from streamjoin.operators.contract import Context, Results
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.tasks import SourceTask
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage
from tests import function_trees as functions
from tests.interpreter import prepared
from tests.state.making import PAYLOAD, batch

BUDGET, PIECES, ROWS = 256 << 10, 8, 2_000

KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "left": ("keys", {"how": "left"}, {}),
    "full, by time": ("keys", {"how": "full", "outer": "snapshot"}, {}),
    "semi": ("keys", {"how": "semi"}, {}),
    "anti": ("band", {"how": "anti"}, {}),
    "ordered": ("keys", {}, {"emit": "ordered"}),
    "as of": ("as of", {}, {}),
    "best match": ("best match", {}, {}),
    "nearest": ("nearest", {}, {}),
}
CHOOSING = ("as of", "best match", "nearest")


def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    lo = rng.random(ROWS) * 1e6
    columns = {"id": np.arange(ROWS) + seed * ROWS, "ts": rng.integers(0, 10**7, ROWS), "k": rng.integers(0, 999, ROWS)}
    return pa.table(columns | {"v": lo, "lo": lo, "hi": lo + 1}).cast(functions.SCHEMA)


def coming(plan: PhysicalPlan, running: RunningStage, kept: list[tuple[int, int, int]]) -> Iterator[Packet]:
    """Rows of both inputs in turns; before each, what is kept: bytes in memory, bytes in files, runs."""
    for number in range(PIECES):
        for side, source in enumerate(plan.sources):
            footprint = running.fragment.footprint
            kept.append((footprint.nbytes - footprint.spilled, footprint.spilled, footprint.runs))
            task, seed = SourceTask(source), 2 * number + side
            for packet in task.packets([prepared(source, rows(seed))], seed << 40, lambda: None):
                if packet.kind == "rows":
                    yield packet


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_in_files_before_the_last_piece_has_come(kind: str, tmp_path: Path) -> None:
    shape, options, leaving = KINDS[kind]
    plan = functions.plan_of(functions.tree(shape, **options), memory=BUDGET, buckets=1, **leaving)
    running, kept = plan.stages[0].build(0, str(tmp_path)), []
    assert plan.stages[0].in_pieces
    for _ in running.take(coming(plan, running, kept)):
        pass
    whole = 8 * len(functions.SCHEMA) * ROWS * PIECES * 2
    assert whole > 5 * BUDGET, "it would fit"
    allowed = BUDGET + (whole if kind in CHOOSING else 0)
    assert max(memory for memory, _, _ in kept) <= allowed
    _, spilled, runs = kept[-1]
    assert spilled > whole // 4
    assert runs < 2 * PIECES - 1, "runs are merged while others come"


def test_rows_of_a_join_of_many_leave_memory_before_the_last_input_has_any(tmp_path: Path) -> None:
    join = NwayJoin((PAYLOAD,) * 3).build(Context(memory=BUDGET, scratch=str(tmp_path)))
    for number in (0, 1) * PIECES:
        assert not list(join.on_batch(number, batch([(at, at + 5) for at in range(0, 10 * ROWS, 10)])))
        join.make_room()
        assert join.footprint.nbytes - join.footprint.spilled <= BUDGET
    assert join.footprint.spilled > BUDGET
    found = list(join.on_batch(2, batch([(0, 5)])))
    assert sum(map(len, found)) == PIECES * PIECES


@pytest.mark.parametrize("others", [0, ROWS])
def test_results_of_rows_that_choose_are_no_larger_than_their_share(others: int, tmp_path: Path) -> None:
    join = AsofJoin(AsOf(), (PAYLOAD, PAYLOAD), how="left").build(Context(memory=BUDGET, scratch=str(tmp_path)))
    for number, count in ((0, 4 * ROWS), (1, others)):
        assert not list(join.on_batch(number, batch([(at, at + 1) for at in range(count)])))
    leaving = [output.payload for output in join.on_end() if isinstance(output, Results)]
    assert sum(table.num_rows for table in leaving) == 4 * ROWS
    assert max(table.nbytes for table in leaving) <= 1.2 * BUDGET / 8
