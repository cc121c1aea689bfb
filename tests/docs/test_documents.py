"""Every Python example in the documents runs, and shows what it says.

A document's ```python blocks run in order in one namespace, which has `spark` and `sj`. A block of `>>>` lines is a
session: what it shows is checked. A block that cannot run is opened with ```python no-run, and its first line says why:
`# not run: ...`.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import streamjoin as sj
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: what stands behind the opening fence, the number of its first line, and its text."""

    info: str
    line: int
    text: str


def blocks_of(document: str) -> Iterator[Block]:
    opened: tuple[str, int] | None = None
    text: list[str] = []
    for number, line in enumerate(document.splitlines(), 1):
        fence = FENCE.match(line)
        if fence is None:
            text.append(line)
        elif opened is None:
            opened, text = (fence["info"].strip(), number + 1), []
        else:
            yield Block(*opened, "\n".join(text) + "\n")
            opened = None
    assert opened is None, f"the block that begins at line {opened[1]} has no end"


def examples_of(path: Path) -> Iterator[Block]:
    for block in blocks_of(path.read_text()):
        words = block.info.split()
        if not words or words[0] != "python":
            continue
        if words[1:] == ["no-run"]:
            reason = block.text.splitlines()[0]
            assert re.match(r"# not run: \w+", reason), f"{path.name}:{block.line} does not say why it is not run"
        else:
            assert words == ["python"], f"{path.name}:{block.line} begins with an unknown {block.info!r}"
            yield block


def run_block(path: Path, block: Block, namespace: dict[str, Any]) -> None:
    name = f"{path.relative_to(ROOT)}:{block.line}"
    if ">>>" not in block.text:
        # Moved down, so that a traceback shows the document's own line.
        tree = ast.increment_lineno(ast.parse(block.text, str(path)), block.line - 1)
        exec(compile(tree, str(path), "exec"), namespace)
        return
    session = doctest.DocTestParser().get_doctest(block.text, namespace, name, str(path), block.line - 1)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(session, out=report.append, clear_globs=False)
    assert result.failed == 0, "".join(report)
    namespace.update(session.globs)  # a session works on a copy


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_run_and_show_what_they_say(path: Path, spark: SparkSession) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__", "spark": spark, "sj": sj}
    for block in examples_of(path):
        run_block(path, block, namespace)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name} links to {target}, which does not exist"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_exist(path: Path) -> None:
    from streamjoin.cli import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    known |= {group.name for group in app.registered_groups if group.name}
    known |= set(re.findall(r"^([\w-]+)\)", (ROOT / "sj").read_text(), re.MULTILINE))
    for command in re.findall(r"\./sj (\w[\w-]*)", path.read_text()):
        assert command in known, f"{path.name} speaks of ./sj {command}, which is not a command"


def test_a_wrong_example_is_noticed() -> None:
    wrong = Block("python", 1, ">>> 1 + 1\n3\n")
    with pytest.raises(AssertionError, match="Expected"):
        run_block(DOCUMENTS[0], wrong, {})


def test_blocks_share_a_namespace() -> None:
    namespace: dict[str, Any] = {}
    run_block(DOCUMENTS[0], Block("python", 1, "x = 1\n"), namespace)
    run_block(DOCUMENTS[0], Block("python", 3, ">>> y = x + 1\n"), namespace)
    run_block(DOCUMENTS[0], Block("python", 5, ">>> y\n2\n"), namespace)


def test_a_block_that_is_not_run_must_say_why(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text("```python no-run\nx = 1\n```\n")
    with pytest.raises(AssertionError, match="does not say why"):
        list(examples_of(document))
    document.write_text("```python no-run\n# not run: needs a cluster\nx = 1 / 0\n```\n")
    assert list(examples_of(document)) == []
