"""Snapshots of areas: an area that was saved and restored goes on as if nothing had happened, in every variant."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.state import Matching, Snapshot, SweepArea
from tests.state.areas import MATCHINGS, POOL, fates, kept_ids, met, put
from tests.state.making import batch, drawn, same

VARIANTS = {"plain": (False, False), "tracked": (True, False), "covered": (True, True)}


def restored(area: SweepArea, name: str = "area") -> SweepArea:
    saved = area.snapshot(name)
    again = Snapshot(json.loads(json.dumps(saved.manifest)), dict(saved.blobs))
    fresh = SweepArea(area.matching, area.tracked, area.covered)
    fresh.restore(again)
    return fresh


@pytest.mark.parametrize("matching", MATCHINGS.values(), ids=MATCHINGS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("seed", "urgent"), [(0, 0.0), (1, 0.0), (2, 0.5)])
def test_contract_a_restored_area_goes_on_alike(matching: Matching, variant: str, seed: int, urgent: float) -> None:
    rng = np.random.default_rng(seed)
    tracked, covered = VARIANTS[variant]
    area, progress, next_id = SweepArea(matching, tracked, covered), -8, 0
    for _ in range(25):
        rows = drawn(rng, int(rng.integers(1, 6)), first_id=next_id, values=[POOL, POOL], groups=2)
        next_id += len(rows)
        put(area, replace(rows, priority=np.full(len(rows), 2)) if rng.random() < urgent else rows)
        if tracked:
            some = rng.integers(0, len(rows), 2).tolist()
            met(area, len(area.kept) - 1, some, [(0, 1), (2, 3)] if covered else None)
        again = restored(area)  # now, with a run that came after the last purge
        assert kept_ids(again) == kept_ids(area), f"seed {seed}"
        progress += int(rng.integers(0, 3))
        assert fates(list(again.purge(progress))) == fates(list(area.purge(progress))), f"seed {seed}"
        assert (again.rows, again.progress) == (area.rows, area.progress), f"seed {seed}"
        area = restored(area)  # and now, with rows that have been handed out but still lie in a run
        assert kept_ids(again) == kept_ids(area), f"seed {seed}"
        if tracked:
            for unmatched_only in (True, False):
                undecided = again.first_undecided(unmatched_only=unmatched_only)
                assert area.first_undecided(unmatched_only=unmatched_only) == undecided, f"seed {seed}"
        for one, two in zip(again.kept, area.kept, strict=True):
            assert same(one.run.rows, two.run.rows), f"seed {seed}"
            assert [c.tolist() for c in one.run.sort_columns] == [c.tolist() for c in two.run.sort_columns]
    assert fates(list(restored(area).purge(FOREVER))) == fates(list(area.purge(FOREVER))), f"seed {seed}"


def test_runs_are_stored_under_their_own_names() -> None:
    area = SweepArea(Matching(), tracked=True, covered=True)
    put(area, batch([(0, 5)] * 10))
    (kept,) = area.kept
    name, notes, (part,) = kept.run.id, kept.meetings.name, kept.parts().names
    before = area.snapshot("left").blobs
    assert set(before) == {f"left/run/{part}", f"left/matched/{name}/{notes}", f"left/pieces/{name}/{notes}"}
    contents = {blob: before[blob] for blob in before}
    met(area, 0, [3], [(0, 1)])
    after = area.snapshot("left").blobs
    assert kept.meetings.name != notes, "what has changed gets another name"
    assert set(after) == {
        f"left/run/{part}",
        f"left/matched/{name}/{kept.meetings.name}",
        f"left/pieces/{name}/{kept.meetings.name}",
    }
    assert {blob: before[blob] for blob in before} == contents, "what was saved does not change with the area"
    assert after[f"left/run/{part}"] == contents[f"left/run/{part}"], "a run need not be written again"
    assert [kept.run.id for kept in restored(area).kept] == [name]


def test_a_plain_area_stores_only_its_runs() -> None:
    area = SweepArea(Matching())
    put(area, batch([(0, 5)]))
    assert [name.split("/")[1] for name in area.snapshot("a").blobs] == ["run"]


def test_an_empty_area_is_restored_empty() -> None:
    area = SweepArea(Matching(), tracked=True)
    list(area.purge(7))
    again = restored(area)
    put(again, batch([(0, 100)]))
    again.restore(area.snapshot("area"))
    assert (again.rows, again.progress) == (0, 7)


def many_parts() -> SweepArea:
    """One run of three parts that are too large to become one; rows end one after the other, part by part."""
    area = SweepArea(Matching())
    for first in (0, 100, 200):
        put(area, batch([(first + i, first + i + 5) for i in range(100)]))
        list(area.purge(0))
    return area


def stored_names(area: SweepArea) -> set[str]:
    return set(area.snapshot("a").blobs)


def test_merging_writes_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.state.layout.PART_BYTES", 100)
    area, seen = SweepArea(Matching()), set()
    for first in range(0, 1000, 100):
        put(area, batch([(first + i, first + i + 5000) for i in range(100)]))
        list(area.purge(0))
        new = stored_names(area) - seen
        assert len(new) == 1, "only the rows that have come"
        seen |= new
    assert len(area.kept) < 5, "in memory they are merged"


def test_small_parts_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.state.layout.PART_BYTES", 1 << 20)
    assert len(stored_names(many_parts())) == 1


def test_a_part_goes_with_its_last_row_and_is_written_anew_when_little_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.state.layout.PART_BYTES", 100)
    area = many_parts()
    before = stored_names(area)
    assert (len(area.kept), len(before)) == (1, 3)
    list(area.purge(200))  # part 0 is gone, of part 1 five rows are left
    after = stored_names(area)
    assert len(after) == 2
    assert len(after & before) == 1, "the third part stays as it is"
    assert same(restored(area).kept[0].run.rows, area.kept[0].run.rows)
    assert restored(area).kept[0].parts().stored_rows == area.kept[0].parts().stored_rows
