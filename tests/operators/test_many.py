"""Joins of many inputs against brute force, over many seeds; the document's experiment; and routes that follow data.

STREAMJOIN_SIMULATOR_RUNS says how many; `python -m tests.many_simulator --runs 2000` goes on without pytest.
"""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Band, Overlaps, Rows
from streamjoin.errors import CallError
from streamjoin.operators import NwayJoin, TemporalJoin
from streamjoin.operators.contract import Results
from streamjoin.plan.multi_join import for_all
from streamjoin.state import Batch, Matching
from streamjoin.state.links import Link
from tests import seeds
from tests.many_simulator import KINDS, Between2, draw_case, simulate

RUNS = int(os.environ.get("STREAMJOIN_SIMULATOR_RUNS", "1000")) // 5
PARTS = 10
PAYLOAD = pa.schema([("id", pa.int64())])


@pytest.mark.parametrize("part", seeds.parts(PARTS))
def test_oracle_simulator_of_many(part: int) -> None:
    """Seeds are dealt out like cards."""
    seeds.check_all(simulate, range(part, RUNS, PARTS))


def compared(between: Between2) -> tuple[str, str]:
    """What is compared of an input, and how."""
    predicate = between[2]
    return str(predicate.columns(0)[0]), type(predicate).__name__


@pytest.mark.compiled
def test_the_drawn_cases_cover_everything() -> None:
    """Over the first 2000 seeds everything that a case can be occurs."""
    counts: Counter = Counter()
    for case in map(draw_case, range(2000)):
        counts.update([
            ("inputs", case.inputs), ("kind", case.kind), ("emit", case.emit), ("regime", case.regime),
            ("buckets", case.buckets), ("restarts", case.trouble > 0), ("late join", "join" in case.late),
            ("theta", case.theta), *(("between", predicate) for predicate in {*map(compared, case.between)}),
        ])  # fmt: skip
        rows = [window for window in case.windows if isinstance(window, Rows)]
        counts.update([("row windows", min(len(rows), 2)), ("by group", any(window.by for window in rows))])
        if case.buckets > 1:
            counts["partitioning", type(case.plan().stages[-1].inputs[0].partitioning).__name__] += 1
    for name in ("Partitioning", "ReachPartitioning", "PointPartitioning", "CubePartitioning"):
        assert counts["partitioning", name] >= 20, name
    for inputs in (3, 4, 5):
        assert counts["inputs", inputs] >= 100
    for kind in KINDS:
        assert counts["kind", kind] >= 50, kind
    for what in (("lo2", "Overlaps"), ("words", "Similar"), ("name", "Similar"), ("z", "Equals"), ("x", "Within")):
        assert counts["between", what] >= 100, what
    features = (
        ("late join", True), ("row windows", 1), ("row windows", 2), ("by group", True), ("restarts", True),
        ("emit", "ordered"), ("theta", True),
    )  # fmt: skip
    for feature in features:
        assert counts[feature] >= 100, feature


def rows(values: list[np.ndarray], ts: np.ndarray, te: np.ndarray) -> Batch:
    payload = pa.table({"id": np.arange(len(ts))})
    return Batch(payload, ts, te, np.zeros(len(ts), np.int64), tuple(values))


def results(config: NwayJoin, batches: list[list[Batch]]) -> tuple[int, dict[str, int]]:
    """How many results there are when the inputs' batches come in turns, and what was counted."""
    operator, found = config.build(), 0
    for turn in range(max(map(len, batches))):
        for number, some in enumerate(batches):
            if turn < len(some):
                found += sum(len(each) for each in operator.on_batch(number, some[turn]) if isinstance(each, Results))
        for number, some in enumerate(batches):
            later = [int(each.ts.min()) for each in some[turn + 1 :]]
            found += sum(len(each) for each in operator.on_progress(number, min(later, default=2**62)))  # type: ignore[arg-type]
    return found, operator.figures


@pytest.mark.compiled
@pytest.mark.parametrize("batches", [1, 20])
def test_the_experiment_of_the_document(batches: int) -> None:
    """Four inputs of 100,000 random permutations, intervals of length 7.5, window 10,000: 626,606 results, give or take
    three standard deviations of 2,815; swept at once, and in micro-batches.
    """
    size, rng = 100_000, np.random.default_rng(batches)
    overlap = Overlaps(("lo", "hi"), ("lo", "hi"))
    links = tuple(Link(one, two, overlap) for one, two in for_all(4))
    config = NwayJoin((PAYLOAD,) * 4, links, (0, 0, 0, 0))
    ts = np.arange(size)
    inputs = []
    for _ in range(4):
        lo = rng.permutation(size).astype(np.float64)
        whole = rows([lo, lo + 7.5], ts, ts + 10_000)
        inputs.append([whole.take(part) for part in np.array_split(np.arange(size), batches)])
    found, figures = results(config, inputs)
    assert abs(found - 626_606) < 9_000
    assert figures["swept"] == 1 if batches == 1 else figures["asked 3 0"] > 0


def test_the_area_in_which_rows_find_fewest_is_asked_first() -> None:
    """Input 1 is in many pairs with input 0, input 2 in none: once that is known, area 1 is no longer asked."""
    near = Band("v", "v", 1.0, 1.0)
    config = NwayJoin((PAYLOAD,) * 3, (Link(0, 1, near), Link(0, 2, near)))
    operator, ts = config.build(), np.zeros(50, np.int64)
    list(operator.on_batch(1, rows([np.zeros(50)], ts, ts + 9)))
    list(operator.on_batch(2, rows([np.full(60, 100.0)], np.zeros(60, np.int64), np.full(60, 9))))
    first = operator.probing.route(0, [0, 50, 60])
    assert [step.number for step in first] == [1, 2]
    for _ in range(3):
        list(operator.on_batch(0, rows([np.zeros(50)], ts, ts + 9)))
    assert [step.number for step in operator.probing.route(0, [0, 50, 60])] == [2, 1]
    assert operator.figures["asked 0 1"] == 50  # in the first batch only
    assert operator.figures["found 0 1"] == 2500
    assert operator.figures["asked 0 2"] == 150


def by_key(keys: list[list[int]]) -> list[Batch]:
    made = []
    for each in keys:
        key = np.array(each)
        zero = np.zeros(len(key), np.int64)
        made.append(Batch(pa.table({"id": key}), zero, zero + 9, key))
    return made


def ids(outputs: object) -> list[tuple]:
    tables = [each.payload for each in outputs if isinstance(each, Results)]  # type: ignore[attr-defined]
    return sorted(row for some in tables for row in zip(*(column.to_pylist() for column in some.columns), strict=True))


def test_rows_of_keys_that_only_some_have_are_not_sorted_in_until_more_come() -> None:
    """Whole inputs: nothing goes into an area. A further batch, of the same micro-batch or of the next, finds all."""
    config = NwayJoin((PAYLOAD,) * 3)
    first = by_key([[1, 2, 3, 3], [4, 3, 2], [3, 5, 6]])
    whole = config.build()
    found = [row for number, batch in enumerate(first) for row in ids(whole.on_batch(number, batch))]
    assert found == [(3, 3, 3), (3, 3, 3)]
    assert not any(area.kept for area in whole.areas)
    assert (whole.footprint.rows, whole.kept_rows(0)) == (10, 4)
    list(whole.on_end())
    assert whole.footprint.rows == 0
    more = config.build()
    for number, batch in enumerate(first):
        list(more.on_batch(number, batch))
    assert ids(more.on_batch(2, by_key([[2, 1]])[0])) == [(2, 2, 2)]
    for number in range(3):
        list(more.on_progress(number, 5))
    again = config.build()
    again.restore(more.snapshot())
    assert ids(again.on_batch(1, by_key([[1]])[0])) == []  # too late
    newer = Batch(pa.table({"id": [1]}), np.array([6]), np.array([9]), np.array([1]))
    assert ids(again.on_batch(1, newer)) == [(1, 1, 1)]


def test_rows_that_have_not_gone_into_their_areas_expire_like_all_others() -> None:
    config = NwayJoin((PAYLOAD,) * 3)
    operator = config.build()
    list(operator.on_batch(0, by_key([[1, 2]])[0]))
    assert operator.footprint.rows == 2
    for number in (1, 2):
        list(operator.on_progress(number, 8))
    assert operator.footprint.rows == 2
    for number in (1, 2):
        list(operator.on_progress(number, 9))
    assert operator.footprint.rows == 0


def test_inputs_are_not_held_where_ends_become_known_later() -> None:
    with pytest.raises(CallError, match='hold="inputs" cannot be combined with ends that become known later'):
        NwayJoin((PAYLOAD,) * 3, emit="ordered", hold="inputs", unknown_ends=True)
    with pytest.raises(CallError, match='hold="inputs" cannot be combined with ends that become known later'):
        TemporalJoin(Matching(), (PAYLOAD,) * 2, emit="ordered", hold="inputs", unknown_ends=True)
