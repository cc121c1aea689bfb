"""ISTREAM, DSTREAM and RSTREAM: what appears, what disappears, and all that is there, against brute force."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from streamjoin.algebra import FOREVER
from streamjoin.operators import Results, StreamOf
from tests.operators.elements import SCHEMA, Truth, batch_of, draw_truth, elements_of, run_step, steps, stream_of
from tests.state.storing import Store, moved

KINDS = ("istream", "dstream", "rstream")


def events(outputs: list) -> Counter:
    """(payload, instant); what leaves is valid for one tick."""
    found: Counter = Counter()
    for output in outputs:
        assert isinstance(output, Results)
        for payload, ts, te in elements_of(output):
            assert te == ts + 1
            found[payload, ts] += 1
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_oracle_stream_of(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    truth = draw_truth(rng, 0)
    config = StreamOf(kind, SCHEMA)
    operator, store, found = config.build(), Store(), Counter()
    for step in steps(rng, [truth], rng.choice([1, 4, 100])):
        found += events(run_step(operator, step))
        operator = moved(operator, config.build(), store, None) if rng.random() < 0.3 else operator
    assert found == stream_of(kind, [(one.payload, one.ts, one.te) for one in truth]), f"{kind}, seed {seed}"
    assert operator.figures["results"] == sum(found.values())


def said(kind: str, *elements: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Of elements (value, ts, te)."""
    operator = StreamOf(kind, SCHEMA).build()
    rows = [Truth((value, "a"), ts, te, number, False) for number, (value, ts, te) in enumerate(elements)]
    list(operator.on_batch(0, batch_of(rows)))
    return sorted((payload[0], ts) for payload, ts in events(list(operator.on_end())).elements())


def test_what_ends_and_begins_again_at_one_instant_has_not_changed() -> None:
    elements = [(1, 0, 5), (1, 5, 9), (2, 5, 7)]
    assert said("istream", *elements) == [(1, 0), (2, 5)]
    assert said("dstream", *elements) == [(1, 9), (2, 7)]
    assert said("rstream", *elements) == [(1, 0), (1, 5), (1, 7), (2, 5)]  # nothing at 9, where nobody is


def test_copies_count() -> None:
    elements = [(1, 0, 5), (1, 0, 7), (1, 0, FOREVER)]
    assert said("istream", *elements) == [(1, 0)] * 3
    assert said("dstream", *elements) == [(1, 5), (1, 7)]
    assert said("rstream", *elements) == [(1, 0)] * 3 + [(1, 5)] * 2 + [(1, 7)]


def test_a_ghost_is_not_there() -> None:
    assert [said(kind, (1, 3, 3)) for kind in KINDS] == [[], [], []]


def test_an_instant_is_told_when_it_is_complete() -> None:
    operator = StreamOf("istream", SCHEMA).build()
    list(operator.on_batch(0, batch_of([Truth((1, "a"), 5, 9, 0, False)])))
    assert list(operator.on_progress(0, 5)) == []
    assert events(list(operator.on_progress(0, 6))) == Counter({((1, "a"), 5): 1})
