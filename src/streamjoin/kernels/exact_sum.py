"""Exact sums and standard deviations per group under additions and removals, rounded only when they are read.

Every group has a long accumulator (Kulisch: Computer Arithmetic and Validity, 2008). Adding a value and taking it away
again leaves nothing behind, and the order of additions cannot matter, because nothing is ever rounded.

    a double     mantissa * 2**position in units of 2**-1074, the smallest one; subnormals included
    an integer   itself, in units of one

Squares, for the standard deviation, are summed the same way in units of 2**-2148, each as exact products of parts of
the mantissa. The variance of n values is (n * sum of squares - sum ** 2) / (n * (n - 1)). Its numerator is computed in
limbs, exactly, so nothing cancels; then it is rounded, divided, and its root is taken: within two units in the last
place.

Needs: finite values only (NaN and the infinities are counted elsewhere), fewer than 2**47 values per group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.aggregation import Steps
from streamjoin.kernels.long_accumulator import add_scaled, carry, leading, magnitude, nearest_double, scaled
from streamjoin.kernels.long_sums import SPARE, LongSums
from streamjoin.kernels.pairs import Indices, compiled, frozen

_HIDDEN: Final = 1 << 52  # the leading bit of a normal double, which is not stored
_SMALLEST: Final = -1074  # the exponent of the smallest double
PATIENCE: Final = 1 << 28  # additions to a group until its carries are handed on


@dataclass(frozen=True)
class SumsRead:
    """What was read: the sum as a double, of integers also as 128 bits in two halves, and the standard deviation.

    `low` and `high` are empty for doubles, `deviation` is empty where squares are not kept.
    """

    total: npt.NDArray[np.float64]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    deviation: npt.NDArray[np.float64]


@compiled
def _add_double(
    limbs: Any, first: int, base: int, squares: Any, squares_first: int, squares_base: int, bits: int, sign: int
) -> None:
    mantissa, position = bits & (_HIDDEN - 1), (bits >> 52) & 2047
    if position:
        mantissa |= _HIDDEN
        position -= 1
    if mantissa == 0:
        return
    add_scaled(limbs, first, mantissa, position - 32 * base, -sign if bits < 0 else sign)
    if len(squares):
        high, low = mantissa >> 27, mantissa & ((1 << 27) - 1)
        position = 2 * position - 32 * squares_base
        add_scaled(squares, squares_first, low * low, position, sign)
        add_scaled(squares, squares_first, 2 * high * low, position + 27, sign)
        add_scaled(squares, squares_first, high * high, position + 54, sign)


@compiled
def _add_integer(limbs: Any, first: int, squares: Any, squares_first: int, value: int, sign: int) -> None:
    add_scaled(limbs, first, value, 0, sign)
    if len(squares):
        low, middle, high = value & ((1 << 22) - 1), (value >> 22) & ((1 << 22) - 1), value >> 44
        add_scaled(squares, squares_first, low * low, 0, sign)
        add_scaled(squares, squares_first, 2 * low * middle, 22, sign)
        add_scaled(squares, squares_first, middle * middle + 2 * low * high, 44, sign)
        add_scaled(squares, squares_first, 2 * middle * high, 66, sign)
        add_scaled(squares, squares_first, high * high, 88, sign)


@compiled
def _deviation(
    digits: Any, square_of_sum: int, squares: Any, first: int, width: int, sum_of_squares: int, n: int, work: Any
) -> tuple[float, int]:
    """`(x, e)` such that the standard deviation of n values is `x * 2**e`, in units of the limbs of `work`.

    `digits` are those of the sum. In `work` its square begins at limb `square_of_sum`, and the sum of squares at limb
    `sum_of_squares`.
    """
    work[:] = 0
    for place in range(width):
        for part in range(3):
            share = (n >> (16 * part)) & 65535
            add_scaled(work, 0, squares[first + place] * share, 32 * (sum_of_squares + place) + 16 * part, 1)
    for i in range(len(digits)):
        if digits[i]:
            for j in range(len(digits)):
                position = 32 * (square_of_sum + i + j)
                add_scaled(work, 0, digits[i] * (digits[j] & 65535), position, -1)
                add_scaled(work, 0, digits[i] * (digits[j] >> 16), position + 16, -1)
    carry(work, 0, len(work))
    word, exponent = leading(work, len(work))
    if exponent & 1:
        word *= 2
        exponent -= 1
    return math.sqrt(float(word) / (float(n) * float(n - 1))), exponent // 2


@compiled
def _fold_sums(
    group: Any,
    sign: Any,
    bits: Any,
    at: Any,
    who: Any,
    elements: Any,
    patience: int,
    real: bool,
    limbs: Any,
    base: int,
    width: int,
    squares: Any,
    squares_base: int,
    squares_width: int,
    pending: Any,
    out_total: Any,
    out_low: Any,
    out_high: Any,
    out_deviation: Any,
) -> None:
    read, reads = 0, len(at)
    unit = _SMALLEST if real else 0
    digits = np.zeros(width, np.int64)
    lowest = min(2 * base, squares_base)
    work = np.zeros(max(2 * (base + width), squares_base + squares_width) - lowest + SPARE, np.int64)
    for change in range(len(group) + 1):
        while read < reads and at[read] == change:
            first, squares_first = who[read] * width, who[read] * squares_width
            carry(limbs, first, width)
            carry(squares, squares_first, squares_width)
            pending[who[read]] = 0
            negative = magnitude(limbs, first, width, digits)
            word, exponent = leading(digits, width)
            total = nearest_double(word, exponent + 32 * base + unit)
            out_total[read] = -total if negative else total
            if not real:
                out_low[read] = limbs[first] | (limbs[first + 1] << 32)
                out_high[read] = limbs[first + 2] | (limbs[first + 3] << 32)
            if len(out_deviation):
                deviation, exponent = 0.0, 0
                if elements[read] > 1:
                    deviation, exponent = _deviation(
                        digits,
                        2 * base - lowest,
                        squares,
                        squares_first,
                        squares_width,
                        squares_base - lowest,
                        elements[read],
                        work,
                    )
                out_deviation[read] = scaled(deviation, exponent + 16 * lowest + unit)
            read += 1
        if change < len(group):
            here = group[change]
            first, squares_first = here * width, here * squares_width
            if real:
                _add_double(limbs, first, base, squares, squares_first, squares_base, bits[change], sign[change])
            else:
                _add_integer(limbs, first, squares, squares_first, bits[change], sign[change])
            pending[here] += 1
            if pending[here] >= patience:
                carry(limbs, first, width)
                carry(squares, squares_first, squares_width)
                pending[here] = 0


def fold_sums(
    steps: Steps, values: npt.NDArray[Any], elements: Indices, sums: LongSums, *, patience: int = PATIENCE
) -> SumsRead:
    """The sums at each read, when every change adds its value to its group or takes it away. `sums` is brought up to
    date. `values` are int64, or finite float64 that `sums` covers; `elements` says how many values there are at a read.

    >>> from streamjoin.kernels.aggregation import Reads
    >>> sums = LongSums.none(real=True, squared=True)
    >>> sums.grow(1)
    >>> values = np.array([1e16, 1.0, -1e16, 2.0])
    >>> sums.cover(values)
    >>> steps = Steps(np.zeros(4, np.int64), np.ones(4, np.int8), Reads(np.array([4]), np.array([0])))
    >>> read = fold_sums(steps, values, np.array([4]), sums)
    >>> read.total.tolist(), read.deviation.tolist()
    ([3.0], [8164965809277260.0])
    """
    count, reads = len(steps.reads), steps.reads
    squared = sums.squares.shape[1] > 0
    halves = 0 if sums.real else count
    out = SumsRead(
        np.empty(count, np.float64),
        np.empty(halves, np.int64),
        np.empty(halves, np.int64),
        np.empty(count if squared else 0, np.float64),
    )
    changes = (frozen(array) for array in (steps.group, steps.sign, values.view(np.int64)))
    read = (frozen(array) for array in (reads.at, reads.who, elements))
    limbs = (sums.limbs.reshape(-1), sums.base, sums.limbs.shape[1])
    squares = (sums.squares.reshape(-1), sums.squares_base, sums.squares.shape[1])
    results = (out.total, out.low, out.high, out.deviation)
    arguments: Any = (*changes, *read, patience, sums.real, *limbs, *squares, sums.pending, *results)
    _fold_sums(*arguments)
    return out
