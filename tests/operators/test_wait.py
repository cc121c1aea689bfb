"""Waiting for ends: a result leaves when its end is known, and never changes."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.operators import Results, Waiting
from streamjoin.operators.lifetimes import plus_and_minus
from streamjoin.state import Ends
from tests.state.storing import Store, moved


def results(*some: tuple[int, int, int, int]) -> Results:
    """Results (id, ts, te, holder)."""
    number, ts, te, holder = (np.array(column, np.int64) for column in zip(*some, strict=True))
    return Results(pa.table({"id": number}), ts, te, holder=holder)


def ends(*pairs: tuple[int, int]) -> Ends:
    return Ends(*(np.array(column, np.int64) for column in zip(*pairs, strict=True)))


def shown(some: object) -> list[tuple[int, int, int]]:
    found = []
    for one in some:
        assert one.holder is None
        assert one.sign is None
        found += list(zip(one.payload["id"].to_pylist(), one.ts.tolist(), one.te.tolist(), strict=True))
    return sorted(found)


@pytest.mark.parametrize("seed", range(10))
def test_oracle_each_result_leaves_once_with_its_end(seed: int) -> None:
    rng = random.Random(seed)
    waiting, store, left, number = Waiting(), Store(), [], 0
    truth: dict[int, tuple[int, int]] = {}
    open_ones: list[int] = []
    for _ in range(40):
        some = []
        for _ in range(rng.randint(0, 4)):
            number += 1
            ts, known = rng.randint(0, 20), rng.random() < 0.4
            truth[number] = (ts, ts + rng.randint(0, 5))
            some.append((number, ts, truth[number][1] if known else FOREVER, -1 if known else number))
            open_ones += [] if known else [number]
        left += shown(waiting.take(results(*some))) if some else []
        told = rng.sample(open_ones, rng.randint(0, len(open_ones)) if rng.random() < 0.5 else 0)
        left += shown(waiting.settle(ends(*((one, truth[one][1]) for one in told)))) if told else []
        open_ones = [one for one in open_ones if one not in told]
        assert waiting.footprint.rows == len(open_ones)
        assert waiting.first == min((truth[one][0] for one in open_ones), default=FOREVER)
        store.save(waiting.snapshot("waiting"))
        waiting = moved(waiting, Waiting(), store, "waiting") if rng.random() < 0.3 else waiting
    for one in open_ones:
        truth[one] = (truth[one][0], FOREVER)
    left += shown(waiting.finish())
    assert sorted(left) == sorted((one, ts, te) for one, (ts, te) in truth.items() if ts < te)
    assert waiting.footprint.rows == 0


def test_ghosts_are_dropped() -> None:
    waiting = Waiting()
    assert shown(waiting.take(results((1, 5, 5, -1), (2, 5, 6, -1), (3, 5, FOREVER, 30)))) == [(2, 5, 6)]
    assert shown(waiting.settle(ends((30, 5)))) == []
    assert waiting.unknown.parts == []


def test_known_results_pass_without_a_copy() -> None:
    known = Results(pa.table({"id": [1]}), np.array([1]), np.array([2]))
    (passed,) = Waiting().take(known)
    assert passed.payload is known.payload


def test_a_part_of_which_most_have_left_is_made_anew() -> None:
    waiting, store = Waiting(), Store()
    list(waiting.take(results(*((n, n, FOREVER, n) for n in range(8)))))
    store.save(waiting.snapshot("waiting"))
    list(waiting.settle(ends(*((n, 99) for n in range(5)))))
    store.save(waiting.snapshot("waiting"))
    assert (store.written, len(waiting.unknown.parts[0].waits)) == (
        3,
        8,
    )  # the results are not written again, but who waits is
    list(waiting.settle(ends((5, 99))))
    assert len(waiting.unknown.parts[0].waits) == 2
    assert shown(moved(waiting, Waiting(), store, "waiting").settle(ends((7, 50), (5, 1)))) == [(7, 7, 50)]


def test_a_minus_ends_its_plus() -> None:
    waiting = Waiting()
    payload = pa.table({"id": [1, 2]})
    assert shown(waiting.take_changes(plus_and_minus(payload, np.array([3, 4]), np.array([70, 71]), 1))) == []
    minus = plus_and_minus(payload.slice(1), np.array([9]), np.array([71]), -1)
    assert shown(waiting.take_changes(minus)) == [(2, 4, 9)]
    assert shown(waiting.finish()) == [(1, 3, FOREVER)]
