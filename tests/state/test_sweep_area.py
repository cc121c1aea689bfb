"""Sweep areas: what is kept, what is found, what is forgotten, and how runs merge."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.state import Batch, History, Matching, SweepArea
from tests.state.areas import MATCHINGS, POOL, fates, kept_ids, purge, put
from tests.state.making import batch, drawn, ids


def test_what_was_inserted_is_found() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 5), (3, 9)]))
    put(area, batch([(4, 6)], ids=[2]))
    probe = area.matching.sorted_run(batch([(4, 5)]))
    found: Counter[int] = Counter()
    for kept in area.kept:
        for _, j in area.matching.pairs(probe, kept.run):
            found.update(ids(kept.run.rows.take(j)))
    assert found == {0: 1, 1: 1, 2: 1}
    assert area.rows == 3
    assert area.nbytes == sum(kept.run.rows.nbytes for kept in area.kept) > 0


def test_a_row_goes_when_progress_reaches_its_end_not_before() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 5), (0, 9), (0, 9)]))
    purge(area, 4)
    assert kept_ids(area) == [0, 1, 2]
    purge(area, 5)
    assert kept_ids(area) == [1, 2]
    assert area.rows == 3, "the removed row lies on in its run until a merge, or until half of the run has gone"
    purge(area, 9)
    assert (kept_ids(area), area.rows, area.removed) == ([], 0, 3)


def test_progress_of_an_area_never_goes_back() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 5), (0, 9)]))
    purge(area, 7)
    purge(area, 3)
    assert area.progress == 7
    assert kept_ids(area) == [1]


def test_rows_that_came_after_the_last_purge_are_still_there_even_behind_progress() -> None:
    """A late row is joined with its own micro-batch, whatever progress says."""
    area = SweepArea(Matching())
    purge(area, 10)
    put(area, batch([(0, 5), (8, 20)]))
    assert kept_ids(area) == [0, 1]
    purge(area, 10)
    assert kept_ids(area) == [1]


def test_a_run_whose_last_end_is_behind_progress_is_dropped_whole() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 100)] * 50))
    purge(area, NEVER)
    put(area, batch([(0, 5), (0, 6)], ids=[50, 51]))
    put(area, batch([(0, 5)], ids=[52]))
    purge(area, 6)
    assert [len(kept.run) for kept in area.kept] == [50]
    assert area.removed == 3


def test_a_merge_leaves_the_expired_behind() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 5), (0, 90), (0, 90)]))
    purge(area, 5)
    assert area.rows == 3
    put(area, batch([(6, 7), (6, 80), (6, 80)], ids=[3, 4, 5]))
    purge(area, 7)
    assert area.rows == 4
    assert [sorted(ids(kept.run.rows)) for kept in area.kept] == [[1, 2, 4, 5]]
    assert area.removed == 2


def test_a_run_of_which_half_has_expired_is_written_anew() -> None:
    area = SweepArea(Matching(), tracked=True)
    put(area, batch([(0, 5), (0, 6), (0, 7), (0, 90), (0, 91)]))
    before = area.kept[0].run.id
    purge(area, 6)
    assert (area.rows, area.kept[0].run.id) == (5, before)
    purge(area, 7)
    assert area.kept[0].run.id != before, "another run gets another name"
    assert (area.rows, area.removed, kept_ids(area)) == (2, 3, [3, 4])
    assert fates(list(area.purge(FOREVER))) == {3: (False, []), 4: (False, [])}


@pytest.mark.parametrize("matching", MATCHINGS.values(), ids=MATCHINGS)
@pytest.mark.parametrize("seed", range(5))
def test_contract_an_area_holds_exactly_what_has_not_expired(matching: Matching, seed: int) -> None:
    rng = np.random.default_rng(seed)
    area, model, progress, next_id = SweepArea(matching), {}, -10, 0
    for _ in range(40):
        if rng.random() < 0.6:
            rows = drawn(rng, int(rng.integers(1, 8)), first_id=next_id, values=[POOL, POOL], groups=2)
            next_id += len(rows)
            put(area, rows)
            model |= dict(zip(ids(rows), rows.te.tolist(), strict=True))
        else:
            progress += int(rng.integers(0, 4))
            purge(area, progress)
            model = {number: te for number, te in model.items() if te > progress}
        assert kept_ids(area) == sorted(model), f"seed {seed}"
        for kept in area.kept:
            columns = kept.run.sort_columns
            assert np.array_equal(np.lexsort(columns[::-1]), np.arange(len(kept.run))), f"seed {seed}: not sorted"
    purge(area, FOREVER)
    assert (area.rows, area.kept, area.removed) == (0, [], next_id), f"seed {seed}"


@pytest.mark.parametrize("sizes", [(1,), (3,), (10, 1), (1, 10), (7, 7, 1, 30), (1, 2, 4, 8, 16)])
def test_contract_geometric_merging_keeps_few_runs_and_copies_rows_seldom(sizes: tuple[int, ...]) -> None:
    """Also when several runs, large and small, come between two purges."""
    area, copied, known, total = SweepArea(Matching()), 0, set(), 0
    for _ in range(100):
        for size in sizes:
            put(area, batch([(0, FOREVER)] * size, ids=range(total, total + size)))
            total += size
        known |= {kept.run.id for kept in area.kept}
        purge(area, 0)
        copied += sum(len(kept.run) for kept in area.kept if kept.run.id not in known)
        known |= {kept.run.id for kept in area.kept}
        lengths = [len(kept.run) for kept in area.kept]
        assert len(lengths) <= math.log(total, 2) + 1, lengths
        assert all(one > 2 * sum(lengths[place + 1 :]) for place, one in enumerate(lengths[:-1])), lengths
    assert area.rows == total
    assert copied <= total * (math.log(total, 1.5) + 1)


def test_runs_that_are_kept_keep_their_names() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 100)] * 50))
    purge(area, 0)
    name = area.kept[0].run.id
    put(area, batch([(0, 100)], ids=[50]))
    purge(area, 1)
    assert [kept.run.id == name for kept in area.kept] == [True, False]


def urgent(rows: Batch) -> Batch:
    return replace(rows, priority=np.full(len(rows), 3))


def test_urgent_rows_have_runs_of_their_own() -> None:
    """A few of them come before the others each time: those are copied no more often than without."""
    ranked, plain = SweepArea(Matching()), SweepArea(Matching())
    for number in range(40):
        put(ranked, urgent(batch([(number, 100 + number)] * 2, ids=[100 * number, 100 * number + 1])))
        others = batch([(number, 100 + number)] * 50, ids=range(100 * number + 2, 100 * number + 52))
        for area in (ranked, plain):
            put(area, others)
            purge(area, number)
        runs = [kept.run.rows for kept in ranked.kept]
        assert all(rows.priority is None or (rows.priority == 3).all() for rows in runs)
        assert [len(rows) for rows in runs if rows.priority is None] == [len(kept.run) for kept in plain.kept]
    assert ranked.rows == 40 * 52
    assert [rows.priority is None for rows in runs] == sorted(rows.priority is None for rows in runs)
    assert len(runs) <= 2 * (math.log(ranked.rows, 2) + 1)
    purge(ranked, 120)
    assert kept_ids(ranked) == [100 * number + place for number in range(21, 40) for place in range(52)]


def test_rows_of_a_history_are_merged_whether_urgent_or_not() -> None:
    """A row goes with its successor, and finds it only in its own run."""
    area = SweepArea(History())
    put(area, batch([(1, FOREVER), (3, FOREVER)], ids=[1, 3]))
    put(area, urgent(batch([(2, FOREVER)], ids=[2])))
    purge(area, 3)
    assert (area.runs, kept_ids(area)) == (1, [3])
