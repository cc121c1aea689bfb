"""The benchmark of state in files: both joins run in processes of their own, agree, and are judged."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import commands, spill
from benchmarks.errors import ContenderError


def test_the_quick_run_spills_compares_and_judges(tmp_path: Path) -> None:
    printed, path = io.StringIO(), tmp_path / "all.json"
    verdicts = commands.run(Console(file=printed, width=160), "spill", quick=True, only=["band"], json_path=path)
    assert [each.question for each in verdicts] == [
        "band, rows per second", "band, memory", "band, longest micro-batch",
    ]  # fmt: skip
    assert "Not a measurement" in printed.getvalue()
    found = json.loads(path.read_text())["questions"]["band"]
    assert found["within"]["spilled"] == 0
    assert found["spilled"]["spilled"] > 0
    assert found["within"]["count"] == found["spilled"]["count"] > 0


def test_results_that_differ_are_no_verdict() -> None:
    figures = {"rows_per_cpu_second": 2.0, "longest": 1.0, "anonymous": 5, "state": 1, "spilled": 0, "count": 1}
    one = spill.SpillOutcome("band", spill.Size(*spill.QUICK), {**figures, "digest": "a"}, {**figures, "digest": "a"})
    assert [each.met for each in spill.verdicts(one)] == [True, True, True]
    with pytest.raises(ContenderError, match="the results differ"):
        spill.verdicts(replace(one, spilled={**figures, "digest": "b"}))
