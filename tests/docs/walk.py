"""Walks through a document: runs its commands as a reader would, and compares what they print with what it shows.

A document's ```sh blocks run in order, each in a shell of its own that ends at the first error, all in one folder. A
```text block right behind one is what its commands print: `...` stands for what differs from run to run, and how
columns are spaced does not matter. A block that is not for the walk is opened with ```sh no-run, and its first line
says why: `# not run: ...`.
"""

from __future__ import annotations

import doctest
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.test_documents import FLAGS, blocks_of

LONGEST_SECONDS = 600


@dataclass(frozen=True)
class Step:
    """Commands, the number of their first line in the document, and what they print, if it says that."""

    commands: str
    line: int
    shown: str | None


def steps_of(document: str) -> Iterator[Step]:
    blocks = list(blocks_of(document))
    for number, block in enumerate(blocks):
        words = block.info.split()
        if words[:1] != ["sh"]:
            continue
        if words[1:] == ["no-run"]:
            reason = block.text.splitlines()[0]
            assert re.match(r"# not run: \w+", reason), f"the commands at line {block.line} do not say why they wait"
            continue
        assert words == ["sh"], f"line {block.line} begins with an unknown {block.info!r}"
        behind = blocks[number + 1] if number + 1 < len(blocks) else None
        yield Step(block.text, block.line, behind.text if behind is not None and behind.info == "text" else None)


def walk(document: Path, folder: Path, env: Mapping[str, str]) -> int:
    """Run all steps of a document in a folder; how many there were."""
    steps = list(steps_of(document.read_text()))
    for step in steps:
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.commands],
            cwd=folder, env=dict(env), capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False,
        )  # fmt: skip
        place = f"{document.name}:{step.line}"
        assert ran.returncode == 0, f"{place} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        assert step.shown is None or shows(step.shown, ran.stdout), (
            f"{place} shows\n{step.shown}\nand printed\n{ran.stdout}\n{ran.stderr}"
        )
    return len(steps)


def shows(expected: str, printed: str) -> bool:
    """Whether a text is what a document shows; lines are compared without the spaces at their ends."""
    return doctest.OutputChecker().check_output(expected, printed, FLAGS)
