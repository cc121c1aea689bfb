"""Ends of pairs: the smaller of the members' ends; known when it is certain, and never before."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.state import Ends, PendingEnds
from tests.state.storing import Store, moved

FAR = FOREVER


def add(pending: PendingEnds, *pairs: tuple[int, int, int], progress: tuple[int, int] = (0, 0)) -> list[int]:
    """Pairs (holder of member 0, holder of member 1, smallest known end); the holders of their ends."""
    one, two, te = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    return pending.add((one, two), te, progress).tolist()


def settle(pending: PendingEnds, number: int, *pairs: tuple[int, int]) -> None:
    holder, te = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    pending.settle(number, Ends(holder, te))


def known(pending: PendingEnds, one: int, two: int) -> list[tuple[int, int]]:
    found = Ends.concat(list(pending.known((one, two))))
    return sorted(zip(found.holder.tolist(), found.te.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(30))
def test_oracle_a_pair_ends_with_the_first_of_its_members(seed: int) -> None:
    """Members end at times drawn beforehand, which are told a little before progress reaches them.

    Every pair's end is told once, right, not before it is certain and no later than that.
    """
    rng = random.Random(seed)
    truth = [{holder: rng.choice([rng.randint(1, 60), FAR]) for holder in range(100)} for _ in (0, 1)]
    told: list[set[int]] = [set(), set()]
    pending, store, progress = PendingEnds(1000), Store(), [0, 0]
    waiting: dict[int, tuple[int, int, int]] = {}
    for step in range(60):
        pairs = []
        for _ in range(rng.randint(0, 5)):
            holders, te = [], rng.choice([FAR, progress[0] + rng.randint(-3, 30)])
            for number in (0, 1):
                open_ones = [h for h, end in truth[number].items() if h not in told[number] and end > progress[number]]
                unknown = open_ones and rng.random() < 0.7
                holders.append(rng.choice(open_ones) if unknown else -1)
                te = te if unknown else min(te, progress[number] + rng.randint(-3, 30))
            pairs.append((*holders, te))
        if pairs:
            for given, (one, two, te) in zip(add(pending, *pairs, progress=tuple(progress)), pairs, strict=True):
                certain = all(h < 0 or te <= reached for h, reached in zip((one, two), progress, strict=True))
                assert (given < 0) == certain, f"seed {seed}, step {step}"
                if given >= 0:
                    assert given not in waiting
                    waiting[given] = (one, two, te)
        reached = [old + rng.choice([0, 0, 1, 4]) for old in progress]
        for number in (0, 1):
            news = [h for h, end in truth[number].items() if h not in told[number] and end <= reached[number] + 2]
            news = [h for h in news if truth[number][h] <= reached[number] or rng.random() < 0.5]
            if news:
                settle(pending, number, *((h, truth[number][h]) for h in news))
                told[number] |= set(news)
        progress = reached
        expected = {}
        for pair, (one, two, te) in waiting.items():
            ends = [truth[n][h] if h in told[n] else FAR for n, h in ((0, one), (1, two)) if h >= 0]
            te = min([te, *ends])
            unknown = [n for n, h in ((0, one), (1, two)) if h >= 0 and h not in told[n]]
            if all(te <= progress[n] for n in unknown):
                expected[pair] = te
        assert known(pending, *progress) == sorted(expected.items()), f"seed {seed}, step {step}"
        for pair, te in expected.items():
            one, two, at_first = waiting.pop(pair)
            members = [truth[n][h] for n, h in ((0, one), (1, two)) if h >= 0]
            assert te == min([at_first, *members]), "this end was undercut later"
        assert len(pending) == len(waiting)
        store.save(pending.snapshot("pending"))
        if rng.random() < 0.3:
            pending = moved(pending, PendingEnds(0), store)
            assert len(pending) == len(waiting)
    rest = known(pending, FOREVER, FOREVER)
    assert [pair for pair, _ in rest] == sorted(waiting)
    assert pending.parts == []


def test_both_members_unknown_the_pair_waits_for_both() -> None:
    pending = PendingEnds(100)
    assert add(pending, (17, 23, FAR)) == [100]
    settle(pending, 0, (17, 9))
    assert known(pending, 5, 5) == []
    settle(pending, 1, (23, 7))
    assert known(pending, 5, 5) == [(100, 7)]
    assert len(pending) == 0


def test_progress_of_the_other_input_is_enough() -> None:
    pending = PendingEnds(100)
    add(pending, (17, 23, FAR))
    settle(pending, 0, (17, 9))
    assert known(pending, 100, 8) == []  # input 1 may still end at 8
    assert known(pending, 100, 9) == [(100, 9)]


def test_an_end_that_one_member_brings_may_still_be_undercut() -> None:
    pending = PendingEnds(100)
    assert add(pending, (17, -1, 30), progress=(5, 40)) == [100]
    assert known(pending, 29, 99) == []
    settle(pending, 0, (17, 12))
    assert known(pending, 29, 99) == [(100, 12)]


def test_what_is_certain_at_once_has_no_holder() -> None:
    pending = PendingEnds(100)
    assert add(pending, (17, -1, 5), (-1, -1, 50), (-1, 4, 5), (3, 4, 5), progress=(5, 4)) == [-1, -1, 100, 101]
    assert pending.next_id == 102
    assert known(pending, 5, 5) == [(100, 5), (101, 5)]


def test_one_end_settles_all_pairs_of_its_element() -> None:
    pending = PendingEnds(100)
    add(pending, (1, -1, FAR), (1, -1, 8), (2, -1, FAR))
    settle(pending, 0, (1, 9))
    assert known(pending, 0, 0) == [(100, 9), (101, 8)]


def test_inputs_have_holders_of_their_own() -> None:
    pending = PendingEnds(100)
    add(pending, (1, 2, FAR))
    settle(pending, 0, (2, 3))
    settle(pending, 1, (1, 3))
    assert known(pending, NEVER, NEVER) == []


def test_a_part_of_which_half_waits_no_longer_is_made_smaller() -> None:
    pending = PendingEnds(0)
    add(pending, *((holder, -1, FAR) for holder in range(10)))
    settle(pending, 0, *((holder, 5) for holder in range(4)))
    known(pending, 0, 0)
    assert [len(part.id) for part in pending.parts] == [10]
    settle(pending, 0, (4, 5))
    known(pending, 0, 0)
    assert [len(part.id) for part in pending.parts] == [5]
    assert (len(pending), pending.nbytes) == (5, 160)
    settle(pending, 0, (9, 6))
    assert known(pending, 0, 0) == [(9, 6)]


def test_what_has_not_changed_is_not_written_again() -> None:
    pending, store = PendingEnds(0), Store()
    add(pending, (1, -1, FAR), (2, -1, FAR), (3, -1, FAR))
    for _ in range(2):
        known(pending, 0, 0)
        store.save(pending.snapshot("pending"))
    assert store.written == 1
    settle(pending, 0, (1, 9))
    known(pending, 0, 0)
    store.save(pending.snapshot("pending"))
    assert (store.written, len(store.blobs)) == (2, 1)


def test_a_result_may_have_any_number_of_members() -> None:
    pending = PendingEnds(100)
    holders = [np.array([17]), np.array([23]), np.array([31])]
    assert pending.add(holders, np.array([FAR]), (5, 5, 5)).tolist() == [100]
    settle(pending, 0, (17, 9))
    assert list(pending.known((9, 9, 8))) == [], "31 may end at 8"
    again = PendingEnds(0)
    again.restore(pending.snapshot("pending"))
    settle(again, 2, (31, 8))
    (ends,) = again.known((9, 9, 8))
    assert (ends.holder.tolist(), ends.te.tolist(), len(again)) == ([100], [8], 0)
