"""Boxes: conjunctions of overlaps found by one kernel, against each dimension tested by itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Overlaps
from streamjoin.state import Batch, Matching, ValueTest

SIDE = Overlaps(("lo", "hi"), ("lo", "hi"))


def draw(rng: np.random.Generator, rows: int, dimensions: int, kind: type) -> Batch:
    values: list[np.ndarray] = []
    for _ in range(dimensions):
        lo = rng.integers(-4, 12, rows)
        hi = lo + rng.integers(1, 10, rows)
        if kind is np.int64:
            lo, hi = lo + 2**62, hi + 2**62  # as doubles these would all be equal
            values += [lo, hi]
        else:
            values += [np.where(lo == 0, -0.0, lo / 4), np.where(hi == 9, np.inf, hi / 4)]
    ts = rng.integers(0, 20, rows)
    row = pa.table({"row": np.arange(rows)})
    return Batch(row, ts, ts + rng.integers(1, 20, rows), rng.integers(0, 2, rows), tuple(values))


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("timed", [True, False])
def test_differential_boxes_against_all_pairs(dimensions: int, kind: type, timed: bool) -> None:
    tests = tuple(ValueTest(SIDE, 2 * number) for number in range(1, dimensions))
    total = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a, b = (draw(rng, int(rng.choice([1, 40, 40])), dimensions, kind) for _ in range(2))
        expected: Counter = Counter()
        for i in range(len(a)):
            for j in range(len(b)):
                shared = all(
                    max(a.values[low][i], b.values[low][j]) < min(a.values[low + 1][i], b.values[low + 1][j])
                    for low in range(0, 2 * dimensions, 2)
                )
                together = not timed or max(a.ts[i], b.ts[j]) < min(a.te[i], b.te[j])
                expected[i, j] += bool(shared and together and a.group[i] == b.group[j])
        for chunk in (3, 1 << 20):
            matching = Matching(SIDE, tests, timed=timed, chunk=chunk)
            runs = [matching.sorted_run(each) for each in (a, b)]
            rows = [run.rows.payload["row"].to_numpy() for run in runs]
            found = Counter(pair for i, j in matching.pairs(*runs) for pair in zip(rows[0][i], rows[1][j], strict=True))
            assert found == +expected, f"seed {seed}"
        total += sum(expected.values())
    assert total > 100, "the cases themselves are wrong: hardly a pair"


def test_other_tests_are_still_tested() -> None:
    rng = np.random.default_rng(1)
    a, b = (draw(rng, 60, 2, np.float64) for _ in range(2))

    class Even:
        def holds(self, a: Batch, i: np.ndarray, b: Batch, j: np.ndarray) -> np.ndarray:
            return (a.payload["row"].to_numpy()[i] + b.payload["row"].to_numpy()[j]) % 2 == 0

    matching = Matching(SIDE, (ValueTest(SIDE, 2), Even()), timed=False)
    runs = [matching.sorted_run(each) for each in (a, b)]
    rows = [run.rows.payload["row"].to_numpy() for run in runs]
    found = [(rows[0][i] + rows[1][j]) % 2 for i, j in matching.pairs(*runs)]
    assert len(np.concatenate(found)) > 10
    assert not np.concatenate(found).any()
