"""`streamjoin demo`: small matches on the tests' own Spark, compared with a loop over all pairs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from streamjoin.api import errors_go_to
from streamjoin.cli import app
from streamjoin.cli.demo import generate_match
from streamjoin.cli.local_spark import local_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_oracle_the_number_of_pairs(spark: SparkSession) -> None:
    result = CliRunner().invoke(
        app, ["demo", "--rows", "300", "--radius", "9", "--window", "30 seconds", "--seed", "5"]
    )
    assert result.exit_code == 0, result.output
    ball, players = (table.to_pylist() for table in generate_match(300, seed=5))
    pairs = sum(
        abs((one["ts"] - two["ts"]).total_seconds()) < 30
        and (one["x"] - two["x"]) ** 2 + (one["y"] - two["y"]) ** 2 <= 81
        for one in ball
        for two in players
    )
    assert pairs > 50
    assert f"600 positions in, {pairs:,} pairs out" in result.output
    assert "5/5" in result.output
    assert len(re.findall(r"^│ \d\d:", result.output, re.MULTILINE)) == 8


def test_a_demo_without_results_says_so(spark: SparkSession) -> None:
    result = CliRunner().invoke(app, ["demo", "--rows", "1", "--radius", "0"])
    assert result.exit_code == 0, result.output
    assert "2 positions in, 0 pairs out" in result.output


def test_a_wrong_window_is_one_line(spark: SparkSession) -> None:
    result = CliRunner().invoke(app, ["demo", "--rows", "1", "--window", "2 parsecs"])
    assert result.exit_code == 1
    assert "error: window size '2 parsecs' is not a duration" in result.output
    assert "Traceback" not in result.output


def test_no_rows_are_refused() -> None:
    assert CliRunner().invoke(app, ["demo", "--rows", "0"]).exit_code == 2


def test_a_seed_makes_one_match() -> None:
    one, again, other = (generate_match(50, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_players_and_ball_move_on_the_pitch() -> None:
    ball, players = generate_match(2000, seed=3)
    assert 0 <= min(ball["x"].to_pylist()) <= max(ball["x"].to_pylist()) <= 105
    assert 0 <= min(ball["y"].to_pylist()) <= max(ball["y"].to_pylist()) <= 68
    assert set(players["player"].to_pylist()) == set(range(1, 23))
    assert ball["ts"].to_pylist() == sorted(ball["ts"].to_pylist())


def test_started_processes_write_their_errors_elsewhere() -> None:
    speak = [sys.executable, "-c", "import sys; sys.stderr.write('noise')"]
    with tempfile.TemporaryFile() as log:
        with errors_go_to(log):
            subprocess.run(speak, check=True)
        size = os.fstat(log.fileno()).st_size
    assert size == len("noise")


def test_a_failed_start_shows_what_spark_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        os.write(2, b"java: not found")
        raise RuntimeError("no gateway")

    monkeypatch.setattr("streamjoin.session", fail)
    with pytest.raises(RuntimeError, match="no gateway"):
        local_spark()
    assert "java: not found" in capsys.readouterr().err
