"""A standalone cluster on the loopback address, from PySpark's own jars: a master, and workers."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
# Servers that run for a minute: compiling them well costs more than it saves.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def cluster(folder: Path, workers: Sequence[int]) -> Iterator[str]:
    """The URL of a master while its cluster runs, with workers of so many cores."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA}
    with ExitStack() as servers:

        def started(name: str, *command: str) -> Path:
            log = folder / f"{name}.log"
            with log.open("wb") as file:
                server = subprocess.Popen([SPARK_CLASS, *command], env=env, stdout=file, stderr=file)
            servers.callback(_end, server)
            return log

        place = ("--host", "127.0.0.1", "--webui-port", "0")
        master = _told(
            started("master", "org.apache.spark.deploy.master.Master", *place, "--port", "0"), r"spark://\S+"
        )
        for number, cores in enumerate(workers):
            room = ("--cores", str(cores), "--memory", "1g", "--work-dir", str(folder / f"work{number}"))
            started(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *place, *room, master)
        yield master


def _told(log: Path, pattern: str) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text())
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()  # by its own id: `spark-class` has become the JVM
    server.wait(30)
