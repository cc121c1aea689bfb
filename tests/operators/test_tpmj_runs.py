"""Runs of joins in sorted runs, in files: however many there are, a process has few of them open."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import Greedy, MaxFanIn
from streamjoin.api import joins
from streamjoin.errors import SnapshotError, SpillError
from streamjoin.operators.contract import ALONE, Context, Results
from streamjoin.operators.tpmj import Shares, Tpmj, ValueOrder
from streamjoin.operators.tpmj.configuration import DEFAULT_MEMORY
from streamjoin.operators.tpmj.running import RunningTpmj
from streamjoin.operators.tpmj.sorted_results import SortedResults
from streamjoin.state import Batch, Snapshot
from streamjoin.state.paged import FilePages, MemoryPages, PagedRun

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts files in /proc")
MEGABYTE = 1 << 20
ROWS = 300  # of each input; each row is a part of its own, because it is declared to have a megabyte
MORE = 100  # files that may be opened


@contextmanager
def few_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + MORE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def operator(folder: Path, pages: int = 12) -> RunningTpmj:
    schema = pa.schema([("id", pa.int64())])
    running: RunningTpmj = Tpmj(
        (schema, schema), ValueOrder((0, 0), interval=True), merge=Greedy(2), folder=str(folder), page_bytes=MEGABYTE,
        memory=Shares(2 * ROWS * MEGABYTE, pages * MEGABYTE, MEGABYTE), row_bytes=(MEGABYTE, MEGABYTE), credit=0.0,
    ).build()  # fmt: skip
    return running


def fed(running: RunningTpmj) -> RunningTpmj:
    """All rows are in one group, in any order of their values; each came alone."""
    for number in (0, 1):
        low = np.random.default_rng(number).permutation(ROWS).astype(np.float64)
        ts = np.arange(ROWS)
        rows = Batch(pa.table({"id": ts}), ts, ts + 50, np.zeros(ROWS, np.int64), (low, low + 2))
        for at in range(ROWS):
            assert list(running.on_batch(number, rows.part(at, at + 1))) == []
    assert [[run.rows for run in group.runs] for group in running.tree.groups] == [[ROWS, ROWS]]
    return running


def ids(running: RunningTpmj) -> list[tuple[int, int]]:
    found = [results for results in running.on_end() if isinstance(results, Results)]
    return [tuple(row.values()) for results in found for row in results.payload.to_pylist()]


def pages(running: RunningTpmj) -> list[PagedRun]:
    return [run.pages for group in running.tree.groups for run in group.runs]


def test_a_run_of_many_parts_is_made_again_with_few_files_open(tmp_path: Path) -> None:
    before = fed(operator(tmp_path / "one"))
    stored = before.snapshot()
    assert len(stored.blobs) == 2 * ROWS, "the case itself is wrong: a part for each row was meant"
    after = operator(tmp_path / "two")
    with few_files():
        after.restore(stored)
        assert [run.labels().tolist() for run in pages(after)] == [run.labels().tolist() for run in pages(before)]
        files = len(list((tmp_path / "two").rglob("*.index")))
        found = ids(after)
    assert files == 2, "what they were made of is gone"
    assert len(found) > ROWS // 2
    assert found == ids(before)


def opened(folder: Path) -> set[str]:
    """The runs under a folder of which this process has files open, or mapped."""
    there = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return {Path(file).name.partition(".")[0] for file in there if file.startswith(str(folder))}


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file can become larger: the system refuses to write, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_a_run_was_to_be_made_of_goes_when_the_disk_is_full(tmp_path: Path) -> None:
    """Few rows find room, all of them together do not."""
    stored, after = fed(operator(tmp_path / "one")).snapshot(), operator(tmp_path / "two")
    written: list[int] = []
    after.tree.store.write = lambda *given, write=after.tree.store.write: written.append(1) or write(*given)  # type: ignore[method-assign]
    with small_files(40_000), pytest.raises(SpillError, match="could not be written"):
        after.restore(stored)
    assert len(written) > 2, "the case itself is wrong: nothing found room"
    assert [file for file in (tmp_path / "two").rglob("*") if file.is_file()] == [], "others need the room"


def test_who_is_forgotten_in_the_middle_of_a_merge_closes_its_files(tmp_path: Path) -> None:
    """Its runs stay: who goes on elsewhere on this host finds them."""
    running = halfway(tmp_path)
    runs = {run.id for run in pages(running)}
    assert opened(tmp_path) > runs, "the case itself is wrong: no file is being written"
    running.close()
    assert opened(tmp_path) == runs
    assert {file.stem for file in tmp_path.rglob("*") if file.is_file()} == runs


def test_parts_are_stored_as_they_came(tmp_path: Path) -> None:
    running = fed(operator(tmp_path))
    stored = running.snapshot().blobs
    both = [pa.ipc.open_stream(blob).read_all()["id"].to_pylist() for blob in stored.values()]
    assert sorted(both) == sorted([[at] for at in range(ROWS)] * 2), "each row is in one part, and no other"


def test_pages_are_as_large_as_memory_allows_after_a_restart(tmp_path: Path) -> None:
    """A query that goes on with less memory does not read pages of the size that it had."""
    schema = pa.schema([("id", pa.int64())])

    def with_pages(nbytes: int, folder: str) -> RunningTpmj:
        shares, folder = Shares(100_000, nbytes, 100_000), str(tmp_path / folder)
        made: RunningTpmj = Tpmj(
            (schema, schema), ValueOrder((0, 0), interval=True), memory=shares, folder=folder, credit=0.0
        ).build()  # fmt: skip
        return made

    large = with_pages(10 * MEGABYTE, "large")
    rows, ts = 1_000, np.zeros(1_000, np.int64)
    for number in (0, 1):
        low = np.arange(rows, dtype=np.float64)
        batch = Batch(pa.table({"id": np.arange(rows)}), ts, ts + 9, ts, (low, low + 0.5))
        list(large.on_batch(number, batch))
        list(large.on_batch(number, batch))
    small = with_pages(100_000, "small")
    small.restore(large.snapshot())
    sizes = [[run.page_rows * group.runs[0].width for run in pages(each)] for each in (large, small)
             for group in each.tree.groups[:1]]  # fmt: skip
    assert max(sizes[1]) <= small.tree.page_bytes < min(sizes[0])
    assert sorted(ids(small)) == sorted(ids(large))


def with_pages_of_ten_rows(folder: Path, pages: int) -> RunningTpmj:
    schema = pa.schema([("id", pa.int64())])
    running: RunningTpmj = Tpmj(
        (schema, schema), ValueOrder((0, 0), interval=True), merge=Greedy(2), memory=Shares(200, pages * 10, 10_000),
        page_bytes=10, row_bytes=(1, 1), credit=0.0, leaf_emits=False, folder=str(folder),
    ).build()  # fmt: skip
    return running


def halfway(folder: Path) -> RunningTpmj:
    """Three steps into a merge of two groups."""
    running, count = with_pages_of_ten_rows(folder, 6), 100
    for group in (0, 1):
        for number in (0, 1):
            low = np.random.default_rng(2 * group + number).permutation(count).astype(np.float64)
            ts = np.arange(group * count, (group + 1) * count)
            rows = Batch(pa.table({"id": ts}), ts, ts + 50, np.zeros(count, np.int64), (low, low + 2))
            assert list(running.on_batch(number, rows)) == []
            assert list(running.on_progress(number, (group + 1) * count)) == []
    while running.tree.merge is None or running.tree.merge.steps < 3:
        assert list(running.work(1.0)) == []
    return running


def test_a_merge_that_is_taken_up_again_stands_where_it_was_saved(tmp_path: Path) -> None:
    before = halfway(tmp_path / "before")
    stored = before.snapshot()
    saved = stored.manifest["tree"]["merge"]
    assert saved["steps"] == 3
    assert any(at for _, _, at in saved["positions"]), "the case itself is wrong: all runs stand between two pages"
    after = with_pages_of_ten_rows(tmp_path / "after", 6)
    after.restore(Snapshot(json.loads(json.dumps(stored.manifest)), stored.blobs))
    assert after.snapshot().manifest["tree"]["merge"] == saved
    found = ids(after)
    assert len(found) > 100
    assert found == ids(before)


def test_a_merge_that_stands_elsewhere_is_refused_unless_memory_has_changed(tmp_path: Path) -> None:
    before = halfway(tmp_path / "before")
    stored = before.snapshot()
    other = json.loads(json.dumps(stored.manifest))
    other["tree"]["merge"]["positions"][0][1] += 1
    elsewhere = Snapshot(other, stored.blobs)
    with pytest.raises(SnapshotError, match="was taken 3 steps again, and does not stand where it was saved"):
        with_pages_of_ten_rows(tmp_path / "same", 6).restore(elsewhere)
    larger = with_pages_of_ten_rows(tmp_path / "larger", 12)
    larger.restore(elsewhere)  # two pages of each run are read at a time: three steps lead elsewhere
    assert larger.snapshot().manifest["tree"]["merge"]["positions"] != saved_positions(stored)
    del other["tree"]["merge"]["ahead"]  # as earlier releases saved it
    earlier = with_pages_of_ten_rows(tmp_path / "earlier", 6)
    earlier.restore(elsewhere)
    assert sorted(ids(larger)) == sorted(ids(earlier)) == sorted(ids(before))


# -- runs that are found -----------------------------------------------------------------------------------------------


def merged_twice(folder: Path) -> RunningTpmj:
    """Groups that were merged, some rows of which have ended; one that was not, and rows that wait."""
    running, count = with_pages_of_ten_rows(folder, 6), 100
    for group in range(4):
        for number in (0, 1):
            low = np.random.default_rng(2 * group + number).permutation(count).astype(np.float64)
            ts = np.arange(group * count, (group + 1) * count)
            rows = Batch(pa.table({"id": ts}), ts, ts + 5 + ts % 250, np.zeros(count, np.int64), (low, low + 2))
            list(running.on_batch(number, rows if group < 3 else rows.part(0, 30)))
            list(running.on_progress(number, (group + 1) * count))
        if group == 1:
            list(running.work(1e9))
    merged, fresh = ([run.rows for run in group.runs] for group in running.tree.groups)
    assert max(merged) < 2 * count == 2 * min(fresh), "the case itself is wrong: nothing has been left behind"
    assert len(running.lists) == 60
    return running


def stored_again(running: RunningTpmj) -> Snapshot:
    """As it comes back from Spark's state."""
    snapshot = running.snapshot()
    return Snapshot(json.loads(json.dumps(snapshot.manifest)), dict(snapshot.blobs))


def files(folder: Path, suffix: str) -> dict[str, int]:
    return {str(file): file.stat().st_ino for file in folder.rglob(f"*{suffix}")}


def test_runs_are_found_by_whoever_goes_on_with_the_same_folder(tmp_path: Path) -> None:
    before = merged_twice(tmp_path)
    stored, there = stored_again(before), files(tmp_path, "")
    next(tmp_path.rglob("*.keys")).with_name("left.keys").touch()
    after = with_pages_of_ten_rows(tmp_path, 6)
    waiting = {name: stored.blobs[name] for name in before.lists.snapshot().blobs}
    after.restore(Snapshot(stored.manifest, waiting))  # nothing else is asked for
    assert files(tmp_path, "") == there, "nothing was written, and what nobody names is gone"
    again = stored_again(after)
    assert again.manifest == stored.manifest
    assert again.blobs == stored.blobs, "every row is in the part that it was in"
    assert len(found := ids(after)) > 100
    remade = with_pages_of_ten_rows(tmp_path / "elsewhere", 6)
    remade.restore(stored)
    assert found == ids(remade)


@pytest.mark.parametrize("suffix", [".index", ".keys", ".rows"])
def test_a_run_that_is_lost_is_made_again_and_no_other(tmp_path: Path, suffix: str) -> None:
    before = merged_twice(tmp_path)
    stored, there = stored_again(before), files(tmp_path, ".index")
    Path(min(there)).with_suffix(suffix).unlink()
    after = with_pages_of_ten_rows(tmp_path, 6)
    after.restore(stored)
    assert len(set(files(tmp_path, ".index").items()) - set(there.items())) == 1
    elsewhere = with_pages_of_ten_rows(tmp_path / "elsewhere", 6)
    elsewhere.restore(stored)
    assert len(found := ids(after)) > 100
    assert found == ids(elsewhere)


def test_runs_in_pages_of_another_size_are_made_again(tmp_path: Path) -> None:
    """Otherwise a query that goes on with less memory would read pages that do not fit."""
    stored, there = stored_again(merged_twice(tmp_path)), files(tmp_path, ".index")
    after = with_pages_of_ten_rows(tmp_path, 6)
    after.tree.page_bytes = 5
    after.restore(stored)
    assert [run.page_rows for run in pages(after)] == [5] * 4
    assert {run.id for run in pages(after)}.isdisjoint(Path(file).stem for file in there)
    assert len(files(tmp_path, ".index")) == 4, "those of the other size are gone"


def saved_positions(stored: Snapshot) -> list[list[int]]:
    positions: list[list[int]] = stored.manifest["tree"]["merge"]["positions"]
    return positions


def test_results_that_outgrow_memory_many_times_leave_with_few_files_open(tmp_path: Path) -> None:
    results, rng = SortedResults(FilePages(tmp_path), limit=1, page_bytes=64), np.random.default_rng(1)
    times = rng.integers(0, 40, 400)
    with few_files():
        for at, time in enumerate(times.tolist()):  # each is more than the limit, and a run of its own
            one = np.array([time])
            results.add(Results(pa.table({"id": [at]}), one, one + 1))
        left = Results.concat(list(results.leave()))
    assert left.payload["id"].to_pylist() == np.argsort(times, kind="stable").tolist()
    assert results.pages > 3 * len(times), "written, merged with others, and read"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("inputs", [2, 3, 5])
def test_the_fan_in_follows_memory_within_reason_and_a_strategy_may_say_another(inputs: int) -> None:
    schemas = (pa.schema([("id", pa.int64())]),) * inputs
    by_memory = [Tpmj(schemas).fan_in(Shares.of(megabytes << 20)) for megabytes in (8, 64, 4096)]
    assert by_memory == sorted(by_memory)
    assert by_memory[-1] == max(16, 64 // inputs)
    assert Tpmj(schemas, merge=MaxFanIn(100)).fan_in(Shares.of(4 << 30)) == 100


def test_without_memory_runs_stay_there_and_the_first_is_as_large_as_the_call_says(tmp_path: Path) -> None:
    config = Tpmj((pa.schema([("id", pa.int64())]),) * 2)
    assert isinstance(config.store(ALONE), MemoryPages)
    assert isinstance(config.store(Context(0, memory=1 << 20, scratch=str(tmp_path))), FilePages)
    told = f"{config.shares(ALONE).lists >> 20} MB of rows (two fifths of {DEFAULT_MEMORY >> 20} MB)"
    assert told in " ".join((joins.join.__doc__ or "").split())
