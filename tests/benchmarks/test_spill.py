"""The benchmark of state in files: both joins run in processes of their own, agree, and are judged."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import commands, spill, spill_restore, spill_spark
from benchmarks.errors import ContenderError, UnequalResultsError
from benchmarks.micro_batches import MicroBatch, StreamRun
from benchmarks.spill_streams import Kept
from benchmarks.worker_memory import anonymous, python_workers


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


def stream_run(label: str, seconds: list[float], checksum: int = 7) -> StreamRun:
    return StreamRun(label, tuple(MicroBatch(100, each, {}, 10, checksum) for each in seconds), 1)


def measured(seconds: list[float], peak: int, state: int, checksum: int = 7) -> spill_spark.Measured:
    whole = stream_run("a query", seconds, checksum)
    memory = {"1": [(0.0, peak // 2), (1.0, peak)], "2": [(0.5, peak // 3)]}
    return spill_spark.Measured(whole, stream_run("a query", seconds[:-1], checksum), [state], memory)


def test_on_spark_all_goals_are_lines_and_what_was_not_in_the_cache_counts_for_nothing() -> None:
    within = measured([9.0, 2.0, 2.0, 1.0], 3_000_000_000, 3_000_000_000)
    spilled = measured([9.0, 4.0, 4.0, 50.0], 350_000_000, 2_700_000_000)
    back = measured([1.0, 1.0, 1.0], 100_000_000, 0)
    found = spill_spark.SparkSpillOutcome(
        Kept("band", 100, 2, 4), 64 << 20, 100_000_000, within, spilled, back, quick=False
    )  # fmt: skip
    assert [(each.met, round(each.measured, 2)) for each in found.verdicts] == [
        (False, 0.5), (False, 350.0), (False, 2.0), (True, 1.35),
    ]  # fmt: skip
    assert found.uncached == [50.0]
    assert "<svg" in spill_spark.plot(found).svg()
    with pytest.raises(UnequalResultsError):
        _ = replace(found, spilled=measured([9.0, 4.0, 4.0, 50.0], 1, 1, checksum=8)).verdicts


def test_restoring_is_judged_beyond_reading_and_only_if_rows_are_the_same() -> None:
    ways = {way: {"seconds": 20.0, "anonymous": 1, "digest": "a"} for way in spill_restore.WAYS}
    found = spill_restore.RestoreOutcome({"bytes": 10**9, "parts": 3, "kept": 5}, 4.0, ways, 1000)
    assert [(each.measured, each.met) for each in found.verdicts] == [(16.0, False)] * 2
    ways["files"] = {**ways["files"], "digest": "b"}
    with pytest.raises(ContenderError, match="what was restored differs"):
        _ = found.verdicts


def test_memory_of_processes_is_read_and_this_one_has_no_workers() -> None:
    assert anonymous() > 1 << 20
    assert anonymous(1 << 30) == 0
    assert python_workers(os.getpid()) == []
