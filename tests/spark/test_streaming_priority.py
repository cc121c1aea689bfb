"""Urgent rows of running streams: they overtake, change no result, and a worker tells of them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from tests.priority_simulator import check_weak_order
from tests.spark.streams import SLACK, Source, counted, random_rows

GRACE = sj.Grace(f"{SLACK} seconds")


def without(rows: Counter[Any], *names: str) -> Counter[Any]:
    kept: Counter[Any] = Counter()
    for each, count in rows.items():
        kept[tuple(item for item in each if item[0] not in names)] += count
    return kept


def test_urgent_rows_overtake_in_lanes_and_change_no_result(spark: SparkSession, tmp_path: Path) -> None:
    """Both inputs in lanes; the query is stopped and goes on, is finished, and tells of its urgent results."""
    source, told = Source(spark, tmp_path), tmp_path / "told"
    told.mkdir()
    rows = [random_rows(random.Random(seed), 40) for seed in (1, 2)]
    source.add([[row for row in side if row[0] % 5] for side in rows], 4)
    lanes = Source(spark, tmp_path / "urgent")
    lanes.add([[row for row in side if not row[0] % 5] for side in rows])

    def laned(*, streaming: bool) -> list[DataFrame]:
        return [
            sj.lanes(urgent=lanes.frame(side, streaming=streaming), normal=source.frame(side, streaming=streaming))
            for side in (0, 1)
        ]

    def handler(table: Any, batch: int, bucket: int) -> None:
        assert min(table["priority"].to_pylist()) > 0
        (Path(str(told)) / f"{batch}-{bucket}-{uuid4()}").write_text(str(table.num_rows))

    options: dict[str, Any] = {
        "by": "k", "time": "ts", "window": sj.Range("6 s"), "lateness": GRACE, "buckets": 2, "emit": "ordered",
    }  # fmt: skip
    joined = sj.join(laned(streaming=True), priority="priority", urgent=handler, **options)
    query = source.start(joined)
    query.awaitTermination()
    first = sj.progress(query)["joins"]
    assert {"rows", "share", "standing", "starving"} == set(next(iter(first.values()))["urgent"])
    ordered = source.partitions()
    left = source.left(joined) + counted(sj.finish(source.checkpoint))

    plain = sj.join([frame.drop("priority") for frame in laned(streaming=False)], **options)
    assert without(left, "priority") == counted(plain)
    urgent = sum(count for each, count in left.items() if dict(each)["priority"])
    assert urgent == sum(int(file.read_text()) for file in told.iterdir()) > 0
    for batches in ordered.values():
        check_weak_order([
            (row["valid_from"].timestamp(), row["valid_to"].timestamp(), row["priority"])
            for batch in batches
            for row in batch
        ])  # fmt: skip
    early = {file.name.split("-")[0] for file in told.iterdir()}
    assert "0" in early, "all urgent rows came with the first micro-batch"


def test_a_plain_stream_again_in_order_of_time(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([random_rows(random.Random(3), 30), []], 3)
    ranked = sj.prioritise(source.frame(0, streaming=True), {"id % 4 = 0": 9})
    plain = sj.deprioritise(ranked, time="ts", lateness=GRACE)
    left = source.finished(plain)
    assert sum(left.values()) == 30
    assert {dict(each)["priority"] for each in left} == {0}
    (batches,) = [each for each in source.partitions().values() if any(each)]
    times = [row["ts"] for batch in batches for row in batch]
    assert times == sorted(times)
