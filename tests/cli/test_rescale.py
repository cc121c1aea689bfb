"""`streamjoin rescale`: a query grows and shrinks in its middle, and nothing else changes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

import streamjoin as sj
from streamjoin.cli import app
from streamjoin.cli.output import LOG, fill_log
from streamjoin.cli.tables import read_table
from tests.cli.commands import R_FILES, S_FILES, add_file, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A semi join by band has a second stage, which decides about copies: two stateful operators.
JOB = """
import streamjoin as sj

def job(R, S):
    return sj.join_band(R, S, on="v", below=26, above=26, time="ts", window=sj.Range("4 seconds"), how="semi",
                        lateness=sj.Grace("5 seconds"))
"""


def batch(spark: SparkSession, folder: Path) -> DataFrame:
    frames = [read_table(spark, folder / name) for name in "RS"]
    return sj.join_band(*frames, on="v", below=26, above=26, time="ts", window=sj.Range("4 seconds"), how="semi")


def rescale(folder: Path, partitions: int) -> Result:
    return CliRunner().invoke(app, ["rescale", str(folder / "checkpoint"), "--partitions", str(partitions)])


def partitions_of(checkpoint: Path) -> int:
    """What Spark goes on with."""
    last = max((file for file in (checkpoint / "offsets").iterdir() if file.name.isdigit()), key=lambda f: int(f.name))
    return int(json.loads(last.read_text().splitlines()[1])["conf"]["spark.sql.shuffle.partitions"])


def test_differential_a_query_that_grows_and_shrinks_loses_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    checkpoint = tmp_path / "checkpoint"
    add_file(tmp_path / "R", R_FILES[0])
    add_file(tmp_path / "S", S_FILES[0])
    assert run(tmp_path, "--available-now", "--buckets", "4").exit_code == 0
    assert partitions_of(checkpoint) == 2

    assert "5 partitions for the 4 buckets of" in rescale(tmp_path, 5).output
    grown = rescale(tmp_path, 4)
    assert grown.output == f"{checkpoint}: 4 buckets over 4 partitions\n"
    add_file(tmp_path / "R", R_FILES[1])
    add_file(tmp_path / "S", S_FILES[1])
    went_on = run(tmp_path, "--available-now")
    assert went_on.exit_code == 0, went_on.output
    assert partitions_of(checkpoint) == 4

    assert "has 4 partitions already" in rescale(tmp_path, 4).output
    assert rescale(tmp_path, 1).exit_code == 0
    add_file(tmp_path / "R", [("z", 35, 32), ("z", 900, 32)])
    result = run(tmp_path, "--available-now", "--finish")
    assert result.exit_code == 0, result.output
    expected = batch(spark, tmp_path)
    assert Counter(spark.read.parquet(str(tmp_path / "out")).collect()) == Counter(expected.collect())
    assert expected.count() > 2


def test_the_log_of_the_output_has_no_gaps(tmp_path: Path) -> None:
    log, commits = tmp_path / "out" / LOG, tmp_path / "checkpoint" / "commits"
    for folder in (log, commits):
        folder.mkdir(parents=True)
    for number in range(12):
        (commits / str(number)).touch()
    for number in (0, 2, 8):
        (log / str(number)).write_text(f"v1\nfile {number}")
    fill_log(tmp_path / "out", tmp_path / "checkpoint")
    assert (log / "9.compact").read_text() == "v1\nfile 0\nfile 2\nfile 8"
    assert (log / "1").read_text() == (log / "11").read_text() == "v1"
    (log / "8").unlink()  # Spark removes what is in a later one
    fill_log(tmp_path / "out", tmp_path / "checkpoint")
    assert not (log / "8").exists()
    assert not (log / "9").exists()


def test_there_must_be_a_checkpoint(tmp_path: Path) -> None:
    assert rescale(tmp_path, 2).output.startswith(f"error: there is no folder {tmp_path}/checkpoint.")


@pytest.mark.parametrize("partitions", ["0", "-1"])
def test_partitions_are_at_least_one(tmp_path: Path, partitions: str) -> None:
    assert CliRunner().invoke(app, ["rescale", str(tmp_path), "--partitions", partitions]).exit_code == 2
