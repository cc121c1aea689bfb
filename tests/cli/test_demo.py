"""`streamjoin demo`: small matches on the tests' own Spark, compared with a loop over all pairs."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from streamjoin.api import errors_go_to
from streamjoin.cli import app
from streamjoin.cli.demo_stream import GRACE, Match, Seen, Shown, arriving, sparkline
from streamjoin.cli.local_spark import local_spark
from streamjoin.cli.match import generate_match

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def all_pairs(rows: int, seed: int, radius: float, seconds: float) -> int:
    """By a loop over all pairs."""
    ball, players = (table.to_pylist() for table in generate_match(rows, seed))
    return sum(
        abs((one["ts"] - two["ts"]).total_seconds()) < seconds
        and (one["x"] - two["x"]) ** 2 + (one["y"] - two["y"]) ** 2 <= radius**2
        for one in ball
        for two in players
    )


def test_oracle_the_number_of_pairs(spark: SparkSession) -> None:
    result = CliRunner().invoke(
        app, ["demo", "--batch", "--rows", "300", "--radius", "9", "--window", "30 seconds", "--seed", "5"]
    )
    assert result.exit_code == 0, result.output
    pairs = all_pairs(300, seed=5, radius=9, seconds=30)
    assert pairs > 50
    assert f"600 positions in, {pairs:,} pairs out" in result.output
    assert "5/5" in result.output
    assert len(re.findall(r"^│ \d\d:", result.output, re.MULTILINE)) == 8


def test_a_demo_without_results_says_so(spark: SparkSession) -> None:
    result = CliRunner().invoke(app, ["demo", "--batch", "--rows", "1", "--radius", "0"])
    assert result.exit_code == 0, result.output
    assert "2 positions in, 0 pairs out" in result.output


def test_a_wrong_window_is_one_line(spark: SparkSession) -> None:
    result = CliRunner().invoke(app, ["demo", "--batch", "--rows", "1", "--window", "2 parsecs"])
    assert result.exit_code == 1
    assert "error: window size '2 parsecs' is not a duration" in result.output
    assert "Traceback" not in result.output


def test_no_rows_are_refused() -> None:
    assert CliRunner().invoke(app, ["demo", "--rows", "0"]).exit_code == 2


def test_a_batch_has_no_length_and_no_report() -> None:
    for option, value in (("--seconds", "3"), ("--report", "x.html")):
        result = CliRunner().invoke(app, ["demo", "--batch", option, value])
        assert result.exit_code == 1
        assert f"error: {option} is for streams" in result.output


def test_oracle_streams_find_the_pairs_of_positions_that_are_not_put_aside(spark: SparkSession, tmp_path: Path) -> None:
    options = ["--rows", "300", "--radius", "9", "--window", "30 seconds", "--seed", "5", "--seconds", "1"]
    result = CliRunner().invoke(app, ["demo", *options, "--report", str(tmp_path / "report.html")])
    assert result.exit_code == 0, result.output
    found = re.search(r"600 positions in, ([\d,]+) pairs out, (\d+) positions came more than 60 s late", result.output)
    assert found is not None, result.output
    pairs, late = int(found[1].replace(",", "")), int(found[2])
    every = all_pairs(300, seed=5, radius=9, seconds=30)
    assert late or pairs == every
    assert every - 30 * late <= pairs <= every
    assert "who is near the ball: over" in (tmp_path / "report.html").read_text()


def test_every_position_arrives_once_and_some_are_late() -> None:
    match = Match(4000, 2.0, "2 seconds", 7)
    parts = list(arriving(match, 60))
    for stream, whole in enumerate(generate_match(match.rows, match.seed)):
        assert pa.concat_tables([part[stream] for part in parts]).sort_by("ts") == whole.combine_chunks().sort_by("ts")
    newest, late = None, 0
    for part in parts:
        times = part[1]["ts"].to_pylist()
        late += sum(newest is not None and (newest - each).total_seconds() > GRACE for each in times)
        newest = max([*times, newest] if newest else times)
    assert 0 < late < 0.01 * match.rows


def test_the_screen_counts_pairs_and_what_was_put_aside() -> None:
    seen = Seen()
    rows = {"player": [7, 7, 9, 3, None], "metres": [1.0, 0.5, 2.0, None, None], "_late": [False] * 3 + [True] * 2}
    seen.add(pa.table({**rows, "ts": [datetime(2024, 6, 14, 21, 40, second) for second in range(5)]}))
    assert (seen.near, seen.closest, seen.too_late) == ({7: 2, 9: 1}, {7: 0.5, 9: 2.0}, 2)
    screen = io.StringIO()
    shown = Shown(Console(file=screen, force_terminal=True, width=100), Match(10, 2.0, "2 seconds", 1), seen, 4)
    join = {"state_rows": 12, "state_bytes": 800}
    with shown:
        shown.show({"batch": 0, "rows_in": 5, "rows_out": 5, "late": 2, "seconds": 1.0, "joins": {"a": join}}, 2)
    written = screen.getvalue()
    for words in ("minute 45", "5 of 20 positions in, 3 pairs out", "2 put aside, more than 60 s late", "12 rows, 800"):
        assert words in written
    assert "the last: the ball at 21:40:04" in written
    assert sparkline([1, 1]) == "██"


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
