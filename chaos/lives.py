"""One life of a driver, from outside: from its start to its end, or to its death by our hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import streamjoin
from chaos.errors import ChaosError
from chaos.processes import kill_session, processes_of

ROOT: Final = Path(__file__).parent.parent
POLL_SECONDS: Final = 0.003
LINGER_SECONDS: Final = 15.0  # for children of a driver that has ended by itself
_LENGTH: Final = 4000  # characters of a failed driver's last words


class Life:
    """A driver's process and everything that it starts, in a session of its own.

    Its output goes to files: nobody has to read along, and a failure can be looked at later.
    """

    def __init__(self, kind: str, folder: Path, number: int, *, master: str, deadline: float) -> None:
        self.folder, self.deadline = folder, deadline
        self._said, self._errors = folder / f"life-{number}.out", folder / f"life-{number}.err"
        self.scratch = folder / "tmp"
        self.scratch.mkdir(exist_ok=True)
        self.began = time.time()
        with self._said.open("wb") as said, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "chaos.driver", "--kind", kind, "--folder", str(folder), "--master", master],
                cwd=self.scratch,  # what Spark leaves where it runs
                env=_environment(self.scratch),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def session(self) -> int:
        """The id of the session, which is that of its leader."""
        return self._process.pid

    def ended(self) -> bool:
        """Whether the driver has ended, without taking note: the system keeps its id from others until then."""
        if time.monotonic() > self.deadline:
            raise ChaosError(f"a driver was still running when time was up\n{self.last_words()}")
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def events(self) -> list[dict[str, Any]]:
        """What the driver has said so far."""
        lines = self._said.read_text(errors="replace").split("\n")[:-1]  # the last one may be half a line
        return [json.loads(line) for line in lines if line.startswith('{"event"')]

    def started(self) -> bool:
        """Whether the query runs."""
        return any(event["event"] == "started" for event in self.events())

    def wait_for_start(self) -> bool:
        """Wait until the query runs; False when the driver has ended without it."""
        while not self.started():
            if self.ended():
                return self.started()
            time.sleep(0.02)
        return True

    def kill(self) -> None:
        """Kill the driver, its JVM and their children. None of them is left when this returns."""
        kill_session(self.session)
        self._process.wait()
        self._fetch_executors_files()

    def finish(self) -> None:
        """Let the driver come to its end, which must be a good one."""
        while not self.ended():
            time.sleep(0.02)
        self.check_end()

    def check_end(self) -> None:
        """After its end: fail with the driver's last words unless all was done, and see that nobody stays behind."""
        patience = time.monotonic() + LINGER_SECONDS
        while (left := processes_of(self.session)) and time.monotonic() < patience:
            time.sleep(0.05)
        kill_session(self.session)
        code = self._process.wait()
        self._fetch_executors_files()
        if code != 0 or not any(event["event"] == "ended" for event in self.events()):
            raise ChaosError(f"the driver failed with {code} and was not killed\n{self.last_words()}")
        if left:
            raise ChaosError(f"{left[0].command[:200]} outlived its driver by {LINGER_SECONDS:g} seconds")

    def last_words(self) -> str:
        """What the driver's Python failed with; without that, the end of what it wrote to its error stream."""
        text = self._errors.read_text(errors="replace")
        _, found, trace = text.rpartition("Traceback (most recent call last):")
        return (found + trace)[:_LENGTH] if found else text[-_LENGTH:]

    def _fetch_executors_files(self) -> None:
        """Executors of a local cluster work in a folder beside Spark's own files: have it among ours."""
        import pyspark

        for event in self.events():
            work = Path(pyspark.__file__).parent / "work"
            if "application" in event and (work / event["application"]).is_dir():
                shutil.move(work / event["application"], self.folder / "executors")
                with suppress(OSError):  # others may be working there
                    work.rmdir()

    def __enter__(self) -> Life:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self.kill()


def _environment(scratch: Path) -> dict[str, str]:
    """Our own, with what a driver and its executors need to find us, and to leave nothing behind elsewhere."""
    paths = [str(ROOT), str(Path(streamjoin.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYSPARK_PYTHON": sys.executable,
        "TMPDIR": str(scratch),
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
