"""The temporal join of elements whose ends are not known when they come, against the join of the snapshots."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.operators import Results, TemporalJoin
from streamjoin.operators.ordering import HeldResults
from streamjoin.state import Ends, Matching
from tests.operators.elements import SCHEMA, Reader, Truth, batch_of, draw_truth, form, run_step, steps
from tests.operators.test_contract_lifetimes import HOWS, by_key
from tests.operators.test_negative_join import expected
from tests.operators.test_wait import results
from tests.state.storing import Store, moved


@pytest.mark.parametrize("emit", ["eager", "ordered"])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("seed", range(4))
def test_oracle_join_of_unknown_ends(how: str, emit: str, seed: int) -> None:
    rng = random.Random(seed)
    inputs = [draw_truth(rng, 1000 * number) for number in (0, 1)]
    config = TemporalJoin(Matching(), (SCHEMA, SCHEMA), how, "snapshot", emit)
    join, reader, store = config.build(), Reader(), Store()
    for step in steps(rng, inputs, rng.choice([1, 4, 100])):
        step.rows = [None if rows is None else by_key(rows) for rows in step.rows]
        outputs = run_step(join, step)
        reader.read(outputs)
        if emit == "ordered":
            assert reader.starts == sorted(reader.starts)
        join = moved(join, config.build(), store, None) if rng.random() < 0.3 else join
    assert form(reader.elements()) == form(expected(how, inputs)), f"{how}, {emit}, seed {seed}"
    assert join.state_rows == 0


def joined(how: str = "inner") -> tuple[object, Results]:
    """A pair of [1, ?) and [2, 8), and how it left."""
    join = TemporalJoin(Matching(), (SCHEMA, SCHEMA), how, "snapshot").build()
    list(join.on_batch(0, batch_of([Truth((1, "a"), 1, FOREVER, 7, True)])))
    (pair,) = join.on_batch(1, batch_of([Truth((1, "b"), 2, 8, 0, False)]))
    assert isinstance(pair, Results)
    return join, pair


def test_a_result_leaves_at_once_and_its_end_follows() -> None:
    join, pair = joined()
    assert (pair.ts.tolist(), pair.te.tolist()) == ([2], [FOREVER])
    assert list(join.on_ends(0, Ends(np.array([7]), np.array([5])))) == []
    (ends,) = join.on_progress(0, 5)
    assert (ends.holder.tolist(), ends.te.tolist()) == (pair.holder.tolist(), [5])


def test_the_known_end_is_told_when_progress_shows_that_nothing_undercuts_it() -> None:
    join, pair = joined()
    assert [*join.on_progress(1, 100), *join.on_progress(0, 7)] == []
    (ends,) = join.on_progress(0, 8)
    assert (ends.holder.tolist(), ends.te.tolist()) == (pair.holder.tolist(), [8])


def test_a_padded_part_waits_for_the_end_of_the_row() -> None:
    join, _ = joined("left")
    list(join.on_progress(1, 100))
    list(join.on_ends(0, Ends(np.array([7]), np.array([12]))))
    outputs = list(join.on_progress(0, 12))
    (padded,) = [output for output in outputs if isinstance(output, Results)]
    assert sorted(zip(padded.ts.tolist(), padded.te.tolist(), strict=True)) == [(1, 2), (8, 12)]


def test_a_row_waits_for_its_end_though_the_other_input_has_ended() -> None:
    """Its padded part ends where it does, not never; the other one is endless for certain, and waits for nobody."""
    join = TemporalJoin(Matching(), (SCHEMA, SCHEMA), "left", "snapshot").build()
    assert list(join.on_progress(1, FOREVER)) == []
    list(join.on_batch(0, batch_of([Truth((1, "a"), 1, FOREVER, 7, False)])))
    (alone,) = join.on_progress(0, 1)
    assert (alone.ts.tolist(), alone.te.tolist()) == ([1], [FOREVER])
    list(join.on_batch(0, batch_of([Truth((1, "a"), 2, FOREVER, 8, True)])))
    assert list(join.on_progress(0, 3)) == []
    assert join.progress == 2
    list(join.on_ends(0, Ends(np.array([8]), np.array([5]))))
    (alone,) = join.on_progress(0, 5)
    assert (alone.ts.tolist(), alone.te.tolist()) == ([2], [5])
    assert join.state_rows == 0


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("seed", range(4))
def test_oracle_one_input_ends_first(how: str, seed: int) -> None:
    """As a table does beside a stream."""
    rng = random.Random(seed)
    inputs = [draw_truth(rng, 1000 * number) for number in (0, 1)]
    first, join, reader = (
        rng.randint(0, 1),
        TemporalJoin(Matching(), (SCHEMA, SCHEMA), how, "snapshot").build(),
        Reader(),
    )
    given = [replace(each, unknown=False) for each in inputs[first]]
    reader.read(join.on_batch(first, by_key(batch_of(given))))
    reader.read(join.on_progress(first, FOREVER))
    for step in steps(rng, [inputs[1 - first]], rng.choice([1, 4, 100])):
        rows, ends = step.rows[0], step.ends[0]
        reader.read(() if rows is None else join.on_batch(1 - first, by_key(rows)))
        reader.read(() if ends is None else join.on_ends(1 - first, ends))
        reader.read(join.on_progress(1 - first, step.progress[0]))
    assert form(reader.elements()) == form(expected(how, inputs)), f"{how}, seed {seed}"
    assert join.state_rows == 0


@pytest.mark.parametrize(("how", "left"), [("inner", []), ("left", [(5, 9)]), ("semi", []), ("anti", [(5, 9)])])
def test_nobody_meets_a_row_that_has_learned_that_it_ends_where_it_begins(how: str, left: list) -> None:
    join = TemporalJoin(Matching(), (SCHEMA, SCHEMA), how, "snapshot").build()
    list(join.on_batch(1, batch_of([Truth((1, "b"), 7, FOREVER, 7, True)])))
    list(join.on_ends(1, Ends(np.array([7]), np.array([7]))))
    list(join.on_progress(1, 12))
    said = [*join.on_batch(0, batch_of([Truth((1, "a"), 5, 9, 0, False)])), *join.on_progress(0, 12), *join.on_end()]
    assert [pair for one in said for pair in zip(one.ts.tolist(), one.te.tolist(), strict=True)] == left
    assert join.state_rows == 0


def test_rows_that_can_meet_nobody_leave_with_the_holder_of_their_end() -> None:
    join = TemporalJoin(Matching(), (SCHEMA, SCHEMA), "left", "snapshot").build()
    list(join.on_batch(0, by_key(batch_of([Truth((None, "a"), 1, FOREVER, 7, True)]))))
    reader = Reader()
    reader.read(join.on_progress(1, 5))
    list(join.on_ends(0, Ends(np.array([7]), np.array([4]))))
    reader.read(join.on_progress(0, 5))
    assert reader.elements() == [((None, "a", None, None), 1, 4)]


def test_held_results_take_their_ends() -> None:
    held = HeldResults()
    held.add(results((1, 5, FOREVER, 30), (2, 6, 9, -1)))
    held.add(Results(results((3, 1, 2, -1)).payload, np.array([1]), np.array([2])))
    left = held.settle(Ends(np.array([30, 31]), np.array([8, 7])))
    assert left.holder.tolist() == [31]
    (released,) = held.release(10)
    assert list(zip(released.ts.tolist(), released.te.tolist(), strict=True)) == [(1, 2), (5, 8), (6, 9)]
