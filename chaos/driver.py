"""The process that is killed: one kind from files to files, to the end of what is there. `python -m chaos.driver ...`

It says on standard output, one JSON object per line, that the query has started, which micro-batches are over, and that
all is done. Whoever reads it must expect the JVM's own lines in between.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import streamjoin as sj
from chaos.catalog import KINDS
from chaos.checkpoint import Checkpoint
from chaos.local_files import run_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS: Final = 0.02
# A short life: compiling well would cost more than it saves.
_QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one life of a query."""
    parser = argparse.ArgumentParser(prog="python -m chaos.driver", description=__doc__)
    parser.add_argument("--kind", required=True, choices=sorted(KINDS))
    parser.add_argument("--folder", required=True, type=Path, help="has the inputs; gets checkpoint and output")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args(arguments)
    spark = start_spark(options.master)
    query = start_query(spark, options.kind, options.folder)
    say("started", application=spark.sparkContext.applicationId)
    follow(query, Checkpoint(options.folder))
    say("ended")
    spark.stop()


def start_spark(master: str) -> SparkSession:
    """A session whose state is written as snapshots too, and early, so that restarts meet both of its forms."""
    java_options = f"{_QUICK_JVM} -Djava.io.tmpdir={tempfile.gettempdir()}"
    settings: dict[str, object] = {
        "spark__driver__extraJavaOptions": java_options,
        "spark__sql__shuffle__partitions": 2,
        "spark__sql__streaming__stateStore__maintenanceInterval": "1s",
        "spark__sql__streaming__stateStore__minDeltasForSnapshot": 3,
    }
    if master.startswith("local-cluster"):
        settings["spark__executor__extraJavaOptions"] = java_options
        settings["spark__task__maxFailures"] = 10  # a task of a killed executor has failed, as Spark counts
        # And whatever takes longer than others is run twice at a time: both write state, one of them counts.
        settings |= {
            "spark__speculation": "true",
            "spark__speculation__interval": "50ms",
            "spark__speculation__multiplier": "1.0",
            "spark__speculation__quantile": "0.1",
            "spark__speculation__minTaskRuntime": "50ms",
        }
        for name in ("PYTHONPATH", "PYSPARK_PYTHON", "TMPDIR"):
            if name in os.environ:
                settings[f"spark__executorEnv__{name}"] = os.environ[name]
    return sj.session("streamjoin-chaos", master=master, **settings)


def start_query(spark: SparkSession, kind: str, folder: Path) -> StreamingQuery:
    """The call as a running query, from its checkpoint if there is one."""
    checkpoint = Checkpoint(folder)
    return (
        KINDS[kind]
        .stream(spark, folder / "in")
        .writeStream.format("parquet")
        .option("path", str(checkpoint.output))
        .option("checkpointLocation", str(checkpoint.path))
        .trigger(availableNow=True)
        .start()
    )


def follow(query: StreamingQuery, checkpoint: Checkpoint) -> None:
    """Say which batches are over, until the query has ended; its failure is ours."""
    said, ended = checkpoint.committed(), False
    while not ended:
        ended = bool(query.awaitTermination(LOOK_SECONDS))  # type: ignore[arg-type] # fractions are fine
        for batch in range(said, checkpoint.committed()):
            say("batch", number=batch, runs=len(run_files(Path(tempfile.gettempdir()))))
            said = batch + 1


def say(event: str, **details: Any) -> None:
    """One event for whoever started us."""
    print(json.dumps({"event": event, **details}), flush=True)


if __name__ == "__main__":
    main()
    sys.exit(0)
