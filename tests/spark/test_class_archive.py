"""The archive of Spark's classes: written by the first session, used by those after it, and never in anybody's way."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession as Session

import streamjoin as sj
from streamjoin.spark import class_archive
from streamjoin.spark.class_archive import archive_options, java

JAVA = "spark.driver.extraJavaOptions"
COMPLETE = (0xF00BABA8).to_bytes(4, "little")

pytestmark = pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="needs Java")


def written(options: str) -> Path:
    """Where a JVM with these options writes an archive when it ends."""
    return Path(options.partition("-XX:ArchiveClassesAtExit=")[2])


@pytest.fixture
def no_jvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("streamjoin.spark.session.SparkContext._gateway", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_jvm")
def test_what_one_jvm_has_written_the_next_one_uses(tmp_path: Path) -> None:
    first, second = written(archive_options(tmp_path)), written(archive_options(tmp_path))
    assert first != second  # two sessions at a time do not write into one file
    first.write_bytes(b"\0" * 100)  # begun, and not at its end
    assert "-XX:ArchiveClassesAtExit=" in archive_options(tmp_path)
    second.write_bytes(COMPLETE + b"\0" * 96)
    options = archive_options(tmp_path)
    archive = Path(options.partition("-XX:SharedArchiveFile=")[2])
    assert archive.read_bytes() == COMPLETE + b"\0" * 96
    assert first.exists()
    assert not second.exists()


@pytest.mark.usefixtures("no_jvm")
def test_an_archive_older_than_java_is_written_anew(tmp_path: Path) -> None:
    written(archive_options(tmp_path)).write_bytes(COMPLETE)
    archive = Path(archive_options(tmp_path).partition("-XX:SharedArchiveFile=")[2])
    os.utime(archive, (1, 1))
    assert written(archive_options(tmp_path)).suffix == ".new"


@pytest.mark.usefixtures("no_jvm")
def test_what_a_killed_jvm_has_left_is_removed(tmp_path: Path) -> None:
    begun = written(archive_options(tmp_path))
    begun.write_bytes(b"")
    os.utime(begun, (1, 1))
    archive_options(tmp_path)
    assert not begun.exists()


@pytest.mark.usefixtures("no_jvm")
@pytest.mark.parametrize("variable", ["JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_who_has_decided_about_archives_is_left_alone(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "-Xshare:off")
    assert archive_options() == ""


@pytest.mark.usefixtures("no_jvm")
def test_a_java_that_could_not_write_is_not_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would not start, or complain into the program's output at its end."""
    for options in ("-javaagent:telemetry.jar", "-agentlib:jdwp=transport=dt_socket", "--patch-module java.base=here"):
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", options)
        assert archive_options(tmp_path) == ""
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xmx1k")  # with which it does not start
    assert archive_options(tmp_path) == ""
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    settings = tmp_path / "settings"
    settings.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(settings))
    assert "ArchiveClassesAtExit" in archive_options(tmp_path)
    (settings / "log4j2.properties").write_text("")
    assert archive_options(tmp_path) == ""
    assert not list(tmp_path.glob("*.probe"))


@pytest.mark.usefixtures("no_jvm")
def test_a_home_that_cannot_be_named_or_found_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("o'brien", "a b", "a\\b", "a:b"):
        assert archive_options(tmp_path / name) == ""
        assert not (tmp_path / name).exists()

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert archive_options() == ""


@pytest.mark.usefixtures("no_jvm")
def test_without_java_or_a_place_to_write_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    assert archive_options(tmp_path / "file" / "below") == ""
    monkeypatch.setattr(class_archive, "java", lambda: None)
    assert archive_options(tmp_path) == ""


@pytest.mark.usefixtures("no_jvm")
def test_a_local_builder_gets_it_unless_it_says_something_itself() -> None:
    assert "ArchiveClassesAtExit" in sj.configure(Session.Builder().master("local"))._options[JAVA]
    mine = Session.Builder().master("local").config(JAVA, "-Xss4m")
    assert sj.configure(mine)._options[JAVA] == "-Xss4m"
    assert JAVA not in sj.configure(Session.Builder().master("yarn"))._options


@pytest.mark.usefixtures("no_jvm")
def test_java_takes_the_options_and_what_it_writes(tmp_path: Path) -> None:
    command, jars = java(), [str(jar) for jar in Path(class_archive._find_spark_home(), "jars").glob("scala-library*")]
    assert command is not None

    def run(options: str) -> str:
        main = "scala.util.PropertiesTrait"  # has no main method: Java loads it, says so, and ends
        ran = subprocess.run(
            [str(command), *options.split(), "-cp", ":".join(jars), main], capture_output=True, text=True, check=False
        )
        return ran.stdout + ran.stderr

    assert "main" in run(archive_options(tmp_path)).lower()
    (new,) = tmp_path.glob("*.new")
    assert new.read_bytes()[:4] == COMPLETE
    options = archive_options(tmp_path)
    assert "-XX:SharedArchiveFile=" in options
    assert "warning" not in run(options)
    (tmp_path / Path(options.split("=")[-1]).name).write_bytes(COMPLETE + b"not an archive")
    assert "main" in run(options).lower()  # it goes on without
