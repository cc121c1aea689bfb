"""Python workers that start while a query is still being planned.

The first micro-batch of a session would wait for them: the process that they are forked from loads pandas, Arrow and
all compiled kernels. So the first call over streams has Spark start them, in a thread beside it, by a job of as many
tasks as run at once whose rows are handed back as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from threading import Lock, Thread
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from streamjoin.spark.told import context_of

DAEMON: Final = "streamjoin.spark.daemon"
_DESCRIPTION: Final = "streamjoin: Python workers start"
_begun: set[str] = set()  # by application
_lock: Final = Lock()


def start_workers(session: SparkSession) -> Thread | None:
    """Begin to start them, once in an application; None if that has begun, or workers are not ours to start.

    Elsewhere than on this machine executors may come later, and where workers are forked from Spark's own process they
    load by themselves what they need.
    """
    context = context_of(session)
    if context is None or str(context.applicationId) in _begun or not str(context.master).startswith("local"):
        return None  # asking the JVM for its settings costs every later call
    if context.getConf().get("spark.python.daemon.module", "") != DAEMON:
        return None
    with _lock:
        if context.applicationId in _begun:
            return None
        _begun.add(str(context.applicationId))
    thread = Thread(target=_run, args=(session, context), name=_DESCRIPTION, daemon=True)
    thread.start()
    return thread


def _run(session: SparkSession, context: Any) -> None:
    # Whatever is wrong will be wrong in the query too, which says so; and a session may be stopped meanwhile.
    with contextlib.suppress(Exception):
        context.setJobDescription(_DESCRIPTION)
        tasks = context.defaultParallelism
        rows = session.range(0, tasks, 1, tasks).mapInArrow(_handed_back, "id long")
        rows.write.format("noop").mode("overwrite").save()


def _handed_back(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
