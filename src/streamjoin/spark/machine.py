"""What this machine has for us. In a container that is what the container may use, not what the host has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_CGROUP: Final = Path("/sys/fs/cgroup")


def memory_bytes(cgroup: Path = _CGROUP) -> int:
    """The memory that all processes here may take together.

    >>> memory_bytes() > 0
    True
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in (cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes"):
        text = limit.read_text().strip() if limit.is_file() else ""
        if text.isdigit():  # otherwise "max": no limit
            memory = min(memory, int(text))
    return memory


def cores(cgroup: Path = _CGROUP) -> int:
    """How many tasks can run here at once; the JVM's `local[*]` counts the same way.

    >>> cores() >= 1
    True
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = cgroup / "cpu.max"
    quota, _, period = limit.read_text().partition(" ") if limit.is_file() else ("max", "", "")
    return max(1, min(count, -(-int(quota) // int(period)))) if quota.isdigit() else count
