"""Windows by plus and minus tuples: an element is said when it comes, and again when its time is over."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, Rows
from streamjoin.operators import NegativeWindow, Results
from streamjoin.plan.relation import Stream
from tests.operators.elements import SCHEMA, Reader, Truth, batch_of, draw_truth, elements_of, form, run_step, steps
from tests.relational_oracle import lifetimes
from tests.state.storing import Store, moved

BY = pa.schema([SCHEMA.field("k")])


def signed(outputs: object) -> list[tuple[int, int, int]]:
    """What is said, as (value, time, sign)."""
    found = []
    for output in outputs:
        assert isinstance(output, Results)
        assert output.sign is not None
        found += [(p[0], ts, sign) for (p, ts, _), sign in zip(elements_of(output), output.sign.tolist(), strict=True)]
    return found


def put(window: object, *elements: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    rows = [Truth((value, "a"), ts, te, number, False) for number, (value, ts, te) in enumerate(elements)]
    return signed(window.on_batch(0, batch_of(rows)))


def test_a_plus_at_once_and_a_minus_when_progress_is_there() -> None:
    window = NegativeWindow(SCHEMA).build()
    assert put(window, (1, 2, 9), (2, 3, 6), (3, 4, 4), (4, 5, FOREVER)) == [(1, 2, 1), (2, 3, 1), (4, 5, 1)]
    assert signed(window.on_progress(0, 5)) == []
    assert signed(window.on_progress(0, 6)) == [(2, 6, -1)]
    assert signed(window.on_end()) == [(1, 9, -1)]
    assert (window.state_rows, window.figures["ghosts"]) == (0, 1)


@pytest.mark.parametrize("seed", range(6))
def test_oracle_windows_that_bring_their_ends(seed: int) -> None:
    rng = random.Random(seed)
    truth = draw_truth(rng, 0, unknown=0.0)
    config, reader, store = NegativeWindow(SCHEMA), Reader(), Store()
    window = config.build()
    for step in steps(rng, [truth], 5):
        reader.read(run_step(window, step))
        window = moved(window, config.build(), store, None) if rng.random() < 0.3 else window
    assert form(reader.elements()) == form((one.payload, one.ts, one.te) for one in truth)


@pytest.mark.parametrize("drain", [False, True])
@pytest.mark.parametrize("by", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_oracle_row_windows(seed: int, by: bool, drain: bool) -> None:
    rng = random.Random(seed)
    truth = draw_truth(rng, 0, unknown=0.0)
    size = rng.randint(1, 4)
    window, reader = NegativeWindow(SCHEMA, size, BY if by else pa.schema([]), drain).build(), Reader()
    for step in steps(rng, [truth], 5, proof=(lambda payload: payload.select(["k"])) if by else None):
        reader.read(run_step(window, step))
    leaf = Stream("R", (("k", "k"), ("s", "s")), "ts", Rows(size, by=("k",) if by else None, drain=drain))
    rows = [{"ts": one.ts, "k": one.payload[0], "s": one.payload[1]} for one in truth]
    expected = lifetimes(leaf, rows)
    assert form(reader.elements()) == form(expected), f"seed {seed}"
    assert window.figures["ghosts"] == len(rows) - len(expected), f"seed {seed}: ghosts, each of them once"
    assert window.state_rows == 0
