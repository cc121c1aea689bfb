"""The same calls through Spark Connect: a server from the pip package, a client that knows nothing of the JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import streamjoin as sj
from tests.conftest import ROOT
from tests.spark.connect_job import told, write_inputs
from tests.spark.every_name import streamed
from tests.spark.options import FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def through_connect(what: str, folder: Path) -> dict[str, Any]:
    """What `connect_job` prints, in a process of its own: a program has one kind of session."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_job", what, str(folder), str(folder / "connect")],
        env=os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_calls_tell_the_same_through_a_connect_server_as_on_a_classic_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_inputs(spark, tmp_path)
    classic = told(spark, tmp_path, tmp_path / "classic")
    connect = through_connect("calls", tmp_path)

    # Every name of the package has been in a call. A new one that has no case yet in `every_name` is missing here.
    assert connect["every name"]["names"] == sorted(sj.__all__)
    ran_there = connect["suite"]
    assert ran_there["again"]["last"]["joins"][0]["state_rows"] > 0
    assert sum(each["rows_in"] for run in ("first", "again") for each in ran_there[run]["every"]) == 80
    assert sum(ran_there["again"]["reported"]["rows"]) == 80, "a query that goes on is the same query"
    assert ran_there["rest"], "with this much slack something is still held"
    assert sorted(ran_there["left"] + ran_there["rest"], key=str) == ran_there["batch"]
    # Told what its frames are, a call asks Spark nothing; and a stream that is called none is noticed all the same.
    assert connect["unasked"] == connect["asof"]
    assert classic.pop("a stream called none").startswith("CallError")
    assert "is not supported on streaming" in connect.pop("a stream called none")
    # Conditions that are Columns mean on both what Spark computes of them.
    assert connect["differing conditions"] == []
    # By the number of its plan a Column is of one frame only; a classic session looks at the columns themselves.
    assert classic.pop("condition of another frame") == "taken"
    assert "none of the inputs of the join has it" in connect.pop("condition of another frame")
    for side in (classic, connect):
        assert "a function of Python has none" in side.pop("condition of a function")
    # What only a JVM beside the program can do is refused at the call.
    assert classic.pop("collated") == "taken"
    assert connect.pop("collated").startswith("UnsupportedError")
    assert classic.pop("finish elsewhere") is None
    assert connect.pop("finish elsewhere").startswith("UnsupportedError")
    # With SPARK_REMOTE `sj.session()` has all that a query needs, from a server that it starts and from one that runs.
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    assert connect.pop("settings") == [[provider, "2", "UTC"]] * 2
    everywhere = json.loads(json.dumps(classic))
    for what in everywhere["every name"]:
        assert connect["every name"][what] == everywhere["every name"][what], what
    assert connect == everywhere


@pytest.mark.long
def test_streams_give_the_same_through_every_function(spark: SparkSession, tmp_path: Path) -> None:
    classic = streamed(spark, tmp_path / "classic")
    assert through_connect("streams", tmp_path) == classic
    found = {of for rows in classic.values() for of, _ in rows}
    assert found == FUNCTIONS.keys() - {"intersect"}, "no row of one stream is in the other"
