"""A PostgreSQL server on the loopback address, with a folder, a port and a password of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER = "streamjoin"
PROGRAMS = Path("/usr/lib/postgresql")  # Debian's place: one folder for each version


@dataclass(frozen=True)
class Server:
    """Where a server listens, and the password of `USER`, to whom everything belongs."""

    port: int
    password: str

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def execute(self, statements: str) -> str:
        """Run SQL; what it gives, a line for each row."""
        command = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port)]
        ran = subprocess.run(
            [_program("psql"), *command, "-U", USER, "-d", "postgres", "-c", statements],
            env=os.environ | {"PGPASSWORD": self.password}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@contextmanager
def server() -> Iterator[Server]:
    """A server while it runs. It refuses to be root's, so root lets Debian's user for it run it."""
    folder = Path(tempfile.mkdtemp(prefix="streamjoin-postgresql-"))  # not pytest's: only we may look into those
    who: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    found = Server(_free_port(), secrets.token_hex(8))
    try:
        (folder / "password").write_text(found.password)
        if who:
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres", "postgres")
        make = [_program("initdb"), "-D", folder / "data", "-U", USER, "-A", "scram-sha-256", "-E", "UTF8"]
        subprocess.run(
            [*make, "--locale=C", "--no-sync", f"--pwfile={folder / 'password'}"],
            **who, cwd=folder, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        # Only on loopback, without a socket among the system's; what it writes need not outlive the machine.
        settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "track_functions=all"]
        run = [_program("postgres"), "-D", folder / "data", "-p", str(found.port)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*run, *(word for setting in settings for word in ("-c", setting))],
                **who, cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            _wait(found, process, folder / "log")
            yield found
        finally:
            process.terminate()  # by its own id
            process.wait(60)
    finally:
        shutil.rmtree(folder)


def _program(name: str) -> Path:
    """One of PostgreSQL's programs, of the newest version that there is."""
    found = sorted(PROGRAMS.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    assert found, f"{name} is not in {PROGRAMS}: ./sj test-postgres installs Debian's postgresql"
    return found[-1]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(found: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    ready = [_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(found.port)]
    end = time.monotonic() + 60
    while subprocess.run(ready, check=False).returncode:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)
