"""`streamjoin state`: the table, the json, and paths that are no checkpoints."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from streamjoin.algebra import FOREVER, TimeAxis
from streamjoin.api import StoredInput
from streamjoin.cli import app
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


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_paths_that_are_no_checkpoints(tmp_path: Path, options: list[str]) -> None:
    missing = CliRunner().invoke(app, ["state", str(tmp_path / "none"), *options])
    assert (missing.exit_code, missing.output) == (1, f"error: there is no folder {tmp_path}/none.\n")
    (tmp_path / "metadata").touch()
    other = CliRunner().invoke(app, ["state", str(tmp_path), *options])
    assert other.exit_code == 1
    assert other.output.startswith(
        f"error: {tmp_path} is not the checkpoint of a streaming query: it has no 'offsets'."
    )
