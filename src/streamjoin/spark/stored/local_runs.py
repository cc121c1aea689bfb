"""Where state goes on this host that does not fit into memory: Spark's local folders, by application.

Workers of one application share a folder for each state, and find each other's runs by their ids; a bucket that is run
by another worker than before is not made anew. Spark removes its local folders when it ends. What an application left
there that was killed is removed by the next one that spills on this host.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from streamjoin.spark.stored.blob_cache import FORGET_AFTER_SECONDS
from streamjoin.state.stores import FileStore, Scratch
from streamjoin.state.stores.scratch import is_alive, parent_of, process_name

PASSING: Final = "batch-"


def folder_of(state: str) -> str:
    """The folder of a state."""
    return str(scratch().of(state))


@contextmanager
def passing_folder() -> Iterator[str]:
    """A folder for what a task of a batch keeps. It goes with the task, however that ends; that of a worker which was
    killed goes when the next task begins.
    """
    root = scratch().folder
    with suppress(OSError):  # there is none yet, or another worker cleans up, too
        for left in [each for each in root.iterdir() if each.name.startswith(PASSING) and not is_alive(each.name)]:
            shutil.rmtree(left, ignore_errors=True)
    folder = root / f"{PASSING}{uuid.uuid4().hex}-{process_name(os.getpid())}"
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def scratch() -> Scratch:
    """The folder of the application whose worker this is; whoever asks first cleans up."""
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    found = Scratch.here(local, application())
    found.clean_up()
    forget(found.folder)
    return found


def application() -> int:
    """The process that outlives its workers: Spark's own, of which they are children or grandchildren."""
    process: int | None = os.getpid()
    while process is not None and process > 1:
        if name_of(process) == "java":
            return process
        process = parent_of(process)
    return os.getpid()


def name_of(process: int) -> str:
    """What a process runs; nothing where the system does not say."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def touch(folder: str) -> None:
    """Say that a state is in use: it may write nothing for hours, or only in folders of its own within this one."""
    with suppress(OSError):  # nothing of it has been written to files
        os.utime(folder)


def forget(folder: Path, now: float | None = None) -> None:
    """Remove states that nobody has touched for hours: those of queries that have ended while Spark goes on.

    What is written in folders within that of a state counts, too: it does not touch the state's own. A task of a batch
    may read for hours what it has written: its folder stays as long as its process.
    """
    horizon = (time.time() if now is None else now) - FORGET_AFTER_SECONDS
    for state in folder.iterdir() if folder.is_dir() else ():
        if state.name.startswith(PASSING) and is_alive(state.name):
            continue
        with suppress(OSError):  # another worker cleans up, too
            if all(each.stat().st_mtime < horizon for each in (state, *filter(Path.is_dir, state.iterdir()))):
                shutil.rmtree(state, ignore_errors=True)


def remove(state: str) -> None:
    """A state that nobody goes on with: its query was finished."""
    shutil.rmtree(folder_of(state), ignore_errors=True)


def forget_ended() -> None:
    """Remove what queries left that ended hours ago: a worker may live as long as Spark, and others begin in it."""
    forget(scratch().folder)


def keep_named(folder: str, manifest: Any) -> None:
    """Remove runs that a stage's manifest does not name: of attempts that failed, or of other workers before."""
    FileStore(folder=Path(folder)).keep_only(set(runs_in(manifest)))


def parts_in_files(manifest: Any) -> set[str]:
    """The parts of all runs in files that a manifest names: of sweep areas, and of joins in sorted runs.

    >>> there, here = ({"parts": [name], "stored_rows": [9]} for name in "ab")
    >>> parts_in_files({"operators": [{"runs": [{**there, "level": 0}, here]}]})
    {'a'}
    >>> there, empty = ({"parts": [name], "stored": [9], "page_rows": 7} for name in "cd")
    >>> parts_in_files({"operators": [{"tree": {"groups": [{"level": 0, "runs": [{**there, "id": "e"}, empty]}]}}]})
    {'c'}
    """
    if isinstance(manifest, list):
        return {found for each in manifest for found in parts_in_files(each)}
    if not isinstance(manifest, dict):
        return set()
    if {"level", "stored_rows"} <= manifest.keys() or {"id", "page_rows"} <= manifest.keys():
        return set(manifest["parts"])
    return {found for each in manifest.values() for found in parts_in_files(each)}


def part_of(blob: str) -> str:
    """The part of a run that a blob is, if it is one.

    >>> part_of("0:area1/run/3f")
    '3f'
    """
    return blob.rpartition("/")[2]


def runs_in(manifest: Any) -> list[str]:
    """The ids of all runs that a manifest names.

    >>> runs_in({"operators": [{"parts": [{"runs": [{"id": "a"}, {"id": "b"}]}]}]})
    ['a', 'b']
    """
    if isinstance(manifest, list):
        return [found for each in manifest for found in runs_in(each)]
    if not isinstance(manifest, dict):
        return []
    own = [run["id"] for run in manifest.get("runs") or () if isinstance(run, dict) and "id" in run]
    return own + [found for name, each in manifest.items() if name != "runs" for found in runs_in(each)]
