"""`streamjoin run --lane`: lanes of a stream, and the limit that is measured for the last one."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import streamjoin as sj
from streamjoin.cli.lanes import FIRST_BYTES, KEPT, MOST_STEPS, Measuring, folder_of
from streamjoin.cli.run import warnings_of
from streamjoin.cli.screen import Screen
from streamjoin.cli.tables import Shape, read_stream, read_table
from tests.cli.commands import R_FILES, S_FILES, add_file, refused, run

JOB = """import streamjoin as sj

def job(R, S):
    return sj.join([R, S], by="k", time="ts", window=sj.Range("4 seconds"), lateness=sj.Grace("60 seconds"), buckets=2,
                   priority=["priority", None], emit="ordered")
"""


def laned(folder: Path) -> list[str]:
    """R in two lanes, a file each for the urgent one; S beside it, and a job."""
    for number, rows in enumerate(R_FILES[:2] + [[("c", 9, 33)]] * 6):
        add_file(folder / ("urgent" if number == 1 else "normal"), rows)
    for rows in S_FILES:
        add_file(folder / "S", rows)
    (folder / "job.py").write_text(JOB)
    return ["--lane", f"R:urgent={folder / 'urgent'}", "--lane", f"R:normal={folder / 'normal'}"]


def test_a_stream_in_lanes_gives_what_the_batch_gives_and_goes_on_with_another_limit(
    spark: SparkSession, tmp_path: Path
) -> None:
    lanes = laned(tmp_path)
    for _ in range(10):  # a backlog: one of these is most of the first limit
        add_file(tmp_path / "normal", [("no partner", 9, 33)] * 20_000)
    options = ("--available-now", "--finish", "--batch-seconds", "30")
    result = run(tmp_path, *lanes, *options, streams="S")
    assert result.exit_code == 0, result.output
    assert f"to be measured: they take {FIRST_BYTES:,} bytes of a normal lane" in result.output
    limits = [int(each.replace(",", "")) for each in re.findall(r"take ([\d,]+) bytes", result.output)]
    assert FIRST_BYTES < limits[1] <= 4 * FIRST_BYTES, "stopped, and begun again with more"
    urgent, normal, s = (read_table(spark, tmp_path / name) for name in ("urgent", "normal", "S"))
    expected = sj.join(
        [sj.lanes(urgent=urgent, normal=normal), s], by="k", time="ts", window=sj.Range("4 seconds"), buckets=2,
        priority=["priority", None],
    )  # fmt: skip
    left = spark.read.parquet(str(tmp_path / "out"))
    assert left.columns == expected.columns
    assert Counter(left.collect()) == Counter(expected.collect())
    assert {row.priority for row in left.collect()} == {0, 1}


def test_what_lanes_are_refused_with(tmp_path: Path) -> None:
    lanes = laned(tmp_path)
    for options, said in (
        (lanes[:2], "'R' has one lane, 'urgent'"),
        (["--lane", "R=x"], "a lane is written STREAM:LANE=PATH"),
        ([*lanes, "--stream", f"R={tmp_path / 'normal'}"], "the input 'R' was given twice"),
        (["--batch-seconds", "2"], "there are no lanes"),
        ([*lanes, "--batch-seconds", "0"], "--batch-seconds must be positive and finite, got 0.0"),
        ([*lanes, "--batch-seconds", "nan"], "--batch-seconds must be positive and finite, got nan"),
        ([*lanes, "--batch-seconds", "2", "--files-per-batch", "1"], "both limit a lane"),
        ([*lanes, "--arrival", "ts", "--arrival-interval", "1 s"], "--arrival beside --lane"),
    ):
        assert said in refused(tmp_path, *options, streams="S")


SCHEMA = "R=k string, v int, ts timestamp"


def test_a_job_starts_before_the_first_alarm(spark: SparkSession, tmp_path: Path) -> None:
    lanes = laned(tmp_path)
    (tmp_path / "urgent" / "0.csv").rename(tmp_path / "alarm.csv")
    result = run(tmp_path, *lanes, "--schema", SCHEMA, "--available-now", streams="S")
    assert result.exit_code == 0, result.output
    (tmp_path / "alarm.csv").rename(tmp_path / "urgent" / "0.csv")
    result = run(tmp_path, *lanes, "--available-now", "--finish", streams="S")
    assert result.exit_code == 0, result.output
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert Counter(row.v for row in found if row.priority) == Counter({4: 1, 5: 2})


def test_what_lanes_without_files_need(tmp_path: Path) -> None:
    lanes = laned(tmp_path)
    (tmp_path / "urgent" / "0.csv").unlink()
    assert 'Hint: say them: --schema R="' in refused(tmp_path, *lanes, streams="S")
    wrong = refused(tmp_path, *lanes, "--schema", "R:urgent=k string", streams="S")
    assert "--schema is written NAME=" in wrong
    assert "'T', which was not given" in refused(tmp_path, *lanes, "--schema", "T=k string", streams="S")
    for file in (tmp_path / "normal").iterdir():
        file.unlink()
    assert "the formats of the other lanes, none, do not say" in refused(
        tmp_path, *lanes, "--schema", SCHEMA, streams="S"
    )


def test_the_size_of_rows_is_learnt_when_the_first_files_come(tmp_path: Path) -> None:
    normal = tmp_path / "normal"
    normal.mkdir()
    measuring = Measuring(2.0, tmp_path, 100.0, {"/normal": 100.0}, unsized={normal: lambda: 1000.0})
    assert not measuring.enough(micro_batches(1000, 0.6)), "rows of 100 bytes would be far from the limit"
    add_file(normal, [])
    measuring.sizes = {str(normal): 100.0}
    measuring.enough(micro_batches(1000, 0.6))
    assert measuring.sizes == {str(normal): 1000.0}
    assert (measuring.bytes_per_row, measuring.unsized) == (1000.0, {})


def micro_batches(rows: int, seconds: float, count: int = 4) -> list[dict]:
    sources = [{"description": "FileStreamSource[file:/normal]", "numInputRows": rows}]
    return with_sources(sources, seconds, count)


def with_sources(sources: list[dict], seconds: float, count: int = 4) -> list[dict]:
    rows = sum(each["numInputRows"] for each in sources)
    each = {"numInputRows": rows, "durationMs": {"addBatch": 1, "triggerExecution": seconds * 1000}}
    return [{**each, "sources": sources, "batchId": number} for number in range(count)]


def measured(wanted: float, checkpoint: Path, bytes_per_row: float = 1000.0) -> Measuring:
    return Measuring(wanted, checkpoint, bytes_per_row, {"/normal": bytes_per_row})


def test_the_limit_is_measured_with_two_sizes_and_kept(tmp_path: Path) -> None:
    measuring = measured(2.0, tmp_path)
    assert not measuring.enough(micro_batches(1000, 0.6, 3)), "the first does not count, so there are two"
    assert measuring.enough(micro_batches(1000, 0.6))
    assert (measuring.limit, measuring.found) == (4 * FIRST_BYTES, False)
    assert measuring.enough(micro_batches(4000, 0.9))
    assert (measuring.limit, measuring.found) == (15_000_000, True)
    assert not measuring.enough(micro_batches(15_000, 2.0)), "it is found"
    assert json.loads((tmp_path / KEPT).read_text())["rows"] == 15_000
    (tmp_path / "normal").mkdir()
    lanes = {"R": {"urgent": tmp_path, "normal": tmp_path / "normal"}}
    again = Measuring.of(2.0, tmp_path, None, lanes, {}, {"R:normal": Shape("csv")})
    assert again is not None
    assert (again.limit, again.found) == (15_000_000, True)
    with pytest.raises(sj.CallError, match="must be positive"):
        Measuring.of(0.0, tmp_path, None, {}, {}, {})
    add_file(tmp_path / "normal", [])
    beside = {"R:normal": tmp_path / "normal", "S": tmp_path / "normal" / "0.csv"}
    with pytest.raises(sj.CallError, match="R:normal and S are files of one folder"):
        Measuring.of(2.0, tmp_path, None, lanes, beside, {"R:normal": Shape("csv")})


def test_the_limit_stays_small_until_a_backlog_shows_what_it_shall_be(tmp_path: Path) -> None:
    measuring = measured(2.0, tmp_path)
    calm = [each for rows in (10, 20, 15) for each in micro_batches(rows, 0.5)]
    assert not measuring.enough(calm), "sizes vary, but none is near the limit"
    assert (measuring.limit, measuring.found, measuring.warning) == (FIRST_BYTES, False, None)
    backlog = [*calm, *micro_batches(1048, 0.65)]
    assert measuring.enough(backlog)
    assert (measuring.limit, measuring.found) == (4 * FIRST_BYTES, False), "10.000 rows is too far from these"
    assert measuring.enough(micro_batches(4194, 1.1))
    assert measuring.found
    assert 10_000_000 < measuring.limit < 11_000_000


def test_a_backlog_of_files_of_half_the_limit_is_near_it(tmp_path: Path) -> None:
    measuring = measured(2.0, tmp_path)
    assert measuring.enough(micro_batches(510, 0.6)), "one of 0.53 MB by its size, 0.51 MB by that of its rows"


def test_micro_batches_that_are_never_so_short_are_told_of_and_keep_a_small_limit(tmp_path: Path) -> None:
    measuring, screen = measured(0.1, tmp_path, 100.0), Screen(Console(file=io.StringIO()))
    limits = []
    for _ in range(8):
        rows = int(measuring.limit / 100)
        measuring.enough(micro_batches(rows, 0.5 + rows * 1e-6))
        screen.tell(measuring.warning)
        limits.append(measuring.limit)
    assert max(limits) <= FIRST_BYTES, "what takes too long is tried with less, not with more"
    assert not measuring.found
    assert not (tmp_path / KEPT).exists()
    shown = screen.console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count("warning: ") == 1
    assert "takes 0.50 s without any row, so none is over in 0.1 s: the limit stays small" in shown
    assert "Hint: --batch-seconds 1.0" in shown


def test_where_larger_micro_batches_take_no_longer_the_tries_end(tmp_path: Path) -> None:
    measuring = measured(2.0, tmp_path)
    limits = []
    while measuring.enough(micro_batches(round(measuring.limit / 1000), 0.6 - measuring.limit * 1e-12)):
        limits.append(measuring.limit)
    assert limits == [FIRST_BYTES * 4**step for step in range(1, MOST_STEPS + 1)]
    assert measuring.warning is not None
    assert "no limit was found" in measuring.warning


def test_a_limit_is_never_far_above_what_was_seen(tmp_path: Path) -> None:
    measuring, largest = measured(2.0, tmp_path), FIRST_BYTES
    while measuring.enough(micro_batches(round(measuring.limit / 1000), 0.6 + measuring.limit * 1e-15)):
        assert measuring.limit <= 4 * largest
        largest = measuring.limit
    assert measuring.found


def test_rows_of_other_inputs_are_subtracted_and_the_rest_is_for_all_normal_lanes(tmp_path: Path) -> None:
    def both(rows: int, seconds: float, urgent: int = 3000) -> list[dict]:
        of = {"file:/urgent": urgent, "file:/n1": rows // 2, "hdfs://host:9/n2": rows // 2}
        return with_sources(
            [{"description": f"FileStreamSource[{at}]", "numInputRows": each} for at, each in of.items()], seconds
        )

    def two_lanes() -> Measuring:
        return Measuring(2.0, tmp_path, 1000.0, {"/n1": 1000.0, "/n2": 2000.0}, lanes=2)

    measuring = two_lanes()
    assert not measuring.enough(both(300, 0.5 + 3300e-4)), "many urgent rows are nothing of a limit"
    assert measuring.enough(both(2000, 0.5 + 5000e-4))
    assert measuring.enough(both(8000, 0.5 + 11000e-4))
    assert measuring.found
    assert measuring.limit == 6_000_000, "15,000 rows of all inputs, 3,000 of them urgent, a half for each lane"
    flooded = two_lanes()
    for rows in (20_000, 5_000):
        flooded.enough(both(rows, 0.5 + (rows + 20_000) * 1e-4, urgent=20_000))
    assert not flooded.found
    assert flooded.limit <= FIRST_BYTES
    assert flooded.warning is not None
    assert "take about 20,000 rows of inputs without a limit" in flooded.warning


def test_which_rows_are_of_a_normal_lane_is_known_from_sparks_sources(spark: SparkSession, tmp_path: Path) -> None:
    for name, count in (("urgent", 2), ("a normal", 3)):
        add_file(tmp_path / name, [("a", 1, second) for second in range(count)])
    urgent, normal = (read_stream(spark, tmp_path / name) for name in ("urgent", "a normal"))
    lanes = sj.lanes(urgent=urgent, normal=normal)
    query = lanes.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    folder = folder_of(tmp_path / "a normal")
    measuring = Measuring(2.0, tmp_path, 10.0, {folder: 10.0})
    (progress,) = query.recentProgress
    assert progress["numInputRows"] == 5
    assert measuring._rows(progress) == {folder: 3}


def test_starving_rows_are_told_of_once() -> None:
    def progress(number: int) -> dict:
        pack = {"rows_in": 10, "urgent": 9}
        return {
            "batchId": number, "numInputRows": 10, "timestamp": f"2026-01-01T00:00:0{number}.000Z",
            "durationMs": {"addBatch": 1, "triggerExecution": 10}, "observedMetrics": {"streamjoin-1-pack": pack},
        }  # fmt: skip

    told, screen = [], Screen(Console(file=io.StringIO()))
    for count in range(1, 6):
        told.append(warnings_of(SimpleNamespace(recentProgress=[progress(number) for number in range(count)])))
        screen.warn(told[-1])
    assert [len(each) for each in told] == [0, 0, 1, 1, 1]
    shown = screen.console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count("warning: more than half of the rows of streamjoin-1 were urgent") == 1
