"""Blobs that this host has seen, as memory-mapped files by name.

A blob's name says what it holds, for ever: runs are immutable, and whatever changes gets another name. So a worker may
use a file that another worker of this host wrote, and reads the state store only for blobs that nobody here has seen.
Correctness never depends on it: a missing, removed or unwritable file only costs a read from the store.

They are rows of users, so nobody else may look at them: the folder is this user's alone, and one that somebody else has
made under its name is not used. They lie in the system's temporary folder, where a query that is started again finds
them; but not where memory is limited, because that folder may be memory itself (tmpfs): then they lie beside the runs
in files, and go with them (`cache_of`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from streamjoin.state.stores.private import PRIVATE, make_private

# Folders that no worker has touched for this long belong to queries that are gone.
FORGET_AFTER_SECONDS: Final = 6 * 3600
# Within the folder of a state whose runs are in files.
BESIDE_RUNS: Final = "blobs"


def cache_root() -> Path:
    """Where blobs of this user's queries lie."""
    return Path(tempfile.gettempdir()) / f"streamjoin-{os.getuid()}"


@dataclass
class BlobCache:
    """The blobs of one query's state on this host; `state` is a name that no other query uses."""

    state: str
    root: Path = field(default_factory=cache_root)

    def __post_init__(self) -> None:
        self.folder = self.root / self.state
        with suppress(OSError):  # a full or unwritable disk
            make_private(self.root)
            if not is_mine(self.root):
                self.folder = Path(os.devnull) / self.state  # nothing is found or written there
            make_private(self.folder)
            os.utime(self.folder)

    def get(self, name: str) -> pa.Buffer | None:
        """The blob of this name, mapped into memory; None when this host has not seen it."""
        try:
            with pa.memory_map(str(self._path(name))) as file:
                return file.read_buffer()
        except (OSError, pa.ArrowInvalid):
            return None

    def put(self, name: str, blob: bytes) -> None:
        """Let others on this host find a blob. Renamed into place, so that nobody sees half of it."""
        path = self._path(name)
        scratch = path.with_suffix(f".{os.getpid()}.{time.monotonic_ns()}")
        try:
            scratch.write_bytes(blob)
            scratch.rename(path)
        except OSError:
            with suppress(OSError):
                scratch.unlink(missing_ok=True)

    def drop(self, name: str) -> None:
        """A blob that nobody needs any more. Whoever has it mapped keeps what it has mapped."""
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove what no name stands for: blobs that went while another host had the bucket, or of tasks that failed.

        A task that runs at the same time may lose what it has just put here, and reads it from the store.
        """
        known = {self._path(name) for name in names}
        with suppress(OSError):
            for file in self.folder.iterdir():
                if file not in known:
                    file.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / hashlib.sha256(name.encode()).hexdigest()


def cache_of(state: str, scratch: str | None) -> BlobCache:
    """The cache of a state; `scratch`: the folder of its runs in files, where its memory is limited."""
    return BlobCache(state) if scratch is None else BlobCache(BESIDE_RUNS, Path(scratch))


def is_mine(folder: Path) -> bool:
    """Whether a folder is this user's, and nobody else can look into it; one that others could is closed to them."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return False
    if stat.S_IMODE(found.st_mode) != PRIVATE:  # of an earlier release
        folder.chmod(PRIVATE)
    return True


def clean_up(root: Path | None = None, *, now: float | None = None) -> int:
    """Remove the folders of queries that are gone; how many there were."""
    root, removed, found = root or cache_root(), 0, list[Path]()
    horizon = (time.time() if now is None else now) - FORGET_AFTER_SECONDS
    with suppress(OSError):  # there is none, or it is somebody else's
        found = list(root.iterdir())
    for folder in found:
        with suppress(OSError):  # another worker cleans up, too
            if folder.stat().st_mtime < horizon:
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed
