"""As-of joins of streams on Spark: cut in any way, restarted, late, and followed by Spark's own aggregation."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamjoin as sj
from tests.spark.streams import SLACK, Source, counted, random_rows, row

CASES: list[dict[str, Any]] = [
    {"pieces": 1, "buckets": 2},
    {"pieces": 3, "buckets": 5, "emit": "ordered", "tolerance": "4 seconds"},
    {"pieces": 5, "buckets": 2, "allow_exact_matches": False, "how": "inner"},
    {"pieces": 3, "buckets": 1, "direction": "forward", "tie_break": "v"},
    {"pieces": 3, "buckets": 2, "direction": "nearest", "emit": "ordered"},
    {"pieces": 3, "buckets": 5, "direction": "nearest", "tolerance": "3 seconds", "by": None},
]


def asof(frames: list[DataFrame], **options: Any) -> DataFrame:
    return sj.join_asof(*frames, **{"on": "ts", "by": "k", "lateness": sj.Grace(f"{SLACK} seconds"), **options})


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_differential_a_finished_stream_gives_what_the_batch_gives(
    spark: SparkSession, tmp_path: Path, case: dict[str, Any]
) -> None:
    options = dict(case)
    rng, source = random.Random(str(case)), Source(spark, tmp_path)
    source.add([random_rows(rng, 60), random_rows(rng, 60)], options.pop("pieces"))
    expected = counted(asof(source.frames(streaming=False), **options))
    assert source.finished(asof(source.frames(streaming=True), **options)) == expected


def test_a_restart_goes_on_and_another_direction_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(5), Source(spark, tmp_path)
    sides = [random_rows(rng, 60), random_rows(rng, 60)]
    source.add([side[:30] for side in sides], 2)
    source.run(asof(source.frames(streaming=True)))
    source.add([side[30:] for side in sides], 2)
    expected = counted(asof(source.frames(streaming=False)))
    with pytest.raises(Exception, match="choice was the newest right row"):
        source.run(asof(source.frames(streaming=True), direction="forward"))
    assert source.finished(asof(source.frames(streaming=True))) == expected


def test_only_final_rows_leave_and_late_ones_are_shown(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 0, 20)], [row(7, 0, 18)]])
    frame = asof(source.frames(streaming=True), late="output")
    assert not source.run(frame), "a right row at 19 may still come"
    source.add([[row(2, 0, 60)], [row(8, 0, 60)]])
    (left,) = source.run(frame)
    assert (dict(left)["id"], dict(left)["id_right"], dict(left)["_late"]) == (1, 7, False)
    source.add([[row(3, 0, 21)], [row(9, 0, 19)]])
    late = {(dict(one)["id"], dict(one)["id_right"]) for one in source.run(frame) if dict(one)["_late"]}
    assert late == {(3, None), (None, 9)}


def test_aggregation_after_an_as_of_join_drops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(6), Source(spark, tmp_path)
    source.add([random_rows(rng, 80), random_rows(rng, 80)], 3)
    source.close()
    source.add([[row(-1, -1, 20_000)], [row(-1, -2, 20_000)]])  # lets the closing row leave, and the watermark move
    joined = asof(source.frames(streaming=True))
    delay = sj.output_delay(joined)
    counts = joined.withWatermark("ts", delay).groupBy(F.window("ts", "10 seconds")).count()
    query = source.start(counts.select("count"))
    query.awaitTermination()
    dropped = [o["numRowsDroppedByWatermark"] for p in query.recentProgress for o in p["stateOperators"]]
    assert dropped
    assert not any(dropped)
    found = spark.read.parquet(str(source.out)).agg(F.sum("count")).first()
    assert found is not None
    assert found[0] == 80
