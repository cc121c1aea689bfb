"""Blobs on the host: found by name, never needed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from streamjoin.spark.stored.blob_cache import FORGET_AFTER_SECONDS, BlobCache, clean_up


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
