"""Sweep areas whose runs lie in files: found, decided and restored as if they lay in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Band, Overlaps, Within
from streamjoin.errors import SpillError
from streamjoin.state import Matching, SweepArea
from streamjoin.state.history import History
from streamjoin.state.merging import merged_rows
from streamjoin.state.page_ranges import rows_by_page
from streamjoin.state.restored_run import Restoring
from streamjoin.state.spilled_run import SpilledRun, spilled_pairs
from streamjoin.state.spilling import FAN_IN, Spilling
from streamjoin.state.stores import FileStore
from tests.state.areas import fates, kept_ids, purge, put
from tests.state.making import batch, drawn, ids, same
from tests.state.storing import Store

POOL = np.array([-1.0, 0.0, 0.1, 0.2, 0.30000000000000004, 3.0, np.inf])
MATCHINGS: dict[str, tuple[Matching, int]] = {
    "time": (Matching(), 0),
    "untimed": (Matching(timed=False), 0),
    "band": (Matching(Band("v", "v", 0.1, 0.2)), 1),
    "open band": (Matching(Band("v", "v", 0.1, 0.2, closed="neither")), 1),
    "overlap": (Matching(Overlaps(("a", "b"), ("a", "b"))), 2),
    "grid": (Matching(Within(("x", "y"), ("x", "y"), 0.5)), 2),
}


def area_of(folder: Path, matching: Matching, *, share: int = 0, pages: int = 5, **options: Any) -> SweepArea:
    return SweepArea(matching, **options, spilling=Spilling(FileStore(page_rows=pages, folder=folder), share))


def some(rng: np.random.Generator, kind: str, rows: int, first_id: int = 0) -> Any:
    matching, columns = MATCHINGS[kind]
    pool = POOL[:-1] if kind == "grid" else POOL
    made = drawn(rng, rows, first_id=first_id, values=[pool] * columns, groups=int(rng.integers(1, 4)))
    if kind == "overlap":
        low, high = made.values
        return matching.sorted_run(made.take((low < high) & np.isfinite(high)))
    return matching.sorted_run(made)


@pytest.mark.parametrize("kind", MATCHINGS)
@pytest.mark.parametrize("side", [0, 1])
def test_pages_give_the_pairs_of_the_whole_run(tmp_path: Path, kind: str, side: int) -> None:
    """Also at the edges of a band, where `value + width` would be another number."""
    matching, rng = MATCHINGS[kind][0], np.random.default_rng([side, len(kind)])
    skipped = 0
    for attempt in range(60):
        mine, theirs = some(rng, kind, 12), some(rng, kind, 40)
        if not len(mine) or not len(theirs):
            continue
        store = FileStore(page_rows=4, folder=tmp_path / str(attempt))
        reach = theirs.rows.values[1] if kind == "overlap" else theirs.rows.te if kind == "time" else None
        stored = SpilledRun.of(store.write(theirs, reach), matching)
        both = matching.pairs(mine, theirs) if side == 0 else matching.pairs(theirs, mine)
        expected = {(int(pair[side][at]), int(pair[1 - side][at])) for pair in both for at in range(len(pair[0]))}
        found = [
            (int(i), int(j)) for some in spilled_pairs(matching, mine, stored, side) for i, j in zip(*some, strict=True)
        ]
        assert len(found) == len(set(found))
        assert set(found) == expected
        start, stop = rows_by_page(matching, mine, side, stored.stored.index)
        skipped += int((stop <= start).sum())
    assert skipped, "no page was ever left out"


@pytest.mark.parametrize("kind", MATCHINGS)
def test_an_area_in_files_keeps_what_one_in_memory_keeps(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    matching = MATCHINGS[kind][0]
    plain, filed = SweepArea(matching, tracked=True), area_of(tmp_path, matching, tracked=True)
    store, first = Store(), 0
    for progress in range(-4, 30, 2):
        rows = some(rng, kind, 9, first).rows
        first += 9
        if not len(rows):
            continue
        for area in (plain, filed):
            put(area, rows)
            area.kept[-1].meetings.meet(np.arange(0, len(rows), 2))
        assert fates(list(plain.purge(progress))) == fates(list(filed.purge(progress)))
        assert kept_ids(plain) == kept_ids(filed)
        assert all(isinstance(kept.run, SpilledRun) for kept in filed.kept)
        bounds = [area.first_undecided(unmatched_only=True) for area in (plain, filed)]
        assert bounds[0] == bounds[1]
        store.save(filed.snapshot("area"))
        elsewhere = progress % 4 == 0  # there it is made anew from its parts, otherwise found again
        again = area_of(tmp_path / str(progress) if elsewhere else tmp_path, matching, tracked=True)
        again.restore(store.load())
        assert [kept.run.id for kept in again.kept] == [kept.run.id for kept in filed.kept]
        assert all(same(one.run.rows, two.run.rows) for one, two in zip(filed.kept, again.kept, strict=True))
        filed = again


def test_merged_runs_are_in_the_order_of_a_merge_in_memory_and_files_that_are_gone_go(tmp_path: Path) -> None:
    matching = Matching(Band("v", "v", 1, 1))
    area = area_of(tmp_path, matching, pages=3)
    rng = np.random.default_rng(5)
    everything = []
    for number in range(FAN_IN):
        rows = batch(
            [(0, 100)] * 7, ids=range(7 * number, 7 * number + 7), values=[rng.integers(0, 3, 7).astype(float)]
        )
        everything += sorted(zip(rows.values[0].tolist(), [number] * 7, ids(rows), strict=True))
        put(area, rows)
        purge(area, 0)
    (kept,) = area.kept
    assert isinstance(kept.run, SpilledRun)
    assert kept.run.level == 1
    assert (area.spills, area.merges) == (FAN_IN, 1)
    assert ids(kept.run.rows.payload.combine_chunks()) == [number for _, _, number in sorted(everything)]
    purge(area, 1)
    assert {file.name.partition(".")[0] for file in tmp_path.iterdir()} == {kept.run.id}
    purge(area, 100)
    purge(area, 101)
    assert area.rows == 0
    assert list(tmp_path.iterdir()) == []


def test_a_history_in_files_forgets_what_is_in_the_shadow(tmp_path: Path) -> None:
    plain, filed = SweepArea(History()), area_of(tmp_path, History(), pages=2)
    rng = np.random.default_rng(3)
    for number in range(20):
        times = (10 * number + np.sort(rng.integers(0, 10, 6))).tolist()
        rows = batch([(ts, 2**62) for ts in times], ids=range(6 * number, 6 * number + 6), group=[0, 0, 1, 1, 2, 2])
        for area in (plain, filed):
            put(area, rows)
            assert not list(area.purge(10 * number))
    assert filed.rows < 4 * FAN_IN * 6
    for kept in filed.kept:
        ends = kept.run.rows.te
        same_key = kept.run.rows.group[1:] == kept.run.rows.group[:-1]
        assert (ends[:-1][same_key] <= kept.run.rows.ts[1:][same_key]).all(), "a row ends where the next one begins"


def test_a_file_that_was_changed_is_an_error_and_the_stored_parts_make_it_again(tmp_path: Path) -> None:
    matching, store = Matching(Band("v", "v", 1, 1)), Store()
    area = area_of(tmp_path / "here", matching)
    rows = drawn(np.random.default_rng(1), 30, values=[np.arange(5.0)])
    put(area, rows)
    purge(area, -10)
    store.save(area.snapshot("area"))
    (path,) = (tmp_path / "here").glob("*.keys")
    content = bytearray(path.read_bytes())
    content[5] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(SpillError, match="is damaged in page 0"):
        list(area.probe(matching.sorted_run(rows)))
    again = area_of(tmp_path / "elsewhere", matching)
    again.restore(store.load())
    assert kept_ids(again) == list(range(30))
    path.unlink()
    lost = area_of(tmp_path / "here", matching)
    lost.restore(store.load())
    assert kept_ids(lost) == list(range(30))


def test_payload_is_read_of_pages_whose_rows_match_and_no_others(tmp_path: Path) -> None:
    """One page of it is damaged, and only who finds a row there hears of it."""
    matching = Matching(Band("v", "v", 1, 1))
    area = area_of(tmp_path, matching, pages=5)
    put(area, batch([(0, 100)] * 30, values=[np.arange(30.0)]))
    purge(area, -10)
    (path,) = tmp_path.glob("*.rows")
    (stored,) = [kept.run.stored for kept in area.kept if isinstance(kept.run, SpilledRun)]
    page = int(np.searchsorted(stored.index.start, 20, side="right")) - 1
    offsets = stored.messages[".rows"].offsets  # type: ignore[attr-defined]
    with path.open("r+b") as file:
        file.seek((offsets[page] + offsets[page + 1]) // 2)
        (byte,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 255]))

    def found(value: float) -> list[int]:
        mine = matching.sorted_run(batch([(0, 100)], values=[[value]]))
        (meeting,) = area.probe(mine)
        return sorted(ids(meeting.kept.run.rows.payload.take(pa.array(meeting.theirs))))

    assert found(18.0) == [17, 18, 19]
    assert found(26.0) == [25, 26, 27]
    with pytest.raises(SpillError, match=rf"\.rows.* is damaged in page {page}\b"):
        found(19.0)


CUT = """
import os, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
from streamjoin.errors import SpillError
from streamjoin.state.paged import FilePages
from tests.state.making import drawn
from tests.state.test_spilling import MATCHINGS, area_of, some

folder, suffix = Path(sys.argv[1]), sys.argv[2]

def area(name, **options):
    made, rng = area_of(folder / name, MATCHINGS["band"][0], pages=100, **options), np.random.default_rng(1)
    for _ in range(2):
        made.insert(some(rng, "band", 300))
        list(made.purge(-100))
    return made

merged, expiring, waiting, stored, probed = area("merged"), area("expiring", tracked=True), area(
    "waiting", tracked=True), area("stored"), area("probed")
paged = FilePages(folder / "paged").write(drawn(np.random.default_rng(1), 1000), 100)
meetings = list(probed.probe(some(np.random.default_rng(2), "band", 10)))
uses = {
    "merge": lambda: merged.spilling._merged(merged.kept, merged.matching, 0, 0),
    "expiry": lambda: list(expiring.purge(5)),
    "first start": lambda: waiting.first_undecided(unmatched_only=True),
    "snapshot": lambda: [stored.snapshot("area").blobs[name] for name in stored.snapshot("area").blobs],
    "payload": lambda: meetings[0].kept.run.rows.payload.take(pa.array(meetings[0].theirs)),
    "pages": lambda: paged.read(3, 4),
}
for file in folder.rglob(f"*{suffix}"):
    os.truncate(file, 100)
for name, use in uses.items():
    try:
        use()
    except SpillError as error:
        assert f"{suffix}, to which" in str(error) and "less than its" in str(error), error
        print(name)
"""


@pytest.mark.compiled
@pytest.mark.parametrize("suffix", [".keys", ".rows"])
def test_files_that_were_cut_are_an_error_whoever_looks_at_them(tmp_path: Path, suffix: str) -> None:
    """In a process of its own: what is mapped of a file that was cut ends the process that looks at it."""
    ended = subprocess.run([sys.executable, "-c", CUT, tmp_path, suffix], capture_output=True, text=True, check=False)
    everybody = ["merge", "expiry", "first start", "snapshot", "payload", "pages"]
    # Rows are handed out with payload; who reads arrays alone is told, too: what is cut is not trusted.
    expected = [each for each in everybody if suffix == ".rows" or each != "payload"]
    assert (ended.returncode, ended.stdout.split("\n")[:-1]) == (0, expected), ended.stderr


@pytest.mark.parametrize("parts", [16, 17, 40])
def test_a_run_is_made_again_of_more_parts_than_are_merged_at_a_time(tmp_path: Path, parts: int) -> None:
    """In the order of a merge of all of them: equal rows stay in the order of the parts."""
    matching, rng = MATCHINGS["band"][0], np.random.default_rng(1)
    rows = [some(rng, "band", 3 + number % 5, 10 * number).rows for number in range(parts)]
    spilling = Spilling(FileStore(page_rows=4, folder=tmp_path), share=1)  # every part is a packet of its own
    made = Restoring(spilling, matching, cut=-(10**9)).run("a run", rows)
    whole, order = merged_rows([matching.run_of(each) for each in rows], matching, -(10**9))
    assert made.rows.payload.combine_chunks()["id"].to_pylist() == whole.take(order).payload["id"].to_pylist()
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"a run"}, "packets are removed"


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_run_is_made_again_though_one_of_its_parts_has_no_rows(tmp_path: Path, empty: int) -> None:
    matching, rng = MATCHINGS["band"][0], np.random.default_rng(1)
    parts = [some(rng, "band", 0 if number == empty else 12, 12 * number).rows for number in range(3)]
    spilling = Spilling(FileStore(page_rows=5, folder=tmp_path), share=1)  # every part is a packet of its own
    made = Restoring(spilling, matching, cut=-(10**9)).run("a run", parts)
    assert made.labels is not None
    assert [number // 12 for number in ids(made.rows.payload.combine_chunks())] == made.labels.tolist()
    assert len(made) == 24


def test_a_run_of_very_many_parts_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.state.layout.PART_BYTES", 1)  # parts stay as small as they came
    matching, store = Matching(Band("v", "v", 1, 1)), Store()
    area = area_of(tmp_path / "here", matching, share=2000)
    rng = np.random.default_rng(2)
    for number in range(64):
        put(area, drawn(rng, 3, first_id=3 * number, values=[np.arange(4.0)]))
        purge(area, -10)
    store.save(area.snapshot("area"))
    assert max(len(kept.parts().names) for kept in area.kept) > 16
    again = area_of(tmp_path / "elsewhere", matching, share=1)
    again.restore(store.load())
    for one, two in zip(area.kept, again.kept, strict=True):
        assert same(one.run.rows, two.run.rows)
        assert np.array_equal(one.parts().part_of, two.parts().part_of)


def test_areas_that_get_rows_together_take_turns_to_merge(tmp_path: Path) -> None:
    """Four areas, a run of each in every micro-batch: from the third on one of them merges at a time."""
    turns = [Spilling(FileStore(page_rows=5, folder=tmp_path / str(turn)), 0, turn) for turn in range(FAN_IN)]
    areas = [SweepArea(Matching(), spilling=each) for each in turns]
    merged = []
    for step in range(20):
        before = [each.merges for each in turns]
        for area in areas:
            put(area, batch([(step, step + 100)] * 10, ids=range(10 * step, 10 * step + 10)))
            purge(area, step)
        merged.append([number for number, each in enumerate(turns) if each.merges > before[number]])
    assert merged == [[], [], *([step % FAN_IN] for step in range(18))]
