"""A SparkSession with what streamjoin likes to have. A user's own session works too, only colder."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.utils import is_remote

from streamjoin.errors import CallError, says_what_fits
from streamjoin.spark import machine
from streamjoin.spark.class_archive import archive_options
from streamjoin.spark.early_workers import DAEMON
from streamjoin.spark.quiet import without_chatter
from streamjoin.spark.submitted import jvm_runs, said_before, said_master
from streamjoin.spark.told import is_connect

PARTITIONS: Final = "spark.sql.shuffle.partitions"
PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_MEMORY: Final = "spark.driver.memory"
_JAVA: Final = "spark.driver.extraJavaOptions"
# Who says one of these has a word about how Java starts, and an archive of classes may not fit it.
_ABOUT_JAVA: Final = {_JAVA, "spark.driver.defaultJavaOptions", "spark.driver.extraClassPath"}

_LIKED: Final = {
    # Columns cross to Python in larger pieces: less overhead per row.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # Stateful operators in Python keep their state in RocksDB; with a changelog a commit writes only what has changed.
    PROVIDER: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # To count its rows the store would read each value before it is removed, all that expires; we count rows ourselves.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}
# Where workers run beside the driver.
_LIKED_HERE: Final = {
    # Python workers are forked from a process that has loaded all that they need already.
    "spark.python.daemon.module": DAEMON,
    # Spark sets this for workers without state, so that a traceback has no lines of Spark's own; and has a daemon for
    # every set of variables. With the same for workers with state there is one, and their tracebacks are short too.
    "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
}
_have_come: set[str] = set()  # applications whose executors have been waited for
# What a session of ours has besides: a matter of taste, so an own builder does not get it.
_OURS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@says_what_fits
def configure(builder: Any) -> Any:
    """A SparkSession builder with all that streamjoin likes to have. What the builder says already stays as it is.

    That is: state in RocksDB, larger pieces for Python, workers that run this Python (`PYSPARK_PYTHON`, where it is not
    set). Where the master is local, as it is when nobody names one, also: as many shuffle partitions as tasks run at
    once, a quarter of the memory for the driver, workers that start with all loaded, and Java's classes from an archive
    that the first session leaves in `~/.cache/streamjoin` (`spark.driver.extraJavaOptions`). A cluster has its own
    answers to these; see the guide to deploying.

    >>> from pyspark.sql import SparkSession
    >>> import streamjoin as sj
    >>> spark = sj.configure(SparkSession.builder.master("local[2]").appName("mine")).getOrCreate()
    >>> spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    '50000'
    """
    # The workers must run the Python that has streamjoin, whatever `python3` is elsewhere.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    said = builder._options
    chosen = dict(_LIKED)
    master = _place(said)
    if master.startswith("local"):
        chosen |= _LIKED_HERE
        if not jvm_runs() and said_before(_MEMORY, "--driver-memory", "SPARK_DRIVER_MEMORY") is None:
            chosen[_MEMORY] = f"{max(1024, machine.memory_bytes() // 4 >> 20)}m"
        if not jvm_runs() and not said.keys() & _ABOUT_JAVA and said_before(_JAVA, "--driver-java-options") is None:
            chosen |= {_JAVA: options} if (options := archive_options()) else {}
    tasks = _local_tasks(master)
    if tasks is not None:
        chosen[PARTITIONS] = str(tasks)
    for name, value in chosen.items():
        if name not in said:
            builder = builder.config(name, value)
    return builder


def session(app: str = "streamjoin", *, master: str | None = None, **settings: object) -> SparkSession:
    """A session on all cores of this machine, or on `master`; further Spark settings with `__` for the dots.

    An existing session is returned as it is. With SPARK_REMOTE set it is one of Spark Connect, whose server has chosen
    its master and its Python workers: settings of the session (`spark.sql...`) are made, the others are the server's.

    >>> session(spark__sql__shuffle__partitions=4).version.startswith("4.")
    True
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = SparkSession.builder.appName(app)
    remote = is_remote() or "SPARK_REMOTE" in os.environ
    if remote and master is not None:
        raise CallError(f"master={master!r} beside SPARK_REMOTE: the server has its own", hint="leave one of them out")
    if master is not None or not (remote or said_master()):
        builder = builder.master(master or "local[*]")
    given = {name.replace("__", "."): str(value) for name, value in settings.items()}
    elsewhere = remote and not _place({}).startswith("local")  # the server runs, and has its own settings
    for name, value in {**_OURS, **given}.items():
        builder = builder if elsewhere and not name.startswith("spark.sql.") else builder.config(name, value)
    with without_chatter():
        spark: SparkSession = configure(builder).getOrCreate()
    if not is_connect(spark):
        spark.sparkContext.setLogLevel("ERROR")
    if PARTITIONS not in spark.conf.getAll:
        spark.conf.set(PARTITIONS, _tasks_of_server(spark) if is_connect(spark) else tasks_at_once(spark.sparkContext))
    return spark


def _place(said: dict[str, Any]) -> str:
    """Where the session of a builder that says this runs: a master, or the address of a server of Spark Connect."""
    named = said.get("spark.remote") or said.get("spark.master") or os.environ.get("SPARK_REMOTE")
    if named or is_remote():
        return str(named or "sc://")
    return said_master(earlier=True) or "local[*]"


def tasks_at_once(context: SparkContext, patience: float = 30) -> int:
    """How many tasks run at once: what the settings say, or else what the executors have that have come.

    Executors register one after the other, and an application begins before the first: so this waits until there is
    one, and a second passes in which no other comes. It does so once in an application.

    >>> tasks_at_once(session().sparkContext) >= 1
    True
    """
    conf = context._conf  # the settings themselves: getConf() asks the JVM for a copy of each, in 16 ms
    each = int(conf.get("spark.task.cpus", "1") or 1)
    if str(context.master).startswith("local"):
        return max(1, context.defaultParallelism // each)
    dynamic = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    executors = conf.get(f"spark.{'dynamicAllocation.maxExecutors' if dynamic else 'executor.instances'}")
    cores = conf.get("spark.executor.cores")
    most = conf.get("spark.cores.max") or (executors and cores and int(executors) * int(cores))
    if most:
        return max(1, int(most) // each)
    if context.applicationId not in _have_come:
        _wait_for_executors(context, patience)
        _have_come.add(str(context.applicationId))
    return max(1, context.defaultParallelism // each)


def _wait_for_executors(context: SparkContext, patience: float) -> None:
    jvm: Any = context._jsc
    end, come, since = time.monotonic() + patience, 1, time.monotonic()
    while time.monotonic() < end and (come == 1 or time.monotonic() < since + 1):
        now = jvm.sc().getExecutorMemoryStatus().size()  # with the driver
        if now != come:
            come, since = now, time.monotonic()
        time.sleep(0.1)


def _tasks_of_server(spark: SparkSession) -> int:
    """How many tasks a server of Spark Connect runs at once: a range is cut into as many pieces, which are counted."""
    pieces = spark.range(1 << 16).select(F.spark_partition_id().alias("piece")).agg(F.countDistinct("piece"))
    [(count,)] = pieces.collect()
    return int(count)


def _local_tasks(master: str) -> int | None:
    """How many tasks a local master runs at once; None for all others.

    >>> _local_tasks("local"), _local_tasks("local[3]"), _local_tasks("local[3, 2]"), _local_tasks("yarn")
    (1, 3, 3, None)
    """
    found = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\])?", master)
    if found is None:
        return None
    if found[1] == "*":
        return machine.cores()
    return int(found[1] or 1)
