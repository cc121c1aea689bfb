"""The same results wherever it runs: here, and on a cluster to which the package was sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import streamjoin as sj
from streamjoin.spark.calls.options import ROOM_TO_GROW
from tests.conftest import ROOT
from tests.deployments import Results, suite
from tests.docs.test_documents import blocks_of
from tests.spark.standalone import JAVA, cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = Path(str(sj.__file__)).parent


@pytest.fixture(scope="module")
def here(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return suite(spark, tmp_path_factory.mktemp("here"))


def test_a_stream_that_stopped_and_went_on_gives_what_a_batch_gives(here: Results) -> None:
    assert here["rest"], "with this much slack something is still held"
    assert here["first"]["last"]["batch"] == 1
    assert here["again"]["last"]["batch"] == 2
    assert here["again"]["last"]["joins"][0]["state_rows"] > 0
    assert sum(each["rows_in"] for run in ("first", "again") for each in here[run]["every"]) == 80
    assert sorted(here["left"] + here["rest"], key=str) == here["batch"]


def settings_of_the_guide(folder: Path) -> dict[str, str]:
    """What the guide to deploying gives to `sj.session`, after its commands have packed the archive in a folder."""
    blocks = list(blocks_of((ROOT / "docs" / "guides" / "deploying.md").read_text()))
    commands = next(block.text for block in blocks if "streamjoin.tar.gz" in block.text)
    python = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": python, "PYTHONPATH": str(PACKAGE.parent)}
    subprocess.run(["bash", "-euc", commands], cwd=folder, env=env, timeout=300, check=True)
    code = next(block.text for block in blocks if "spark__archives" in block.text)
    told: dict[str, str] = {}
    exec(code, {"sj": SimpleNamespace(session=told.update)})
    path, name = told["spark__archives"].split("#")
    assert (folder / path).exists()
    return told | {"spark__archives": f"{folder / path}#{name}"}


def test_a_cluster_with_the_package_in_an_archive(spark: SparkSession, here: Results, tmp_path: Path) -> None:
    # The executors' Python has no streamjoin: packages beside it are found by path, which follows no links to ours.
    site = sysconfig.get_path("purelib")
    env = os.environ | {
        "PYSPARK_PYTHON": os.path.realpath(sys.executable),
        "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT), site]),
    }
    settings = settings_of_the_guide(tmp_path)
    assert "site-packages" not in settings["spark__executorEnv__PYTHONPATH"]
    settings |= {
        "spark__executorEnv__PYTHONPATH": settings["spark__executorEnv__PYTHONPATH"] + os.pathsep + site,
        "spark__executor__memory": "512m",
        "spark__executor__extraJavaOptions": JAVA,
        "spark__driver__extraJavaOptions": JAVA,
        "spark__driver__host": "127.0.0.1",
    }
    # More cores than the driver's machine has, where the tests are usually run: whoever counts those is wrong.
    cores = (1, spark.sparkContext.defaultParallelism)
    with cluster(tmp_path, cores) as master:
        command = [sys.executable, "-m", "tests.deployments", json.dumps({**settings, "master": master})]
        ran = subprocess.run(
            [*command, str(tmp_path / "data")], env=env, capture_output=True, text=True, timeout=300, check=False
        )
    assert ran.returncode == 0, ran.stderr[-5000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    # As many partitions, and buckets of tables, as both workers have cores: of our session, and of one of the user's
    # own whose first call is made before any executor has come.
    assert told["partitions"] == told["own buckets"] == sum(cores)
    assert told["buckets"] == ROOM_TO_GROW * sum(cores), "a stream by keys has room to grow"
    assert f'("spark.sql.shuffle.partitions", {sum(cores)})' in told["own hint"]
    assert len(told["found"]) == 2
    assert all("/shipped/streamjoin/" in path and str(tmp_path) in path for path in told["found"])
    assert told["results"] == here
    assert "TransformWithStateInPandas" not in ran.stderr
