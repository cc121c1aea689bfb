"""Inputs that have ended, under a budget: what is in memory while pieces of them come, of batches and of tables beside
streams. `batch_simulator` compares results of the one, `test_static_plane` those of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import AsOf, Range, Rows
from streamjoin.operators import NwayJoin, TemporalJoin
from streamjoin.operators.asof import AsofJoin
from streamjoin.operators.contract import Context, Results
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.tasks import SourceTask
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.stage import RunningStage
from streamjoin.state import Matching
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


class Noting(dict[str, bytes]):
    """What is stored, which notes what a stage keeps whenever something is read: bytes in memory, in files, runs."""

    def __init__(self, running: RunningStage, kept: list[tuple[int, int, int]]) -> None:
        super().__init__()
        self.running, self.kept = running, kept

    def __getitem__(self, name: str) -> bytes:
        footprint = self.running.fragment.footprint
        waiting = self.running.aside.nbytes
        self.kept.append((footprint.nbytes - footprint.spilled + waiting, footprint.spilled, footprint.runs))
        return super().__getitem__(name)


def put(plan: PhysicalPlan, running: RunningStage, static: int) -> list[tuple[int, int, int]]:
    """The pieces of a table are handed over and stored, one by one, and taken; what was in memory meanwhile."""
    kept: list[tuple[int, int, int]] = []
    stored, source = Noting(running, kept), plan.sources[static]
    for number in range(PIECES):
        packets = list(SourceTask(source).packets([prepared(source, rows(number))], number << 40, lambda: None))
        running.put(packet for packet in packets if packet.kind != "figures")
        last = sum(packet.table.nbytes for packet in packets if packet.kind == "rows")
        assert running.aside.nbytes == last, "the last piece, and no other"
        made = running.snapshot().blobs
        stored.update({name: made[name] for name in made if name not in stored})
        running.aside.stored_in(stored)
        assert not running.aside.nbytes, "none is needed before the first micro-batch"
    for _ in running.take(()):
        pass
    assert len(kept) >= PIECES, "each is read when it is taken"
    return kept


@pytest.mark.parametrize("static", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_beside_a_stream_is_in_files_before_all_of_it_is_taken(kind: str, static: int, tmp_path: Path) -> None:
    shape, options, leaving = KINDS[kind]
    tree = functions.tree(shape, **options)
    plan = functions.plan_of(tree, {str(1 - static): 4}, memory=BUDGET, buckets=1, **leaving)
    running = plan.stages[0].build(0, str(tmp_path))
    kept = put(plan, running, static)
    whole = 8 * len(functions.SCHEMA) * ROWS * PIECES
    assert whole > 2 * BUDGET, "it would fit"
    chooses = kind in CHOOSING and static == 0
    assert max(memory for memory, _, _ in kept) <= BUDGET + (2 * whole if chooses else 0)
    _, spilled, runs = kept[-1]
    assert (spilled > whole // 4) != chooses
    assert chooses or runs < PIECES - 1, "runs are merged while others come"


def test_a_table_whose_rows_are_counted_must_be_there_as_a_whole() -> None:
    tree = functions.tree("keys", windows=(Range(5), Rows(3)))
    (stage,) = functions.plan_of(tree, {"0": 4}, memory=BUDGET, buckets=1).stages
    assert not stage.ahead
    counting, joining = functions.plan_of(tree, {"0": 4}, memory=BUDGET, buckets=4).stages
    assert counting.complete
    assert not counting.ahead
    assert len(joining.ahead) == 1, "what has been counted need not be"


def test_a_table_beside_urgent_rows_lets_them_go_first() -> None:
    tree = functions.tree("keys")
    ranked = replace(tree, left=replace(tree.left, priority="`k`"))
    (stage,) = functions.plan_of(ranked, {"0": 4}, memory=BUDGET, buckets=1).stages
    assert not stage.ahead
    (stage,) = functions.plan_of(tree, {"0": 4}, memory=BUDGET, buckets=1).stages
    assert len(stage.ahead) == 1


@pytest.mark.parametrize("others", [0, ROWS])
def test_results_of_rows_that_choose_are_no_larger_than_their_share(others: int, tmp_path: Path) -> None:
    join = AsofJoin(AsOf(), (PAYLOAD, PAYLOAD), how="left").build(Context(memory=BUDGET, scratch=str(tmp_path)))
    for number, count in ((0, 4 * ROWS), (1, others)):
        assert not list(join.on_batch(number, batch([(at, at + 1) for at in range(count)])))
    leaving = [output.payload for output in join.on_end() if isinstance(output, Results)]
    assert sum(table.num_rows for table in leaving) == 4 * ROWS
    assert max(table.nbytes for table in leaving) <= 1.2 * BUDGET / 8


@pytest.mark.parametrize("inputs", [2, 3])
def test_results_of_joins_are_no_larger_than_their_share(inputs: int, tmp_path: Path) -> None:
    """One row meets all of the others, which are in files."""
    schemas = (PAYLOAD,) * inputs
    config: Any = NwayJoin(schemas) if inputs > 2 else TemporalJoin(Matching(), (PAYLOAD, PAYLOAD))
    join = config.build(Context(memory=BUDGET, scratch=str(tmp_path)))
    leaving: list[pa.Table] = []
    for number in range(inputs):
        count = 4 * ROWS if number == 0 else 1
        for output in join.on_batch(number, batch([(at, 10**9) for at in range(count)])):
            assert isinstance(output, Results)
            leaving.append(output.payload)
        join.make_room()
    assert join.footprint.spilled > 0
    assert sum(table.num_rows for table in leaving) == 4 * ROWS
    assert len(leaving) > 1
    assert max(table.nbytes for table in leaving) <= 1.2 * BUDGET / 8
