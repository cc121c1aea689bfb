"""Hashes: bit for bit those of a twin on unbounded integers. They decide where state lives:
they must never change."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamjoin.kernels import combine_hashes, hash_bytes, hash_integers
from tests.kernels import twins
from tests.kernels.drawing import POOLS

NUMBERS = [*POOLS["extreme"].tolist(), *range(-20, 20)]


def hashes_of(texts: list[bytes]) -> list[int]:
    offsets = np.cumsum([0] + [len(text) for text in texts])
    return hash_bytes(offsets, np.frombuffer(b"".join(texts), np.uint8)).tolist()


def test_differential_integers() -> None:
    assert hash_integers(np.array(NUMBERS)).tolist() == [twins.hash_integer(number) for number in NUMBERS]


def test_different_integers_have_different_hashes() -> None:
    numbers = np.arange(-5_000, 5_000) * 2**40
    assert len(np.unique(hash_integers(numbers))) == len(numbers)


@pytest.mark.parametrize("seed", range(5))
def test_differential_bytes_of_every_length(seed: int) -> None:
    rng = random.Random(seed)
    texts = [rng.choice([rng.randbytes(length), b"\0" * length, b"\xff" * length]) for length in range(40)]
    rng.shuffle(texts)
    assert hashes_of(texts) == [twins.hash_bytes(text) for text in texts], f"seed {seed}"


def test_bytes_are_told_apart_by_content_and_by_length() -> None:
    texts = [b"", b"\0", b"\0\0", b"\0" * 8, b"\0" * 9, b"a", b"b", b"aaaaaaaab", b"baaaaaaaa", b"aaaaaaaabaaaaaaaa"]
    assert len(set(hashes_of(texts))) == len(texts)


def test_bytes_may_begin_in_the_middle_of_the_data() -> None:
    data = np.frombuffer(b"xxabcyy", np.uint8)
    assert hash_bytes(np.array([2, 4, 5]), data).tolist() == hashes_of([b"ab", b"c"])


def test_no_bytes_no_hashes() -> None:
    assert hash_bytes(np.zeros(1, np.int64), np.empty(0, np.uint8)).tolist() == []


def test_differential_combinations() -> None:
    first, second = (np.array(column) for column in zip(*[(a, b) for a in NUMBERS for b in NUMBERS], strict=True))
    expected = [twins.combine_hashes(int(a), int(b)) for a, b in zip(first, second, strict=True)]
    assert combine_hashes(first, second).tolist() == expected


def test_the_order_of_a_combination_matters() -> None:
    one, two = np.array([1]), np.array([2])
    assert combine_hashes(one, two)[0] != combine_hashes(two, one)[0]


def test_hashes_of_all_time() -> None:
    """Written down once: a change here would send every row of a running query somewhere else."""
    published = [0xE220A8397B1DCDAF, 0x910A2DEC89025CC1]  # the first numbers of splitmix64 from the seeds 0 and 1
    assert hash_integers(np.array([0, 1])).tolist() == [number - 2**64 for number in published]
    assert hashes_of([b"", b"streamjoin"]) == [5197578548964807871, -8933630456968248191]
    assert combine_hashes(np.array([1]), np.array([2])).tolist() == [-1211274664761577749]
