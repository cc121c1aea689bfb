"""Fixtures for all tests."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent


# Their tests start a query each, or a driver: seconds before anything is joined. `./sj test-streams` runs them, and
# looks for them in these four folders.
RUN_STREAMS = {
    "spark/test_streaming.py", "spark/test_streaming_cover.py", "spark/test_connect.py", "spark/test_stored_state.py",
    "spark/test_streaming_asof.py", "spark/test_streaming_best_match.py", "spark/test_streaming_changelog.py",
    "spark/test_streaming_queries.py", "spark/test_streaming_options.py", "spark/test_streaming_recall.py",
    "spark/test_deployments.py", "spark/test_pipelines.py", "spark/test_upgrading.py", "chaos/test_kills.py",
    "chaos/test_moving.py", "cli/test_run.py", "cli/test_going_on.py", "cli/test_rescale.py", "docs/test_tutorial.py",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses Spark is marked so: `-m "not spark"` needs no Java."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if f"{item.path.parent.name}/{item.path.name}" in RUN_STREAMS:
            item.add_marker(pytest.mark.stream)


@pytest.fixture(autouse=True)
def _stored_in_small_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other test stores state in as many parts and pages as only a large state would have."""
    if isinstance(request.node, pytest.Function) and zlib.crc32(request.node.nodeid.encode()) % 2:
        monkeypatch.setattr("streamjoin.state.layout.PART_BYTES", 150)
        monkeypatch.setattr("streamjoin.spark.stored.pages.PAGE_BYTES", 100)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark for the whole run."""
    # Imported here so that the other tests start without it.
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Functions defined in a test are pickled by name: workers must be able to import `tests`.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Jobs are small and many: compiling them well costs more than it saves, unless there are hours of them.
    long = request.config.getoption("markexpr") == "long"
    java = "" if long else "-XX:TieredStopAtLevel=1"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("streamjoin-tests")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", f"-XX:+UseSerialGC {java}")
        .config("spark.sql.codegen.wholeStage", str(not long).lower())
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN" if long else "FALLBACK")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50000")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        # The usual one starts a program for every file that it renames on a local disk.
        .config(
            "spark.sql.streaming.checkpointFileManagerClass",
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
        )
        .config("spark.python.daemon.module", "streamjoin.spark.daemon")  # workers start with the kernels loaded
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
