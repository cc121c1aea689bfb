"""What a session must have: taken from what there is, and found missing when a call is made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import SparkSession as Session

import streamjoin as sj
from streamjoin.errors import CallError
from streamjoin.spark import early_workers, machine, session_check
from streamjoin.spark.quiet import Chatter, errors_go_to, without_chatter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"
SAID = [
    b"Starting Streaming TransformWithStateInPandas Python worker.\n\n",
    b"Streaming TransformWithStateInPandas Python worker Starting execution of UDF: <f>.\n\n",
]


def options(builder: Any) -> dict[str, Any]:
    return dict(sj.configure(builder)._options)


def test_a_local_builder_gets_partitions_memory_and_warm_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.spark.session.SparkContext._gateway", None)  # as if no JVM ran yet
    monkeypatch.setattr(machine, "memory_bytes", lambda: 64 << 30)
    chosen = options(Session.Builder().master("local[3]"))
    assert chosen[PARTITIONS] == "3"
    assert chosen["spark.driver.memory"] == "16384m"
    assert chosen["spark.python.daemon.module"] == "streamjoin.spark.daemon"
    assert "spark.sql.session.timeZone" not in chosen


def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing had been started yet."""
    for name in ("_gateway", "_active_spark_context"):
        monkeypatch.setattr(f"streamjoin.spark.session.SparkContext.{name}", None)


def test_a_builder_without_a_master_is_local_unless_somebody_has_said_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # As Spark takes it: what `spark-submit` was told, its file of defaults, and otherwise all cores of this machine.
    no_jvm(monkeypatch)
    monkeypatch.setattr(machine, "cores", lambda: 5)
    here = options(Session.Builder())
    assert here[PARTITIONS] == "5"
    assert {"spark.driver.memory", "spark.python.daemon.module"} <= here.keys()
    for words in ("--master local[7]", "--conf spark.master=local[7]", "--master=local[7]"):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{words} pyspark-shell")
        assert options(Session.Builder())[PARTITIONS] == "7"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")
    assert {PARTITIONS, "spark.driver.memory", "spark.python.daemon.module"}.isdisjoint(options(Session.Builder()))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    (tmp_path / "spark-defaults.conf").write_text("# spark.master local[9]\nspark.master=spark://there:7077\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert PARTITIONS not in options(Session.Builder())
    monkeypatch.setenv("SPARK_REMOTE", "sc://there")
    assert PARTITIONS not in options(Session.Builder())


def test_a_builder_beside_a_session_takes_its_master(spark: SparkSession) -> None:
    assert options(Session.Builder())[PARTITIONS] == str(spark.sparkContext.defaultParallelism)


def test_what_a_builder_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.spark.session.SparkContext._gateway", None)
    said = {PARTITIONS: "17", "spark.driver.memory": "3g", "spark.python.daemon.module": "mine"}
    assert said.items() <= options(Session.Builder().master("local[3]").config(map=said)).items()


def test_a_clusters_builder_gets_nothing_that_depends_on_this_machine() -> None:
    chosen = options(Session.Builder().master("yarn"))
    assert {PARTITIONS, "spark.driver.memory", "spark.python.daemon.module"}.isdisjoint(chosen)
    assert "RocksDB" in chosen["spark.sql.streaming.stateStore.providerClass"]


@pytest.mark.parametrize("where", ["SPARK_DRIVER_MEMORY", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"])
def test_memory_that_was_chosen_elsewhere_stays(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("streamjoin.spark.session.SparkContext._gateway", None)
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 5g\n")
    monkeypatch.setenv(where, {"SPARK_CONF_DIR": str(tmp_path)}.get(where, "--driver-memory 5g pyspark-shell"))
    assert "spark.driver.memory" not in options(Session.Builder().master("local"))


def test_a_containers_limits_count(tmp_path: Path) -> None:
    assert machine.cores(tmp_path) == len(os.sched_getaffinity(0))
    (tmp_path / "memory.max").write_text("123456\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert machine.memory_bytes(tmp_path) == 123456
    assert machine.cores(tmp_path) == 1
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert machine.memory_bytes(tmp_path) > 123456
    assert machine.cores(tmp_path) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chatter_is_removed_however_it_is_cut(size: int) -> None:
    text = SAID[0] + b"an error\n\nSorry\n" + SAID[1] + SAID[0] + b"\r[Stage 3:> ] 50%\r[Stage 3:=>]\nlast"
    chatter = Chatter()
    shown = b"".join(chatter.removed(text[at : at + size]) for at in range(0, len(text), size))
    assert shown == b"an error\n\nSorry\n\r[Stage 3:> ] 50%\r[Stage 3:=>]\nlast"


def test_a_line_that_is_not_over_is_shown_at_once() -> None:
    assert Chatter().removed(b"\r[Stage 3:>") == b"\r[Stage 3:>"


def test_started_processes_lose_their_chatter(tmp_path: Path) -> None:
    speak = f"import sys; sys.stderr.buffer.write({SAID[0]!r} + b'noise'); sys.exit(1)"
    failed = pytest.raises(subprocess.CalledProcessError)  # whoever sees it can read the last words too
    with (tmp_path / "log").open("w+b") as log, errors_go_to(log), failed, without_chatter():
        subprocess.run([sys.executable, "-c", speak], check=True)
    assert (tmp_path / "log").read_bytes() == b"noise"


def call(spark: SparkSession, *, streaming: bool = False) -> DataFrame:
    frame = spark.readStream.format("rate").load() if streaming else spark.range(3).selectExpr("id AS value")
    if not streaming:
        return sj.join([frame, frame], by="value")
    return sj.join([frame, frame], time="timestamp", window=sj.Range("5 s"), by="value", lateness=sj.Grace("1 s"))


def test_workers_that_run_another_python(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')  # without any packages
    bare.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(bare))
    with pytest.raises(CallError, match=r"has no module streamjoin, .*PYSPARK_PYTHON.* = sys.executable"):
        call(spark)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "no-python-at-all")
    with pytest.raises(CallError, match="workers run no-python-at-all, which cannot run streamjoin"):
        call(spark)


def test_a_good_python_is_asked_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\necho >> {tmp_path / "asked"}\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
    call(spark)
    call(spark)
    assert (tmp_path / "asked").read_text() == "\n"


def test_partitions_that_nobody_has_chosen(spark: SparkSession) -> None:
    before = spark.conf.get(PARTITIONS)
    try:
        spark.conf.unset(PARTITIONS)
        call(spark)
        with pytest.raises(CallError, match=r'default of 200 and runs 2 .*\("spark.sql.shuffle.partitions", 2\)'):
            call(spark, streaming=True)
        spark.conf.set(PARTITIONS, 200)
        call(spark, streaming=True)
    finally:
        spark.conf.set(PARTITIONS, before)


def test_workers_elsewhere_are_asked_by_one_task(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    report = '{"executable": "there/python", "python": "3.11", "missing": ["streamjoin"], "streamjoin": null}'
    with monkeypatch.context() as patched:
        patched.setattr(session_check, "_LOOK", f"def look():\n    return {report!r}")
        with pytest.raises(CallError, match=r"run there/python, which has no module streamjoin.*--archives"):
            session_check._check_elsewhere(spark, ("there", "python"))
    session_check._check_elsewhere(spark, ("there", "python"))
    monkeypatch.setattr(type(spark), "range", None)  # whoever asks again fails
    session_check._check_elsewhere(spark, ("there", "python"))


def test_the_drivers_python_of_a_cluster() -> None:
    with pytest.raises(CallError, match=r"\./environment/bin/python, .* beside the driver"):
        session_check._check_python_of_driver("./environment/bin/python")


def test_workers_are_started_early_once_and_only_where_they_are_ours(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_workers, "_begun", set())
    monkeypatch.setattr(early_workers, "DAEMON", "another")
    assert early_workers.start_workers(spark) is None
    monkeypatch.undo()
    monkeypatch.setattr(early_workers, "_begun", set())
    jobs = spark.sparkContext.statusTracker()
    before = len(jobs.getJobIdsForGroup(None))
    thread = early_workers.start_workers(spark)
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()
    assert len(jobs.getJobIdsForGroup(None)) == before + 1
    assert early_workers.start_workers(spark) is None
