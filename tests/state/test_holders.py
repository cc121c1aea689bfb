"""Holders: numbers that are nobody else's, and how elements are found by them."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from streamjoin.state import Ends, HolderIndex
from streamjoin.state.holders import NO_HOLDER, first_holder


def ends(*pairs: tuple[int, int]) -> Ends:
    return Ends(np.array([holder for holder, _ in pairs], np.int64), np.array([te for _, te in pairs], np.int64))


def found(holders: list[int], known: Ends) -> list[tuple[int, int]]:
    positions, te = HolderIndex(np.array(holders, np.int64)).find(known)
    return sorted(zip(positions.tolist(), te.tolist(), strict=True))


HOLDERS = {
    "dense": lambda rng: list(range(7, 20)),
    "dense but one is known": lambda rng: [5, 6, NO_HOLDER, 7, 8],
    "dense in another order": lambda rng: rng.sample(range(30, 45), 15),
    "with gaps": lambda rng: sorted(rng.sample(range(40), 12)),
    "with gaps in another order": lambda rng: rng.sample(range(40), 12),
    "with duplicates": lambda rng: [rng.choice([NO_HOLDER, 3, 5, 5, 9, 30]) for _ in range(20)],
    "of several operators": lambda rng: [first_holder(rng.randrange(3), rng.randrange(2)) + 1 for _ in range(10)],
    "all known": lambda rng: [NO_HOLDER] * 4,
    "none at all": lambda rng: [],
}


@pytest.mark.parametrize("kind", HOLDERS)
@pytest.mark.parametrize("seed", range(10))
def test_oracle_elements_are_found_by_their_holders(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    holders = HOLDERS[kind](rng)
    pool = sorted({*range(50), *holders} - {NO_HOLDER})
    known = ends(*((holder, rng.randint(0, 9)) for holder in rng.sample(pool, rng.randint(0, len(pool)))))
    te_of = dict(zip(known.holder.tolist(), known.te.tolist(), strict=True))
    expected = [(place, te_of[holder]) for place, holder in enumerate(holders) if holder in te_of]
    assert found(holders, known) == expected, f"{kind}, seed {seed}"


def test_ends_beyond_both_sides_are_nobodys() -> None:
    assert found([10, 11, 12], ends((9, 1), (13, 1), (-5, 1))) == []
    assert found([10, 14], ends((9, 1), (12, 1), (99, 1))) == []


def test_ends_travel_as_a_table() -> None:
    known = ends((17, 9), (23, 4))
    again = Ends.from_table(known.to_table())
    assert (again.holder.tolist(), again.te.tolist()) == ([17, 23], [9, 4])
    assert Ends.concat([known, again]).holder.tolist() == [17, 23, 17, 23]
    assert len(Ends.concat([])) == 0
    assert known.take(known.te < 5).holder.tolist() == [23]


def test_no_two_operators_and_buckets_share_holders() -> None:
    firsts = [first_holder(producer, bucket) for producer in (0, 1, 2, 127) for bucket in (0, 1, 65535)]
    assert firsts == sorted(firsts)
    assert all(two - one >= 1 << 40 for one, two in itertools.pairwise(firsts))
    assert max(firsts) + (1 << 40) <= 2**63


@pytest.mark.parametrize(("producer", "bucket"), [(128, 0), (-1, 0), (0, 65536), (0, -1)])
def test_beyond_what_fits_nothing_is_given_out(producer: int, bucket: int) -> None:
    with pytest.raises(AssertionError, match="too many"):
        first_holder(producer, bucket)
