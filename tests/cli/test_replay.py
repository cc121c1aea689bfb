"""`streamjoin run --arrival`: files in the order in which their rows arrived, cut at the same times in all streams."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import streamjoin as sj
from streamjoin.cli import app
from streamjoin.cli.replay import CUT, PLACE, _unused_name
from streamjoin.spark.marks import plan_of
from tests.cli.commands import refused, run
from tests.interpreter import InProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALL = """sj.join([R, S], by="k", time="ts", window=sj.Range("4 seconds"), buckets=2,
                   lateness=sj.Recall(0.8, period="10 s", interval="1 s"))"""
ARRIVAL = ("--arrival", "came", "--arrival-interval", "6 s")
Row = tuple[int, int, int, int]  # number, key, second, second of arrival


def late_rows(seed: int, rows: int = 120, seconds: int = 40) -> list[Row]:
    """Of which every third is up to 20 seconds late. Nothing arrives for a while in the middle."""
    rng, made = random.Random(seed), []
    for number in range(rows):
        ts = rng.randint(0, seconds)
        came = ts + (rng.randint(0, 20) if rng.random() < 0.35 else 0)
        made.append((number, rng.randint(0, 1), ts, came if came < 20 else came + 30))
    return made


def write_rows(folder: Path, rows: list[Row], files: int = 3) -> None:
    """In files that have nothing to do with time."""
    folder.mkdir()
    for at in range(files):
        lines = [f"{n},{k},2024-01-01 10:00:{ts:02d},{stamp(came)}" for n, k, ts, came in rows[at::files]]
        (folder / f"{at}.csv").write_text("\n".join(["n,k,ts,came", *lines, ""]))


def stamp(second: int) -> str:
    return f"2024-01-01 10:{second // 60:02d}:{second % 60:02d}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed, name in enumerate("RS"):
        write_rows(tmp_path / name, late_rows(seed))
    (tmp_path / "job.py").write_text(f"import streamjoin as sj\n\ndef job(R, S):\n    return {CALL}\n")
    return tmp_path


def micro_batches() -> list[list[list[Row]]]:
    """The rows of both streams by interval of arrival, without intervals that have none."""
    streams = [late_rows(seed) for seed in (0, 1)]
    first = min(row[3] for rows in streams for row in rows)
    numbers = sorted({(row[3] - first) // 6 for rows in streams for row in rows})
    return [[[row for row in rows if (row[3] - first) // 6 == at] for rows in streams] for at in numbers]


def in_this_process(spark: SparkSession, folder: Path) -> Counter[Any]:
    """The pairs that leave, of the same plan fed by those micro-batches."""
    reader = spark.readStream.schema("n int, k int, ts timestamp, came timestamp")
    R, S = (reader.csv(str(folder / name)) for name in "RS")  # noqa: N806
    plan = plan_of(eval(CALL, {"sj": sj, "R": R, "S": S})).plan
    running, left = InProcess(plan), []
    for both in micro_batches():
        tables = [[table_of(rows)] for rows in both]
        left += list(running.micro_batch({each.name: tables[int(each.name)] for each in plan.sources}))
    return Counter((row["n"], row["n_right"]) for table in left for row in table.to_pylist())


def table_of(rows: list[Row]) -> pa.Table:
    times = pa.timestamp("us", tz="UTC")
    begin = 1_704_103_200_000_000
    columns = [pa.array([row[at] for row in rows], pa.int32()) for at in (0, 1)]
    columns += [pa.array([begin + row[at] * 1_000_000 for row in rows], pa.int64()).cast(times) for at in (2, 3)]
    return pa.table(columns, names=["n", "k", "ts", "came"])


def written(spark: SparkSession, folder: Path) -> Counter[Any]:
    rows = spark.read.parquet(str(folder / "out")).select("n", "n_right").collect()
    return Counter((row.n, row.n_right) for row in rows)


def staged(folder: Path, name: str) -> list[set[int]]:
    files = sorted((folder / "checkpoint" / PLACE / name).glob("*.parquet"))
    return [set(pq.read_table(file, columns=["n"])["n"].to_pylist()) for file in files]


def test_row_for_row_as_in_this_process_also_after_a_kill(spark: SparkSession, folder: Path) -> None:
    result = run(folder, *ARRIVAL)
    assert result.exit_code == 0, result.output
    batches = micro_batches()
    for number, name in enumerate("RS"):
        assert staged(folder, name) == [{row[0] for row in both[number]} for both in batches]
    assert f"{len(batches)} micro-batches, " in result.output
    assert ": 240 rows in, " in result.output
    expected = in_this_process(spark, folder)
    assert written(spark, folder) == expected
    exact = sj.join([spark.read.csv(str(folder / name), header=True, inferSchema=True) for name in "RS"], by="k",
                    time="ts", window=sj.Range("4 seconds")).count()  # fmt: skip
    assert 0 < expected.total() < exact, "some results are lost"

    # As if it had been killed three micro-batches before the end, when it knew the next file of one stream only.
    last = len(batches) - 1
    for at in range(last - 2, last + 1):
        for place in ("offsets", "commits", "sources/0", "sources/1"):
            if (place, at) != ("sources/0", last - 2):
                forget(folder / "checkpoint" / place, at)
        forget(folder / "out" / "_spark_metadata", at)
    for file in (folder / "checkpoint" / PLACE).glob("*/*.parquet"):
        os.utime(file)  # as copies have: Spark would take them in any order
    shutil.rmtree(folder / "R")  # what is cut needs no files any more
    (folder / "R").mkdir()
    again = run(folder, *ARRIVAL)
    assert again.exit_code == 0, again.output
    assert "3 micro-batches, " in again.output
    assert written(spark, folder) == expected
    assert run(folder, *ARRIVAL).output == "No micro-batch: there was nothing new to read.\n"
    cut = folder / "checkpoint" / PLACE / CUT
    cut.write_text(cut.read_text().replace("/checkpoint/replay", "/elsewhere/replay"))
    assert "Spark knows files by their place" in refused(folder, *ARRIVAL)


def test_the_name_of_an_interval_is_nobodys() -> None:
    assert _unused_name(["n", "Interval", "interval_"]) == "interval__"


def forget(log: Path, at: int) -> None:
    for name in (f"{at}", f"{at}.compact"):
        for file in (log / name, log / f".{name}.crc"):
            file.unlink(missing_ok=True)


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "half": (("--arrival", "came"), "--arrival-interval is missing. Hint: a replay needs both"),
    "the other half": (("--arrival-interval", "1 s"), "--arrival is missing beside its interval"),
    "unknown": (
        ("--arrival", "come", "--arrival-interval", "1 s"),
        "--arrival is come, and the stream R has no such column. Hint: did you mean 'came'?",
    ),
    "unit": (("--arrival", "came", "--arrival-interval", "5"), "--arrival-interval '5' is not a duration"),
    "negative": (("--arrival", "came", "--arrival-interval", "-5 s"), "--arrival-interval must be positive"),
    "number": (
        ("--arrival", "k", "--arrival-interval", "5 s"),
        "--arrival-interval must be an integer on an integer time axis",
    ),
    "trigger": ((*ARRIVAL, "--trigger", "1 s"), "--trigger beside --arrival: a replay is cut by arrival"),
    "files": ((*ARRIVAL, "--files-per-batch", "2"), "--files-per-batch beside --arrival"),
    "bad rows": ((*ARRIVAL, "--bad-rows", "bad"), "--bad-rows beside --arrival"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(spark: SparkSession, folder: Path, what: str) -> None:
    options, why = REFUSED[what]
    assert refused(folder, *options).startswith(why)
    assert not (folder / "checkpoint").exists(), "nothing was made"


def test_streams_that_cannot_be_cut(spark: SparkSession, folder: Path) -> None:
    (folder / "S" / "0.csv").write_text("n,k,ts,came\n500,1,2024-01-01 10:00:00,\n")
    assert refused(folder, *ARRIVAL).startswith("1 row(s) of the stream S have no came, and so no place in a replay.")
    for file in (folder / "S").iterdir():
        file.write_text("n,k,ts\n500,1,2024-01-01 10:00:00\n")
    assert refused(folder, *ARRIVAL).startswith("--arrival is came, and the stream S has no such column.")
    for file in (folder / "S").iterdir():
        file.write_text("n,k,ts,came\n500,1,2024-01-01 10:00:00,7\n")
    assert refused(folder, *ARRIVAL) == (
        "streams are cut at the same arrival times, and came is timestamp in R, integer in S."
    )
    for file in (folder / "S").iterdir():
        file.write_text("n,k,ts,came\n500,1,2024-01-01 10:00:00,soon\n")
    assert refused(folder, *ARRIVAL).startswith("--arrival is came, which is of type string in the stream S.")
    for name in "RS":
        for file in (folder / name).iterdir():
            file.write_text("n,k,came,ts\n500,1,2024-01-01 10:00:00\n")
    columns = "n int, k int, came timestamp, ts timestamp"
    options = [word for name in "RS" for word in ("--schema", f"{name}={columns}")]
    assert "does not fit" in refused(folder, *ARRIVAL, *options), "a field too few is no NULL"


def test_a_replay_that_has_begun(spark: SparkSession, folder: Path) -> None:
    """Numbers as arrival; and what it cannot go on with."""
    for name in "RS":
        shutil.rmtree(folder / name)
        (folder / name).mkdir()
        pq.write_table(
            pa.table({"k": [1, 1, 1], "ts": [4, 2, 9], "came": pa.array([10, 29, 11], pa.int16())}),
            folder / name / "a.parquet",
        )
    (folder / "job.py").write_text(
        "import streamjoin as sj\n\ndef job(R, S):\n    return sj.join([R, S], by='k', time='ts', window=sj.Range(3), "
        "lateness=sj.MaxDelay(), late='join', buckets=1)\n"
    )
    numbers = ("--arrival", "came", "--arrival-interval", "10")
    explained = CliRunner().invoke(app, ["explain", str(folder / "job.py"), *numbers,
                                         *(word for name in "RS" for word in ("--stream", f"{name}={folder / name}")),
                                         "--checkpoint", str(folder / "checkpoint")])  # fmt: skip
    assert explained.exit_code == 0, explained.output
    assert not (folder / "checkpoint").exists(), "explaining makes nothing"
    result = run(folder, *numbers, "--finish")
    assert result.exit_code == 0, result.output
    assert "2 micro-batches, " in result.output
    assert "finished: " in result.output
    shutil.rmtree(folder / "out")
    shutil.rmtree(folder / "checkpoint")

    assert run(folder, *numbers).exit_code == 0
    cut = json.loads((folder / "checkpoint" / PLACE / "cut.json").read_text())
    assert (cut["column"], cut["interval"]) == ("came", 10)
    assert refused(folder, "--available-now").startswith(
        f"the query of {folder}/checkpoint is a replay in the order of came. Hint: add --arrival came"
    )
    assert refused(folder, "--arrival", "came", "--arrival-interval", "5").startswith(
        "--arrival-interval is another one than the replay of"
    )
    shutil.copy(folder / "R" / "a.parquet", folder / "R" / "b.parquet")
    assert "has a file that is not part of the replay, which was cut before: b.parquet" in refused(folder, *numbers)
    (folder / "R" / "b.parquet").unlink()
    shutil.rmtree(folder / "checkpoint")
    shutil.rmtree(folder / "out")
    assert run(folder, "--available-now").exit_code == 0
    assert refused(folder, *numbers).startswith(f"the query of {folder}/checkpoint was begun without --arrival")
