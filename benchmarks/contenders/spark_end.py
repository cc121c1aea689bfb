"""The end of a contender's Spark: its JVM is gone when the next one begins, whatever it takes.

Law: queries end first, then the state stores are closed, then Spark stops, then the JVM ends; one that has not ended in
time is killed, and it is said what its threads were waiting for.

Spark does not close its state stores when it stops, so they are closed here. One JVM, with gigabytes of state, stood
for minutes after its stop, and answered `jstack` no more. That its native code waited for itself is the likeliest
reason, not a proven one: RocksDB, still at its background work, waits at the end of the process for its threads; these
log through Java, and whoever comes from there when the virtual machine is gone is never let go.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any, Final

from pyspark.sql import SparkSession

PATIENCE_SECONDS: Final = 300.0


def end_spark(patience: float = PATIENCE_SECONDS) -> str | None:
    """End the active session's Spark and its JVM; what was wrong, if anything was."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        return None
    jvm: Popen[bytes] = spark.sparkContext._gateway.proc  # type: ignore[attr-defined, union-attr]
    began, wrong = time.monotonic(), list[str]()
    stopping = threading.Thread(target=_stop, args=(spark, wrong), daemon=True)  # a JVM that hangs never answers
    stopping.start()
    stopping.join(patience)
    killed = ended(jvm, max(0.0, began + patience - time.monotonic()), patience)
    return "; ".join([*wrong, *([] if killed is None else [killed])]) or None


def _stop(spark: SparkSession, wrong: list[str]) -> None:
    gateway: Any = spark.sparkContext._gateway
    try:
        for query in spark.streams.active:
            query.stop()
        gateway.jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
        spark.stop()
        gateway.shutdown()
    except Exception as error:  # whatever it says, the JVM has to go
        wrong.append(f"Spark did not stop as it should: {error}")
    finally:
        with suppress(OSError):
            gateway.proc.stdin.close()  # what the JVM waits for


def ended(process: Popen[bytes], seconds: float, patience: float) -> str | None:
    """Wait so long for the end of a process, then kill it; what it was doing, if that was necessary."""
    try:
        process.wait(timeout=seconds)
    except TimeoutExpired:
        waiting = threads_of(process.pid)
        process.kill()
        process.wait()
        return f"process {process.pid} had not ended after {patience:g} s and was killed; its threads: {waiting}"
    return None


def threads_of(process: int) -> str:
    """The threads of a process: name, state, what they wait for in the system, and how many are alike."""
    found: Counter[str] = Counter()
    for task in Path(f"/proc/{process}/task").glob("*"):
        with suppress(OSError):  # it has ended meanwhile
            name, state = (task / "stat").read_text().partition("(")[2].rpartition(")")[::2]
            found[f"{name} {state.split()[0]} {_waits_for(task)}".strip()] += 1
    return ", ".join(f"{count} x {each}" for each, count in found.most_common())


def _waits_for(task: Path) -> str:
    """The system's own word, where it may be read."""
    with suppress(OSError):
        return (task / "wchan").read_text().strip("0\n")
    return ""
