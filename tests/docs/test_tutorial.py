"""The tutorial works: its commands run in an empty folder, one after the other, and print what it shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import streamjoin as sj
from tests.conftest import ROOT
from tests.docs.walk import shows, steps_of, walk


def test_the_walk(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    assert walk(ROOT / "docs" / "tutorial.md", tmp_path, os.environ | {"PATH": path}) > 5


def test_documents_are_of_this_version() -> None:
    assert f"streamjoin-{sj.__version__}-py3-none-any.whl" in (ROOT / "docs" / "tutorial.md").read_text()
    assert f"\n## {sj.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_a_walk_notices_what_is_wrong(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(
        "```sh\necho one  two\n```\n\n```text\none two\n```\n\n```sh\necho three >file\ncat file\n```\n"
    )
    assert walk(document, tmp_path, os.environ) == 2
    assert (tmp_path / "file").read_text() == "three\n"
    document.write_text("```sh\necho one\n```\n\n```text\ntwo\n```\n")
    with pytest.raises(AssertionError, match=r"document\.md:2 shows\ntwo\n"):
        walk(document, tmp_path, os.environ)
    document.write_text("```sh\nfalse\necho on\n```\n")
    with pytest.raises(AssertionError, match=r"document\.md:2 ended with 1"):
        walk(document, tmp_path, os.environ)


def test_commands_that_are_not_run_say_why() -> None:
    assert list(steps_of("```sh no-run\n# not run: it takes a cluster\nreboot\n```\n")) == []
    with pytest.raises(AssertionError, match="do not say why"):
        list(steps_of("```sh no-run\nreboot\n```\n"))


def test_dots_stand_for_what_differs() -> None:
    assert shows("1 micro-batch, ... s: 8 rows in\n", "1 micro-batch, 4.2 s: 8 rows in\n")
    assert not shows("1 micro-batch, ... s: 8 rows in\n", "1 micro-batch, 4.2 s: 9 rows in\n")
