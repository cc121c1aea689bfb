"""The site of the documents, which `./sj docs` builds: what is made for it, and that a wrong link is noticed."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest

import streamjoin as sj
from tests.conftest import ROOT
from tools.site.links import problems
from tools.site.reference import markdown, reference, signature


def test_the_reference_has_every_public_name_with_its_parameters() -> None:
    page = reference()
    parts = {part.split("\n", 1)[0]: part for part in page.split("\n### ")[1:]}
    assert sorted(parts) == sorted(sj.__all__)
    for name, part in parts.items():
        thing = getattr(sj, name)
        told = re.findall(r"^\| (`[^|]*`) \|", part, re.MULTILINE)
        if inspect.isfunction(thing) and name != "cql" and "Columns" not in part:
            parameters = inspect.signature(thing).parameters
            for word in re.findall(r"`(\w+)`", " ".join(told)):
                assert word in parameters, f"sj.{name} has no parameter {word!r}, and its docstring tells of one"


def test_a_docstring_becomes_tables_and_examples() -> None:
    told = (
        "What it does.\n\nParameters\n    a, b    one, `x | y`\n            and two\n    c       three\n\n>>> f(1)\n2"
    )
    assert list(markdown(told)) == [
        "What it does.", "",
        "Parameters:", "", "| | |", "|---|---|", r"| `a`, `b` | one, `x \| y` and two |", "| `c` | three |", "",
        "```pycon", ">>> f(1)", "2", "```", "",
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="neither a parameter"):
        list(markdown("Parameters\n    a    one\n  what is this"))


def test_signatures_are_as_they_are_called() -> None:
    assert signature("explain", sj.explain) == ["sj.explain(frame: DataFrame) -> str"]
    called = signature("join", sj.join)
    assert called[:4] == ["sj.join(", "    left: OneOrMore,", "    right: DataFrame | None = None,", "    *,"]


def test_every_document_is_in_the_navigation() -> None:
    configured = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    pages = set(re.findall(r"'([\w/-]+\.md)'", str(configured["nav"])))
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages == written | {"changelog.md", "contributing.md", "reference/python.md"}


def test_what_is_wrong_with_a_site_is_told(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<h1 id="top">a</h1><a href="#top">b</a><a href="other.html#part">c</a><a href="https://a.example/">d</a>'
    )
    (tmp_path / "other.html").write_text('<h2 id="part">a</h2><a href="./index.html">b</a>')
    assert problems(tmp_path) == []
    (tmp_path / "other.html").write_text(
        '<a href="gone.html">a</a><a href="index.html#gone">b</a><script src="https://a.example/x.js"></script>'
        '<link rel="canonical" href="https://a.example/">'
    )
    (tmp_path / "alone.html").write_text("")
    assert problems(tmp_path) == [
        "index.html links to other.html#part, which has no such part",
        "other.html links to gone.html, which does not exist",
        "other.html links to index.html#gone, which has no such part",
        "other.html loads https://a.example/x.js: a page must do without the network",
        "no page leads to alone.html",
    ]
