"""A contender is a process of its own, started once and asked over a line protocol, one JSON object per line.

    {"do": "load", "name": "overlap", "folder": ...}  ->  {"jobs": ["pairs", ...], "notes": {...}}
    {"do": "run", "name": "overlap", "job": "pairs"}  ->  {"seconds": ..., "user": ..., "system": ..., "digest": {...}}

The driver can so interleave the repetitions of many contenders. Only the work itself is timed, inside the process: not
reading the arrays, not the digest of the result, not freeing it.

`serve` is the contender's half and needs numpy only, since it runs in the peers' environments too.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from benchmarks.digest import Digest, digest_of
from benchmarks.errors import ContenderError

Delivered = Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]] | Digest
Job = Callable[[], Delivered]

# One thread for everyone, whoever listens to which of these.
ONE_THREAD: Final = {
    "NUMBA_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
# Memory stays with the process from one repetition to the next: glibc's allocator, then jemalloc as Rust has it. Else
# the time that a virtual machine takes to hand out pages is most of what varies and much of what is measured: ncls was
# three times as slow, scipy twice, ours a tenth slower. So this is the peers' best case, not ours.
WARM_MEMORY: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 34),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
    "MALLOC_TOP_PAD_": str(1 << 26),
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1",
}


@dataclass(frozen=True)
class Loaded:
    """A workload that a contender holds in memory: what it can be asked to do with it, and what there is to say."""

    jobs: dict[str, Job]
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Measurement:
    """One repetition: its time, what the process computed in it (all threads), and what was delivered."""

    seconds: float
    user: float
    system: float
    digest: Digest


def serve(load: Callable[[Path], Loaded]) -> None:
    """Answer requests from standard input until it ends."""
    # Whatever a library prints goes to standard error: standard output belongs to the protocol.
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    loaded: dict[str, Loaded] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "load":
                workload = loaded[request["name"]] = load(Path(request["folder"]))
                answer = {"jobs": list(workload.jobs), "notes": workload.notes}
            else:
                answer = _timed(loaded[request["name"]].jobs[request["job"]])
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=channel, flush=True)


def _timed(job: Job) -> dict[str, Any]:
    gc.collect()
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    delivered = job()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    digest = delivered if isinstance(delivered, Digest) else digest_of(delivered)
    return asdict(Measurement(seconds, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, digest))


class Worker:
    """The driver's half: a contender's process."""

    def __init__(self, python: Path | str, module: str, root: Path, **environment: str) -> None:
        self.module = module
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the worker)
        self._process = subprocess.Popen(
            [str(python), "-m", module],
            cwd=root,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def load(self, name: str, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Have a workload read, under a name: the jobs that can be run on it, and notes."""
        answer = self._ask(do="load", name=name, folder=str(folder))
        return answer["jobs"], answer["notes"]

    def run(self, name: str, job: str) -> Measurement:
        """Do a job once."""
        answer = self._ask(do="run", name=name, job=job)
        return Measurement(answer["seconds"], answer["user"], answer["system"], Digest(**answer["digest"]))

    def close(self) -> None:
        """End the process: it stops when its input ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()  # it may be in the middle of an hour's work that nobody waits for any more
        self.close()

    def _ask(self, **request: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()  # negative: the signal that ended it
            self._log.seek(0)
            raise ContenderError(f"{self.module} ended with {code} at {request}:\n{self._log.read()[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise ContenderError(f"{self.module} failed at {request}:\n{answer['error']}")
        return answer
