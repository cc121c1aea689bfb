"""Matching: the pairs that two runs find, against the meaning of the predicates over all pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Band, Overlaps, Predicate, Within
from streamjoin.algebra.interval import share_an_instant
from streamjoin.state import Batch, KeyTest, Matching, ValueTest
from streamjoin.state.matching import grid_axes, grid_radius, grid_width
from tests.state.making import batch, drawn, ids

TENTHS = np.array([-0.3, -0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 1.1])
INTEGERS = np.array([-2, -1, 0, 1, 2, 2**62, -(2**62)])
LOW, HIGH = np.array([0.0, 1.0, 1.5]), np.array([2.0, 3.0])
HUGE = np.array([-1.7e308, -1e308, 0.0, 1e-300, 1e308, 1.7e308])
DEGREES = np.array([-89.9, -45.0, 0.0, 0.1, 45.0, 89.9])
LONGITUDES = np.array([-179.9, -90.0, 0.0, 0.1, 90.0, 179.9, 180.0])

CASES: dict[str, tuple[Predicate | None, list[np.ndarray]]] = {
    "nothing": (None, []),
    "band": (Band("v", "v", 0.1, 0.3, "left"), [TENTHS]),
    "band of integers": (Band("v", "v", 1, 2, "right"), [INTEGERS]),
    "overlaps": (Overlaps(("lo", "hi"), ("lo", "hi")), [LOW, HIGH]),
    "within 1": (Within(("x",), ("x",), 0.1), [TENTHS]),
    "within 2": (Within(("x", "y"), ("x", "y"), 0.3, "manhattan"), [TENTHS, TENTHS]),
    "within 3": (Within(("x", "y", "z"), ("x", "y", "z"), 0.5, "chebyshev"), [TENTHS] * 3),
    "within of integers": (Within(("x", "y"), ("x", "y"), 1), [INTEGERS, INTEGERS]),
    "within the same place": (Within(("x", "y"), ("x", "y"), 0.0), [TENTHS, TENTHS]),
    "band of huge values": (Band("v", "v", 1.7e308, 1e308), [HUGE]),
    "within of huge values": (Within(("x", "y"), ("x", "y"), 1.797e308, "chebyshev"), [HUGE, HUGE]),
    "within of huge values, by squares": (Within(("x", "y"), ("x", "y"), 1e200), [HUGE, HUGE]),
    "haversine": (Within(("a", "b"), ("a", "b"), 30_000.0, "haversine"), [DEGREES, LONGITUDES]),
    "haversine of half the globe": (Within(("a", "b"), ("a", "b"), 1.5e7, "haversine"), [DEGREES, LONGITUDES]),
}


def found(matching: Matching, a: Batch, b: Batch) -> Counter[tuple[int, int]]:
    one, two = matching.sorted_run(a), matching.sorted_run(b)
    pairs: Counter[tuple[int, int]] = Counter()
    for i, j in matching.pairs(one, two):
        assert len(i), "an empty chunk"
        pairs.update(zip(ids(one.rows.take(i)), ids(two.rows.take(j)), strict=True))
    return pairs


def expected(a: Batch, b: Batch, predicates: list[tuple[Predicate, int]], timed: bool) -> Counter[tuple[int, int]]:
    i, j = (index.ravel() for index in np.indices((len(a), len(b))))
    mask = a.group[i] == b.group[j]
    if timed:
        mask &= share_an_instant(a.ts[i], a.te[i], b.ts[j], b.te[j])
    for predicate, offset in predicates:
        columns = range(offset, offset + len(predicate.columns(0)))
        mask &= predicate.holds([a.values[c][i] for c in columns], [b.values[c][j] for c in columns])
    return Counter(zip(i[mask].tolist(), j[mask].tolist(), strict=True))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_differential_every_first_predicate(name: str, timed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    predicate, pools = CASES[name]
    a, b = (drawn(rng, rows, values=pools, groups=1 + seed % 2) for rows in ([30, 12, 3, 1][seed], 20))
    wanted = expected(a, b, [] if predicate is None else [(predicate, 0)], timed)
    for chunk in (1, 5, 1 << 20):
        assert found(Matching(predicate, timed=timed, chunk=chunk), a, b) == wanted, f"seed {seed}, chunk {chunk}"


@pytest.mark.parametrize("seed", range(5))
def test_differential_a_conjunction_tests_every_part(seed: int) -> None:
    rng = np.random.default_rng(seed)
    near, box, close = CASES["within 2"][0], CASES["overlaps"][0], Band("v", "v", 0.1, 0.1)
    a, b = (drawn(rng, 40, values=[TENTHS, TENTHS, LOW, HIGH, TENTHS]) for _ in range(2))
    matching = Matching(near, (ValueTest(box, 2), ValueTest(close, 4)), chunk=7)
    assert found(matching, a, b) == expected(a, b, [(near, 0), (box, 2), (close, 4)], True), f"seed {seed}"


def test_a_hash_collision_is_settled_by_the_keys_themselves() -> None:
    """All rows have one group code, as if their keys' hashes had collided."""
    keys = [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    proof = pa.table({"s": [s for s, _ in keys], "n": [n for _, n in keys]})
    rows = batch([(0, 5)] * 4, group=[7] * 4, proof=proof)
    assert len(found(Matching(), rows, rows)) == 16
    assert found(Matching(tests=(KeyTest(),)), rows, rows) == {(number, number): 1 for number in range(4)}


def test_key_proofs_compare_as_spark_does() -> None:
    left = batch([(0, 5)] * 3, proof=pa.table({"k": [-0.0, float("nan"), 1.0]}))
    right = batch([(0, 5)] * 3, proof=pa.table({"k": [0.0, float("nan"), 1.0]}))
    assert found(Matching(tests=(KeyTest(),)), left, right) == {(0, 0): 1, (2, 2): 1}


def test_a_chunk_that_no_test_lets_through_is_not_handed_out() -> None:
    never = ValueTest(Band("v", "v", 0, 0), 0)
    a, b = batch([(0, 5)] * 3, values=[[0, 1, 2]]), batch([(0, 5)] * 3, values=[[7, 8, 9]])
    assert list(Matching(tests=(never,)).pairs(Matching().sorted_run(a), Matching().sorted_run(b))) == []


def test_ends_that_meet_do_not_match_in_time() -> None:
    assert found(Matching(), batch([(0, 5)]), batch([(5, 9)])) == {}
    assert found(Matching(), batch([(0, 5)]), batch([(4, 9)])) == {(0, 0): 1}
    assert found(Matching(timed=False), batch([(0, 5)]), batch([(5, 9)])) == {(0, 0): 1}


@pytest.mark.parametrize("name", CASES)
def test_a_sorted_run_keeps_its_rows_together(name: str) -> None:
    predicate, pools = CASES[name]
    rows = drawn(np.random.default_rng(0), 50, values=pools, groups=3)
    run = Matching(predicate).sorted_run(rows)
    back = run.rows.take(np.argsort(ids(run.rows)))
    assert ids(back) == ids(rows)
    assert (back.te.tolist(), back.group.tolist()) == (rows.te.tolist(), rows.group.tolist())
    for mine, original in zip(back.values, rows.values, strict=True):
        assert mine.tolist() == original.tolist()


def test_the_grid_is_wider_than_the_radius() -> None:
    for predicate, _ in CASES.values():
        if isinstance(predicate, Within):
            assert grid_width(predicate) > grid_radius(predicate)


def test_the_chord_reaches_as_far_as_the_great_circle() -> None:
    """A point at distance d along the surface lies within `grid_radius` of d through the Earth, up to the antipode."""
    earth = Within(("a", "b"), ("a", "b"), 0.0, "haversine")
    angles = np.array([0.0, 1e-6, 0.01, 1.0, 90.0, 179.999, 180.0])
    axes = grid_axes(earth, (np.zeros(7), angles))
    through = np.linalg.norm(axes - axes[0], axis=1)
    for angle, chord in zip(angles, through, strict=True):
        around = replace(earth, radius=float(np.radians(angle) * 6_371_008.8))
        assert chord <= grid_radius(around) <= chord * (1 + 1e-6) + 1e-2
