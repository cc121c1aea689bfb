"""`streamjoin state`: the table, the json, and paths that are no checkpoints."""

from __future__ import annotations

import importlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from streamjoin.algebra import FOREVER, TimeAxis
from streamjoin.api import StoredGroup, StoredInput, StoredTree
from streamjoin.cli import app
from streamjoin.cli.merge_tree import drawn
from streamjoin.cli.state import as_json, as_table

TEN = 1_704_103_200_000_000  # 2024-01-01 10:00:00 UTC
PARTS = [
    StoredInput(0, "join", 0, 0, 1200, 96_000, 2, TEN, TEN + 2_500_000, TEN + 1_000_000, TimeAxis.TIMESTAMP),
    StoredInput(0, "join", 0, 1, 0, 0, 0, None, None, None, TimeAxis.TIMESTAMP),
    StoredInput(0, "join", 0, None, 3, 400, 1, TEN, FOREVER, None, TimeAxis.TIMESTAMP),
]
VERDICT = StoredInput(1, "verdict", 5, 0, 7, 1000, 1, 3, 9, 4, TimeAxis.INTEGER)


def lines(parts: list[StoredInput]) -> list[list[str]]:
    """The table's rows, cell by cell."""
    console = Console(file=io.StringIO(), width=160)
    console.print(as_table(parts, "State of checkpoint"))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.startswith("State of checkpoint")
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]


def test_a_line_for_every_input_and_the_totals() -> None:
    since, until = "2024-01-01 10:00:00.000", "2024-01-01 10:00:02.500"
    assert lines(PARTS) == [
        ["0", "0", "0", "1,200", "96.0 kB", "2", since, until, "2024-01-01 10:00:01.000"],
        ["0", "0", "1", "0", "0 bytes", "0", "-", "-", "-"],
        ["0", "0", "results", "3", "400 bytes", "1", since, "for ever", "-"],
        ["total", "", "", "1,203", "96.4 kB", "3", "", "", ""],
    ]


def test_several_joins_have_totals_of_their_own() -> None:
    shown = lines([*PARTS, VERDICT])
    assert [row[:4] for row in shown[3:]] == [
        ["0", "all", "", "1,203"],
        ["1 (verdict)", "5", "0", "7"],
        ["1 (verdict)", "all", "", "7"],
        ["total", "", "", "1,210"],
    ]


def test_json_has_everything_and_no_infinities() -> None:
    told = json.loads(json.dumps(as_json(PARTS)))
    assert told["total"] == {"rows": 1203, "bytes": 96_400, "runs": 3}
    assert told["inputs"][0] == {
        "operator": 0, "stage": "join", "bucket": 0, "input": 0, "rows": 1200, "bytes": 96_000, "runs": 2,
        "first": TEN, "last": TEN + 2_500_000, "progress": TEN + 1_000_000, "axis": "timestamp",
    }  # fmt: skip
    assert told["inputs"][2]["input"] is None
    assert told["inputs"][2]["last"] is None


TREE = StoredTree(
    operator=2,
    bucket=1,
    left=5,
    groups=(
        StoredGroup((1200, 3), 4, 96_000, 2, 7),
        StoredGroup((10, 20), 2, 400, 0, 8),
        StoredGroup((0, 30), 3, 600, 1, 9),
        StoredGroup((5, 5), 2, 200, 0, 11),
    ),
    merging=(1, 3, 1012),
    waiting=(6, 0),
    figures={"merges": 2, "pages_read": 1000, "pages_written": 70},
    axis=TimeAxis.INTEGER,
)


def pictured(tree: StoredTree) -> list[str]:
    console = Console(file=io.StringIO(), width=160)
    console.print(drawn(tree))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


def test_a_tree_shows_who_is_being_merged() -> None:
    assert pictured(TREE) == [
        "join 2, bucket 1: results before 5 have left; 2 merges, 1,000 pages read, 70 written",
        "├── flank, level 2: 1,200 + 3 rows, 96.0 kB in 4 pages, complete before 7",
        "├── merge under way, after 1,012 steps",
        "│   ├── group 1, level 0: 10 + 20 rows, 400 bytes in 2 pages, complete before 8",
        "│   └── group 2, level 1: 0 + 30 rows, 600 bytes in 3 pages, complete before 9",
        "├── group 3, level 0: 5 + 5 rows, 200 bytes in 2 pages, complete before 11",
        "└── in memory: 6 + 0 rows",
    ]
    flank = pictured(replace(TREE, merging=(0, 4, 0)))
    assert flank[1:3] == ["├── flank merge under way, after 0 steps", f"│   ├── {pictured(TREE)[1][4:]}"]
    assert flank[-1] == pictured(TREE)[-1]
    calm = pictured(replace(TREE, merging=None))
    assert [line[:4] for line in calm[1:]] == ["├── "] * 4 + ["└── "]


def test_trees_for_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("metadata", "offsets", "commits"):
        (tmp_path / name).mkdir()
    command = importlib.import_module("streamjoin.cli.state")  # by that name the package has the command itself
    monkeypatch.setattr(command, "local_spark", lambda: None)
    monkeypatch.setattr(command, "stored_trees", lambda _, place: [TREE] if place == str(tmp_path) else [])
    result = CliRunner().invoke(app, ["state", str(tmp_path), "--tree", "--json"])
    assert result.exit_code == 0, result.output
    (told,) = json.loads(result.output)
    assert told["groups"][0] == {"rows": [1200, 3], "pages": 4, "bytes": 96_000, "level": 2, "until": 7}
    assert {name: told[name] for name in ("operator", "bucket", "left", "merging", "waiting", "figures", "axis")} == {
        "operator": 2, "bucket": 1, "left": 5, "merging": [1, 3, 1012], "waiting": [6, 0], "figures": TREE.figures,
        "axis": "integer",
    }  # fmt: skip
    text = CliRunner().invoke(app, ["state", str(tmp_path), "--tree"])
    assert text.output.splitlines() == pictured(TREE)


@pytest.mark.parametrize("options", [[], ["--json"], ["--tree"]])
def test_paths_that_are_no_checkpoints(tmp_path: Path, options: list[str]) -> None:
    missing = CliRunner().invoke(app, ["state", str(tmp_path / "none"), *options])
    assert (missing.exit_code, missing.output) == (1, f"error: there is no folder {tmp_path}/none.\n")
    (tmp_path / "metadata").touch()
    other = CliRunner().invoke(app, ["state", str(tmp_path), *options])
    assert other.exit_code == 1
    assert other.output.startswith(
        f"error: {tmp_path} is not the checkpoint of a streaming query: it has no 'offsets'."
    )
