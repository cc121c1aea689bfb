"""The package as a user gets it: built, installed into an empty environment, and walked through by the tutorial.

`./sj test-wheel` runs this. It takes minutes, because Spark is installed anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import streamjoin as sj
from tests.conftest import ROOT
from tests.docs.walk import walk

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def env(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of somebody who works in an environment with nothing but the package and what it asks for."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, check=True)
    ours = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "VIRTUAL_ENV"}
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    return {name: value for name, value in os.environ.items() if name not in ours} | {"PATH": path}


def test_it_has_all_of_the_package_and_nothing_else(wheel: Path) -> None:
    package = Path(str(sj.__file__)).parent
    files = (path.relative_to(package) for path in package.rglob("*") if path.is_file())
    written = {f"streamjoin/{path}" for path in files if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    inside = {name for name in names if name.startswith("streamjoin/")}
    assert "streamjoin/py.typed" in inside
    assert written <= inside
    assert not [name for name in inside if "__pycache__" in name]
    assert {name.split("/")[0] for name in names} == {"streamjoin", f"streamjoin-{sj.__version__}.dist-info"}


def test_the_tutorial_works_in_an_empty_environment(env: dict[str, str], tmp_path: Path) -> None:
    where = subprocess.run(
        ["python", "-c", "import streamjoin; print(streamjoin.__file__)"],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "site-packages" in where.stdout, "the package that was installed, not the checkout"
    assert walk(ROOT / "docs" / "tutorial.md", tmp_path, env) > 5


def test_commands_work_or_say_what_they_need(env: dict[str, str], tmp_path: Path) -> None:
    def called(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["streamjoin", *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    assert called("version").stdout == f"streamjoin {sj.__version__}\n"
    for words in (["bench", "kernels", "--quick"], ["chaos"], ["reproduce", "--quick"]):
        refused = called(*words)
        assert refused.returncode == 2
        assert f"Hint: run ./sj {words[0]} in a checkout of streamjoin." in refused.stderr
        assert "Traceback" not in refused.stderr
    shown = called("demo", "--rows", "500", "--seconds", "2", "--report", "match.html")
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "match.html").read_text().startswith("<!doctype html>")
