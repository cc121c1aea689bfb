"""Which pages of a run in files somebody on this host has compared with their checksums.

Processes hand the buckets of a query to one another, and each would compare all pages anew: of 3 GB of state, whose
buckets moved in most micro-batches, that was a fifth of what the processes did. So it is noted beside the run:

    <id>.looked     whose files these are: their numbers, sizes and when they were written last; then a byte for a page

The notes hold as long as the files are what they were when the notes were begun. Who changes a file changes when it was
written, and so does who restores it from elsewhere; then nothing is known of any page. Nor is it after the system began
anew, when what had been written may never have reached the disk.
"""

from __future__ import annotations

import mmap
import os
import struct
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

SUFFIX: Final = ".looked"
_FIELDS: Final = struct.Struct("<QqqQ")  # which file it is, its size, when it was written, and where it lies


def looked_at(base: str, files: Sequence[str], pages: int) -> npt.NDArray[np.bool_]:
    """Of all pages of these files, in their order, whether somebody has looked at them; to be written to.

    Where notes cannot be kept they are this process's own.
    """
    head = _system() + b"".join(_signature(file) for file in files)
    try:
        return _shared(base + SUFFIX, head, pages)
    except (OSError, ValueError):
        return np.zeros(pages, np.bool_)


def _shared(path: str, head: bytes, pages: int) -> npt.NDArray[np.bool_]:
    size = len(head) + pages
    with suppress(OSError), open(path, "r+b") as file:
        if os.fstat(file.fileno()).st_size == size and file.read(len(head)) == head:
            return _mapped(file.fileno(), len(head), size)
    begun = f"{path}.{uuid.uuid4().hex}"  # and not in its place: others may have mapped what lies there
    try:
        Path(begun).write_bytes(head + bytes(pages))
        os.rename(begun, path)
    except OSError:
        Path(begun).unlink(missing_ok=True)
        raise
    with open(path, "r+b") as file:
        return _mapped(file.fileno(), len(head), size)


def _mapped(file: int, offset: int, size: int) -> npt.NDArray[np.bool_]:
    return np.frombuffer(mmap.mmap(file, size), np.bool_, size - offset, offset)


def _signature(path: str) -> bytes:
    told = os.stat(path)
    return _FIELDS.pack(told.st_ino, told.st_size, told.st_mtime_ns, told.st_dev)


@lru_cache(maxsize=1)
def _system() -> bytes:
    """When this system began, in its own words; nothing where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return b""
