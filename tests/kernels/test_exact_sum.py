"""Exact sums: rounded once, whatever came and went, in whatever order. Against fractions, which never round."""

from __future__ import annotations

import math
import os
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from streamjoin.kernels import LongSums, Reads, Steps, SumsRead, fold_sums
from streamjoin.kernels.exact_sum import PATIENCE

LARGEST = float(np.finfo(np.float64).max)
SMALLEST = 5e-324
MANY = 4_000 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 1_000_000


def read_all(
    values: list[float] | np.ndarray, signs: list[int] | None = None, patience: int = PATIENCE, every: bool = True
) -> SumsRead:
    """The sums of one group after each change, or after the last one."""
    numbers = np.asarray(values, np.int64 if isinstance(values[0], int | np.integer) else np.float64)
    sign = np.ones(len(numbers), np.int8) if signs is None else np.array(signs, np.int8)
    at = np.arange(1, len(numbers) + 1) if every else np.array([len(numbers)])
    sums = LongSums.none(real=numbers.dtype == np.float64, squared=True)
    sums.grow(1)
    if sums.real:
        sums.cover(numbers)
    steps = Steps(np.zeros(len(numbers), np.int64), sign, Reads(at, np.zeros(len(at), np.int64)))
    return fold_sums(steps, numbers, np.cumsum(sign, dtype=np.int64)[at - 1], sums, patience=patience)


def exactly(total: Fraction) -> float:
    try:
        return float(total)  # to nearest, ties to even
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def deviation(values: list[Fraction]) -> Decimal:
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    with localcontext() as context:
        context.prec = 60
        return (Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt()


def wild(rng: np.random.Generator, count: int) -> list[float]:
    """Doubles of all sizes, with few distinct exponents next to each other, so that rounding is hard."""
    near = int(rng.integers(-1074, 960))
    exponents = np.where(rng.random(count) < 0.5, rng.integers(-1074, 970, count), near + rng.integers(0, 60, count))
    mantissas = rng.integers(-(2 ** int(rng.integers(1, 54))), 2**53, count)
    with np.errstate(over="ignore"):
        values = np.ldexp(mantissas.astype(np.float64), exponents)
    values[rng.random(count) < 0.1] = rng.choice([0.0, -0.0, SMALLEST, -SMALLEST, LARGEST, 0.1, 1e300, 1e-300])
    return [value for value in values.tolist() if math.isfinite(value)] + [1.0]


@pytest.mark.parametrize("seed", range(40))
def test_oracle_sums_of_doubles_against_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, signs, living = [], [], []
    for value in wild(rng, 40):
        if living and rng.random() < 0.4:
            values.append(living.pop(int(rng.integers(len(living)))))
            signs.append(-1)
        living.append(value)
        values.append(value)
        signs.append(1)
    read = read_all(values, signs, patience=int(rng.integers(1, 5)))
    total = Fraction(0)
    for value, sign, got in zip(values, signs, read.total.tolist(), strict=True):
        total += sign * Fraction(value)
        assert got == exactly(total), f"seed {seed}"


@pytest.mark.parametrize("seed", range(15))
def test_differential_sums_are_those_of_fsum_in_every_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [value for value in wild(rng, 30) if abs(value) < 1e300]
    expected = math.fsum(values)
    for _ in range(5):
        rng.shuffle(values)
        assert read_all(values, every=False).total.tolist() == [expected], f"seed {seed}"


def test_nothing_is_left_of_what_has_gone() -> None:
    rng = np.random.default_rng(1)
    passing = rng.choice([1e300, -1e300, 1e-300, 0.1, -0.3, 3e-320, 7.7e18], MANY // 2)
    values = np.concatenate([[0.1, 0.2], passing, rng.permutation(passing)])
    signs = np.concatenate([np.ones(2 + len(passing)), -np.ones(len(passing))]).astype(np.int8)
    read = read_all(values, signs.tolist(), every=False)
    assert read.total.tolist() == [0.1 + 0.2]
    assert read.deviation.tolist() == read_all([0.1, 0.2], every=False).deviation.tolist()


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([1.0, 2.0**-53], 1.0),  # a tie, to even
        ([1.0, 2.0**-53, SMALLEST], 1.0 + 2.0**-52),  # not a tie any more
        ([1.0 + 2.0**-52, 2.0**-53], 1.0 + 2.0**-51),
        ([-1.0, -(2.0**-53)], -1.0),
        ([SMALLEST, SMALLEST], 2 * SMALLEST),
        ([2.0**-1022, -SMALLEST], 2.0**-1022 - SMALLEST),
        ([LARGEST, LARGEST], math.inf),
        ([-LARGEST, -(2.0**970)], -math.inf),
        ([LARGEST, 2.0**969], LARGEST),
        ([LARGEST, LARGEST, -LARGEST], LARGEST),
        ([1e16, 1.0, -1e16], 1.0),
        ([0.0, -0.0], 0.0),
    ],
)
def test_rounding_at_the_edges(values: list[float], total: float) -> None:
    assert read_all(values, every=False).total.tolist() == [total]


@pytest.mark.parametrize("seed", range(20))
def test_oracle_deviation_within_two_units_in_the_last_place(seed: int) -> None:
    rng = np.random.default_rng(seed)
    around = float(rng.choice([0.0, 1e9, 1e15, -1e-3]))
    values = wild(rng, 12) if seed % 4 == 0 else (around + rng.normal(size=20)).tolist()
    values = [value for value in values if abs(value) < 1e150]
    (got,) = read_all(values, every=False).deviation.tolist()
    expected = deviation([Fraction(value) for value in values])
    assert abs(Decimal(got) - expected) <= 2 * Decimal(math.ulp(float(expected))), f"seed {seed}"


def test_deviation_at_the_edges() -> None:
    def of(values: list[float]) -> float:
        return float(read_all(values, every=False).deviation[0])

    assert of([1e15, 1e15, 1e15]) == 0.0
    assert of([1e300, -1e300]) == pytest.approx(math.sqrt(2) * 1e300, rel=1e-15)
    assert of([LARGEST, -LARGEST]) == math.inf
    assert of([SMALLEST, 3 * SMALLEST]) == SMALLEST  # 1.414 of them
    assert of([2**63 - 1, -(2**63)]) == pytest.approx(math.sqrt(2) * 2.0**63, rel=1e-15)
    assert of([10**17 + 1, 10**17 + 3]) == math.sqrt(2)


@pytest.mark.parametrize("seed", range(20))
def test_oracle_sums_of_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = [2**63 - 1, -(2**63), -1, 0, 1, 2**32, -(2**32), 2**31 - 1]
    values = rng.integers(-(2**63), 2**63 - 1, 30).tolist() + rng.choice(np.array(edges), 20).tolist()
    rng.shuffle(values)
    signs = [1] * len(values) + [-1] * len(values)
    values = values + rng.permutation(np.array(values)).tolist()
    read = read_all(values, signs, patience=int(rng.integers(1, 5)))
    total = 0
    for i, (value, sign) in enumerate(zip(values, signs, strict=True)):
        total += sign * value
        low, high = int(read.low[i]), int(read.high[i])
        assert (high << 64) + (low & (2**64 - 1)) == total, f"seed {seed}"
        assert read.total[i] == float(total)
    living = [Fraction(value) for value in values[:50]]
    expected = deviation(living)
    assert abs(Decimal(float(read.deviation[49])) - expected) <= 2 * Decimal(math.ulp(float(expected)))


def test_limbs_are_shared_by_groups_and_grow_with_what_comes() -> None:
    sums = LongSums.none(real=True, squared=False)
    for groups, value in ((1, 1.0), (3, 1e-300), (2, 1e300), (5, 0.1)):
        sums.grow(groups)
        values = np.full(groups, value)
        sums.cover(values)
        everyone = np.arange(groups)
        reads = Reads(np.full(groups, groups), everyone)
        read = fold_sums(Steps(everyone, np.ones(groups, np.int8), reads), values, everyone, sums)
    assert read.total.tolist() == [1e300, 1e300, 0.1, 0.1, 0.1]
    sums.carry()
    before = sums.limbs.copy()
    sums.renumber(np.array([1, -1, 0, 2, 3]))
    assert (sums.limbs == before[[2, 0, 3, 4]]).all()
