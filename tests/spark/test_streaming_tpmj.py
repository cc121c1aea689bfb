"""Joins in sorted runs on Spark: the same rows as from sweep areas, over restarts; their tree; and what is refused."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from streamjoin.api import stored_trees
from streamjoin.errors import StreamjoinError
from tests.spark.streams import SLACK, Source, counted, random_rows
from tests.spark.test_streaming_spill import GRACE, frames, ids, joined, write

TIMED: dict[str, Any] = {"time": "ts", "window": sj.Range("8 seconds"), "lateness": sj.Grace(f"{SLACK} seconds")}
MERGED: dict[str, Any] = {"algorithm": "tpmj", "emit": "ordered"}
BY = {
    "key": {"by": "k"},
    "band": {"where": sj.band("v", below=0.5, above=0.5), "by": "k"},
    "overlap": {"where": sj.overlaps("lo", "hi")},
}


@pytest.mark.parametrize("by", ["overlap"])
def test_oracle_a_stream_in_sorted_runs(spark: SparkSession, tmp_path: Path, by: str) -> None:
    """Three micro-batches, a restart, three more, the end: as the batch gives it, with sweep areas."""
    rng = random.Random(7)
    source, sides = Source(spark, tmp_path), [random_rows(rng, 150) for _ in range(2)]
    source.add([rows[:90] for rows in sides], pieces=3)
    joined = sj.join(*source.frames(streaming=True), **BY[by], **TIMED, **MERGED, merge=sj.Greedy(), buckets=2)
    source.run(joined)
    trees = stored_trees(spark, str(source.checkpoint))
    assert [tree.bucket for tree in trees] == [0, 1]
    kept = sum(sum(tree.waiting) + sum(sum(group.rows) for group in tree.groups) for tree in trees)
    assert kept >= 180
    source.add([rows[90:] for rows in sides], pieces=3)
    found = source.finished(joined)
    expected = counted(sj.join(*source.frames(streaming=False), **BY[by], **TIMED))
    assert found == expected
    assert expected


@pytest.mark.parametrize("by", list(BY))
def test_oracle_batch_in_sorted_runs(spark: SparkSession, tmp_path: Path, by: str) -> None:
    source, rng = Source(spark, tmp_path), random.Random(8)
    source.add([random_rows(rng, 120) for _ in range(2)])
    frames = source.frames(streaming=False)
    merged = sj.join(*frames, **BY[by], **TIMED, **MERGED, buckets=3)
    assert counted(merged) == counted(sj.join(*frames, **BY[by], **TIMED))


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
def test_what_is_refused(spark: SparkSession, tmp_path: Path, case: str) -> None:
    given, match = REFUSED[case]
    frames = Source(spark, tmp_path).frames(streaming=True)
    with pytest.raises(StreamjoinError, match=match):
        sj.join(*frames, **{**TIMED, **MERGED, **given})


def test_nobody_knows_when_results_leave(spark: SparkSession, tmp_path: Path) -> None:
    frames = Source(spark, tmp_path).frames(streaming=True)
    with pytest.raises(StreamjoinError, match="nobody knows when that will be"):
        sj.output_delay(sj.join(*frames, by="k", **TIMED, **MERGED))


def test_a_cascade_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frames = Source(spark, tmp_path).frames(streaming=True)
    with pytest.raises(StreamjoinError, match="joins all frames at once"):
        sj.join([*frames, frames[0]], by="k", **TIMED, **MERGED, nway="cascade")


def test_oracle_groups_in_files(spark: SparkSession, tmp_path: Path) -> None:
    """More rows than the memory takes: groups are written and merged, over a restart with another budget."""
    for number in range(3):
        for side in (0, 1):
            write(tmp_path, side, number)

    def merged(memory: str) -> DataFrame:
        return sj.join(
            *frames(spark, tmp_path, streaming=True), time="ts", window=sj.Range("2 seconds"), lateness=GRACE,
            buckets=1, where=sj.band("v", below=5.0, above=5.0), memory=memory, merge=sj.Greedy(), **MERGED,
        )  # fmt: skip

    source = Source(spark, tmp_path / "query")
    source.run(merged("3 MB"))
    (tree,) = stored_trees(spark, str(source.checkpoint))
    assert tree.groups
    assert tree.figures["merges"] > 0
    for number in range(3, 5):
        for side in (0, 1):
            write(tmp_path, side, number)
    left = source.finished(merged("4 MB"))
    found = Counter((row["id"], row["id_right"]) for row in map(dict, left.elements()))
    whole = joined(spark, tmp_path, "band", streaming=False, window=sj.Range("2 seconds"))
    expected = ids(whole)
    assert found == expected
    assert expected.total() > 1000
