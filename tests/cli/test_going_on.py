"""`streamjoin run` goes on with what a query was begun with: its columns, its buckets, its call. Bad rows go aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import streamjoin as sj
from streamjoin.api import stored_state
from streamjoin.cli import app
from streamjoin.cli.arguments import by_name, for_all_or_by_name
from tests.cli.commands import refused, run, two_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_BUCKETS = """
import streamjoin as sj

def job(R, S):
    return sj.join([R, S], by="k", time="ts", window=sj.Range("4 seconds"), lateness=sj.Grace("5 seconds"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return two_streams(tmp_path)


def explain(folder: Path, *options: str) -> str:
    named = [word for name in "RS" for word in ("--stream", f"{name}={folder / name}")]
    places = ["--out", str(folder / "out"), "--checkpoint", str(folder / "checkpoint")]
    result = CliRunner().invoke(app, ["explain", str(folder / "job.py"), *named, *places, *options])
    return result.output


def test_a_query_goes_on_as_it_was_begun(spark: SparkSession, folder: Path) -> None:
    """One query through all that can happen between its starts."""
    job = folder / "job.py"
    job.write_text(NO_BUCKETS)
    shown = explain(folder, "--buckets", "3", "--available-now", "--format", "json")
    assert "over 3 buckets" in shown
    assert shown.endswith(f"output: {folder / 'out'}  (json)\n")
    begun = run(folder, "--available-now", "--buckets", "3")
    assert begun.exit_code == 0, begun.output
    checkpoint = folder / "checkpoint"
    assert sj.checkpoint(checkpoint).buckets == 3
    assert sj.checkpoint(checkpoint).lateness == (sj.Grace("5 s"), sj.Grace("5 s"))
    assert {part.bucket for part in stored_state(spark, str(checkpoint))} <= {0, 1, 2}
    tree = CliRunner().invoke(app, ["state", str(checkpoint), "--tree"])
    assert tree.exit_code == 1
    assert tree.output == (
        f"error: the query of {checkpoint} has no join in sorted runs. "
        'Hint: only joins with algorithm="tpmj" have a tree.\n'
    )

    # Nothing new has come, and another call is refused all the same.
    job.write_text(NO_BUCKETS.replace("4 seconds", "3 seconds"))
    line = refused(folder, "--available-now")
    assert line.startswith("this state was made by another join: window was Range(4 s)")
    assert "--checkpoint" in line
    assert "window was Range(4 s)" in explain(folder)
    # Nor do the columns have to be the call's own.
    computed = NO_BUCKETS.replace("4 seconds", "3 seconds").rstrip() + '.filter("k > 0").selectExpr("k + 1 AS w")\n'
    job.write_text(computed)
    assert refused(folder, "--available-now").startswith("this state was made by another join: window was Range(4 s)")
    job.write_text(NO_BUCKETS.replace(")\n", ", buckets=2)\n"))
    assert "buckets was" in refused(folder, "--available-now")
    job.write_text(NO_BUCKETS)
    assert refused(folder, "--available-now", "--buckets", "2").startswith("--buckets is 2, and the query of ")
    assert refused(folder, "--available-now", "--format", "csv").startswith("--format is csv, and the query of ")
    assert "writes parquet" in explain(folder, "--format", "csv")

    # The session would have two buckets; and of the files that are left, v is a double and k a number.
    for file in (folder / "R").iterdir():
        file.unlink()
    (folder / "R" / "2.csv").write_text("k,v,ts\n1,7,2024-01-01 10:00:31\n")
    assert run(folder, "--available-now").exit_code == 0
    (folder / "R" / "3.csv").write_text("k,v,ts\nb,8,2024-01-01 10:00:32\nb,7.5,2024-01-01 10:00:32\n")
    failed = run(folder, "--available-now")
    assert failed.exit_code == 1
    assert f"{folder}/R/3.csv" in failed.output
    assert '"7.5"' in failed.output
    assert "--bad-rows" in failed.output
    assert "PERMISSIVE" not in failed.output

    bad = folder / "bad"
    for _ in range(2):  # the second time there is nothing new
        result = run(folder, "--available-now", "--bad-rows", str(bad))
        assert result.exit_code == 0, result.output
        assert f"bad rows so far: 1  ({bad})" in result.output
    rows = [json.loads(line) for file in bad.glob("*.json") for line in file.read_text().splitlines()]
    assert [(row["stream"], row["row"], row["columns"]) for row in rows] == [
        ("R", "b,7.5,2024-01-01 10:00:32", "k string, v int, ts timestamp")
    ]
    assert rows[0]["file"].endswith("R/3.csv")
    joined = spark.read.parquet(str(folder / "out"))
    assert joined.where("v = 8").count() == 1, "the row beside the bad one has met b of S"

    sj.finish(checkpoint, spark)
    with pytest.raises(sj.CallError, match="was finished, and going on would repeat rows"):
        sj.checkpoint(checkpoint)
    assert "was finished, and going on would repeat rows" in refused(folder, "--available-now")
    assert "was finished, and going on would repeat rows" in explain(folder, "--available-now")


def test_columns_times_and_lateness_of_streams_by_name(spark: SparkSession, folder: Path) -> None:
    (folder / "query.cql").write_text(
        "SELECT R.k, S.v FROM R [RANGE 4 SECONDS], S [RANGE 4 SECONDS] WHERE R.k = S.k AND R.v > 0.5D"
    )
    for file in (folder / "S").iterdir():
        file.unlink()
    (folder / "S" / "0.json").write_text(
        '{"k": "a", "v": 1, "at": "2024-01-01T10:00:01Z", "n": 1}\n'
        '{"k": "a", "v": 2, "at": "2024-01-01T10:00:01Z", "n": "none"}\n'
    )
    asked = [
        "--available-now", "--time", "S=at", "--lateness", "5 s", "--lateness", "R=6 s", "--schema",
        "R=k string, v double, ts timestamp", "--schema", "S=k string, v int, at timestamp, n int",
    ]  # fmt: skip
    result = run(folder, *asked, "--bad-rows", str(folder / "bad"), "--finish", job="query.cql")
    assert result.exit_code == 0, result.output
    # n is read by nobody; what does not fit is aside all the same, and nowhere else.
    assert [tuple(row)[:2] for row in spark.read.parquet(str(folder / "out")).collect()] == [("a", 1)] * 2
    assert spark.read.json(str(folder / "bad")).select("stream").collect() == [("S",)]


def test_a_query_is_told_in_options(spark: SparkSession, folder: Path) -> None:
    (folder / "query.cql").write_text("SELECT k FROM R [ROWS 3]")
    line = refused(folder, "--available-now", streams="R", job="query.cql")
    assert line.endswith('Hint: give --lateness "10 seconds".')
    untimed = run(folder, "--available-now", "--time", "when", streams="R", job="query.cql")
    assert untimed.exit_code == 1
    assert "--time" in untimed.output
    assert "time=" not in untimed.output
    # Of memory, and of urgent rows that nothing is said of.
    usual = ("--available-now", "--lateness", "1 s", "--memory", "1 KB")
    line = refused(folder, *usual, streams="R", job="query.cql")
    assert line.startswith("--memory bounds what a join keeps, and this query has none.")
    (folder / "query.cql").write_text("SELECT R.k FROM R [RANGE 4 SECONDS], S [RANGE 4 SECONDS] WHERE R.k = S.k")
    line = refused(folder, *usual, job="query.cql")
    assert line.startswith('--memory "1 KB" is too little for a join that keeps 2 inputs')
    assert "Hint: give at least --memory" in line
    lanes = [word for lane in ("urgent", "normal") for word in ("--lane", f"R:{lane}={folder / 'R'}")]
    line = refused(folder, *usual[:3], *lanes, streams="S", job="query.cql")
    assert line.endswith("Hint: give PRIORITY BY priority, its column, behind stream R.")


def test_options_that_mean_nothing_are_refused(spark: SparkSession, folder: Path) -> None:
    assert refused(folder, "--schema", "T=v int").startswith("--schema names an input 'T', which was not given.")
    assert refused(folder, "--schema", "v int").startswith("--schema is written NAME=..., got 'v int'.")
    assert refused(folder, "--bad-rows", str(folder / "job.py")).startswith("--bad-rows must be a folder")
    assert refused(folder, "--master", "local[7]").startswith("--master is local[7], and there is a session already")
    assert refused(folder, "--buckets", "3").startswith("--buckets 3 is for a job that does not say it, and job has bu")
    (folder / "P").mkdir()
    spark.range(1).write.parquet(str(folder / "P" / "0.parquet"))
    (folder / "job.py").write_text("def job(P):\n    return P\n")
    line = refused(folder, "--bad-rows", str(folder / "bad"), streams="P")
    assert line.startswith("--bad-rows is for rows of CSV and JSON")


def test_values_for_all_streams_and_by_name() -> None:
    assert for_all_or_by_name(None, "--time") == (None, {})
    with pytest.raises(sj.CallError, match="twice for all streams: a and b"):
        for_all_or_by_name(["a", "b"], "--time")
    with pytest.raises(sj.CallError, match="twice for 'R'"):
        by_name(["R=a", "R=b"], "--time", "R=ts")
