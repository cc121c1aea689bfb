"""Where workers put state that does not fit: one folder for an application, cleaned of what is old or not named."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamjoin.spark.stored import local_runs
from streamjoin.state import Matching
from streamjoin.state.stores import FileStore
from streamjoin.state.stores.scratch import FOLDER, place
from tests.state.making import batch


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "blockmgr-7"
    folder.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{folder},/elsewhere")
    local_runs.scratch.cache_clear()
    yield folder
    local_runs.scratch.cache_clear()


def test_states_lie_in_the_first_local_folder_of_spark(local: Path) -> None:
    place = Path(local_runs.folder_of("a state"))
    assert place.parent.parent == local / FOLDER
    assert place.name == "a state"


def test_who_begins_removes_what_a_killed_application_left(local: Path) -> None:
    left = local.parent / "blockmgr-3" / FOLDER / "1-0" / "a state"
    left.mkdir(parents=True)
    local_runs.folder_of("another state")
    assert not left.exists()


def test_states_that_nobody_wrote_to_for_hours_are_removed(tmp_path: Path) -> None:
    for name, age in (("old", 7 * 3600), ("new", 60)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (10**9 - age, 10**9 - age))
    local_runs.forget(tmp_path, now=10**9)
    assert [folder.name for folder in tmp_path.iterdir()] == ["new"]


def test_the_folder_of_a_task_stays_as_long_as_its_process(local: Path) -> None:
    with local_runs.passing_folder() as mine:
        gone = Path(mine).parent / f"{local_runs.PASSING}0-here@1-0"
        for folder in (Path(mine), gone):
            folder.mkdir(parents=True)
            os.utime(folder, (0, 0))
        local_runs.forget(gone.parent)
        assert Path(mine).exists()
        assert not gone.exists()


def test_a_state_in_use_is_kept_though_it_writes_in_folders_of_its_own_or_nothing(tmp_path: Path) -> None:
    old = time.time() - 7 * 3600
    for name in ("below", "touched", "ended"):
        below = tmp_path / name / "tpmj-0-0"
        below.mkdir(parents=True)
        (below / "a.keys").touch()
        for each in (below, tmp_path / name):
            os.utime(each, (old, old))
    (tmp_path / "below" / "tpmj-0-0" / "b.keys").touch()
    local_runs.touch(str(tmp_path / "touched"))
    local_runs.touch(str(tmp_path / "nothing was written there"))
    local_runs.forget(tmp_path)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["below", "touched"]


def test_runs_that_a_manifest_does_not_name_are_removed(tmp_path: Path) -> None:
    store = FileStore(folder=tmp_path)
    named, other = (store.write(Matching().run_of(batch([(1, 2)]))) for _ in range(2))
    local_runs.keep_named(str(tmp_path), {"operators": [{"parts": [{"runs": [{"id": named.id}]}]}]})
    assert store.find(named.id) is not None
    assert store.find(other.id) is None


def test_the_folder_of_a_task_goes_with_it_also_by_an_error(local: Path) -> None:
    folders = []
    for error in (None, ValueError("on purpose")):
        try:
            with local_runs.passing_folder() as folder:
                folders.append(Path(folder))
                FileStore(folder=Path(folder)).write(Matching().run_of(batch([(1, 2)])))
                assert list(Path(folder).iterdir())
                if error is not None:
                    raise error
        except ValueError:
            pass
    assert len(set(folders)) == 2
    assert not [path for path in local.rglob("*") if path.is_file() or path in folders]


def test_the_next_task_removes_what_killed_workers_left_and_nothing_else(local: Path) -> None:
    root = local_runs.scratch().folder
    dead, state = root / f"{local_runs.PASSING}1-{place()}@1-0", root / "a state"
    for each in (dead, state):
        each.mkdir(parents=True)
        (each / "a.keys").touch()
    with local_runs.passing_folder() as one, local_runs.passing_folder() as two:
        for folder in (one, two):
            Path(folder).mkdir()
        with local_runs.passing_folder():
            assert all(Path(folder).exists() for folder in (one, two)), "their worker is alive"
    assert [path.name for path in root.iterdir()] == ["a state"]
