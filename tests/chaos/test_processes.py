"""Sessions of processes: all of one are killed, whatever group they have gone to, and nobody else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chaos.processes import kill_session, processes_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

# A child in the leader's group and one that makes a group for itself, as Spark's Python workers do.
FAMILY = """
import os, subprocess, time
subprocess.Popen(["sleep", "60"])
subprocess.Popen(["sleep", "60"], preexec_fn=lambda: os.setpgid(0, 0))
time.sleep(60)
"""


@contextmanager
def family() -> Iterator[subprocess.Popen[bytes]]:
    leader = subprocess.Popen([sys.executable, "-c", FAMILY], start_new_session=True)
    try:
        patience = time.monotonic() + 20
        while sum("sleep" in process.command.split()[:1] for process in processes_of(leader.pid)) < 2:
            assert time.monotonic() < patience
            time.sleep(0.01)
        yield leader
    finally:
        if leader.returncode is None:
            kill_session(leader.pid)
            leader.wait()


def test_a_session_has_the_groups_of_its_children() -> None:
    with family() as leader:
        members = processes_of(leader.pid)
        assert len(members) == 3
        assert len({member.group for member in members}) == 2
        assert os.getpid() not in {member.pid for member in members}


def test_all_of_a_session_is_killed_and_nobody_else() -> None:
    with family() as one, family() as other:
        kill_session(one.pid)
        assert processes_of(one.pid) == []
        assert len(processes_of(other.pid)) == 3
        one.wait()


def test_children_of_a_dead_leader_are_killed_too() -> None:
    with family() as leader:
        leader.kill()
        os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
        assert len(processes_of(leader.pid)) == 2, "a dead process is none"
        kill_session(leader.pid)
        assert processes_of(leader.pid) == []
        leader.wait()
