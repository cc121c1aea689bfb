"""What the guide says of Spark's versions is what `./sj test-spark` asks, and what the package is installed with."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement

from tests.spark.version_parts import CONNECT, HERE, PARTS, PIPELINES
from tests.spark_versions import GUIDE, ROOT, main, said

VERSIONS = said(GUIDE.read_text())


def test_the_table_has_every_part_of_every_version() -> None:
    assert set(VERSIONS) == {"4.3", "4.2", "4.1"}
    for answers in VERSIONS.values():
        assert tuple(answers) == PARTS
        assert set(answers.values()) <= {"yes", "no"}


@pytest.mark.parametrize("extra", [None, "connect", "pipelines"])
def test_the_package_can_be_installed_with_versions_in_which_it_works_and_no_others(extra: str | None) -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    every = needed["dependencies"] if extra is None else needed["optional-dependencies"][extra]
    (bound,) = (found for found in map(Requirement, every) if found.name == "pyspark")
    parts = {None: tuple(HERE)[:2], "connect": (CONNECT,), "pipelines": (PIPELINES,)}[extra]
    for version, answers in VERSIONS.items():
        works = all(answers[part] == "yes" for part in parts)
        assert bound.specifier.contains(f"{version}.1") == works, version


@pytest.mark.parametrize("version", ["", "4", "3.5", "4.2.1"])
def test_other_versions_are_refused(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(version) == 2
    assert "4.3, 4.2, 4.1" in capsys.readouterr().out
