"""Processes of several questions at once: as many as there may be, and none is left when somebody stops waiting."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class Together:
    """What runs now. Leaving it ends everything, for whatever reason it is left."""

    def __init__(self) -> None:
        self._lock, self._running, self._left = Lock(), set[subprocess.Popen[bytes]](), False

    def __enter__(self) -> Together:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:  # nobody starts anything after this
            self._left = True
        for process in list(self._running):
            end(process)

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """A process in a session of its own: Ctrl-C is not told to it, so `end` does that."""
        with self._lock:
            if self._left:
                raise InterruptedError("nobody waits for it any more")
            process: subprocess.Popen[bytes] = subprocess.Popen(command, start_new_session=True, **options)
            self._running.add(process)
            return process

    def wait(self, process: subprocess.Popen[bytes], seconds: float) -> int | None:
        """Its exit code; None if it took longer, and then it is ended."""
        try:
            return process.wait(timeout=seconds)
        except BaseException as error:  # Ctrl-C too
            end(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return None
        finally:
            self._running.discard(process)

    def all(self, jobs: Sequence[Callable[[], T]], at_once: int, begin: Callable[[int], None]) -> Iterator[T]:
        """What the jobs give, as soon as it is there; `begin` is told the number of each before it starts."""
        left, running = list(enumerate(jobs)), set[Future[T]]()
        pool = ThreadPoolExecutor(at_once)
        try:
            while left or running:
                while left and len(running) < at_once:
                    number, job = left.pop(0)
                    begin(number)
                    running.add(pool.submit(job))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def end(process: subprocess.Popen[bytes]) -> None:
    """It, and what it has started."""
    with suppress(ProcessLookupError):  # all have ended by themselves
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
