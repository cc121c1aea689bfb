"""Similarity joins against all pairs: sets and texts, by every measure; and what their contents are."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Similar
from streamjoin.kernels import JACCARD, TokenIndex, order_equal_hashes, prefix_lengths, similar_pairs
from streamjoin.state import Batch, Matching, SimilarTest, content_of
from streamjoin.state.contents import token_lists
from tests import seeds

WORDS = ["a", "b", "c", "d", "e", "f", "ä", "a\u0308", "👩\u200d🚀", "👩", "", "zz", "aa"]
LETTERS = ["a", "b", "ä", "a\u0308", "👩", "\u200d", "漢"]


def shared(one: list | None, two: list | None) -> tuple[int, int, int]:
    first, second = ({each for each in side or [] if each is not None} for side in (one, two))
    return len(first & second), len(first), len(second)


def by_hand(measure: str, threshold: float, one: list | str | None, two: list | str | None) -> bool:
    """In fractions and by the table of all prefixes: nothing of it is what the library does."""
    if one is None or two is None:
        return False
    if measure == "edit":
        table = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(two) + 1)}
        for i in range(1, len(one) + 1):
            for j in range(1, len(two) + 1):
                change = table[i - 1, j - 1] + (one[i - 1] != two[j - 1])
                table[i, j] = min(change, table[i - 1, j] + 1, table[i, j - 1] + 1)
        return table[len(one), len(two)] <= threshold
    common, a, b = shared(one, two)  # type: ignore[arg-type]
    if not common:
        return False
    if measure == "overlap":
        return common >= threshold
    if measure == "jaccard":
        return float(Fraction(common, a + b - common)) >= threshold
    return common / math.sqrt(a * b) >= threshold


def draw(rng: random.Random, measure: str, rows: int, integers: bool) -> pa.Array:
    if measure == "edit":
        words = ["".join(rng.choices(LETTERS, k=rng.randint(0, 7))) for _ in range(5)]
        texts: list[str | None] = []
        for _ in range(rows):
            letters = list(rng.choice(words))
            for _ in range(rng.randint(0, 3)):
                at = rng.randint(0, len(letters))
                letters[at : at + rng.randint(0, 1)] = rng.choices(LETTERS, k=rng.randint(0, 1))
            texts.append(None if rng.random() < 0.1 else "".join(letters) * rng.choice([1, 1, 2]))
        return pa.array(texts, pa.string())
    pool: list = [-3, 0, 1, 2, 7, 8, 2**62, -(2**63)] if integers else rng.sample(WORDS, 8)
    lists = [
        None if rng.random() < 0.1 else rng.choices([*pool, *pool, None], k=rng.choice([0, 1, 2, 3, 6, 9]))
        for _ in range(rows)
    ]
    return pa.array(lists, pa.list_(pa.int64() if integers else pa.string()))


def batch_of(predicate: Similar, content: pa.Array, group: np.ndarray, ts: np.ndarray, te: np.ndarray) -> Batch:
    made, there = content_of(predicate, pa.chunked_array([content]))
    number = pa.table({"row": np.arange(len(content))})
    return Batch(number, ts, te, group, contents=pa.table({"0": made})).take(there)


def found_pairs(matching: Matching, a: Batch, b: Batch) -> Counter:
    runs = [matching.sorted_run(each) for each in (a, b)]
    rows = [run.rows.payload["row"].to_numpy() for run in runs]
    return Counter(pair for i, j in matching.pairs(*runs) for pair in zip(rows[0][i], rows[1][j], strict=True))


THRESHOLDS = {
    "jaccard": [0.1, 1 / 3, 0.5, 0.6, 0.8, 1.0],
    "cosine": [0.1, 0.5, 1 / math.sqrt(2), 0.8, 1.0],
    "overlap": [1, 2, 3],
    "edit": [0, 1, 2, 3, 9],
}


@pytest.mark.parametrize("part", seeds.parts(2))
@pytest.mark.parametrize("measure", THRESHOLDS)
def test_differential_against_all_pairs(measure: str, part: int) -> None:
    """100 random cases each: with and without groups and time, in chunks, by kernel and as a test of given pairs."""
    total = 0
    for seed in range(part, 200, 2):
        rng, numbers = random.Random(seed), np.random.default_rng(seed)
        predicate = Similar("t", "t", measure, rng.choice(THRESHOLDS[measure]))  # type: ignore[arg-type]
        integers, timed, groups = rng.random() < 0.3, rng.random() < 0.5, rng.choice([1, 3])
        sides, columns = [], []
        for _ in range(2):
            rows = rng.choice([0, 1, 12, 40])
            column = draw(rng, measure, rows, integers)
            ts = numbers.integers(0, 10, rows)
            te = ts + numbers.integers(1, 6, rows)
            columns.append((column.to_pylist(), numbers.integers(0, groups, rows), ts, te))
            sides.append(batch_of(predicate, column, *columns[-1][1:]))
        (left, *one), (right, *two) = columns
        expected = Counter(
            (i, j)
            for i, mine in enumerate(left)
            for j, other in enumerate(right)
            if by_hand(measure, predicate.threshold, mine, other)
            and one[0][i] == two[0][j]
            and (not timed or max(one[1][i], two[1][j]) < min(one[2][i], two[2][j]))
        )
        total += len(expected)
        for matching in (
            Matching(predicate, timed=timed),
            Matching(predicate, timed=timed, chunk=3),
            Matching(None, (SimilarTest(predicate, 0),), timed=timed),
        ):
            assert found_pairs(matching, *sides) == expected, f"seed {seed}: {predicate}"
    assert total > 200, "the cases themselves are wrong: hardly a pair"


@pytest.mark.parametrize("measure", THRESHOLDS)
def test_the_definition_is_the_same(measure: str) -> None:
    rng = random.Random(1)
    for threshold in THRESHOLDS[measure]:
        predicate = Similar("t", "t", measure, threshold)  # type: ignore[arg-type]
        one, two = (draw(rng, measure, 60, False).to_pylist() for _ in range(2))
        sides = []
        for column in (one, two):
            made = np.empty(len(column), object)
            made[:] = column
            sides.append([made])
        expected = [by_hand(measure, threshold, *pair) for pair in zip(one, two, strict=True)]
        assert predicate.holds(*sides).tolist() == expected


def test_a_larger_input_with_many_equal_sets() -> None:
    rng = random.Random(3)
    predicate = Similar("t", "t", "jaccard", 0.8)
    vocabulary = [f"word{number}" for number in range(60)]
    columns = [[rng.choices(vocabulary[: rng.choice([8, 60])], k=rng.randint(1, 14)) for _ in range(400)] for _ in "ab"]
    zero, one = np.zeros(400, np.int64), np.ones(400, np.int64)
    sides = [batch_of(predicate, pa.array(column), zero, zero, one) for column in columns]
    expected = Counter(
        (i, j)
        for i, mine in enumerate(columns[0])
        for j, other in enumerate(columns[1])
        if by_hand("jaccard", 0.8, mine, other)
    )
    assert found_pairs(Matching(predicate), *sides) == expected
    assert len(expected) > 100


def test_contents_are_sets_in_the_order_of_hashes() -> None:
    predicate = Similar("t", "t", "jaccard", 0.5)
    column = pa.chunked_array([[["b", "a", "b"], None], [["a", "b", None], [], [None]]])
    made, there = content_of(predicate, column)
    assert there.tolist() == [True, False, True, False, False]
    assert made[0] == made[2]
    assert [len(each) for each in made.to_pylist()] == [2, 0, 2, 0, 0]
    assert sorted(made[0].as_py()) == [b"a", b"b"]


def test_a_slice_of_a_column_is_read_as_such() -> None:
    predicate = Similar("t", "t", "jaccard", 0.5)
    column = pa.array([["x"], ["a", "b"], ["c"]]).slice(1, 1)
    made, _ = content_of(predicate, pa.chunked_array([column]))
    assert sorted(made[0].as_py()) == [b"a", b"b"]
    batch = batch_of(predicate, pa.array([["x"], ["a", "b"], ["c"]]), *(np.zeros(3, np.int64) for _ in range(3)))
    part = Batch.from_table(batch.to_table().slice(1, 2))
    offsets, tokens, size, *_ = token_lists(part, 0, predicate).lists
    assert (offsets.tolist(), size.tolist(), len(tokens)) == ([0, 2, 3], [2, 1], 3)


def test_an_empty_text_is_a_text() -> None:
    predicate = Similar("t", "t", "edit", 2)
    zero, one = np.zeros(3, np.int64), np.ones(3, np.int64)
    side = batch_of(predicate, pa.array(["", "ab", "abc"]), zero, zero, one)
    assert set(found_pairs(Matching(predicate), side, side)) == {
        (0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2),
    }  # fmt: skip


def test_combining_characters_count_as_code_points() -> None:
    """`ä` as one code point and as two are two changes apart; an emoji is one change, not four bytes."""
    zero, one = np.zeros(1, np.int64), np.ones(1, np.int64)
    for text, other, apart in (("ä", "a\u0308", 2), ("x👩y", "xy", 1), ("👩\u200d🚀", "👩", 2), ("漢字", "漢", 1)):
        for most in (apart - 1, apart):
            predicate = Similar("t", "t", "edit", most)
            a, b = (batch_of(predicate, pa.array([each]), zero, zero, one) for each in (text, other))
            assert len(found_pairs(Matching(predicate), a, b)) == (most == apart)


def test_equal_hashes_are_proved_by_value() -> None:
    """Kernels given the same hash for different tokens: only equal bytes are common."""
    texts, row = [b"b", b"a", b"b", b"a", b"c", b"a", b"b"], np.array([0, 0, 0, 1, 1, 2, 2])
    bounds, data = np.arange(8), np.frombuffer(b"".join(texts), np.uint8)
    hashes, order = np.zeros(7, np.int64), np.arange(7)
    first = order_equal_hashes(row, hashes, bounds, data, order)
    kept = order[first]
    assert [texts[each] for each in kept] == [b"a", b"b", b"a", b"c", b"a", b"b"]
    offsets, same = np.array([0, 2, 4, 6]), np.zeros(6, np.int64)
    values = np.frombuffer(b"".join(texts[each] for each in kept), np.uint8)
    lists = (offsets, same, np.diff(offsets), np.arange(7), values)
    group = np.zeros(3, np.int64)
    index = TokenIndex.build(group, *lists[:3], prefix_lengths(JACCARD, 0.9, offsets))
    side = (group, group, group + 1, lists)
    pairs = {
        (int(i), int(j))
        for chunk in similar_pairs(side, side, index, mode=JACCARD, threshold=0.9, timed=True)
        for i, j in zip(*chunk, strict=True)
    }
    assert pairs == {(0, 0), (1, 1), (2, 2), (0, 2), (2, 0)}
