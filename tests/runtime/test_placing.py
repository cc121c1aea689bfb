"""Partitioning: every pair meets in exactly one bucket, every row has one home, places follow from content alone."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER, NEVER, Band, Overlaps, Within
from streamjoin.algebra.interval import share_an_instant
from streamjoin.kernels import hash_integers
from streamjoin.runtime.placing import (
    HomePartitioning,
    MatrixPartitioning,
    Partitioning,
    ReferencePartitioning,
    default_cell,
    distribute,
    origins,
)
from streamjoin.state import Batch
from tests.state.making import batch, ids

INFINITY = np.inf
REALS = np.array([-7.3, -1.0, -0.0, 0.1, 0.3, 0.4, 1.0, 5.5, 6.0, 1e6])
INFINITE = np.array([-INFINITY, -1e308, -1.0, 0.0, 1.0, 1e308, INFINITY])
INTEGERS = np.array([NEVER, NEVER + 1, -9, -1, 0, 1, 2, 2**53 + 1, FOREVER - 1, FOREVER])
DEGREES = np.array([-90.0, -45.0, 0.0, 0.2, 45.0, 89.9])


@dataclass(frozen=True)
class Case:
    """A partitioning, what a pair must fulfil, and the values that rows are drawn from."""

    partitioning: Partitioning
    predicate: Band | Within | Overlaps | None = None
    pools: tuple[np.ndarray, ...] = ()
    groups: int = 1
    timed: bool = False


def _home(predicate: Band | Within, cell: float, home: int, *pools: np.ndarray, buckets: int = 5) -> Case:
    return Case(HomePartitioning(buckets, predicate, cell, home), predicate, pools)


BOX = Overlaps(("lo", "hi"), ("lo", "hi"))
HUGE = Band("v", "v", 1.7e308, 1.7e308)
FAR = Within(("x", "y"), ("x", "y"), 1.797e308, "chebyshev")
PLANE, SPACE = ("x", "y"), ("x", "y", "z")
CASES = {
    "one bucket": Case(Partitioning(1)),
    "by hash": Case(Partitioning(4), groups=9),
    "band": _home(Band("v", "v", 0.3, 1.0), 2.0, 0, REALS),
    "band at home on input 1": _home(Band("v", "v", 0.3, 1.0), 2.0, 1, REALS),
    "band in narrow cells": _home(Band("v", "v", 0.1, 0.1, "neither"), 0.01, 0, REALS),
    "band in wide cells": _home(Band("v", "v", 0.3, 1.0), 1e9, 0, REALS),
    "band above": _home(Band("v", "v", -0.3, 6.0), 1.0, 0, REALS),
    "band of huge bounds": _home(HUGE, default_cell(HUGE), 0, INFINITE),
    "band of huge bounds in narrow cells": _home(HUGE, 1e-300, 1, INFINITE),
    "far apart": _home(FAR, default_cell(FAR), 0, INFINITE, INFINITE),
    "band of infinite values": _home(Band("v", "v", 1.0, 1.0), 1.0, 0, INFINITE),
    "endless band": _home(Band("v", "v", INFINITY, 0.5), 1.0, 0, INFINITE),
    "endless band at home on input 1": _home(Band("v", "v", 0.5, INFINITY), 1.0, 1, INFINITE),
    "band upwards without end": _home(Band("v", "v", 0.5, INFINITY), 1.0, 0, INFINITE),
    "band downwards without end at home on input 1": _home(Band("v", "v", INFINITY, 0.5), 1.0, 1, INFINITE),
    "band without bounds": _home(Band("v", "v", INFINITY, INFINITY), 1.0, 0, INFINITE),
    "band of integers": _home(Band("n", "n", 1, 2), 3.0, 0, INTEGERS),
    "endless band of integers": _home(Band("n", "n", FOREVER, 1), 3.0, 1, INTEGERS),
    "line": _home(Within(("x",), ("x",), 0.7), 1.0, 0, REALS),
    "plane": _home(Within(PLANE, PLANE, 1.0, "manhattan"), 1.5, 0, REALS, REALS),
    "plane at home on input 1": _home(Within(PLANE, PLANE, 1.0), 0.3, 1, REALS, REALS),
    "space": _home(Within(SPACE, SPACE, 1.0, "chebyshev"), 1.5, 0, REALS, REALS, REALS),
    "more axes than the grid has": _home(Within(("a", *SPACE), ("a", *SPACE), 1.0), 2.0, 0, *[REALS] * 4),
    "the same place": _home(Within(PLANE, PLANE, 0.0), 1.0, 0, REALS, REALS),
    "earth": _home(Within(PLANE, PLANE, 30_000.0, "haversine"), 1e5, 0, DEGREES, 2 * DEGREES),
    "half the earth": _home(Within(PLANE, PLANE, 1.5e7, "haversine"), 1e6, 1, DEGREES, 2 * DEGREES),
    "intervals": Case(ReferencePartitioning(5, 1.0, False), BOX, (REALS, REALS)),
    "intervals of integers": Case(ReferencePartitioning(5, 3.0, False), BOX, (INTEGERS, INTEGERS)),
    "endless intervals": Case(ReferencePartitioning(5, 1.0, False), BOX, (INFINITE, INFINITE)),
    "validity": Case(ReferencePartitioning(3, 2.5, True), timed=True),
    "matrix of 6": Case(MatrixPartitioning(6), pools=(REALS,)),
    "matrix of 4": Case(MatrixPartitioning(4), pools=(REALS,)),
    "matrix of 5": Case(MatrixPartitioning(5), pools=(INTEGERS,)),
}


def drawn(rng: np.random.Generator, case: Case, rows: int) -> Batch:
    ts = rng.choice(np.array([NEVER, -9, 0, 1, 2, 3, 10]), rows)
    te = np.maximum(ts + 1, rng.choice(np.array([0, 2, 5, 11, FOREVER]), rows))
    values = [rng.choice(pool, rows) for pool in case.pools]
    matchable = rng.random(rows) < 0.9
    if case.predicate == BOX:
        matchable &= values[0] < values[1]
    return batch(
        list(zip(ts.tolist(), te.tolist(), strict=True)),
        group=rng.integers(0, case.groups, rows).tolist(), values=values, matchable=matchable.tolist(),
    )  # fmt: skip


def pairs(case: Case, a: Batch, b: Batch, bucket: int | None = None) -> Counter[tuple[int, int]]:
    """All pairs that match, by ids; with a bucket only those that belong there."""
    i, j = (index.ravel() for index in np.indices((len(a), len(b))))
    mask = (a.group[i] == b.group[j]) & a.matchable[i] & b.matchable[j]
    if case.timed:
        mask &= share_an_instant(a.ts[i], a.te[i], b.ts[j], b.te[j])
    if case.predicate is not None:
        mask &= case.predicate.holds([column[i] for column in a.values], [column[j] for column in b.values])
    i, j = i[mask], j[mask]
    test = None if bucket is None else case.partitioning.owner_test(bucket)
    if test is not None:
        keep = test.holds(a, i, b, j)
        i, j = i[keep], j[keep]
    return Counter(zip(ids(a.take(i)), ids(b.take(j)), strict=True))


def spread(case: Case, number: int, rows: Batch, *, follow: bool = False) -> dict[int, Batch]:
    hashes = hash_integers(rows.group) if case.groups > 1 else None
    placed = list(distribute(case.partitioning, number, rows, hashes, follow=follow))
    assert len({bucket for bucket, _ in placed}) == len(placed), "a bucket twice"
    assert all(0 <= bucket < case.partitioning.buckets for bucket, _ in placed)
    return dict(placed)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_oracle_every_pair_meets_in_exactly_one_bucket(name: str, seed: int) -> None:
    case, rng = CASES[name], np.random.default_rng(seed)
    a, b = drawn(rng, case, 40), drawn(rng, case, 40)
    left, right = spread(case, 0, a), spread(case, 1, b)
    met: Counter[tuple[int, int]] = Counter()
    for bucket in set(left) & set(right):
        met += pairs(case, left[bucket], right[bucket], bucket)
    expected = pairs(case, a, b)
    assert expected, "the example itself is wrong: no pairs"
    assert met == expected, f"seed {seed}"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("number", [0, 1])
def test_contract_every_row_has_exactly_one_home_and_is_nowhere_twice(name: str, number: int) -> None:
    case = CASES[name]
    rows = drawn(np.random.default_rng(number), case, 60)
    parts = spread(case, number, rows, follow=True)
    homes = Counter(row for part in parts.values() for row in ids(part.take(part.home)))
    assert homes == Counter(range(60))
    expected = origins(rows, ())
    for part in parts.values():
        assert len(set(ids(part))) == len(part), "twice in one bucket"
        assert part.origin.tolist() == expected[ids(part)].tolist(), "replicas of a row differ in their origin"
        assert part.ts.tolist() == rows.ts[ids(part)].tolist()
    if not case.partitioning.replicates[number]:
        assert sum(len(part) for part in parts.values()) == 60


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("number", [0, 1])
def test_contract_places_follow_from_the_row_alone(name: str, number: int) -> None:
    """Neither from its neighbours in the batch, nor from its position: a task that runs again does the same."""
    case, rng = CASES[name], np.random.default_rng(number)
    rows = drawn(rng, case, 30)

    def places(parts: list[Batch]) -> set[tuple[int, int]]:
        return {
            (row, bucket) for part in parts for bucket, some in spread(case, number, part).items() for row in ids(some)
        }

    whole = places([rows])
    order = rng.permutation(30)
    assert places([rows.take(order)]) == whole
    assert places([rows.take(order[:7]), rows.take(order[7:])]) == whole


@pytest.mark.parametrize("name", CASES)
def test_no_rows_go_nowhere(name: str) -> None:
    case = CASES[name]
    rows = drawn(np.random.default_rng(0), case, 3).empty()
    assert spread(case, 0, rows) == spread(case, 1, rows, follow=True) == {}


@pytest.mark.parametrize(
    "values",
    [
        pa.array([None, math.nan, 0.0, 1.0]),
        pa.array([None, "", "a"]),
        pa.array([None, 0, 1]),
        pa.array([None, Decimal("0.5"), Decimal("1.5")]),
        pa.array([None, {"x": None}, {"x": 0}, {"x": 1}]),
        pa.array([None, {"x": {"y": None}}, {"x": {"y": 1}}]),
    ],
    ids=lambda values: str(values.type),
)
def test_what_an_expression_can_tell_apart_has_different_origins(values: pa.Array) -> None:
    """`l.v IS NULL` holds for NULL, not for NaN; `l.s IS NULL` holds for NULL, not for a struct of NULLs."""
    rows = len(values)
    plain = batch([(0, 5)] * rows)
    read = replace(plain, payload=pa.table({"v": values}))
    assert len(set(origins(read, ()).tolist())) == 1
    assert len(set(origins(read, ("v",)).tolist())) == rows
    twice = replace(plain, payload=pa.table({"v": values.take(pa.array([0] * rows))}))
    assert len(set(origins(twice, ("v",)).tolist())) == 1


def test_only_what_is_declared_to_be_copied_is_copied() -> None:
    assert Partitioning(4).replicates == (False, False)
    assert HomePartitioning(4, Band("v", "v", 1, 1), 1.0, 0).replicates == (False, True)
    assert HomePartitioning(4, Band("v", "v", 1, 1), 1.0, 1).replicates == (True, False)
    assert ReferencePartitioning(4, 1.0, True).replicates == (True, True)
    assert MatrixPartitioning(6).replicates == (True, True)
    assert MatrixPartitioning(5).replicates == (True, False)
    assert MatrixPartitioning(1).replicates == (False, False)


def test_a_row_that_can_match_nothing_is_not_copied_over_a_long_interval() -> None:
    rows = batch([(NEVER, FOREVER)], values=[[0.0], [1e9]], matchable=[False])
    for on_time in (True, False):
        placed = ReferencePartitioning(8, 1.0, on_time).place(0, rows)
        assert len(placed.rows) == 1


@pytest.mark.parametrize(
    ("buckets", "shape"), [(1, (1, 1)), (2, (1, 2)), (4, (2, 2)), (6, (2, 3)), (7, (1, 7)), (12, (3, 4))]
)
def test_a_matrix_is_as_square_as_can_be(buckets: int, shape: tuple[int, int]) -> None:
    assert MatrixPartitioning(buckets).shape == shape


def test_cells_follow_from_the_reach_of_the_predicate() -> None:
    assert default_cell(Band("v", "v", 0.5, 1.5)) == 16.0
    assert default_cell(Within(PLANE, PLANE, 3.0)) == 48.0
    for without_reach in (
        Band("v", "v", 0, 0),
        Band("v", "v", 1, -1),
        Band("v", "v", INFINITY, 0.0),
        Within(PLANE, PLANE, 0.0),
    ):
        assert default_cell(without_reach) == 1.0


def test_by_hash_rows_of_one_hash_are_together_and_without_one_all_are() -> None:
    rows = batch([(0, 5)] * 64)
    hashes = hash_integers(np.arange(64) % 8)
    buckets = Partitioning(5).place(0, rows, hashes).buckets
    assert (buckets[:8] == buckets[8:16]).all()
    assert set(buckets.tolist()) == set((hashes.view(np.uint64) % 5).tolist())
    assert set(Partitioning(5).place(0, rows).buckets.tolist()) == {0}
    assert set(Partitioning(1).place(0, rows, hashes).buckets.tolist()) == {0}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("number", [0, 1])
def test_a_bucket_knows_which_of_its_rows_are_counted_there(name: str, number: int) -> None:
    """Without a mark on the rows: where they are at home follows from their content."""
    case = CASES[name]
    parts = spread(case, number, drawn(np.random.default_rng(number), case, 60))
    counted: Counter[int] = Counter()
    for bucket, part in parts.items():
        counted += Counter(ids(part.take(case.partitioning.at_home(bucket, number, part))))
    assert counted == Counter(range(60))


def test_every_partitioning_describes_itself_and_its_copies() -> None:
    band, near = Band("v", "v", 1, 1), Within(PLANE, PLANE, 1.0)
    earth = Within(PLANE, PLANE, 1e5, "haversine")
    copies = "cell that a partner may be in (about {} copies of a row)"
    texts = {
        Partitioning(1): "one bucket",
        Partitioning(4): "hash of the equality keys over 4 buckets, no row twice",
        HomePartitioning(4, band, 8.0, 1): "grid of cell 8 over 4 buckets: input 1 in its home cell, input 0 in every "
        + copies.format("1.25"),
        HomePartitioning(9, near, 2.0): "grid of cell 2 over 9 buckets: input 0 in its home cell, input 1 in every "
        + copies.format("4.00"),
        HomePartitioning(3, earth, 1.0): "grid of cell 1 over 3 buckets: input 0 in its home cell, input 1 in every "
        + copies.format("3.00"),
        ReferencePartitioning(4, 0.5, True): "grid of cell 0.5 over 4 buckets: both inputs in every cell they cover, a "
        "pair is kept where the larger of its two starts lies",
        MatrixPartitioning(6): "matrix of 2 x 3 buckets: input 0 3 times, input 1 2 times",
    }
    assert {one: one.describe() for one in texts} == texts


def test_an_origin_follows_from_what_decides_about_a_row_not_from_its_place() -> None:
    rng = np.random.default_rng(0)
    rows = drawn(rng, CASES[next(iter(CASES))], 60)
    shuffled = rng.permutation(60)
    assert origins(rows.take(shuffled), ()).tolist() == origins(rows, ())[shuffled].tolist()
    payload = pa.table({"id": [0, 0, 1], "s": ["a", "b", "a"], "o": [{"x": 1}, {"x": 1}, {"x": None}]})
    zero = np.zeros(3, np.int64)
    batch = Batch(payload, zero, zero + 1, zero)
    assert len(set(origins(batch, ()).tolist())) == 1, "columns that no expression reads do not count"
    assert len(set(origins(batch, ("s",)).tolist())) == 2
    first, second, third = origins(batch, ("o",)).tolist()
    assert first == second != third


@pytest.mark.parametrize("predicate", [HUGE, FAR, Band("v", "v", 1e308, INFINITY), Within(PLANE, PLANE, 1e308)])
@pytest.mark.parametrize("cell", [None, 1e-300, 1.0, 1.7e308])
def test_huge_bounds_and_values_do_not_reach_the_terminal(predicate: Band | Within, cell: float | None) -> None:
    partitioning = HomePartitioning(4, predicate, cell or default_cell(predicate))
    axes = np.meshgrid(INFINITE, INFINITE)
    rows = batch([(0, 9)] * axes[0].size, values=[axis.ravel() for axis in axes])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isfinite(partitioning.cell)
        assert partitioning.describe()
        for number in (0, 1):
            placed = partitioning.place(number, rows)
            assert set(placed.rows.tolist()) == set(range(len(rows)))


@pytest.mark.parametrize("follow", [False, True])
def test_rows_keep_all_that_belongs_to_them_wherever_they_go(follow: bool) -> None:
    rows = drawn(np.random.default_rng(0), CASES["matrix of 4"], 30)
    rows = replace(rows, holder=np.arange(30), sign=np.where(rows.ts % 2, 1, -1).astype(np.int8))
    for _, part in distribute(MatrixPartitioning(4), 0, rows, follow=follow):
        mine = np.array(ids(part))
        assert part.holder.tolist() == rows.holder[mine].tolist()
        assert part.sign.tolist() == rows.sign[mine].tolist()
        assert (part.origin is not None) is (part.home is not None) is follow
