"""Areas of rows whose ends are not known when they come: found as if they never ended, and gone when they have."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from streamjoin.algebra import FOREVER, NEVER
from streamjoin.state import Batch, Ends, Matching, SweepArea
from streamjoin.state.kept import Kept
from tests.state.making import batch, ids
from tests.state.storing import Store, moved


def rows(*some: tuple[int, int, int]) -> Batch:
    """Rows (holder, ts, te); with a holder the end is unknown. A row's id is its holder, or its `ts` less 1000."""
    made = batch([(ts, te) for _, ts, te in some], ids=[h if h >= 0 else ts - 1000 for h, ts, _ in some])
    return replace(made, holder=np.array([holder for holder, _, _ in some], np.int64))


def unknown(*holders: int, ts: int = 0) -> Batch:
    return rows(*((holder, ts, FOREVER) for holder in holders))


def ends(*pairs: tuple[int, int]) -> Ends:
    return Ends(*(np.array(column, np.int64) for column in zip(*pairs, strict=True)))


def put(area: SweepArea, some: Batch) -> Kept:
    return area.insert(area.matching.sorted_run(some))


def purged(area: SweepArea, progress: int) -> list[int]:
    return sorted(number for decided in area.purge(progress) for number in ids(decided.rows))


def there(area: SweepArea) -> list[int]:
    """Rows that can still be found."""
    found = []
    for kept in area.kept:
        alive = kept.living(area.progress)
        found += ids(kept.run.rows if alive is None else kept.run.rows.take(alive))
    return sorted(found)


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_oracle_rows_go_when_progress_has_reached_their_ends(seed: int, tracked: bool) -> None:
    """Against a dict of ends, saved after every purge into a store that writes a part once, and often restored."""
    rng = random.Random(seed)
    area, store = SweepArea(Matching(), tracked), Store()
    end_of: dict[int, int] = {}  # what has not gone
    open_ones: list[int] = []
    progress, holder = 0, 0
    for step in range(50):
        where = f"seed {seed}, step {step}"
        some = []
        for _ in range(rng.randint(0, 5)):
            holder += 1
            is_unknown = rng.random() < 0.6
            te = FOREVER if is_unknown or rng.random() < 0.1 else progress + rng.randint(1, 20)
            some.append((holder, is_unknown, te))
            end_of[holder] = te
            open_ones += [holder] if is_unknown else []
        if some:
            made = unknown(*(number for number, _, _ in some))
            holders = np.array([number if open_end else -1 for number, open_end, _ in some])
            made = replace(made, te=np.array([te for _, _, te in some]), holder=holders)
            put(area, made if (holders >= 0).any() or rng.random() < 0.5 else replace(made, holder=None))
        known = rng.sample(open_ones, rng.randint(0, len(open_ones)) if rng.random() < 0.5 else 0)
        if known:
            news = [(number, progress + rng.choice([0, 1, 3, 8])) for number in known]
            area.settle(ends(*news))
            end_of |= dict(news)
            open_ones = [number for number in open_ones if number not in known]
        if rng.random() < 0.6:
            progress += rng.choice([0, 1, 4])
        gone = sorted(number for number, te in end_of.items() if te <= progress)
        handed = purged(area, progress)
        assert handed == (gone if tracked else []), where
        for number in gone:
            del end_of[number]
        assert there(area) == sorted(end_of), where
        assert area.rows <= 2 * len(end_of), where
        store.save(area.snapshot("area"))
        if rng.random() < 0.4:
            area = moved(area, SweepArea(Matching(), tracked), store, "area")
            assert there(area) == sorted(end_of), where
    last = max((te for te in end_of.values() if te < FOREVER), default=progress)
    purged(area, last)
    purged(area, last + 1)
    assert there(area) == sorted(number for number, te in end_of.items() if te == FOREVER)
    purged(area, FOREVER)
    assert (area.rows, area.kept) == (0, [])


def test_a_row_without_an_end_is_kept_as_one_that_never_ends() -> None:
    area = SweepArea(Matching())
    put(area, unknown(1, 2))
    assert purged(area, FOREVER - 1) == []
    assert there(area) == [1, 2]


def test_ends_that_are_learned_after_the_row_was_stored_are_stored_beside_it() -> None:
    area, store = SweepArea(Matching(), tracked=True), Store()
    put(area, unknown(1, 2, 3))
    purged(area, 1)
    store.save(area.snapshot("area"))
    written = set(store.blobs)
    area.settle(ends((2, 9)))
    purged(area, 1)
    store.save(area.snapshot("area"))
    assert len(set(store.blobs) - written) == 1  # the ends; the rows are not written again
    again = SweepArea(Matching(), tracked=True)
    again.restore(store.load())
    assert purged(again, 8) == []
    assert purged(again, 9) == [2]
    third = moved(again, SweepArea(Matching(), tracked=True), store, "area")
    assert purged(third, 20) == []
    assert there(third) == [1, 3]


def test_ends_of_a_row_that_is_not_stored_yet_are_stored_with_it() -> None:
    area = SweepArea(Matching())
    put(area, unknown(1, 2))
    area.settle(ends((1, 9)))
    assert area.late_ends == []
    assert there(moved(area, SweepArea(Matching()))) == [1, 2]


def test_late_ends_are_forgotten_with_the_parts_that_they_belong_to() -> None:
    area, store = SweepArea(Matching()), Store()
    put(area, unknown(1, 2, 3, 4))
    store.save(area.snapshot("area"))
    area.settle(ends((1, 5), (2, 6)))
    area.settle(ends((3, 7), (4, 8)))
    store.save(area.snapshot("area"))
    assert len(area.late_ends) == 2
    purged(area, 8)
    assert area.kept == []
    store.save(area.snapshot("area"))
    assert area.late_ends == []
    assert store.blobs == {}


@pytest.mark.parametrize("stored_at_once", [True, False])
def test_an_end_that_is_learned_behind_progress_does_not_move_the_marks_of_others(stored_at_once: bool) -> None:
    """The run was cut at 10; later a row turns out to have ended at 8. It is handed out, and lies in the run still."""
    area, store = SweepArea(Matching(), tracked=True), Store()
    put(area, unknown(1, 2, ts=1))
    put(area, rows((-1, 0, 5), (3, 2, FOREVER), (4, 3, FOREVER)))
    store.save(area.snapshot("area"))
    put(area, unknown(5, ts=9))
    assert purged(area, 10) == [-1000]
    (kept,) = area.kept
    if stored_at_once:
        store.save(area.snapshot("area"))
    kept.meetings.meet(np.array([0, 1]))
    area.settle(ends((2, 8)))
    assert purged(area, 10) == [2]
    area = moved(area, SweepArea(Matching(), tracked=True), store, "area")
    assert there(area) == [1, 3, 4, 5]
    assert purged(area, 11) == []
    assert len(area.kept[0].meetings.met) == len(area.kept[0].run) == 5
    (decided,) = area.purge(FOREVER)
    assert dict(zip(ids(decided.rows), decided.matched.tolist(), strict=True)) == {
        1: True,
        3: False,
        4: False,
        5: False,
    }


def test_a_run_whose_rows_have_all_ended_is_dropped_whole() -> None:
    area = SweepArea(Matching())
    put(area, unknown(1, 2))
    purged(area, 1)
    area.settle(ends((1, 5), (2, 7)))
    purged(area, 5)
    assert there(area) == [2]
    purged(area, 7)
    assert area.kept == []
    assert area.removed == 2


def test_a_merged_run_of_known_ends_needs_no_holders() -> None:
    area = SweepArea(Matching())
    put(area, unknown(1, 2))
    put(area, unknown(3))
    area.settle(ends((1, 50), (2, 60), (3, 70)))
    purged(area, 1)
    (kept,) = area.kept
    assert kept.run.rows.holder is None
    assert kept.expiry is None


@pytest.mark.parametrize("tracked", [False, True])
def test_restored_rows_that_were_stored_without_ends_go_like_all_others(tracked: bool) -> None:
    """The run has been merged since, without holders; read again it has them, and some of it has expired."""
    area, store = SweepArea(Matching(), tracked), Store()
    put(area, unknown(1, 2))
    put(area, unknown(3))
    purged(area, NEVER)
    store.save(area.snapshot("area"))
    area.settle(ends((1, 10), (2, 20), (3, 30)))
    put(area, rows((-1, 4, 40)))
    purged(area, 5)
    purged(area, 12)
    area = moved(area, SweepArea(Matching(), tracked), store, "area")
    assert there(area) == [-996, 2, 3]
    for progress in (20, 30, 40, 41):
        area = moved(area, SweepArea(Matching(), tracked), store, "area")
        purged(area, progress)
    assert (area.rows, area.kept) == (0, [])


def test_pieces_end_when_the_partner_does() -> None:
    """A covered area hands out where a row had a partner: up to the partner's end, or its own."""
    area = SweepArea(Matching(), tracked=True, covered=True)
    kept = put(area, rows((-1, 0, 20), (-1, 1, 20)))
    kept.meetings.meet(np.array([0, 1]))
    kept.meetings.cover(*(np.array(column) for column in ([0, 0, 1], [2, 5, 3], [FOREVER, 9, FOREVER], [7, -1, 8])))
    area.settle_partners(ends((7, 4), (99, 1)))
    area = moved(area, SweepArea(Matching(), tracked=True, covered=True))
    area.settle_partners(ends((8, 3)))  # this piece turns out to be empty
    (decided,) = area.purge(20)
    assert sorted(zip(*(column.tolist() for column in decided.pieces), strict=True)) == [(0, 2, 4), (0, 5, 9)]
