"""Processes of one session, by its id: what a driver started, and nothing else.

A driver leads a session of its own. Its JVM is in its process group; Spark's Python workers make a group for themselves
but stay in the session. So a session is all that a driver and its children ever start.

Needs /proc, so Linux.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.errors import ChaosError

PROC: Final = Path("/proc")
GONE_AFTER_SECONDS: Final = 20.0
_DEAD: Final = ("Z", "X")  # ended; only its parent has not asked yet


@dataclass(frozen=True)
class Process:
    """A living process."""

    pid: int
    group: int
    session: int
    command: str


def processes_of(session: int) -> list[Process]:
    """All living processes of a session, in the order of their ids."""
    return [process for process in _living() if process.session == session]


def kill_session(session: int) -> None:
    """Kill every process of a session, and wait until none is left.

    The leader must not have been waited for: until then nobody else can get its id, which is the session's.
    """
    with suppress(ProcessLookupError):
        # Driver and JVM in one call and without a look around, so that neither lives to see the other die.
        os.killpg(session, signal.SIGKILL)
    deadline = time.monotonic() + GONE_AFTER_SECONDS
    while living := processes_of(session):
        for process in living:
            kill(process.pid)
        if time.monotonic() > deadline:
            raise ChaosError(f"processes {[process.pid for process in living]} survive SIGKILL")
        time.sleep(0.005)


def kill(pid: int) -> None:
    """Kill one process; that it is gone already is as good."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _living() -> Iterator[Process]:
    if not (PROC / "self" / "stat").exists():
        raise ChaosError("there is no /proc to find processes in", hint="run this on Linux")
    for pid in sorted(int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()):
        try:
            stat = (PROC / str(pid) / "stat").read_text()
            command = (PROC / str(pid) / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        # pid (name) state parent group session ...; the name may have any character in it.
        state, _, group, session = stat.rpartition(")")[2].split()[:4]
        if state not in _DEAD:
            yield Process(pid, int(group), int(session), command.replace(b"\0", b" ").decode(errors="replace"))
