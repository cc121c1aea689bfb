"""The driver of every pair kernel: count a chunk, allocate exactly, fill it, go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import overload

Indices = npt.NDArray[np.int64]
Pairs = tuple[Indices, Indices]

# About 1M pairs: 16 MB of indices, small enough to stay near the cache, large enough to make the call overhead vanish.
PAIRS_PER_CHUNK: Final = 1 << 20

compiled = numba.njit(cache=True, nogil=True)


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A contiguous read-only view. Arrow's arrays are read-only, numpy's are not, and numba would compile a kernel for
    every mixture of the two: with this there is one.

    >>> frozen(np.arange(3)).flags.writeable
    False
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def in_chunks(
    kernel: Callable[..., Any], sides: tuple[Any, ...], state: tuple[int, ...], limit: int
) -> Iterator[Pairs]:
    """Run `kernel` from `state` to its end, yielding index pairs chunk by chunk.

    The kernel returns `(found, done, *next_state)`. Counting and filling start from the same state and take the same
    decisions, so what was counted is exactly what is filled.
    """
    sides = tuple(frozen(part) if isinstance(part, np.ndarray) else part for part in sides)
    done = False
    while not done:
        found, done, *following = kernel(*sides, *state, limit, None, None)
        if found:
            first, second = np.empty(found, np.int64), np.empty(found, np.int64)
            kernel(*sides, *state, limit, first, second)
            yield first, second
        state = tuple(following)


def _plain(a: Any, b: Any) -> Any:
    return a - b


def _saturating(a: Any, b: Any) -> Any:
    # Asked before subtracting: compiled code may assume that a signed subtraction never wraps around.
    if b < 0 and a > 9223372036854775807 + b:
        return 9223372036854775807
    if b >= 0 and a < -9223372036854775807 + b:
        return -9223372036854775807
    return a - b


def difference(a: Any, b: Any) -> Any:
    """`a - b`; integers too far apart saturate at +-(2**63 - 1), so that negating a difference is exact."""
    return a - b if isinstance(a, float) else _saturating(int(a), int(b))


@overload(difference)
def _difference_by_type(a: Any, b: Any) -> Any:
    return _plain if isinstance(a, numba.types.Float) else _saturating


@compiled
def first_not_below(column: Any, value: Any, start: int, end: int) -> int:
    """The first position in the sorted `column[start:end]` whose entry is not below `value`.

    Gallops from `start`: two steps when the answer is near (two inputs of similar size), logarithmic when it is far (a
    small batch against a large run).
    """
    if start >= end or column[start] >= value:
        return start
    step, low = 1, start
    while low + step < end and column[low + step] < value:
        low += step
        step *= 2
    high = min(low + step, end)
    low += 1
    while low < high:
        middle = (low + high) // 2
        if column[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def end_of_group(column: Any, start: int, end: int) -> int:
    """One past the last entry of the sorted `column[start:end]` that equals the entry at `start`."""
    value = column[start]
    step, low = 1, start
    while low + step < end and column[low + step] == value:
        low += step
        step *= 2
    high = min(low + step, end)
    low += 1
    while low < high:
        middle = (low + high) // 2
        if column[middle] == value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def below_band(gap: Any, low: Any, low_closed: bool) -> bool:
    """Whether a difference lies below a band that begins at `low`."""
    return gap < low or (not low_closed and gap == low)


@compiled
def first_in_band(column: Any, value: Any, low: Any, low_closed: bool, start: int, end: int) -> int:
    """The first position in the sorted `column[start:end]` that is not below the band around `value`.

    Gallops as `first_not_below` does, but by differences.
    """
    if start >= end or not below_band(difference(column[start], value), low, low_closed):
        return start
    step, place = 1, start
    while place + step < end and below_band(difference(column[place + step], value), low, low_closed):
        place += step
        step *= 2
    top = min(place + step, end)
    place += 1
    while place < top:
        middle = (place + top) // 2
        if below_band(difference(column[middle], value), low, low_closed):
            place = middle + 1
        else:
            top = middle
    return place
