"""Folders for runs in files, by whom they belong to, so that what a killed process left behind is found and removed.

    <local folder>/streamjoin-runs/<where>@<process>-<when it began>/<state>/<run>.keys ...

The owner of a folder is the process that outlives all tasks of a query on this host: Spark's, where Python workers are
its children, otherwise this one. Workers of one owner find each other's runs, by the state's name and the runs' ids.
When the owner is gone nobody comes back to its folder: whoever begins next removes it. A process is told from a later
one with the same number by when it began.

Hosts and containers may share a local folder, and do not see each other's processes: what belongs to another place is
removed only when nobody has touched it for a day.
"""

from __future__ import annotations

import os
import shutil
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

FOLDER: Final = "streamjoin-runs"
# Whether a process of another place lives is not known; a query touches the folder of its state with every commit.
ELSEWHERE_AFTER_SECONDS: Final = 24 * 3600


@dataclass(frozen=True)
class Scratch:
    """The folder of one owner in a local folder; `local` may be one of several such that lie side by side."""

    local: Path
    owner: str

    @staticmethod
    def here(local: str | Path, owner: int | None = None) -> Scratch:
        """That of a process, this one unless it is given."""
        return Scratch(Path(local), process_name(os.getpid() if owner is None else owner))

    @property
    def folder(self) -> Path:
        """Where this owner's states have their folders."""
        return self.local / FOLDER / self.owner

    def of(self, state: str) -> Path:
        """The folder of one state."""
        return self.folder / state

    def remove(self) -> None:
        """Nothing of this owner is needed any more."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # others have folders there
            self.folder.parent.rmdir()

    def clean_up(self) -> int:
        """Remove what owners left behind that are gone, here and in neighbouring local folders; how many there were.

        Spark gives every application a local folder of its own, and those of one host lie side by side.
        """
        removed = 0
        for root in {self.local / FOLDER, *self.local.parent.glob(f"*/{FOLDER}")}:
            with suppress(OSError):
                for folder in list(root.iterdir()) if root.is_dir() else ():
                    if folder.name != self.owner and is_left(folder):
                        shutil.rmtree(folder, ignore_errors=True)
                        removed += 1
                root.rmdir()  # only where nothing is left
        return removed


def process_name(process: int) -> str:
    """A process by where it runs, its number, and when it began.

    >>> is_alive(process_name(os.getpid())), is_alive(f"{place()}@1-0")
    (True, False)
    """
    return f"{place()}@{process}-{_began(process)}"


@lru_cache(maxsize=1)
def place() -> str:
    """Where the numbers of processes are those that this one sees: the host and, of containers on it, which."""
    try:
        container = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        container = ""
    # It begins with a word: releases that know of no places take a number there for a process, and remove its folder.
    return f"on-{socket.gethostname().replace('/', '')}-{container}"


def is_left(folder: Path) -> bool:
    """Whether nobody comes back to a folder; one whose name says nothing of a process is left alone."""
    where, _, name = folder.name.rpartition("@")
    if not where or where == place():
        return not is_alive(folder.name)
    horizon = time.time() - ELSEWHERE_AFTER_SECONDS
    try:
        touched = max(each.stat().st_mtime for each in (folder, *folder.iterdir()))
    except OSError:  # somebody is at work there
        return False
    return name.partition("-")[0].isdigit() and touched < horizon


def is_alive(name: str) -> bool:
    """Whether the process of this name, of this place, still runs; of a name that is none, nothing is known."""
    process, _, began = name.rpartition("@")[2].partition("-")
    return not process.isdigit() or (_began(int(process)) == began)


def parent_of(process: int) -> int | None:
    """Who started a process; None where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(fields[1])
    except (OSError, ValueError, IndexError):
        return None


def _began(process: int) -> str:
    """In ticks since the system began; of a process that does not run, nothing."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "0"  # somebody else's
    return "0"  # a system without /proc: it is known by its number alone
