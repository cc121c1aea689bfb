"""Blobs on the host: found by name, never needed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamjoin.spark.stored import blob_cache
from streamjoin.spark.stored.blob_cache import FORGET_AFTER_SECONDS, BlobCache, cache_of, clean_up
from streamjoin.state.stores.private import PRIVATE


def test_a_blob_is_found_by_its_name(tmp_path: Path) -> None:
    cache = BlobCache("state", tmp_path)
    cache.put("area0/run/a", b"123")
    found = BlobCache("state", tmp_path).get("area0/run/a")
    assert found is not None
    assert found.to_pybytes() == b"123"
    assert cache.get("area0/run/b") is None
    assert BlobCache("other", tmp_path).get("area0/run/a") is None, "another query's blobs are not ours"


def test_what_is_mapped_outlives_its_file(tmp_path: Path) -> None:
    cache = BlobCache("state", tmp_path)
    cache.put("run", b"123" * 1000)
    mapped = cache.get("run")
    cache.drop("run")
    cache.drop("run")
    assert cache.get("run") is None
    assert mapped is not None
    assert mapped.to_pybytes() == b"123" * 1000


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    cache = BlobCache("state", tmp_path)
    cache.folder.rmdir()
    cache.put("run", b"123")
    assert cache.get("run") is None


def test_a_disk_that_cannot_be_written_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = BlobCache("state", tmp_path / "file")  # a folder cannot be made in a file
    cache.put("run", b"123")
    assert cache.get("run") is None
    cache.drop("run")
    cache.keep_only(["run"])


def test_what_no_name_stands_for_is_removed(tmp_path: Path) -> None:
    cache = BlobCache("state", tmp_path)
    for name in ("kept", "gone while another host had the bucket"):
        cache.put(name, b"1")
    (cache.folder / "half.1.2").touch()
    cache.keep_only(["kept", "never seen here"])
    assert cache.get("kept") is not None
    assert len(list(cache.folder.iterdir())) == 1


def test_folders_of_queries_that_are_gone_are_removed(tmp_path: Path) -> None:
    old, new = BlobCache("old", tmp_path), BlobCache("new", tmp_path)
    old.put("run", b"1")
    new.put("run", b"2")
    long_ago = time.time() - FORGET_AFTER_SECONDS - 60
    os.utime(old.folder, (long_ago, long_ago))
    assert clean_up(tmp_path) == 1
    assert not old.folder.exists()
    assert new.get("run") is not None
    assert clean_up(tmp_path / "nowhere") == 0


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0, 0o22])
def test_nobody_else_can_look_at_blobs(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        folders = [
            BlobCache("state", tmp_path / "root").folder,
            cache_of("state", str(tmp_path / "owner/state")).folder,
        ]
    finally:
        os.umask(before)
    assert folders == [tmp_path / "root/state", tmp_path / "owner/state/blobs"]
    below = [each for folder in folders for each in (folder, folder.parent)]
    assert [mode(each) for each in below] == [PRIVATE] * 4


def test_the_folder_of_an_earlier_release_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir(mode=0o755)
    cache = BlobCache("state", tmp_path / "root")
    cache.put("run", b"123")
    assert mode(tmp_path / "root") == PRIVATE
    assert cache.get("run") is not None


def of_somebody_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_cache.os, "getuid", lambda: os.stat(root).st_uid + 1)


def behind_a_link(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.rename(root.with_name("elsewhere"))
    root.symlink_to(root.with_name("elsewhere"))


@pytest.mark.parametrize("trap", [of_somebody_else, behind_a_link])
def test_a_folder_that_somebody_else_has_made_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: Callable[[Path, pytest.MonkeyPatch], None]
) -> None:
    """Whoever knows its name could have put rows there, and would read ours."""
    root = tmp_path / "root"
    BlobCache("state", root).put("run", b"not ours")
    trap(root, monkeypatch)
    cache = BlobCache("state", root)
    cache.put("another", b"ours")
    assert cache.get("run") is None
    assert b"ours" not in [file.read_bytes() for file in root.rglob("*") if file.is_file()]
    cache.drop("run")
    cache.keep_only(["run"])
    assert clean_up(root) == 0
