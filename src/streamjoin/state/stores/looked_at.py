"""Which pages of a run in files somebody on this host has compared with their checksums.

Processes hand the buckets of a query to one another, and each would compare all pages anew: of 3 GB of state, whose
buckets moved in most micro-batches, that was a fifth of what the processes did. So it is noted beside the run:

    <id>.looked     whose files these are, and since when it is noted; then a byte for a page, 1 where it was compared

The notes hold as long as the files are what they were: who changes a file, or puts another in its place, changes when
that was done last, which nobody can set. Nor do they hold after the system began anew, where it says so, because what
had been written may never have reached the disk; nor for longer than ten minutes, so that what goes bad on a disk by
itself is found, if later than by the next process.
"""

from __future__ import annotations

import os
import struct
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

SUFFIX: Final = ".looked"
HOLDS: Final = 600.0  # seconds
_FILE: Final = struct.Struct("<QQqqq")  # where it lies, which it is, its size, when it was written and changed last
_SINCE: Final = struct.Struct("<d")
_COMPARED: Final = b"\1"


def signature(status: os.stat_result) -> bytes:
    """Which file it is, and as what it was left."""
    return _FILE.pack(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass
class LookedAt:
    """Of some pages, whether somebody has compared them. `path`: where it is noted, if it can be."""

    compared: npt.NDArray[np.bool_]
    head: bytes
    path: str | None
    first: int = 0  # page of those that are noted there

    @staticmethod
    def of(base: str, signatures: Sequence[bytes], pages: int) -> LookedAt:
        """What is noted of a run's files, of all their pages in order; where nothing is that holds, it is begun."""
        path, head = base + SUFFIX, _system() + b"".join(signatures)
        known = _read(path, head, pages)
        if known is not None:
            return LookedAt(known, head, path)
        return LookedAt(np.zeros(pages, np.bool_), head, path if _begun(base, head, pages) else None)

    def split(self, parts: int) -> list[LookedAt]:
        """The same for each of so many files that have as many pages."""
        each = len(self.compared) // parts  # a run has pages
        firsts = range(0, len(self.compared), each)
        return [LookedAt(self.compared[at : at + each], self.head, self.path, at) for at in firsts]

    def __getitem__(self, page: int) -> bool:
        return bool(self.compared[page])

    def note(self, page: int) -> None:
        """This page has been compared."""
        self.compared[page] = True
        if self.path is None:
            return
        with suppress(OSError):  # notes that are gone, or for which there is no room
            handle = os.open(self.path, os.O_RDWR)
            try:
                if os.pread(handle, len(self.head), 0) == self.head:  # not those of a run in this one's place
                    os.pwrite(handle, _COMPARED, len(self.head) + _SINCE.size + self.first + page)
            finally:
                os.close(handle)


def _read(path: str, head: bytes, pages: int) -> npt.NDArray[np.bool_] | None:
    try:
        noted = Path(path).read_bytes()
    except OSError:
        return None
    content = len(head) + _SINCE.size
    if len(noted) != content + pages or not noted.startswith(head):
        return None
    (since,) = _SINCE.unpack(noted[len(head) : content])
    if not 0 <= time.time() - since <= HOLDS:
        return None
    marks: npt.NDArray[np.uint8] = np.frombuffer(noted, np.uint8, pages, content)
    return np.asarray(marks == _COMPARED[0], np.bool_)


def _begun(base: str, head: bytes, pages: int) -> bool:
    """Notes of no page, put there as a whole. False where they cannot be kept."""
    path = base + SUFFIX
    half_made = f"{path}.{uuid.uuid4().hex}"
    try:
        Path(half_made).write_bytes(head + _SINCE.pack(time.time()) + bytes(pages))
        os.rename(half_made, path)
    except OSError:
        with suppress(OSError):
            Path(half_made).unlink(missing_ok=True)
        return False
    if not os.path.exists(base + ".index"):  # removed meanwhile, by somebody who knew of no notes
        with suppress(OSError):
            Path(path).unlink(missing_ok=True)
    return True


@lru_cache(maxsize=1)
def _system() -> bytes:
    """When this system began, in its own words; nothing where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return b""
