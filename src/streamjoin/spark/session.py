"""A SparkSession with what streamjoin likes to have. A user's own session works too, only colder."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

_DEFAULTS = {
    # Columns cross to Python in larger pieces: less overhead per row.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # Python workers are forked from a process that has loaded the compiled kernels already.
    "spark.python.daemon.module": "streamjoin.spark.daemon",
    # Stateful operators in Python keep their state in RocksDB; with a changelog a commit writes only what has changed.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(app: str = "streamjoin", *, master: str | None = None, **settings: object) -> SparkSession:
    """A session on all cores of this machine, or on `master`; further Spark settings with `__` for the dots.

    An existing session is returned as it is.

    >>> session(spark__sql__shuffle__partitions=4).version.startswith("4.")
    True
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # The workers must run the Python that has streamjoin, whatever `python3` is elsewhere.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has chosen a master
    if master is not None or not (submitted or "spark.master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")):
        builder = builder.master(master or "local[*]")
    cores = str(os.cpu_count() or 1)
    chosen = {**_DEFAULTS, "spark.sql.shuffle.partitions": cores}
    chosen |= {name.replace("__", "."): str(value) for name, value in settings.items()}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
