"""What is remembered: in detail what is new, roughly what is old; and what is rough counts as much."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.operators.recall.counts import Counts, counted
from streamjoin.operators.recall.needs import ladder, tails
from streamjoin.operators.recall.seen import MOST_ENTRIES, Alike, Seen


def drawn(rng: np.random.Generator, start: int, rows: int, keys: int, step: int = 100) -> Counts:
    return counted(rng.integers(0, keys, rows), start + rng.integers(0, step, rows), width=2, bits=16)


def filled(most: int, rows: int = 60, keys: int = 50, until: int = 20_000) -> tuple[Seen, Alike]:
    """Two inputs, of which one is remembered; both are learned from."""
    rng, alike = np.random.default_rng(0), Alike()
    seen = Seen(alike, most)
    for start in range(0, until, 100):
        news, others = drawn(rng, start, rows, keys), drawn(rng, start, rows, keys)
        alike.learn(news, others, (40, 40), [part.bits for _, part in seen.parts])
        seen.add(news)
        seen.forget(start + 100, 15_000)
        seen.fit(start + 100)
        assert sum(len(part) for _, part in seen.parts) <= most
    return seen, alike


def test_what_is_new_is_known_in_detail_and_nothing_is_lost() -> None:
    seen, _ = filled(2000)
    parts = [part for _, part in seen.parts]
    newest = max(parts, key=lambda part: int((part.cell * part.width).max()))
    oldest = min(parts, key=lambda part: int((part.cell * part.width).min()))
    assert (newest.width, newest.bits) == (2, 16)
    assert oldest.width > 2
    assert sum(part.total for part in parts) >= 150 * 60, "all rows of the time that is asked for"


@pytest.mark.parametrize("most", [800, 3000])
def test_rough_counts_say_the_same_pairs(most: int) -> None:
    """Rows that are 10,000 ticks late meet as many as in full detail, and need as much."""
    rough, _ = filled(most)
    full, _ = filled(10**9)
    late = drawn(np.random.default_rng(7), 9000, 4000, 50, 1000)
    assert rough.pairs_with(late, (40, 40)) == pytest.approx(full.pairs_with(late, (40, 40)), rel=0.1)
    edges = ladder(2, 15_000)
    ours, theirs = (tails(each.needs_of(late, 20_000, (40, 40), edges)) for each in (rough, full))
    middle = int(np.searchsorted(edges, 10_400))
    assert ours[0] == pytest.approx(theirs[0], rel=0.1)
    assert ours[middle] == pytest.approx(theirs[middle], rel=0.1)


def test_of_pairs_in_one_class_those_of_one_key_are_counted() -> None:
    alike = Alike()
    rng = np.random.default_rng(3)
    one, two = drawn(rng, 0, 5000, 64, 2000), drawn(rng, 0, 5000, 64, 2000)
    assert alike.share(one, two.with_bits(2)) == 1.0, "nothing is known yet"
    alike.learn(one, two, (40, 40), [16, 2])
    assert alike.share(one, two) == 1.0
    assert alike.share(one, two.with_bits(2)) == pytest.approx(4 / 64, rel=0.3)
    again = Alike()
    again.restore(alike.to_json())
    assert again.learned == alike.learned


def test_rows_of_a_key_that_was_away_meet_none_of_other_keys() -> None:
    """Of each of 200 keys a row in 100 ticks; one key has none for long, and then brings what it has kept of both
    inputs at once. Its rows meet each other, and no others, however late: keys are told apart as long as wider cells
    save enough, and cells may be as wide as a part of their age.
    """
    rng, seen, away = np.random.default_rng(3), Seen(Alike()), 7
    for start in range(0, 60_000, 500):
        keys = np.array([key for key in range(200) if key != away]).repeat(5)
        seen.add(counted(keys, start + rng.integers(0, 500, len(keys)), width=1, bits=16))
        seen.fit(start + 500)
    late = counted(np.full(550, away), np.arange(0, 55_000, 100), width=1, bits=16)
    assert sum(part.total for _, part in seen.parts) > MOST_ENTRIES
    assert seen.needs_of(late, 60_000, (20, 20), ladder(1, 60_000)).sum() == 0
