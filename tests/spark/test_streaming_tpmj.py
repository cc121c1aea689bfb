"""Joins in sorted runs on Spark: the same rows as from sweep areas, over restarts; their tree; and what is refused.

Those whose runs lie in files are among the queries of `test_streaming_spill`.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

import streamjoin as sj
from streamjoin.cli import app
from streamjoin.errors import StreamjoinError
from tests.spark.streams import SLACK, Source, counted, random_rows

TIMED: dict[str, Any] = {"time": "ts", "window": sj.Range("8 seconds"), "lateness": sj.Grace(f"{SLACK} seconds")}
MERGED: dict[str, Any] = {"algorithm": "tpmj", "emit": "ordered"}
BY = {
    "key": {"by": "k"},
    "band": {"where": sj.band("v", below=0.5, above=0.5), "by": "k"},
    "overlap": {"where": sj.overlaps("lo", "hi")},
}


@pytest.fixture(scope="module")
def streams(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[DataFrame]:
    """Two streams for calls that never run."""
    return Source(spark, tmp_path_factory.mktemp("streams")).frames(streaming=True)


def test_oracle_a_stream_in_sorted_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Three inputs; two micro-batches, a restart, another one, the end: as the batch gives it, with sweep areas."""

    def three(*, streaming: bool) -> list[DataFrame]:
        return [source.frame(side, streaming=streaming) for side in (0, 1, 1)]

    by = "overlap"
    rng = random.Random(7)
    source, sides = Source(spark, tmp_path), [random_rows(rng, 60) for _ in range(2)]
    source.add([rows[:36] for rows in sides], pieces=2)
    joined = sj.join(three(streaming=True), **BY[by], **TIMED, **MERGED, merge=sj.Greedy(), buckets=2)
    source.run(joined)
    shown = CliRunner().invoke(app, ["state", str(source.checkpoint), "--tree"])
    assert shown.exit_code == 0, shown.output
    assert [f"bucket {number}: results before" in shown.stdout for number in (0, 1)] == [True, True]
    kept = re.findall(r"(\d+) \+ (\d+) \+ (\d+) rows", shown.stdout)  # in groups, and in memory
    assert sum(int(each) for group in kept for each in group) >= 3 * 36
    source.add([rows[36:] for rows in sides])
    found = source.finished(joined)
    expected = counted(sj.join(three(streaming=False), **BY[by], **TIMED))
    assert found == expected
    assert expected


@pytest.fixture(scope="module")
def batches(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[DataFrame]:
    source, rng = Source(spark, tmp_path_factory.mktemp("batches")), random.Random(8)
    source.add([random_rows(rng, 120) for _ in range(2)])
    return source.frames(streaming=False)


@pytest.mark.parametrize("by", list(BY))
def test_oracle_batch_in_sorted_runs(batches: list[DataFrame], by: str) -> None:
    merged = sj.join(*batches, **BY[by], **TIMED, **MERGED, buckets=2)
    assert counted(merged) == counted(sj.join(*batches, **BY[by], **TIMED, buckets=2))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no order": ({"by": "k", "emit": "eager"}, "it has no eager way"),
    "an outer join": ({"by": "k", "how": "left"}, "nobody notes which rows were in none"),
    "row windows": ({"by": "k", "window": sj.Rows(3)}, "before their ends are known"),
    "late rows": ({"by": "k", "late": "join"}, 'late="join" cannot be combined'),
    "a recall target": ({"by": "k", "lateness": sj.Recall(0.9), "late": "join"}, "recall target cannot be combined"),
    "time alone": ({}, "nothing but time decides who matches"),
    "no common order": ({"where": sj.within("v", "lo", radius=1.0)}, "these predicates give none"),
    "holding": ({"by": "k", "hold": "inputs"}, "leave hold out"),
    "no strategy": ({"by": "k", "merge": "greedy"}, "merge must be a strategy"),
    "merge alone": ({"by": "k", "merge": sj.Greedy(), "algorithm": "auto"}, 'give algorithm="tpmj"'),
    "no such": ({"by": "k", "algorithm": "pmj"}, "algorithm must be one of"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_is_refused(streams: list[DataFrame], case: str) -> None:
    given, match = REFUSED[case]
    with pytest.raises(StreamjoinError, match=match):
        sj.join(*streams, **{**TIMED, **MERGED, **given})


def test_nobody_knows_when_results_leave(streams: list[DataFrame]) -> None:
    with pytest.raises(StreamjoinError, match="nobody knows when that will be"):
        sj.output_delay(sj.join(*streams, by="k", **TIMED, **MERGED))


def test_queries_refuse_it_and_say_what_they_have_instead(spark: SparkSession, streams: list[DataFrame]) -> None:
    text = "SELECT l.id FROM l [RANGE 8 SECONDS] JOIN r [RANGE 8 SECONDS] ON l.k = r.k"
    given: dict[str, Any] = {"l": streams[0], "r": streams[1], "lateness": sj.Grace("5 seconds")}
    with pytest.raises(sj.UnsupportedError, match="operators above them would wait") as refused:
        sj.cql(spark, text, **given, emit="ordered", algorithm="tpmj")  # type: ignore[arg-type]
    assert "memory=" in str(refused.value)


def test_timers_go_on_with_merges_and_need_no_idle_inputs(streams: list[DataFrame]) -> None:
    told = sj.explain(sj.join(*streams, by="k", **TIMED, **MERGED, timers=True))
    assert "merges go on when nothing comes" in told
    with pytest.raises(StreamjoinError, match="nothing says when an input is idle"):
        sj.join(*streams, by="k", **TIMED, timers=True)


def test_a_cascade_is_refused(streams: list[DataFrame]) -> None:
    with pytest.raises(StreamjoinError, match="joins all frames at once"):
        sj.join([*streams, streams[0]], by="k", **TIMED, **MERGED, nway="cascade")
