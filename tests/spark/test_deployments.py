"""The same results wherever it runs: here, and on a cluster to which the package was sent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement

import streamjoin as sj
from streamjoin.spark.calls.options import ROOM_TO_GROW
from tests.conftest import ROOT
from tests.deployments import Results, suite
from tests.docs.test_documents import blocks_of
from tests.spark.standalone import JAVA, cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = Path(str(sj.__file__)).parent
SITE = sysconfig.get_path("purelib")
BASE = {"PYSPARK_PYTHON": os.path.realpath(sys.executable)}


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


def settings_of_the_guide(folder: Path, archive: str, package: Path = PACKAGE) -> dict[str, str]:
    """What the guide to deploying gives to `sj.session` with a file, after its commands have packed it in a folder."""
    blocks = list(blocks_of((ROOT / "docs" / "guides" / "deploying.md").read_text()))
    commands = next(block.text for block in blocks if not block.info and archive in block.text)
    python = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": python, "PYTHONPATH": str(package.parent)}
    packing = [line for line in commands.splitlines() if "pip install" not in line and "-m venv" not in line]
    subprocess.run(["bash", "-euc", "\n".join(packing)], cwd=folder, env=env, timeout=300, check=True)
    code = next(block.text for block in blocks if block.info == "python no-run" and archive in block.text)
    told: dict[str, str] = {}
    given = SimpleNamespace(environ={})
    exec(code, {"sj": SimpleNamespace(session=told.update), "os": given})
    assert (folder / archive).exists()
    told = {name: value.replace(archive, str(folder / archive)) for name, value in told.items()}
    return told | {f"environment {name}": value for name, value in given.environ.items()}


def on_a_cluster(
    folder: Path, settings: dict[str, str], workers: Sequence[int], *more: str, env: Mapping[str, str]
) -> tuple[dict[str, Any], str]:
    """What the suite gives in a driver of its own on a cluster of such workers, and what it wrote to its error stream.

    Their Python has no streamjoin of its own: it finds packages by path, which follows no links to ours.
    """
    here = {
        "spark__executor__memory": "512m",
        "spark__executor__extraJavaOptions": JAVA,
        "spark__driver__extraJavaOptions": JAVA,
        "spark__driver__host": "127.0.0.1",
    }
    paths = os.pathsep.join([str(PACKAGE.parent), str(ROOT), SITE])
    with cluster(folder, workers) as master:
        command = [sys.executable, "-m", "tests.deployments", json.dumps({**settings, **here, "master": master})]
        ran = subprocess.run(
            [*command, str(folder / "data"), *more],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": paths, **env},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr[-5000:]
    return json.loads(ran.stdout.splitlines()[-1]), ran.stderr


def test_a_cluster_with_the_package_in_an_archive(spark: SparkSession, here: Results, tmp_path: Path) -> None:
    settings = settings_of_the_guide(tmp_path, "streamjoin.tar.gz")
    assert "site-packages" not in settings["spark__executorEnv__PYTHONPATH"]
    settings["spark__executorEnv__PYTHONPATH"] += os.pathsep + SITE
    # More cores than the driver's machine has, where the tests are usually run: whoever counts those is wrong.
    cores = (1, spark.sparkContext.defaultParallelism)
    told, errors = on_a_cluster(tmp_path, settings, cores, "own", env=BASE)
    # As many partitions, and buckets of tables, as both workers have cores: of our session, and of one of the user's
    # own whose first call is made before any executor has come.
    assert told["partitions"] == told["own buckets"] == sum(cores)
    assert told["buckets"] == ROOM_TO_GROW * sum(cores), "a stream by keys has room to grow"
    assert f'("spark.sql.shuffle.partitions", {sum(cores)})' in told["own hint"]
    assert len(told["found"]) == 2
    assert all("/shipped/streamjoin/" in path and str(tmp_path) in path for path in told["found"])
    assert told["results"] == here
    assert "TransformWithStateInPandas" not in errors


@pytest.mark.long
def test_a_cluster_with_the_package_in_a_python_file(here: Results, tmp_path: Path) -> None:
    settings = settings_of_the_guide(tmp_path, "streamjoin.zip")
    told, _ = on_a_cluster(tmp_path, {**settings, "spark__executorEnv__PYTHONPATH": SITE}, (1, 1), env=BASE)
    assert told["found"] == ["./streamjoin.zip/streamjoin/__init__.py"], "each in the folder that it runs in"
    assert told["results"] == here


@pytest.mark.long
def test_a_cluster_with_an_environment_in_an_archive(here: Results, tmp_path: Path) -> None:
    package = fill_environment(tmp_path / "environment")
    settings = settings_of_the_guide(tmp_path, "environment.tar.gz", package)
    env = {name.removeprefix("environment "): settings.pop(name) for name in list(settings) if " " in name}
    assert env == {"PYSPARK_PYTHON": "./environment/bin/python"}
    told, _ = on_a_cluster(tmp_path, settings, (1, 1), env=env)
    assert len(told["found"]) == 2
    assert all("/environment/lib/" in path and str(tmp_path / "work") in path for path in told["found"])
    assert told["results"] == here


def fill_environment(folder: Path) -> Path:
    """An environment with what `pip install streamjoin` brings, as far as workers need it: taken from ours. Where the
    package lies in it.
    """
    subprocess.run([os.path.realpath(sys.executable), "-m", "venv", "--without-pip", folder], check=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    shutil.copytree(PACKAGE, packages / "streamjoin")
    left, copied = ["pyarrow", "pandas", "numba", "protobuf", "sqlglot"], set[str]()
    while left:
        name = left.pop()
        if name in copied:
            continue
        copied.add(name)
        files = [file for file in distribution(name).files or () if ".." not in file.parts]
        for top in {file.parts[0] for file in files}:
            copy = shutil.copytree if (Path(SITE) / top).is_dir() else shutil.copy
            copy(Path(SITE) / top, packages / top)
        needed = (Requirement(each) for each in distribution(name).requires or ())
        left += [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return packages / "streamjoin"
