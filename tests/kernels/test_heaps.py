"""Heaps with lazy deletion: the least living entry, against a sorted list; and that what has gone is let go of."""

from __future__ import annotations

import os

import numpy as np
import pytest

from streamjoin.kernels import Heaps, Reads, Steps, Text, fold_heaps

ROUNDS = 200 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 20_000
WORDS = [b"", b"a", b"a\0", b"ab", b"\xff", b"abcdefghi", b"abcdefghj", b"b"]


def text_of(words: list[bytes], direction: int) -> Text:
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in words])])
    return offsets.astype(np.int64), np.frombuffer(b"".join(words), np.uint8), direction


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("direction", [0, 1, -1])
def test_oracle_least_living_entry(seed: int, direction: int) -> None:
    rng = np.random.default_rng(seed)
    text = text_of(WORDS, direction) if direction else None
    order = (lambda entry: (WORDS[entry], 0)) if direction else (lambda entry: (entry, 0))
    best = max if direction < 0 else min
    heaps, groups = Heaps(), 3
    heaps.grow(groups)
    living: list[list[int]] = [[] for _ in range(groups)]
    for _ in range(4):
        group, sign, entry, expected = [], [], [], []
        for who in range(groups):
            for _ in range(int(rng.integers(0, 40))):
                gone = bool(living[who]) and rng.random() < 0.55
                value = living[who].pop(int(rng.integers(len(living[who])))) if gone else int(rng.integers(len(WORDS)))
                if not gone:
                    living[who].append(value)
                group.append(who)
                sign.append(-1 if gone else 1)
                entry.append(value)
                expected.append(best(living[who], key=order) if living[who] else None)
        reads = Reads(np.arange(1, len(group) + 1), np.array(group, np.int64))
        steps = Steps(np.array(group, np.int64), np.array(sign, np.int8), reads)
        found = fold_heaps(steps, np.array(entry, np.int64), heaps, text).tolist()
        known = [(got, want) for got, want in zip(found, expected, strict=True) if want is not None]
        assert [got for got, _ in known] == [want for _, want in known], f"seed {seed}"
    who, entries = heaps.living(text)
    assert sorted(zip(who.tolist(), entries.tolist(), strict=True)) == sorted(
        (group, entry) for group, kept in enumerate(living) for entry in kept
    )
    assert heaps.entries == len(entries)


def test_memory_follows_what_lives() -> None:
    heaps = Heaps()
    heaps.grow(1)
    none = np.zeros(0, np.int64)
    rng = np.random.default_rng(0)
    window = rng.integers(0, 1 << 40, 50)
    zeros = np.zeros(50, np.int64)
    fold_heaps(Steps(zeros, np.ones(50, np.int8), Reads(none, none)), window, heaps, None)
    for _ in range(ROUNDS // 50):
        following = rng.integers(0, 1 << 40, 50)
        entries = np.stack([following, window], axis=1).ravel()
        signs = np.tile(np.array([1, -1], np.int8), 50)
        fold_heaps(Steps(np.zeros(100, np.int64), signs, Reads(none, none)), entries, heaps, None)
        window = following
    assert heaps.entries <= 200
    assert len(heaps.pool) <= 4096
    many = rng.integers(0, 1 << 40, 3000)
    zeros = np.zeros(len(many), np.int64)
    for sign in (1, -1):
        fold_heaps(Steps(zeros, np.full(len(many), sign, np.int8), Reads(none, none)), many, heaps, None)
    assert heaps.entries <= 200
    assert len(heaps.pool) <= 4096
    assert sorted(heaps.living(None)[1].tolist()) == sorted(window.tolist())


def test_groups_move_with_their_heaps() -> None:
    heaps, none = Heaps(), np.zeros(0, np.int64)
    heaps.grow(3)
    group = np.array([0, 0, 2, 2, 2])
    fold_heaps(Steps(group, np.ones(5, np.int8), Reads(none, none)), np.array([4, 2, 9, 7, 8]), heaps, None)
    heaps.renumber(np.array([1, -1, 0]))
    assert fold_heaps(Steps.none(np.array([0, 1])), none, heaps, None).tolist() == [7, 2]
