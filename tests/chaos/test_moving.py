"""A query goes on on machines with fewer and more cores, killed in between."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import streamjoin as sj
from chaos import data
from chaos.checkpoint import Checkpoint
from chaos.comparison import compare_query
from chaos.data import Shape
from chaos.kinds import Kind
from chaos.processes import kill_session
from streamjoin.cli import app
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
    """One life of `streamjoin run` elsewhere: to its end, or until so many micro-batches are over and it is killed."""
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
        while process.poll() is None and (batches is None or Checkpoint(folder).committed() < batches):
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
    data.write(tmp_path / "in", "moving", Shape(files=3, rows=60), late=False)
    later = [file for side in data.SIDES for file in sorted((tmp_path / "in" / side).iterdir())[1:]]
    for file in later:
        file.rename(file.with_name(f"_{file.name}"))  # not there yet
    begun = CliRunner().invoke(app, command(tmp_path, "--master", "local[2]"))
    assert begun.exit_code == 0, begun.output
    assert sj.checkpoint(tmp_path / "checkpoint").buckets == 2
    for file in later:
        file.with_name(f"_{file.name}").rename(file)
    live(tmp_path, "local[1]", 2)
    live(tmp_path, "local[4]", None)
    assert sj.checkpoint(tmp_path / "checkpoint").buckets == 2
    difference = compare_query(spark, Kind("moved", joined), tmp_path)
    assert difference.equal, "\n".join(difference.describe())
    assert difference.rows > 100
