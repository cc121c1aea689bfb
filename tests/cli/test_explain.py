"""`streamjoin explain`: job files, inputs from files, and everything that can be wrong with them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from streamjoin import CallError
from streamjoin.cli import app
from streamjoin.cli.explain import explain as explain_command
from streamjoin.cli.job import check_names, load_job
from streamjoin.cli.run import run as run_command
from streamjoin.cli.tables import format_of, named_paths, read_table
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = ROOT / "docs" / "examples"
BAND = "import streamjoin as sj\ndef job(R, S):\n    return sj.join_band(R, S, on='v', below=1, above=1, buckets=2)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two inputs and a job."""
    (tmp_path / "r.csv").write_text("v,name\n1,a\n2,b\n")
    (tmp_path / "s.json").write_text('{"v": 1}\n{"v": 9}\n')
    (tmp_path / "job.py").write_text(BAND)
    return tmp_path


def explain(folder: Path, *tables: str, job: str = "job.py") -> Result:
    options = [word for table in tables for word in ("--table", table.replace("=", f"={folder}/"))]
    return CliRunner().invoke(app, ["explain", str(folder / job), *options])


def refused(folder: Path, *tables: str) -> str:
    """The one line that a wrong call gets."""
    result = explain(folder, *tables)
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    line, nothing = result.output.split("\n", 1)
    assert not nothing
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


# -- what it shows -----------------------------------------------------------------------------------------------------


def test_the_plan_is_shown(spark: SparkSession, folder: Path) -> None:
    result = explain(folder, "R=r.csv", "S=s.json")
    assert result.exit_code == 0, result.output
    assert "operator       temporal join, how=inner" in result.output
    assert "grid of cell 16 over 2 buckets" in result.output


def test_the_example_of_the_guide(spark: SparkSession) -> None:
    tables = [f"{name}={EXAMPLES / name}.csv" for name in ("ball", "players")]
    result = CliRunner().invoke(app, ["explain", str(EXAMPLES / "near.py"), "--table", tables[0], "--table", tables[1]])
    assert result.exit_code == 0, result.output
    assert "euclidean distance over (x, y) at most 2" in result.output


def test_a_job_may_want_the_session_and_any_frames(spark: SparkSession, folder: Path) -> None:
    (folder / "job.py").write_text(
        "import streamjoin as sj\n"
        "def anything(spark, **frames):\n"
        "    assert spark.version\n"
        "    return sj.join([frames['A'], frames['B']], by='v')\n"
    )
    assert explain(folder, "A=r.csv", "B=s.json").exit_code == 0


def test_a_query_is_shown_as_written_and_as_it_runs(spark: SparkSession, folder: Path) -> None:
    (folder / "query.cql").write_text(
        "SELECT R.name FROM R [RANGE 5], S [ROWS 2]\nWHERE R.v = S.v AND R.v > 1 -- few\n"
    )
    result = CliRunner().invoke(app, ["explain", str(folder / "query.cql"), *_tables(folder), "--time", "v"])
    assert result.exit_code == 0, result.output
    assert "Join  inner  R.v = S.v" in result.output
    assert "Selection  `R.v` > 1\n" in result.output
    assert "Stream  S [ROWS 2]  time v, reads v as S.v" in result.output


def test_a_wrong_query_is_refused_with_the_place(spark: SparkSession, folder: Path) -> None:
    (folder / "query.cql").write_text("SELECT R.nam\nFROM R [RANGE 5]\n")
    result = CliRunner().invoke(app, ["explain", str(folder / "query.cql"), *_tables(folder)[:2], "--time", "v"])
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "line 1" in result.output
    assert "did you mean" in result.output


def _tables(folder: Path) -> list[str]:
    return ["--table", f"R={folder}/r.csv", "--table", f"S={folder}/s.json"]


def test_a_frame_that_is_no_join_is_refused(spark: SparkSession, folder: Path) -> None:
    (folder / "job.py").write_text("def job(R):\n    return R\n")
    assert "does not come from a streamjoin call" in refused(folder, "R=r.csv")


def test_a_result_that_is_no_frame_is_refused(spark: SparkSession, folder: Path) -> None:
    (folder / "job.py").write_text("def job(R):\n    return R.collect()\n")
    assert refused(folder, "R=r.csv").startswith("job must return a DataFrame, got list.")


def test_a_wrong_join_is_refused_in_its_own_words(spark: SparkSession, folder: Path) -> None:
    (folder / "job.py").write_text(BAND.replace("'v'", "'w'"))
    assert refused(folder, "R=r.csv", "S=s.json") == "input 0 has no column 'w'. Hint: it has 'v', 'name'."


# -- job files ---------------------------------------------------------------------------------------------------------


def test_no_such_job(folder: Path) -> None:
    (folder / "job.py").unlink()
    assert refused(folder, "R=r.csv").startswith(f"there is no job file {folder}/job.py.")


def test_no_such_query(folder: Path) -> None:
    result = explain(folder, "R=r.csv", job="none.cql")
    assert result.output == (
        f"error: there is no job file {folder}/none.cql. Hint: a CQL query is a text file whose name ends in .cql.\n"
    )


def test_it_takes_what_run_takes_and_refuses_what_run_refuses(spark: SparkSession, folder: Path) -> None:
    run, explain = (set(inspect.signature(command).parameters) for command in (run_command, explain_command))
    assert run == explain
    words = ["explain", str(folder / "job.py"), *_tables(folder)]
    taken = CliRunner().invoke(app, [*words, "--report", str(folder / "new" / "one" / "report.html"), "--live"])
    assert taken.exit_code == 0, taken.output
    assert not (folder / "new").exists(), "it writes nothing"
    wrong = CliRunner().invoke(app, [*words, "--report", str(folder)])
    assert wrong.output.startswith(f"error: --report must be a file, and {folder} is a folder.")
    assert (
        CliRunner().invoke(app, [*words, "--live-port", "8080"]).output.startswith("error: --live-port is for a live")
    )


def test_a_budget_from_outside_is_for_jobs_that_do_not_say_it(spark: SparkSession, folder: Path) -> None:
    words = ["explain", str(folder / "job.py"), *_tables(folder), "--memory"]
    asked = CliRunner().invoke(app, [*words, "64 MB"])
    assert asked.exit_code == 0, asked.output
    assert "memory         64 MB in each Python process" in asked.output
    assert spark.conf.get("spark.streamjoin.memory", None) is None, "the session is as it was"
    (folder / "job.py").write_text(BAND.replace("buckets=2", "buckets=2, memory='32 MB'"))
    same = CliRunner().invoke(app, [*words, "32768 KB"])
    assert same.exit_code == 0, same.output
    another = CliRunner().invoke(app, [*words, "64 MB"])
    assert (another.exit_code, another.output) == (
        1,
        "error: --memory '64 MB' is for a job that does not say it, and job has another memory=. "
        "Hint: leave one of the two out.\n",
    )


def test_only_a_query_needs_to_be_told_its_time(folder: Path) -> None:
    result = CliRunner().invoke(app, ["explain", str(folder / "job.py"), *_tables(folder), "--time", "v"])
    assert result.exit_code == 1
    assert result.output.startswith(f"error: --time and --lateness are for CQL queries, and {folder}/job.py is none.")


def test_a_job_must_be_a_python_file(folder: Path) -> None:
    with pytest.raises(CallError, match="is not a Python file"):
        load_job(folder / "r.csv")


def test_no_function(folder: Path) -> None:
    (folder / "job.py").write_text("from math import sqrt\nfrom os.path import join\n_hidden = lambda: 1\nx = 1\n")
    assert "has no function. Hint: write one that takes the frames" in refused(folder, "R=r.csv")


def test_several_functions_need_one_called_job(folder: Path) -> None:
    path = folder / "job.py"
    path.write_text("def one(R): ...\ndef two(R): ...\n")
    assert "has 2 functions and none is called 'job': one, two." in refused(folder, "R=r.csv")
    path.write_text("def one(R): ...\ndef job(R): ...\n")
    assert load_job(path).__name__ == "job"


def test_a_single_function_may_have_any_name(folder: Path) -> None:
    (folder / "job.py").write_text("def _helper(): ...\ndef near(R): ...\n")
    assert load_job(folder / "job.py").__name__ == "near"


def test_a_job_may_import_its_neighbours_and_hold_dataclasses(folder: Path) -> None:
    (folder / "neighbour_of_the_job.py").write_text("LIMIT = 5\n")
    (folder / "job.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from neighbour_of_the_job import LIMIT\n"
        "@dataclass\n"
        "class Settings:\n"
        "    limit: int = LIMIT\n"
        "def job(R):\n"
        "    return Settings().limit\n"
    )
    assert load_job(folder / "job.py")(None) == 5


def test_parameters_and_inputs_have_the_same_names(folder: Path) -> None:
    assert refused(folder, "R=r.csv") == (
        "job(R, S) wants the input 'S', which was not given. Hint: add S=PATH; given were R."
    )
    assert refused(folder, "R=r.csv", "S=s.json", "T=r.csv").startswith(
        "the input 'T' was given, and job(R, S) has no parameter of that name."
    )


def test_parameters_with_a_default_need_no_input() -> None:
    def job(R: object, limit: int = 3) -> None: ...  # noqa: N803

    check_names(job, ["R"])


def test_parameters_by_position_are_refused() -> None:
    def job(R: object, /) -> None: ...  # noqa: N803

    with pytest.raises(CallError, match="by name"):
        check_names(job, ["R"])


# -- inputs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["R", "=r.csv", "R=", "a-b=r.csv"])
def test_an_input_is_written_name_equals_path(option: str) -> None:
    with pytest.raises(CallError, match="NAME=PATH"):
        named_paths([option])


def test_names_of_inputs_are_unique_and_not_spark() -> None:
    with pytest.raises(CallError, match="twice"):
        named_paths(["R=a.csv", "R=b.csv"])
    with pytest.raises(CallError, match="session"):
        named_paths(["spark=a.csv"])


def test_no_such_input(folder: Path) -> None:
    assert refused(folder, "R=none.csv", "S=s.json") == f"there is no file or folder {folder}/none.csv."


def test_the_format_follows_from_the_files(tmp_path: Path) -> None:
    for name, kind in {"a.csv.gz": "csv", "b.ndjson": "json", "c.parquet": "parquet", "d.CSV": "csv"}.items():
        (tmp_path / name).touch()
        assert format_of(tmp_path / name) == kind
    with pytest.raises(CallError, match=r"mixes formats: .*a\.csv\.gz and .*b\.ndjson"):
        format_of(tmp_path)


def test_a_folder_may_hold_what_spark_writes_beside_the_data(tmp_path: Path) -> None:
    table = tmp_path / "table"
    (table / "day=1").mkdir(parents=True)
    (table / "_SUCCESS").touch()
    (table / ".part.parquet.crc").touch()
    (table / "day=1" / "part.parquet").touch()
    assert format_of(table) == "parquet"


def test_folders_without_a_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CallError, match="has no files"):
        format_of(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(CallError, match="cannot tell the format"):
        format_of(tmp_path)


def test_files_become_frames(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("ts,v\n2024-01-01 10:00:00,1\n")
    (tmp_path / "s.json").write_text('{"ts": "2024-01-01T10:00:00Z", "v": 1}\n')
    folder = tmp_path / "folder of parquet"
    folder.mkdir()
    for number in (1, 2):
        pq.write_table(pa.table({"v": [number]}), folder / f"{number}.parquet")
    assert dict(read_table(spark, tmp_path / "r.csv").dtypes) == {"ts": "timestamp", "v": "int"}
    assert dict(read_table(spark, tmp_path / "s.json").dtypes) == {"ts": "timestamp", "v": "bigint"}
    assert sorted(row.v for row in read_table(spark, folder).collect()) == [1, 2]
