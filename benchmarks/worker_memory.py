"""Anonymous memory of Spark's Python workers, sampled from /proc while a query runs: RssAnon, by process, over time.

Files that are mapped do not count, nor what a worker shares with the daemon that it was forked from and neither has
written since.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final

EVERY_SECONDS: Final = 0.05
LOOK_AGAIN_SECONDS: Final = 1.0  # for workers that are new
KEPT_SECONDS: Final = 0.5  # of these the largest sample is kept

Series = dict[str, list[tuple[float, int]]]


class WorkerMemory:
    """What the workers below a process have: `series` by worker, (seconds since the beginning, bytes)."""

    def __init__(self, ancestor: int | None = None) -> None:
        self.ancestor = os.getpid() if ancestor is None else ancestor
        self.series: Series = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> WorkerMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def peak(self) -> int:
        """The most that any worker had."""
        return max((nbytes for points in self.series.values() for _, nbytes in points), default=0)

    def _look(self) -> None:
        began, looked, workers = time.monotonic(), float("-inf"), []
        while not self._over.wait(EVERY_SECONDS):
            now = time.monotonic()
            if now - looked > LOOK_AGAIN_SECONDS:
                workers, looked = python_workers(self.ancestor), now
            for worker in workers:
                nbytes = anonymous(worker)
                if nbytes:
                    self._note(str(worker), now - began, nbytes)

    def _note(self, worker: str, at: float, nbytes: int) -> None:
        points = self.series.setdefault(worker, [])
        if points and at - points[-1][0] < KEPT_SECONDS:
            points[-1] = points[-1][0], max(points[-1][1], nbytes)
        else:
            points.append((at, nbytes))


def anonymous(process: int | str = "self") -> int:
    """RssAnon of a process in bytes, memory that is not of files; 0 where it is gone."""
    try:
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def python_workers(ancestor: int) -> list[int]:
    """Processes below this one that a Python process was forked to by another, the daemon, below a JVM."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                name, _, rest = Path(f"/proc/{entry}/stat").read_text().partition("(")[2].rpartition(")")
            except OSError:  # it has ended meanwhile
                continue
            names[int(entry)], parents[int(entry)] = name, int(rest.split()[1])

    def above(process: int) -> list[int]:
        line = []
        while (process := parents.get(process, 0)) > 1:
            line.append(process)
        return line

    found = []
    for process, name in names.items():
        line = above(process)
        if "python" in name and ancestor in line:
            between = line[: line.index(ancestor)]
            if len(between) >= 2 and "python" in names[between[0]] and any(names[each] == "java" for each in between):
                found.append(process)
    return found
