"""State in files that are changed, cut or lost, or find no room, through the processors that ship: queries go on."""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamjoin.algebra import Greedy
from streamjoin.errors import SpillError
from streamjoin.operators.tpmj import Shares, Tpmj, saving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.spark.stored import bucket, bundles, local_runs
from streamjoin.spark.stored.blob_cache import BESIDE_RUNS, cache_of
from streamjoin.state import layout
from streamjoin.state.stores.private import PRIVATE
from streamjoin.state.stores.scratch import FOLDER
from tests.function_trees import plan_of, rows, table, tree
from tests.plane import Map, Plane, own_cache

__all__ = ["own_cache"]
pytestmark = pytest.mark.usefixtures("own_cache")
PIECES, ROWS = 4, 30


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    local_runs.scratch.cache_clear()
    yield tmp_path
    local_runs.scratch.cache_clear()


def plan(memory: int | None) -> PhysicalPlan:
    lowered = plan_of(tree("band"), {"0": 50, "1": 50}, buckets=1)
    return replace(lowered, stages=tuple(replace(stage, memory=memory) for stage in lowered.stages))


def plan_of_kind(kind: str, memory: int | None) -> PhysicalPlan:
    """Joins whose state is in files from the first rows on: in sweep areas, with marks beside them, in sorted runs."""
    if kind != "sorted runs":
        lowered = plan_of(tree("band", how="left" if kind == "marks" else "inner"), {"0": 50, "1": 50}, buckets=1)
        return replace(lowered, stages=tuple(replace(stage, memory=memory) for stage in lowered.stages))
    lowered = plan_of(replace(tree("keys"), merge=Greedy(3)), {"0": 50, "1": 50}, buckets=1, emit="ordered")
    (stage,) = lowered.stages
    (node,) = stage.nodes
    assert isinstance(node.config, Tpmj)
    config = replace(node.config, memory=Shares(lists=8, pages=40, results=1000), page_bytes=1, row_bytes=(1, 1))
    return replace(lowered, stages=(replace(stage, memory=memory, nodes=(replace(node, config=config),)),))


def piece(number: int) -> dict[str, Any]:
    drawn = random.Random(number)
    return {str(side): table(rows(drawn, ROWS)) for side in (0, 1)}


def ids(tables: Any) -> Counter[tuple[int, int]]:
    return Counter((row["id"], row["id_right"]) for part in tables for row in part.to_pylist())


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8] ^= 255
    path.write_bytes(bytes(content))


TROUBLE: dict[str, Callable[[Path], None]] = {
    "changed": change,
    "cut": lambda path: os.truncate(path, 20),
    "vanished": lambda path: path.unlink(),
}


# A page is compared with its checksum once by each worker.
CASES = [
    ("another", "changed", "keys"), ("another", "changed", "rows"), ("another", "cut", "keys"),
    ("another", "vanished", "rows"), ("the same", "cut", "rows"), ("the same", "vanished", "keys"),
]  # fmt: skip


@pytest.mark.parametrize(("worker", "trouble", "suffix"), CASES)
def test_a_query_goes_on_from_what_is_stored(local: Path, trouble: str, suffix: str, worker: str) -> None:
    """It may take an error for each file; who starts it again, in the same application, finds that one no more."""
    whole = Plane(plan(None), random.Random(0))
    expected = [ids(whole.micro_batch(piece(number))) for number in range(PIECES)]
    plane, found, errors = Plane(plan(6000), random.Random(0)), [], list[str]()
    files: list[Path] = []
    for number in range(PIECES):
        if number == PIECES - 2:
            files = list(local.rglob(f"*.{suffix}"))
            assert files, "nothing is in files: the budget is not small enough"
            if worker == "another":
                bucket.forget_all()
            for file in files:
                TROUBLE[trouble](file)
        before = {label: store.copy() for label, store in plane.stores[0].items()}
        while len(found) == number and len(errors) <= len(files):
            try:
                found.append(ids(plane.micro_batch(piece(number))))
            except SpillError as error:
                errors.append(str(error))
                bucket.forget_all()
                plane.stores[0].update({label: store.copy() for label, store in before.items()})
    assert found == expected
    assert bool(errors) == (trouble == "changed" or (trouble == "cut" and worker == "the same"))
    assert all("start the query again" in each for each in errors)


def copied(plane: Plane) -> dict[int, Any]:
    return {label: store.copy() for label, store in plane.stores[0].items()}


def again_from(plane: Plane, stored: dict[int, Any]) -> None:
    """A query that has failed starts again, perhaps in another worker."""
    bucket.forget_all()
    plane.stores[0].update({label: store.copy() for label, store in stored.items()})


def everything(kind: str) -> Counter[tuple[int, int]]:
    """What the same join gives that has all the memory it wants."""
    plane = Plane(plan_of_kind(kind, None), random.Random(0))
    found = sum((ids(plane.micro_batch(piece(number))) for number in range(PIECES)), Counter[tuple[int, int]]())
    return found + ids(plane.end())


@pytest.mark.parametrize("trouble", list(TROUBLE))
def test_a_join_in_sorted_runs_goes_on_from_what_is_stored(local: Path, trouble: str) -> None:
    """It may take an error for each file, as of sweep areas; a file that is not there is not asked for."""
    plane, found = Plane(plan_of_kind("sorted runs", 6000), random.Random(0)), Counter[tuple[int, int]]()
    errors: list[str] = []
    for number in range(PIECES):
        stored, files = copied(plane), list[Path]()
        if number == PIECES - 2:
            files = list(local.rglob("*.keys"))
            assert files, "nothing is in files: the budget is not small enough"
            for file in files:
                TROUBLE[trouble](file)
        for _ in range(len(files) + 1):
            try:
                found += ids(plane.micro_batch(piece(number)))
                break
            except SpillError as error:
                errors.append(str(error))
                again_from(plane, stored)
        else:
            pytest.fail("one file is damaged again and again")
    assert bool(errors) == (trouble != "vanished"), "who has a file mapped still has it"
    assert all("start the query again" in each for each in errors)
    assert found + ids(plane.end()) == everything("sorted runs")


def later(number: int) -> dict[str, Any]:
    """Rows of a time of their own, so that results leave meanwhile."""
    drawn = random.Random(number)
    some = [[{**row, "ts": row["ts"] + 100 * number} for row in rows(drawn, ROWS)] for _ in range(2)]
    return {str(side): table(each) for side, each in enumerate(some)}


@pytest.mark.parametrize("trouble", [0.0, 0.5])
def test_a_join_in_sorted_runs_goes_on_in_another_worker_as_it_would_have_in_the_same(
    local: Path, trouble: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are found: only those that attempts which failed have merged, and removed, are made again."""
    remade: list[int] = []
    make_again = saving._remade
    monkeypatch.setattr(saving, "_remade", lambda *asked: remade.append(asked[2]["rows"]) or make_again(*asked))
    one = Plane(plan_of_kind("sorted runs", 6000), random.Random(0))
    many = Plane(plan_of_kind("sorted runs", 6000), random.Random(0), trouble=trouble)
    expected, found = list[Counter[Any]](), list[Counter[Any]]()
    for number in range(2 * PIECES):
        expected.append(ids(one.micro_batch(later(number))))
    for number in range(2 * PIECES):
        bucket.forget_all()
        found.append(ids(many.micro_batch(later(number))))
    assert sum(map(bool, found)) > PIECES, "the case itself is wrong: results leave in too few micro-batches"
    assert any(remade) == bool(trouble)
    if not trouble:  # which also decides in how many pieces rows come, and so what leaves when
        assert found == expected
    ends = [sum((*left, ids(each.end())), Counter[Any]()) for each, left in ((one, expected), (many, found))]
    assert ends[0] == ends[1]


@contextmanager
def no_room() -> Iterator[None]:
    """No file can become larger than a few bytes: the system refuses to write, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", ["areas", "marks", "sorted runs"])
def test_a_full_disk_is_an_error_and_the_query_goes_on_when_there_is_room(local: Path, kind: str) -> None:
    plane, found = Plane(plan_of_kind(kind, 6000), random.Random(0)), Counter[tuple[int, int]]()
    for number in range(PIECES):
        stored = copied(plane)
        if number == PIECES - 2:
            with no_room(), pytest.raises(SpillError, match=r"could not be written to .*make room there"):
                list(plane.micro_batch(piece(number)))
            assert not half_made(local), "others need the room"
            again_from(plane, stored)
        found += ids(plane.micro_batch(piece(number)))
    assert found + ids(plane.end()) == everything(kind)
    assert not half_made(local)


@pytest.mark.parametrize("how", ["too many", "outdated", "failed"])
def test_who_is_forgotten_closes_and_removes_what_it_was_writing(
    local: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The half of a merge is nobody's: whoever goes on with the bucket begins it again."""
    plane, seen = Plane(plan_of_kind("sorted runs", 6000), random.Random(0)), list[set[str]]()
    save = bucket.Bucket._save
    monkeypatch.setattr(bucket.Bucket, "_save", lambda *given: seen.append(half_made(local)) or save(*given))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        if how == "failed":
            save = cannot_be_saved
            with pytest.raises(RuntimeError, match="the store is gone"):
                list(plane.micro_batch(piece(0)))
        else:
            list(plane.micro_batch(piece(0)))
        if how == "too many":
            monkeypatch.setattr(bucket, "STAGES_KEPT", 1)
            list(Plane(plan_of_kind("areas", 6000), random.Random(0)).micro_batch(piece(0)))
        elif how == "outdated":
            mine = {state: bucket._remembered.pop(state) for state in list(bucket._remembered)}
            list(plane.micro_batch(piece(1)))  # in another worker
            bucket.forget_all()
            bucket._remembered.update(mine)
            del mine
            list(plane.micro_batch(piece(2)))
        gc.collect()
    assert seen[0], "the case itself is wrong: no merge was under way"
    assert not half_made(local)
    assert [str(each.message) for each in told if issubclass(each.category, ResourceWarning)] == []


def cannot_be_saved(*given: Any) -> None:
    raise RuntimeError("the store is gone")


def half_made(local: Path) -> set[str]:
    return {file.stem for file in local.rglob("*.keys")} - {file.stem for file in local.rglob("*.index")}


@pytest.mark.parametrize("kind", ["areas", "marks", "sorted runs"])
def test_pages_are_counted_in_the_micro_batch_that_reads_and_writes_them(local: Path, kind: str) -> None:
    plane, told = Plane(plan_of_kind(kind, 6000), random.Random(0)), list[dict[str, int]]()
    for number in range(PIECES):
        list(plane.micro_batch(piece(number)))
        (figures,) = [each for each in plane.figures if "pages_read" in each]
        told.append(figures)
    assert all(figures["pages_written"] > 0 for figures in told)
    assert all(figures["pages_read"] > 0 for figures in told[1:])
    assert told[-1]["spilled_bytes"] > 0
    bucket.forget_all()
    list(plane.micro_batch(piece(PIECES)))
    (figures,) = [each for each in plane.figures if "pages_read" in each]
    assert 0 < figures["pages_written"] < sum(each["pages_written"] for each in told), "not all of them once more"


def one(number: int, value: float) -> dict[str, Any]:
    rows = [{"id": number, "ts": 10, "k": 0, "v": value, "lo": 0.0, "hi": 1.0}]
    return {str(side): table(rows) for side in (0, 1)}


def test_what_rows_carry_is_read_when_they_match(local: Path) -> None:
    """All of it is changed, in the files of a join that goes on in another worker: nobody who meets nobody notices."""
    plane = Plane(plan(1), random.Random(0))
    assert ids(plane.micro_batch(one(1, 5.0))) == Counter([(1, 1)])
    files = list(local.rglob("*.rows"))
    assert len(files) == 2
    for file in files:
        file.write_bytes(bytes(each ^ 255 for each in file.read_bytes()))
    bucket.forget_all()
    assert ids(plane.micro_batch(one(2, 900.0))) == Counter([(2, 2)])
    with pytest.raises(SpillError, match=r"is damaged in page 0.*start the query again"):
        list(plane.micro_batch(one(3, 5.0)))


@pytest.mark.parametrize("kind", ["areas", "sorted runs"])
def test_what_a_query_with_a_budget_writes_lies_in_sparks_local_folder_for_this_user_alone(
    tmp_path: Path, local: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The system's temporary folder may be memory, and what lies in it is not counted."""
    temporary, before = tmp_path / "temporary", os.umask(0o22)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    try:
        list(Plane(plan_of_kind(kind, 6000), random.Random(0)).micro_batch(piece(0)))
    finally:
        os.umask(before)
    assert list(temporary.iterdir()) == []
    files = {file for file in (local / FOLDER).rglob("*") if file.is_file()}
    assert {file.suffix for file in files} > {".keys", ".index"}
    assert [file for file in files if file.parent.name == BESIDE_RUNS], "a worker finds what another had in memory"
    folders = {folder for file in files for folder in (file.parent, file.parent.parent)}
    assert [folder for folder in folders if folder.stat().st_mode & 0o777 != PRIVATE] == []


@pytest.mark.parametrize("budget", [None, 6000])
def test_another_worker_of_the_host_reads_nothing_from_the_store(local: Path, budget: int | None) -> None:
    plane = Plane(plan(budget), random.Random(0))
    list(plane.micro_batch(piece(0)))
    bucket.forget_all()
    read = Map.read
    list(plane.micro_batch(piece(1)))
    assert Map.read == read


@pytest.mark.parametrize("taken_over", [True, False])
@pytest.mark.parametrize(("kind", "memory"), [("areas", 1), ("areas", 20_000), ("sorted runs", 6_000)])
def test_parts_of_runs_in_files_lie_on_this_host_once(
    local: Path, monkeypatch: pytest.MonkeyPatch, kind: str, memory: int, taken_over: bool
) -> None:
    """Also of those that were in memory when they were stored. And a worker that takes the bucket over, with the files
    or without, makes no copy of them beside the runs either.
    """
    monkeypatch.setattr(bundles, "SMALL", 1)  # parts of a real micro-batch are too large to be bundled,
    monkeypatch.setattr(layout, "PART_BYTES", 1)  # and to be stored anew with others
    plane, beside = Plane(plan_of_kind(kind, memory), random.Random(0)), list[int]()
    for number in range(2 * PIECES):
        list(plane.micro_batch(piece(number)))
        if taken_over:
            bucket.forget_all()
        if number == PIECES // 2:
            for file in local.rglob("*.keys"):
                file.unlink()
        there, here = parts_beside_runs(plane)
        assert there == set(), "what is stored of the runs lies beside them once more"
        beside.append(len(here))
    assert any(local.rglob("*.rows"))
    assert any(beside) == (memory > 1), "the case itself is wrong: what is in memory lies there"


def parts_beside_runs(plane: Plane) -> tuple[set[str], set[str]]:
    """What lies in the folder of blobs of this host: parts of runs in files, and of what is in memory."""
    (store,) = plane.stores[0].values()
    manifest = json.loads(store.cells["manifest"][0])
    in_files = local_runs.parts_in_files(manifest)
    assert in_files or not any(local_runs.scratch().folder.rglob("*.rows")), "nobody knows what they are stored as"
    cache = cache_of(manifest["state"], local_runs.folder_of(manifest["state"]))
    found = {name for name in manifest["values"] if cache.get(name) is not None}
    there = {name for name in found if local_runs.part_of(name) in in_files}
    return there, {name for name in found - there if "/run/" in name or "rows" in name}


def test_what_is_in_memory_is_never_less_than_nothing(local: Path) -> None:
    """Files have more bytes than the rows in them, and must not hide what other buckets keep."""
    plane = Plane(plan(1), random.Random(0))
    for number in range(PIECES):
        list(plane.micro_batch(piece(number)))
        (figures,) = [each for each in plane.figures if "state_bytes" in each]
        assert figures["spilled_bytes"] > 0
        assert figures["state_bytes"] == figures["spilled_bytes"], "all of it is in files"
        assert [known.bytes for known in bucket._remembered.values()][-1] == 0


def test_files_of_queries_that_ended_hours_ago_go_when_another_begins_in_the_same_worker(local: Path) -> None:
    ended = Path(local_runs.folder_of("ended"))
    ended.mkdir(parents=True)
    os.utime(ended, (0, 0))
    list(Plane(plan_of_kind("areas", 6000), random.Random(0)).micro_batch(piece(0)))
    assert not ended.exists()
