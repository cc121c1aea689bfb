"""`streamjoin run`: jobs over folders of files, what they write, and how they end."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import threading
import time
from collections import Counter
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.csv
import pytest
from typer.testing import CliRunner

import streamjoin as sj
from streamjoin.api import StoredInput, stored_state
from streamjoin.cli import app
from streamjoin.cli.ending import Ending
from streamjoin.cli.screen import HEADINGS
from streamjoin.cli.tables import read_stream, read_table
from tests.cli.commands import JOIN, R_FILES, add_file, refused, run, two_streams, write_job
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return two_streams(tmp_path)


def batch_join(spark: SparkSession, folder: Path, how: str = "inner") -> DataFrame:
    frames = [read_table(spark, folder / name) for name in "RS"]
    return sj.join(frames, by="k", time="ts", window=sj.Range("4 seconds"), how=how, buckets=2)


# -- what it does ------------------------------------------------------------------------------------------------------


def test_differential_once_over_everything_gives_what_the_batch_gives(spark: SparkSession, folder: Path) -> None:
    (folder / "neighbour_with_a_udf.py").write_text("def negative(v):\n    return -v\n")
    (folder / "job.py").write_text(
        "import streamjoin as sj\n"
        "from pyspark.sql.functions import udf\n"
        "from neighbour_with_a_udf import negative\n"
        "FACTOR = 2\n"
        "def _twice(v):\n"
        "    return FACTOR * v\n"
        "def job(R, S):\n"
        "    twice, less = udf(_twice, 'int')('v'), udf(negative, 'int')('v')\n"
        "    return _join(R, S).withColumn('twice', twice).withColumn('less', less)\n"
        "def _join(R, S):" + JOIN.format(how="inner", late="drop")
    )
    result = run(folder, "--available-now", "--files-per-batch", "1")
    assert result.exit_code == 0, result.output
    expected = batch_join(spark, folder).selectExpr("*", "2 * v twice", "-v less")
    written = spark.read.parquet(str(folder / "out"))
    assert Counter(written.collect()) == Counter(expected.collect())
    assert written.count() == 5

    lines = result.output.splitlines()
    assert lines[0].split() == " ".join(HEADINGS).split()
    assert [line.split()[0] for line in lines[1:3]] == ["0", "1"]
    assert "2 micro-batches, " in result.output
    assert ": 9 rows in, 5 rows out, 0 late" in result.output
    assert "kept: " in result.output
    assert f"output: {folder}/out  (parquet)" in result.output

    again = run(folder, "--available-now")
    assert again.output == "No micro-batch: there was nothing new to read.\n"

    add_file(folder / "R", R_FILES[2])
    late = run(folder, "--available-now")
    assert late.exit_code == 0, late.output
    assert ": 2 rows in, 0 rows out, 1 late" in late.output


def test_differential_finishing_writes_what_is_still_held(spark: SparkSession, folder: Path) -> None:
    write_job(folder, how="full")
    add_file(folder / "R", [("z", 8, 32)])  # meets nobody, and nobody can know that yet
    assert run(folder, "--available-now", "--format", "csv").exit_code == 0
    out = folder / "out"
    committed = next(file for file in out.glob("*.csv") if len(file.read_text().splitlines()) > 1)
    shutil.copy(committed, out / "part-of-a-task-that-failed.csv")

    result = run(folder, "--available-now", "--finish", "--format", "csv")
    assert result.exit_code == 0, result.output
    expected = batch_join(spark, folder, "full")
    written = spark.read.option("header", True).schema(expected.schema).csv(str(out))
    assert Counter(written.collect()) == Counter(expected.collect())
    # The folder is a plain one now: whoever does not know Spark's log reads the same rows.
    files = [file for file in out.glob("[!_]*.csv") if file.stat().st_size]
    assert sum(pyarrow.csv.read_csv(file).num_rows for file in files) == expected.count()
    lines = result.output.splitlines()
    held = int(lines[1].split()[1])
    assert held > 0
    assert lines == [
        f"0 micro-batches, 0.0 s: 0 rows in, {held} rows out, 0 late",
        f"finished: {held} of them had still been held; the query is over",
        f"output: {out}  (csv)",
    ]

    add_file(folder / "R", R_FILES[2])
    over = run(folder, "--available-now")
    assert over.exit_code == 1
    assert over.output.startswith(f"error: the query of {folder}/checkpoint was finished, and going on would repeat")
    assert refused(folder, "--available-now", "--finish", "--format", "csv").startswith(
        f"the query of {folder}/checkpoint was finished, and has written all of its rows."
    )


def test_differential_a_command_that_was_killed_while_it_finished_goes_on(spark: SparkSession, folder: Path) -> None:
    write_job(folder, how="full")
    add_file(folder / "R", [("z", 8, 32)])
    assert run(folder, "--available-now").exit_code == 0
    held = sj.finish(folder / "checkpoint")  # the query is over from here on
    held.write.mode("append").parquet(str(folder / "out"))  # and these files are not in the sink's log
    result = run(folder, "--available-now", "--finish")
    assert result.exit_code == 0, result.output
    expected = batch_join(spark, folder, "full")
    assert Counter(spark.read.parquet(str(folder / "out")).collect()) == Counter(expected.collect())
    assert held.count() > 0


@pytest.mark.parametrize(
    "text",
    [
        "v,k,ts\n9,a,2024-01-01 10:00:40\n",  # Spark would go by position, and take 9 for the key
        "k,v,ts\na,nine,2024-01-01 10:00:40\n",  # and make this a NULL
    ],
)
def test_a_file_that_does_not_fit_those_before_it_stops_the_query(spark: SparkSession, folder: Path, text: str) -> None:
    stream = read_stream(spark, folder / "R")
    (folder / "R" / "2.csv").write_text(text)
    query = stream.writeStream.format("noop").trigger(availableNow=True).start()
    with pytest.raises(Exception, match=r"CSV header|MALFORMED|FAILED_READ_FILE"):
        query.awaitTermination()


def test_differential_a_query_in_a_file_gives_what_the_batch_gives(spark: SparkSession, folder: Path) -> None:
    text = (
        "SELECT R.k, COUNT(*) AS n, MAX(S.v) AS most FROM R [ROWS 3], S [RANGE 4 SECONDS] WHERE R.k = S.k GROUP BY R.k"
    )
    (folder / "query.cql").write_text(text)
    asked = ["--available-now", "--files-per-batch", "1", "--lateness", "30 seconds"]
    assert run(folder, *asked, job="query.cql").exit_code == 0
    state = CliRunner().invoke(app, ["state", str(folder / "checkpoint")])
    assert state.exit_code == 0, state.output
    result = run(folder, *asked, "--finish", job="query.cql")
    assert result.exit_code == 0, result.output
    assert f"output: {folder}/out  (parquet)" in result.output
    frames = {name: read_table(spark, folder / name) for name in "RS"}
    expected = sj.cql(spark, text, buckets=2, **frames)
    assert Counter(spark.read.parquet(str(folder / "out")).collect()) == Counter(expected.collect())
    assert expected.count() > 2


def test_a_query_must_know_how_late_rows_may_be(spark: SparkSession, folder: Path) -> None:
    (folder / "query.cql").write_text("SELECT k FROM R [ROWS 3]")
    line = refused(folder, "--available-now", streams="R", job="query.cql")
    assert line.startswith("nothing says how late rows of stream R may be, and guessing would lose rows.")


def test_a_table_beside_a_stream(spark: SparkSession, folder: Path) -> None:
    (folder / "names.json").write_text('{"k": "a", "name": "Ada"}\n{"k": "c", "name": "Cleo"}\n')
    (folder / "job.py").write_text("import streamjoin as sj\ndef job(R, T):\n    return sj.join([R, T], by='k')\n")
    result = run(folder, "--available-now", "--table", f"T={folder}/names.json", streams="R")
    assert result.exit_code == 0, result.output
    written = spark.read.parquet(str(folder / "out"))
    assert Counter(row.name for row in written.collect()) == {"Ada": 2, "Cleo": 1}


def test_an_interrupt_ends_a_query_that_runs_for_ever(spark: SparkSession, folder: Path) -> None:
    kept: list[StoredInput] = []

    def look_and_interrupt() -> None:
        deadline = time.monotonic() + 90
        try:
            while time.monotonic() < deadline and not (folder / "checkpoint" / "commits" / "0").exists():
                time.sleep(0.1)
            kept.extend(stored_state(spark, str(folder / "checkpoint")))
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=look_and_interrupt)
    thread.start()
    result = run(folder, "--trigger", "1 second", "--format", "json")
    thread.join()
    assert result.exit_code == 0, result.output
    assert ": 9 rows in, 5 rows out, 0 late" in result.output
    assert spark.read.json(str(folder / "out")).count() == 5
    assert f"kept: {sum(part.rows for part in kept)} rows, " in result.output, "the state of a query while it runs"


def test_an_error_in_a_worker_is_one_line(spark: SparkSession, folder: Path) -> None:
    write_job(folder, late="fail")
    add_file(folder / "R", R_FILES[2])
    result = run(folder, "--available-now", "--files-per-batch", "1")
    assert result.exit_code == 1
    error = next(line for line in result.output.splitlines() if line.startswith("error: "))
    assert error.startswith("error: input 0 brought 1 row(s) behind its progress")
    assert "allow more lateness" in error
    assert "--verbose" in error
    assert "Streaming Query" not in result.output
    everything = run(folder, "--available-now", "--verbose")
    assert everything.exit_code == 1
    assert "Streaming Query" in everything.output
    assert everything.output.splitlines()[-1].startswith("error: input 0 brought")


def test_an_error_of_the_job_s_own_function_is_one_line(spark: SparkSession, folder: Path) -> None:
    (folder / "job.py").write_text(
        "import streamjoin as sj\nfrom pyspark.sql.functions import udf\n"
        "def _inverse(v):\n    return 1 / (v - v)\n"
        "def job(R):\n    return R.withColumn('w', udf(_inverse, 'double')('v'))\n"
    )
    result = run(folder, "--available-now", streams="R")
    assert result.exit_code == 1
    assert result.output == "error: ZeroDivisionError: division by zero. Hint: --verbose shows all of it.\n"


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_query_with_timers_never_ends(spark: SparkSession, folder: Path) -> None:
    job = folder / "job.py"
    job.write_text(job.read_text().replace("buckets=2", "idle_after='1 minute', timers=True, buckets=2"))
    assert refused(folder, "--available-now").startswith("the join of job has timers=True, and a query with timers")


def test_finishing_knows_only_the_join_s_rows(spark: SparkSession, folder: Path) -> None:
    write_job(folder)
    job = folder / "job.py"
    job.write_text(job.read_text().rstrip() + ".filter('v > 1')\n")
    assert refused(folder, "--available-now", "--finish").startswith("--finish writes rows as the call holds them")


def test_a_job_must_return_a_stream(spark: SparkSession, folder: Path) -> None:
    (folder / "job.py").write_text("def job(R, spark):\n    return spark.range(3)\n")
    assert refused(folder, streams="R").startswith("job returned a frame that is no stream")


def test_what_spark_refuses_is_said_in_its_words(spark: SparkSession, folder: Path) -> None:
    (folder / "job.py").write_text("def job(R):\n    return R.selectExpr('nothing')\n")
    line = refused(folder, streams="R")
    assert line.startswith("[UNRESOLVED_COLUMN")
    assert "`nothing`" in line


def test_options_that_exclude_each_other(folder: Path) -> None:
    assert refused(folder, "--finish").startswith("--finish is for a query that comes to an end")
    assert refused(folder, "--trigger", "5 s", "--available-now").startswith("--trigger says how often")
    assert refused(folder, "--trigger", "5 parsecs").startswith("--trigger '5 parsecs' is not a duration")
    assert refused(folder, "--trigger", "-5 s").startswith("--trigger must not be negative")


def test_names_are_unique_over_streams_and_tables(folder: Path) -> None:
    assert refused(folder, "--table", f"R={folder}/R").startswith("the input 'R' was given twice.")


def test_a_stream_must_have_a_file_that_shows_its_columns(folder: Path) -> None:
    for file in (folder / "R").iterdir():
        file.unlink()
    assert refused(folder).startswith(f"the folder {folder}/R has no files.")


def test_a_new_query_does_not_begin_where_other_results_are(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "part.parquet").touch()
    assert refused(folder).startswith(f"{folder}/out has files in it, and {folder}/checkpoint is the checkpoint of no")
    assert refused(folder, out="new", checkpoint="R").startswith(f"{folder}/R has files in it, and is not the checkpoi")
    assert refused(folder, out="job.py").startswith(f"--out must be a folder, and {folder}/job.py is a file.")


def test_options_are_needed(folder: Path) -> None:
    assert CliRunner().invoke(app, ["run", str(folder / "job.py")]).exit_code == 2
    assert run(folder, "--format", "xml").exit_code == 2
    assert run(folder, "--files-per-batch", "0").exit_code == 2


def test_triggers_as_spark_wants_them() -> None:
    assert Ending(True, False, None).trigger_of_spark == {"availableNow": True}
    assert Ending(False, False, None).trigger_of_spark == {}
    assert Ending(False, False, "1.5 seconds").trigger_of_spark == {"processingTime": "1500000 microseconds"}


# -- the guide ---------------------------------------------------------------------------------------------------------


def commands_of(guide: str) -> list[str]:
    text = (ROOT / "docs" / "guides" / guide).read_text().replace("\\\n", "")
    return re.findall(r"^\./sj ((?:run|state|explain|rescale) .*)$", text, re.MULTILINE)


def shown_by(commands: list[str], folder: Path) -> list[str]:
    shown = []
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command.replace("build/", f"{folder}/")))
        assert result.exit_code == 0, result.output
        shown.append(result.output)
    return shown


def test_the_commands_of_the_guide(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = commands_of("running.md")
    assert len(commands) == 6
    monkeypatch.chdir(ROOT)
    shown = shown_by(commands, tmp_path)
    assert sum("total" in output for output in shown) == 1, "one of them is what is kept"
    assert ": 8 rows in, 3 rows out, 0 late" in shown[0], "as the guide says"
    assert "11 rows" in shown[0], "as the guide says"
    assert sum("the query is over" in output for output in shown) == 1, "one of them is finished"


def test_the_commands_of_the_guide_to_moving(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    begun, spread, went_on = shown_by(commands_of("moving.md"), tmp_path)
    assert ": 8 rows in, 3 rows out, 0 late" in begun
    assert spread == f"{tmp_path}/moved.checkpoint: 8 buckets over 4 partitions\n"
    assert went_on == "No micro-batch: there was nothing new to read.\n"


# -- reports -----------------------------------------------------------------------------------------------------------


def test_a_report_is_written_at_the_end_and_after_an_error(spark: SparkSession, folder: Path) -> None:
    write_job(folder, late="fail")
    result = run(folder, "--available-now", "--files-per-batch", "1", "--report", str(folder / "report.html"), "--live")
    assert result.exit_code == 0, result.output
    assert re.search(r"^live: http://127\.0\.0\.1:\d+/$", result.output, re.MULTILINE)
    assert f"report: {folder}/report.html" in result.output
    text = (folder / "report.html").read_text()
    assert "<b>9</b><span>rows in</span>" in text
    assert f"S={folder}/S" in text

    add_file(folder / "R", R_FILES[2])
    failed = run(folder, "--available-now", "--report", str(folder / "failed.html"))
    assert failed.exit_code == 1
    assert f"report: {folder}/failed.html" in failed.output
    said = failed.output.splitlines()[-1].removeprefix("error: ").partition(" Hint")[0]
    text = (folder / "failed.html").read_text()
    assert ": failed</title>" in text
    assert escape(said) in text
    assert "at org.apache.spark" not in text


def test_reports_that_cannot_be_are_refused(folder: Path) -> None:
    assert refused(folder, "--report", str(folder)).startswith(f"--report must be a file, and {folder} is a folder")
    assert refused(folder, "--live-port", "4000").startswith("--live-port is for a live page")
