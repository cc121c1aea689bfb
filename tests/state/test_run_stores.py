"""Contract of run stores: what was written page by page comes back; files survive trouble."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Band, Overlaps
from streamjoin.errors import SpillError
from streamjoin.state import Batch, Matching, Run
from streamjoin.state.batch import NO_HOLDER
from streamjoin.state.snapshot import table_to_bytes
from streamjoin.state.stores import FileStore, MemoryStore, RunStore, Scratch
from streamjoin.state.stores.files import remove
from streamjoin.state.stores.looked_at import HOLDS, SUFFIX
from streamjoin.state.stores.scratch import FOLDER, parent_of
from tests.state.making import batch, drawn, same


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RunStore:
    return MemoryStore(page_rows=7) if request.param == "memory" else FileStore(page_rows=7, folder=tmp_path / "runs")


def some_run(rows: int = 40, seed: int = 1) -> Run:
    rng = np.random.default_rng(seed)
    return Matching(Band("v", "v", 1, 1)).sorted_run(drawn(rng, rows, values=[np.arange(10.0)], groups=3))


def everything() -> Batch:
    """Rows with every column that a batch can have."""
    plain = batch([(1, 5), (2, 6), (3, 9)], values=[[1.5, 2.5, 3.5], [4, 5, 6]], origin=[7, 8, 9])
    return replace(
        plain,
        home=np.array([True, False, True]),
        holder=np.array([NO_HOLDER, 3, 4]),
        proof=pa.table({"0": ["a", None, "c"], "1": [1, 2, 3]}),
        contents=pa.table({"0": [["x"], [], ["y", "z"]]}),
    )


def test_a_run_comes_back_whole_and_by_page(store: RunStore) -> None:
    run = some_run()
    labels = np.arange(len(run), dtype=np.int32)
    stored = store.write(run, labels=labels)
    assert len(stored) == len(run)
    assert len(stored.index) == 6
    assert same(stored.rows, run.rows)
    assert stored.labels is not None
    assert np.array_equal(stored.labels, labels)
    for first, last in ((0, 1), (2, 5), (5, 6)):
        start, stop = int(stored.index.start[first]), int(stored.index.start[last])
        assert same(stored.pages(first, last), run.rows.part(start, stop))
    assert store.figures.pages_written == 6
    assert store.figures.pages_read == 5


def test_rows_are_taken_from_their_pages_in_any_order(store: RunStore) -> None:
    """In order, back and forth between neighbours as pairs are found, in none at all, several times, and none."""
    rows, rng = some_run().rows, np.random.default_rng(2)
    stored = store.write(some_run()).rows
    in_turns = np.column_stack([np.arange(0, 20), np.arange(20, 40)]).ravel()
    for wanted in (np.arange(40), np.array([6, 7, 6, 7, 13, 14]), in_turns, rng.integers(0, 40, 90), np.arange(0)):
        assert same(stored.take(wanted), rows.take(wanted))


@pytest.mark.parametrize("rows", [1, 3])
def test_every_column_of_a_batch_is_stored(store: RunStore, rows: int) -> None:
    given = everything().part(0, rows)
    stored = store.write(Matching().run_of(given))
    assert same(stored.rows, given)
    assert same(stored.pages(0, 1), given)


def test_rows_without_payload_are_stored(store: RunStore) -> None:
    rows = replace(batch([(1, 5), (2, 6)]), payload=pa.table({}))
    stored = store.write(Matching().run_of(rows))
    assert len(stored.rows) == 2
    assert stored.rows.take(np.array([1])).ts.tolist() == [2]


def test_rows_are_taken_from_any_pages_in_any_order(store: RunStore) -> None:
    run = some_run()
    stored = store.write(run)
    rows = np.array([39, 0, 8, 8, 20])
    assert same(stored.rows.take(rows), run.rows.take(rows))
    assert (
        stored.rows.payload.select(["note"])
        .take(pa.array(rows))
        .equals(run.rows.payload.select(["note"]).take(pa.array(rows)))
    )


def test_the_index_bounds_every_page(store: RunStore) -> None:
    matching = Matching(Overlaps(("lo", "hi"), ("lo", "hi")))
    rng = np.random.default_rng(3)
    low = rng.random(50)
    rows = batch(
        [(int(ts), int(ts) + 3) for ts in rng.integers(0, 30, 50)],
        values=[low, low + rng.random(50)],
        group=rng.integers(0, 4, 50).tolist(),
    )
    run = matching.sorted_run(rows)
    index = store.write(run, reach=run.rows.values[1]).index
    for page in range(len(index)):
        part = run.part(int(index.start[page]), int(index.start[page + 1]))
        assert (index.first_group[page], index.last_group[page]) == (part.rows.group[0], part.rows.group[-1])
        assert (index.first_value[page], index.last_value[page]) == (part.value[0], part.value[-1])
        assert index.reach[page] == part.rows.values[1].max()
        assert (index.first_ts[page], index.last_ts[page]) == (part.rows.ts.min(), part.rows.ts.max())
        assert (index.ends[page, 0], index.ends[page, -1]) == (part.rows.te.min(), part.rows.te.max())
    assert index.first_end == run.rows.te.min()
    assert index.last_end == run.rows.te.max()
    for progress in range(-2, 40):
        least, exact = index.expired_at_least(progress), int((run.rows.te <= progress).sum())
        assert exact - 2 * len(index) <= least <= exact


def test_a_deleted_run_is_not_found_and_its_rows_stay_with_whoever_has_them(store: RunStore) -> None:
    run = some_run()
    stored = store.write(run)
    assert store.find(run.id) is not None
    store.delete(stored)
    assert store.find(run.id) is None
    assert same(stored.rows, run.rows)
    assert store.figures.bytes == 0


# -- files -------------------------------------------------------------------------------------------------------------


def test_another_process_finds_a_run_by_its_name(tmp_path: Path) -> None:
    run = some_run()
    FileStore(page_rows=7, folder=tmp_path).write(run, labels=np.arange(len(run), dtype=np.int32))
    found = FileStore(folder=tmp_path).find(run.id)
    assert found is not None
    assert same(found.rows, run.rows)
    assert found.labels is not None
    assert found.labels.tolist() == list(range(len(run)))


def test_a_run_that_was_not_finished_is_not_found_and_is_cleaned_away(tmp_path: Path) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    unfinished = store.writer(run.id, len(run))
    unfinished.append(run.part(0, 7))
    kept = store.write(some_run(seed=2))
    assert store.find(run.id) is None
    store.keep_only({kept.id})
    assert {file.name.partition(".")[0] for file in tmp_path.iterdir()} == {kept.id}
    unfinished.abandon()


def test_a_folder_among_the_files_does_not_end_the_cleaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileStore(page_rows=7, folder=tmp_path)
    (tmp_path / "tpmj-0-0").mkdir()
    store.write(some_run())
    listed = Path.iterdir
    monkeypatch.setattr(
        Path, "iterdir", lambda folder: iter(sorted(listed(folder), key=Path.is_file))
    )  # it comes first
    store.keep_only(set())
    assert [file.name for file in listed(tmp_path)] == ["tpmj-0-0"]
    FileStore(folder=tmp_path / "nothing was written there").keep_only(set())


def flip(path: Path, at: int = 3) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("suffix", [".keys", ".rows"])
def test_a_damaged_page_is_an_error_that_says_what_to_do(tmp_path: Path, suffix: str) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    stored = store.write(run)
    flip(tmp_path / f"{run.id}{suffix}")
    with pytest.raises(SpillError, match=r"damaged in page 0.*start the query again"):
        stored.pages(0, 1).payload.take(pa.array([0]))
    assert same(stored.pages(5, 6), run.rows.part(35, 40)), "the other pages are as they were"


def read_all(store: FileStore, run_id: str) -> Batch:
    stored = store.find(run_id)
    assert stored is not None
    rows = stored.pages(0, len(stored.index))
    return replace(rows, payload=rows.payload.combine_chunks())


def test_pages_are_compared_once_on_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds the run after somebody has looked at its pages believes them, in another process too."""
    store, run, compared = FileStore(page_rows=7, folder=tmp_path), some_run(), []
    crc32 = zlib.crc32
    monkeypatch.setattr(zlib, "crc32", lambda content, *check: compared.append(1) or crc32(content, *check))
    stored = store.write(run)
    written = len(compared)
    stored.pages(0, 2)
    first = len(compared) - written
    assert first > 0
    assert same(read_all(store, run.id), run.rows)
    assert len(compared) - written > first, "of the other pages nothing was known"
    compared.clear()
    assert same(read_all(store, run.id), run.rows)
    assert len(compared) == 1, "of the index alone"


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("suffix", [".keys", ".rows"])
def test_what_has_been_touched_is_compared_anew(tmp_path: Path, suffix: str, kept: bool) -> None:
    """Also where somebody has set back when it was written, as copying with times does."""
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    store.write(run)
    read_all(store, run.id)
    path = tmp_path / f"{run.id}{suffix}"
    before = path.stat()
    time.sleep(0.02)  # clocks of file systems may tick as slowly
    flip(path)
    if kept:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SpillError, match="damaged in page 0"):
        read_all(store, run.id)


def compared_again(store: FileStore, run_id: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many checksums are worked out to read it all, but for that of the index."""
    compared: list[int] = []
    crc32 = zlib.crc32
    with monkeypatch.context() as patch:
        patch.setattr(zlib, "crc32", lambda content, *check: compared.append(1) or crc32(content, *check))
        read_all(store, run_id)
    return len(compared) - 1


def test_notes_are_not_believed_after_the_system_began_anew_and_not_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    store.write(run)
    all_of_it = compared_again(store, run.id, monkeypatch)
    assert all_of_it > 0
    assert compared_again(store, run.id, monkeypatch) == 0
    module = "streamjoin.state.stores.looked_at"
    with monkeypatch.context() as patch:
        patch.setattr(f"{module}._system", lambda: b"another time")
        assert compared_again(store, run.id, monkeypatch) == all_of_it
        assert compared_again(store, run.id, monkeypatch) == 0
    assert compared_again(store, run.id, monkeypatch) == all_of_it
    now = time.time()
    for later, expected in ((HOLDS - 60, 0), (HOLDS + 60, all_of_it), (-60, all_of_it)):
        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.time.time", lambda later=later: now + later)
            assert compared_again(store, run.id, monkeypatch) == expected


@pytest.mark.parametrize("content", [None, b"", b"of somebody else"])
def test_notes_of_pages_that_are_gone_or_no_notes_are_begun_anew(tmp_path: Path, content: bytes | None) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    store.write(run)
    notes = tmp_path / f"{run.id}{SUFFIX}"
    notes.unlink() if content is None else notes.write_bytes(content)
    assert same(read_all(store, run.id), run.rows)
    assert notes.stat().st_size > 30
    stored = store.find(run.id)
    assert stored is not None
    store.delete(stored)
    assert list(tmp_path.iterdir()) == []


def test_only_a_one_says_that_a_page_was_compared(tmp_path: Path) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    stored = store.write(run)
    flip(tmp_path / f"{run.id}.keys")
    assert store.find(run.id) is not None, "notes of the file as it is now"
    notes = tmp_path / f"{run.id}{SUFFIX}"
    pages = 2 * len(stored.index)
    notes.write_bytes(notes.read_bytes()[:-pages] + b"\x02" * pages)
    with pytest.raises(SpillError, match="damaged in page 0"):
        read_all(store, run.id)


@pytest.mark.parametrize("left", [0, 40])
def test_notes_that_are_cut_while_somebody_has_the_run_are_no_harm(tmp_path: Path, left: int) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    stored = store.write(run)
    os.truncate(tmp_path / f"{run.id}{SUFFIX}", left)
    assert same(stored.pages(0, 1), run.rows.part(0, 7))
    assert same(read_all(store, run.id), run.rows)


def test_notes_of_a_run_that_was_made_again_are_not_written_by_who_has_the_old_one(tmp_path: Path) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    old = store.write(run)
    remove(tmp_path / run.id)
    store.write(run)
    flip(tmp_path / f"{run.id}.keys")
    assert store.find(run.id) is not None, "notes of the file as it is now"
    assert same(old.pages(0, 1), run.rows.part(0, 7)), "the old files are still mapped"
    with pytest.raises(SpillError, match="damaged in page 0"):
        read_all(store, run.id)


def test_notes_are_not_left_behind_by_who_finds_a_run_that_is_just_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    store.write(run)
    (tmp_path / f"{run.id}{SUFFIX}").unlink()
    rename = os.rename

    def removed_meanwhile(one: str, other: str) -> None:
        remove(tmp_path / run.id)
        rename(one, other)

    monkeypatch.setattr("streamjoin.state.stores.looked_at.os.rename", removed_meanwhile)
    assert store.find(run.id) is not None
    assert list(tmp_path.iterdir()) == []


def test_where_no_notes_can_be_kept_every_process_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    store.write(run)
    (tmp_path / f"{run.id}{SUFFIX}").unlink()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("streamjoin.state.stores.looked_at.os.rename", full)
    assert same(read_all(store, run.id), run.rows)
    assert {path.suffix for path in tmp_path.iterdir()} == {".keys", ".rows", ".index"}
    flip(tmp_path / f"{run.id}.keys")
    with pytest.raises(SpillError, match="damaged in page 0"):
        read_all(store, run.id)


def test_a_file_that_is_gone_or_cut_is_not_found(tmp_path: Path) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    stored = store.write(run)
    assert stored.damage is None
    path = tmp_path / f"{run.id}.rows"
    os.truncate(path, path.stat().st_size // 2)
    assert "less than its" in str(stored.damage)
    assert store.find(run.id) is None
    path.unlink()
    assert store.find(run.id) is None
    assert "less than its" in str(stored.damage), "what is mapped has been cut, with a name or without"
    whole = store.write(some_run(seed=2))
    (tmp_path / f"{whole.id}.rows").unlink()
    assert store.find(whole.id) is None
    assert whole.damage is None, "who has it mapped still has it"


def test_a_run_with_a_damaged_index_is_not_found(tmp_path: Path) -> None:
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run()
    store.write(run)
    path = tmp_path / f"{run.id}.index"
    content = path.read_bytes()
    for at in range(0, len(content), 61):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert store.find(run.id) is None, f"byte {at} was changed"
    for size in (0, 3, 100, len(content) - 1):
        path.write_bytes(content[:size])
        assert store.find(run.id) is None, f"cut to {size} bytes"
    foreign = table_to_bytes(pa.table({"something": [1]}))
    path.write_bytes(foreign + zlib.crc32(foreign).to_bytes(4, "little"))
    assert store.find(run.id) is None, "of another version"
    path.write_bytes(content)
    assert store.find(run.id) is not None


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no device that is always full")
    store, run = FileStore(page_rows=7, folder=tmp_path), some_run(5000)
    (tmp_path / f"{run.id}.rows").symlink_to(full)
    with pytest.raises(SpillError, match=r"No space left on device.*make room"):
        store.write(run)
    assert list(tmp_path.iterdir()) == []


def test_ends_that_become_known_are_written_into_this_process_s_copy_alone(tmp_path: Path) -> None:
    store, rows = FileStore(folder=tmp_path), everything()
    stored = store.write(Matching().run_of(rows))
    stored.rows.te[1] = 77
    stored.forget()
    assert stored.rows.te.tolist() == [5, 77, 9]
    found = store.find(stored.id)
    assert found is not None
    assert found.rows.te.tolist() == [5, 6, 9]


def test_folders_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    local = tmp_path / "blockmgr-1"
    mine, beside = Scratch.here(local), Scratch.here(tmp_path / "blockmgr-0", parent_of(os.getpid()))
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    gone = [Scratch.here(local, child.pid), Scratch.here(tmp_path / "blockmgr-2", child.pid)]
    for each in (mine, beside, *gone):
        each.of("state").mkdir(parents=True)
    (local / FOLDER / "not ours").mkdir()
    assert mine.clean_up() == 0, "all of them live"
    child.kill()
    child.wait()
    assert mine.clean_up() == 2
    assert mine.folder.is_dir()
    assert beside.folder.is_dir()
    assert (local / FOLDER / "not ours").is_dir()
    assert not (tmp_path / "blockmgr-2" / FOLDER).exists()
    mine.remove()
    assert not mine.folder.exists()


def test_folders_of_other_hosts_and_containers_are_removed_only_when_they_are_old(tmp_path: Path) -> None:
    mine, old = Scratch.here(tmp_path), time.time() - 25 * 3600
    here, process = mine.owner.rpartition("@")[0], "1-0"  # of which there is none like it here
    owners = {name: tmp_path / FOLDER / f"{name}@{process}" for name in ("living", "quiet", "gone", here)}
    for owner in owners.values():
        (owner / "state").mkdir(parents=True)
    for name in ("quiet", "gone"):
        for each in (owners[name] / "state", owners[name]):
            os.utime(each, (old, old))
    os.utime(owners["quiet"] / "state")  # as every commit does
    assert mine.clean_up() == 2
    assert {name for name, owner in owners.items() if owner.is_dir()} == {"living", "quiet"}
