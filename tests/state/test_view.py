"""Probing an area: whoever is there is found exactly once, in whichever run, from either side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamjoin.algebra import Band
from streamjoin.state import Matching, SweepArea
from tests.state.areas import POOL, purge, put
from tests.state.making import batch, drawn, ids

LOPSIDED = Matching(Band("v", "v", 0.5, 2.0))  # right - left in [-0.5, 2]


def three_runs() -> SweepArea:
    area = SweepArea(Matching())
    for number in range(3):
        put(area, batch([(0, 9), (number, 9)], ids=[10 * number, 10 * number + 1]))
    return area


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("seed", range(10))
def test_oracle_a_probe_finds_everyone_who_matches_once(seed: int, side: int) -> None:
    rng = np.random.default_rng(seed)
    area = SweepArea(LOPSIDED)
    parts = [drawn(rng, 12, first_id=100 * number, values=[POOL]) for number in range(4)]
    for part in parts:
        put(area, part)
    run = LOPSIDED.sorted_run(drawn(rng, 12, first_id=1000, values=[POOL]))
    found = sorted(
        (ids(run.rows)[mine], ids(meeting.kept.run.rows)[theirs])
        for meeting in area.probe(run, side)
        for mine, theirs in zip(meeting.mine, meeting.theirs, strict=True)
    )
    expected = []
    for part in parts:
        for i, j in np.ndindex(len(run), len(part)):
            difference = (part.values[0][j] - run.rows.values[0][i]) * (1 if side == 0 else -1)
            together = max(run.rows.ts[i], part.ts[j]) < min(run.rows.te[i], part.te[j])
            if -0.5 <= difference <= 2.0 and together:
                expected.append((ids(run.rows)[i], ids(part)[j]))
    assert found == sorted(expected), f"seed {seed}"


def test_living_are_those_who_have_not_been_removed_run_by_run() -> None:
    area = SweepArea(Matching())
    assert area.view().living().tolist() == []
    put(area, batch([(0, 3), (0, 9)], ids=[1, 2]))
    put(area, batch([(0, 9), (0, 9), (0, 9)], ids=[3, 4, 5]))
    purge(area, 3)
    put(area, batch([(0, 2)], ids=[6]))  # behind progress, and not looked at by a purge yet
    view = area.view()
    everyone = [name for kept in view.runs for name in ids(kept.run.rows)]
    living = [name for name, alive in zip(everyone, view.living(), strict=True) if alive]
    assert sorted(living) == [2, 3, 4, 5, 6]


def test_who_has_been_removed_is_not_found_by_those_behind_progress() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 3), (0, 9), (0, 9), (0, 9)]))
    purge(area, 5)
    late = Matching().sorted_run(batch([(1, 8)]))
    assert area.rows == 4, "the example itself is wrong: the row has physically gone"
    (meeting,) = area.probe(late, living=True)
    assert sorted(ids(meeting.kept.run.rows.take(meeting.theirs))) == [1, 2, 3]


def test_a_view_is_of_some_runs_and_does_not_change() -> None:
    area = three_runs()
    early, fresh, everything = area.view(until=2), area.view(since=2), area.view()
    assert (len(early), len(fresh), len(everything)) == (2, 1, 3)
    purge(area, 0)
    put(area, batch([(0, 9)], ids=[99]))
    run = Matching().sorted_run(batch([(0, 9)]))
    assert [meeting.number for meeting in early.probe(run)] == [0, 1]
    assert [meeting.number for meeting in fresh.probe(run)] == [2], "numbers are those of the whole area"
    assert [meeting.number for meeting in everything.probe(run)] == [0, 1, 2]


def test_payload_comes_in_the_order_in_which_it_is_asked_for() -> None:
    view = three_runs().view()
    assert ids(view.payload(np.array([2, 0, 2, 1]), np.array([1, 0, 0, 1]))) == [21, 0, 20, 11]
    assert ids(view.payload(np.array([1, 1]), np.array([1, 0]))) == [11, 10]


def test_places_are_parted_by_runs() -> None:
    view = three_runs().view()
    parted = [(ids(kept.run.rows), mine.tolist()) for kept, mine in view.parted(np.array([2, -1, 0, 2]))]
    assert parted == [([0, 1], [2]), ([20, 21], [0, 3])]


def test_urgent_rows_are_found_first_wherever_they_lie() -> None:
    area = three_runs()
    rows = batch([(0, 9)], ids=[30])
    put(area, replace(rows, priority=np.array([4])))
    put(area, batch([(0, 9)], ids=[40]))
    run = area.matching.sorted_run(batch([(0, 9)], ids=[1000]))
    assert [meeting.number for meeting in area.probe(run)] == [3, 0, 1, 2, 4], "others in the order in which they came"
