"""A query goes on on machines with fewer and more cores, killed in between."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import streamjoin as sj
from chaos import data
from chaos.checkpoint import Checkpoint
from chaos.comparison import compare_query
from chaos.data import Shape
from chaos.kinds import Kind
from chaos.processes import kill_session
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc"),
]
JOB = "from tests.chaos.test_moving import joined\n\ndef job(left, right):\n    return joined(left, right)\n"
SECONDS = 240  # a bound for what hangs


def joined(left: DataFrame, right: DataFrame) -> DataFrame:
    """Nobody says how many buckets: as many as the first machine runs tasks at once."""
    return sj.join(
        [left, right], by="k", time="ts", window=sj.Range("4 seconds"), lateness=sj.Grace("5 seconds"), how="full"
    )


def command(folder: Path, *options: str) -> list[str]:
    checkpoint = Checkpoint(folder)
    words = ["run", str(folder / "job.py"), "--out", str(checkpoint.output), "--checkpoint", str(checkpoint.path)]
    for side in data.SIDES:
        words += ["--stream", f"{side}={folder / 'in' / side}"]
    return [*words, "--available-now", "--files-per-batch", "1", *options]


def live(folder: Path, master: str, batches: int | None) -> None:
    """One life of `streamjoin run` elsewhere: to its end, or until it is killed after so many more micro-batches."""
    before = Checkpoint(folder).committed()
    main = [sys.executable, "-c", "from streamjoin.cli import main; main()"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # a short life
    }
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*main, *command(folder, "--master", master)],
            env=environment,
            cwd=folder,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + SECONDS
        while process.poll() is None and (batches is None or Checkpoint(folder).committed() < before + batches):
            assert time.monotonic() < deadline, "it hangs"
            time.sleep(0.02)
        wanted = 0 if batches is None else None
        assert process.returncode == wanted, (folder / "said").read_text()
    finally:
        if process.returncode is None:
            kill_session(process.pid)
            process.wait()


def test_differential_a_query_goes_on_with_fewer_and_more_cores(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    data.write(tmp_path / "in", "moving", Shape(files=4, rows=40), late=False)
    live(tmp_path, "local[2]", 1)
    assert sj.checkpoint(tmp_path / "checkpoint").buckets == 4, "twice the cores of the first machine"
    live(tmp_path, "local[1]", 1)
    assert Checkpoint(tmp_path).committed() < 5, "something is left for the third machine"
    live(tmp_path, "local[4]", None)
    assert sj.checkpoint(tmp_path / "checkpoint").buckets == 4, "twice the cores of the first machine"
    difference = compare_query(spark, Kind("moved", joined), tmp_path)
    assert difference.equal, "\n".join(difference.describe())
    assert difference.rows > 100
