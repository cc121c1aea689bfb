"""The peers' own virtual environments: made on first use, kept under build/, never the project's.

A folder is named by a hash of what is in it, so a changed requirement makes a new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.errors import BenchmarkError

ROOT = Path(__file__).parent.parent


def requirements_of(text: str) -> list[str]:
    """The requirements without comments and empty lines; each must be pinned."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    wanted = [line for line in lines if line]
    for line in wanted:
        if "==" not in line:
            raise BenchmarkError(f"a peer's version must be pinned, got {line!r}", hint="write name==version")
    return wanted


def peers_python(requirements: Path, say: Callable[[str], None]) -> Path:
    """The Python of the environment with these requirements, which is made if it is not there."""
    wanted = requirements_of(requirements.read_text())
    content = "\n".join([platform.python_version(), *wanted])
    folder = ROOT / "build" / f"{requirements.stem}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{requirements.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at a time would spoil each other's work
        if not stamp.exists():
            say(
                f"making {folder.relative_to(ROOT)} for the peers; this takes a minute or more, the first time only ..."
            )
            shutil.rmtree(folder, ignore_errors=True)
            _call([sys.executable, "-m", "venv", str(folder)])
            _call([str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *wanted])
            stamp.touch()  # last, so that an interrupted installation starts again
    return python


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(
            f"the peers' environment could not be made: {' '.join(command)}\n{done.stdout}{done.stderr}".strip(),
            hint="pip must be able to reach a package index; --only can leave out what needs these peers",
        )
