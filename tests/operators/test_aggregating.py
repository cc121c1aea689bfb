"""Aggregation over lifetimes: one piece between two neighbouring instants at which something of a group changes."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from streamjoin.algebra import FOREVER, Aggregate
from streamjoin.operators import Aggregating, Results
from streamjoin.state import Ends
from tests.operators.elements import SCHEMA, Reader, Truth, batch_of, draw_truth, run_step, steps
from tests.relational_oracle import Element

AGGREGATES = (Aggregate("count", None, "n"), Aggregate("count", "s", "m"), Aggregate("sum", "k", "t"))


def expected(keys: tuple[str, ...], truth: list[Truth]) -> list[Element]:
    """Cut at every start and end of an element of the group; equal neighbours are not put together."""
    groups: dict[tuple, list[Truth]] = {}
    for one in truth:
        if one.ts < one.te:
            groups.setdefault((one.payload[0],) if keys else (), []).append(one)
    found: list[Element] = []
    for key, rows in groups.items():
        cuts = sorted({time for one in rows for time in (one.ts, one.te)})
        for start, end in itertools.pairwise(cuts):
            there = [one.payload for one in rows if one.ts <= start < one.te]
            numbers = [number for number, _ in there if number is not None]
            total = sum(numbers) if numbers else None
            if there:
                found.append(((*key, len(there), sum(text is not None for _, text in there), total), start, end))
    return found


@pytest.mark.parametrize("method", ["direct", "negative"])
@pytest.mark.parametrize("keys", [(), ("k",)])
@pytest.mark.parametrize("seed", range(8))
def test_oracle_aggregation_piece_by_piece(keys: tuple[str, ...], method: str, seed: int) -> None:
    rng = random.Random(seed)
    truth = draw_truth(rng, 0)
    running, reader = Aggregating(keys, AGGREGATES, SCHEMA, method=method).build(), Reader()
    for step in steps(rng, [truth], rng.choice([1, 4, 100]), negative=method == "negative"):
        reader.read(run_step(running, step))
    assert Counter(reader.elements()) == Counter(expected(keys, truth)), f"{keys}, {method}, seed {seed}"
    assert running.footprint.rows == 0


def test_an_open_piece_has_a_holder_and_every_change_ends_it() -> None:
    running = Aggregating((), (Aggregate("count", None, "n"),), SCHEMA).build()
    list(running.on_batch(0, batch_of([Truth((1, "a"), 1, FOREVER, 0, False), Truth((1, "a"), 3, FOREVER, 1, False)])))
    (first,) = running.on_progress(0, 2)
    ends, second = running.on_progress(0, 4)
    assert isinstance(first, Results)
    assert isinstance(ends, Ends)
    assert isinstance(second, Results)
    assert (ends.holder.tolist(), ends.te.tolist()) == (first.holder.tolist(), [3])
    (last,) = running.on_end()
    assert isinstance(last, Ends)
    assert (last.holder.tolist(), last.te.tolist()) == (second.holder.tolist(), [FOREVER])


def test_the_result_has_the_keys_and_then_the_aggregates() -> None:
    config = Aggregating(("s",), AGGREGATES, SCHEMA)
    assert config.result_schema.names == ["s", "n", "m", "t"]
    assert config.values == ("s", "k")
