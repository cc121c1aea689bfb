"""Hashes of key values: 64 bits, the same on every worker and for ever (they decide where state lives).

Numbers are mixed by a bijection, so that different numbers have different hashes. Bytes are folded eight at a time;
different byte strings may collide, so whoever joins on such a hash compares the values as well.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamjoin.kernels.pairs import Indices, compiled, frozen

# What integers are moved by before they are mixed: zero would stay zero.
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


@compiled
def mix(value: np.uint64) -> np.uint64:
    """A bijection of 64 bits that spreads every input bit over all output bits (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _hash_integers(values: Any, out: Any) -> None:
    for row in range(len(values)):
        out[row] = mix(values[row] + GOLDEN)


def hash_integers(values: npt.NDArray[np.int64]) -> Indices:
    """The hash of each integer; different integers have different hashes.

    >>> len(set(hash_integers(np.arange(1000)).tolist()))
    1000
    """
    out = np.empty(len(values), np.uint64)
    _hash_integers(frozen(values).view(np.uint64), out)
    return out.view(np.int64)


@compiled
def _hash_bytes(offsets: Any, data: Any, out: Any) -> None:
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        state = mix(np.uint64(end - start) + np.uint64(0x9E3779B97F4A7C15))
        position = start
        while position < end:
            word = np.uint64(0)
            stop = min(position + 8, end)
            while position < stop:
                word = (word << np.uint64(8)) | np.uint64(data[position])
                position += 1
            state = mix(state ^ word) + np.uint64(0x9E3779B97F4A7C15)
        out[row] = mix(state)


def hash_bytes(offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8]) -> Indices:
    """The hash of each byte string; string r is `data[offsets[r]:offsets[r + 1]]`.

    >>> a, b, c = hash_bytes(np.array([0, 1, 2, 4]), np.frombuffer(b"aaab", np.uint8)).tolist()
    >>> a == b, a == c
    (True, False)
    """
    out = np.empty(len(offsets) - 1, np.uint64)
    _hash_bytes(frozen(offsets), frozen(data), out)
    return out.view(np.int64)


@compiled
def _combine(first: Any, second: Any, out: Any) -> None:
    for row in range(len(first)):
        out[row] = mix(mix(first[row]) + second[row])


def combine_hashes(first: Indices, second: Indices) -> Indices:
    """One hash of two; the order of the two matters.

    >>> one, two = np.array([1]), np.array([2])
    >>> combine_hashes(one, two)[0] == combine_hashes(two, one)[0]
    np.False_
    """
    out = np.empty(len(first), np.uint64)
    _combine(frozen(first).view(np.uint64), frozen(second).view(np.uint64), out)
    return out.view(np.int64)


@compiled
def _hash_lists(offsets: Any, hashes: Any, out: Any) -> None:
    for row in range(len(offsets) - 1):
        state = mix(np.uint64(offsets[row + 1] - offsets[row]) + np.uint64(0x9E3779B97F4A7C15))
        for at in range(offsets[row], offsets[row + 1]):
            state = mix(state + hashes[at])
        out[row] = state


def hash_lists(offsets: Indices, hashes: Indices) -> Indices:
    """The hash of each list of hashes; list r is `hashes[offsets[r]:offsets[r + 1]]`, and its order matters.

    >>> a, b, c = hash_lists(np.array([0, 2, 4, 5]), np.array([1, 2, 1, 2, 1])).tolist()
    >>> a == b, a == c
    (True, False)
    """
    out = np.empty(len(offsets) - 1, np.uint64)
    _hash_lists(frozen(offsets), frozen(hashes).view(np.uint64), out)
    return out.view(np.int64)
