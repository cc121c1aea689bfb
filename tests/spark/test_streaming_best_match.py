"""Best-match joins of streams on Spark: cut in any way, restarted, late, in order, and with a state that shrinks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import streamjoin as sj
from tests.spark.streams import CLOSING, SLACK, Row, Source, counted, random_rows, row

REACH = 8  # seconds, the epsilon of the ordered dimension: beyond what is late, so that rows wait for those to come
OVER_SECONDS: dict[str, Any] = {"on": {"v": 1.0, "n": REACH}, "ordered_by": "n", "lateness": sj.Grace(SLACK)}
OVER_TENTHS: dict[str, Any] = {"on": {"d": REACH / 10, "v": 1.0}, "lateness": sj.Grace(SLACK / 10)}

# Cells of the usual size would be wider than the data: all of it would meet in one bucket.
CASES: list[dict[str, Any]] = [
    {"pieces": 1, "buckets": 2, "how": "left", "by": "k"},
    {"pieces": 3, "buckets": 5, "how": "left", "dominance": "strict", "emit": "ordered", "cell": "5 seconds"},
    {"pieces": 4, "buckets": 2, "how": "inner", "cell": 5, **OVER_SECONDS},
    {"pieces": 3, "buckets": 1, "how": "full", "by": "k", "emit": "ordered", **OVER_SECONDS},
    {"pieces": 3, "buckets": 5, "how": "full"},
    {"pieces": 4, "buckets": 2, "how": "left", "cell": 1.0, **OVER_TENTHS},
]
MIRRORED: dict[str, Any] = {"pieces": 3, "buckets": 5, "how": "right", "cell": "5 seconds"}


def named(case: dict[str, Any]) -> str:
    words = [case["how"], *(case[name] for name in ("by", "ordered_by", "dominance", "emit") if name in case)]
    return "-".join([*words, str(case["pieces"]), str(case["buckets"])])


def best(frames: list[DataFrame], **options: Any) -> DataFrame:
    both = [
        frame.selectExpr("id", "k", "v", "ts", "int(unix_seconds(ts)) n", "unix_seconds(ts) / 10D d")
        for frame in frames
    ]
    usual = {"on": {"ts": f"{REACH} seconds", "v": 1.0}, "lateness": sj.Grace(f"{SLACK} seconds")}
    return sj.join_best_match(*both, **{**usual, **options})


def drawn(rng: random.Random, count: int) -> list[Row]:
    """Of many values, so that a row far in time may still be the nearest in value; some have none and match nobody."""
    values = [None if number % 10 == 0 else rng.randint(0, 30) / 10 for number in range(count)]
    return [(*each[:2], values[each[0]], *each[3:]) for each in random_rows(rng, count)]  # type: ignore[misc]


def pairs_of(rows: Any, *, late: bool = False) -> set[tuple[int | None, int | None]]:
    found = [dict(items) for items in rows]
    return {(each["id"], each["id_right"]) for each in found if each.get("_late", False) == late}


@pytest.mark.parametrize("case", [*CASES, pytest.param(MIRRORED, marks=pytest.mark.long)], ids=named)
def test_differential_a_finished_stream_gives_what_the_batch_gives(
    spark: SparkSession, tmp_path: Path, case: dict[str, Any]
) -> None:
    options = dict(case)
    rng, source = random.Random(named(case)), Source(spark, tmp_path)
    source.add([drawn(rng, 60), drawn(rng, 60)], options.pop("pieces"))
    expected = counted(best(source.frames(streaming=False), **options))
    pairs = pairs_of(expected)
    assert sum(None not in pair for pair in pairs) > 30, "the case itself is wrong: hardly anything is joined"
    assert ({None} <= {part for pair in pairs for part in pair}) == (case["how"] != "inner")
    assert source.finished(best(source.frames(streaming=True), **options)) == expected


def test_rows_ordered_by_doubles_leave_before_the_end(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 0, 20, 1.0)], [row(7, 0, 21, 1.0)]])
    frame = best(source.frames(streaming=True), **OVER_TENTHS, late="output")
    assert not source.run(frame), "a nearer one may still come"
    source.add([[row(2, 0, 60)], [row(8, 0, 60)]])
    assert pairs_of(source.run(frame)) == {(1, 7)}
    source.add([[row(3, 0, 30)], []])
    late = [dict(one)["id"] for one in source.run(frame) if dict(one)["_late"]]
    assert late == [3]


def test_a_restart_goes_on_and_another_dominance_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(5), Source(spark, tmp_path)
    sides = [drawn(rng, 60), drawn(rng, 60)]
    options: dict[str, Any] = {"how": "full", "by": "k", "buckets": 2}
    source.add([side[:30] for side in sides], 2)
    before = source.run(best(source.frames(streaming=True), **options))
    source.add([side[30:] for side in sides], 2)
    expected = counted(best(source.frames(streaming=False), **options))
    assert 0 < before.total() < expected.total(), "the restart is in the middle"
    with pytest.raises(Exception, match=r"this state was made by another join: choice was .*pareto.*strict"):
        source.run(best(source.frames(streaming=True), **options, dominance="strict"))
    assert source.finished(best(source.frames(streaming=True), **options)) == expected


def test_only_final_rows_leave_and_late_ones_are_shown_once(spark: SparkSession, tmp_path: Path) -> None:
    """Without keys a right row goes to every bucket where it may be taken: if it is late, one of them shows it."""
    source = Source(spark, tmp_path)
    source.add([[row(1, 0, 20)], [row(7, 0, 18)]])
    frame = best(source.frames(streaming=True), late="output", buckets=5, cell="1 second")
    assert not source.run(frame), "a right row at 20 would be better, and may still come"
    source.add([[row(2, 0, 60)], [row(8, 0, 60)]])
    assert pairs_of(source.run(frame)) == {(1, 7)}
    everywhere = [row(number, 0, number - 80) for number in range(100, 120)]
    source.add([[row(3, 0, 21)], everywhere])
    left = source.run(frame)
    assert pairs_of(left) == {(1, 7)}, "what is late takes nobody, and nobody takes it"
    assert pairs_of(left, late=True) == {(3, None), *((None, each[0]) for each in everywhere)}
    assert left.total() == 2 + len(everywhere)


def test_a_silent_input_stops_holding_back_when_a_restart_says_so(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(spark, tmp_path)
    source.add([[row(1, 0, 20), row(2, 0, 30)], [row(7, 0, 18)]])
    source.add([[row(3, 0, 60)], []])
    assert not source.run(best(source.frames(streaming=True), buckets=1, late="output")), "input 1 may still bring rows"
    # The clock is looked at from the restart on: the second micro-batch sees that input 1 has been silent since.
    for number, seconds in ((4, 61), (5, 62)):
        source.add([[row(number, 0, seconds)], []])
    frame = best(source.frames(streaming=True), buckets=1, late="output", idle_after="1 millisecond")
    assert pairs_of(source.run(frame)) == {(1, 7), (2, None)}
    source.add([[row(6, 0, 63)], [row(9, 0, 30), row(10, 0, 64)]])
    left = source.run(frame)
    assert pairs_of(left, late=True) == {(None, 9)}, "it would have been the best for row 2, which has left"
    held = counted(sj.finish(source.checkpoint))
    assert {one for one, _ in pairs_of(left + held)} == {1, 2, 3, 4, 5, 6}


def test_state_shrinks_to_what_can_still_be_taken(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(9), Source(spark, tmp_path)
    sides = [random_rows(rng, 200, horizon=200) for _ in range(2)]
    source.add(sides, 4)
    source.close()
    query = source.start(best(source.frames(streaming=True), by="k", buckets=1))
    query.awaitTermination()
    kept = [figures["state_rows"] for p in query.recentProgress for figures in sj.from_progress(p)["joins"].values()]
    assert max(kept[:-1]) < 100, "a window of rows is kept, whatever came before"
    assert kept[-1] == 2, "the closing row of each input"
    expected = counted(best(source.frames(streaming=False), by="k"))
    assert source.left(best(source.frames(streaming=True), by="k")) == expected, "and everything else has left"


def test_ordered_results_leave_in_order_over_all_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    rng, source = random.Random(11), Source(spark, tmp_path)
    source.add([drawn(rng, 60), drawn(rng, 60)], 4)
    source.close()
    joined = best(source.frames(streaming=True), how="full", emit="ordered", buckets=1)
    times: list[list[Any]] = []

    def note(batch: DataFrame, number: int) -> None:
        found = [(each.ts or each.ts_right, each.id, each.id_right) for each in batch.collect()]
        times.append([time for time, *ids in found if CLOSING not in ids])

    writer = joined.writeStream.foreachBatch(note).option("checkpointLocation", str(source.checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sum(map(bool, times)) > 2, "over several micro-batches"
    left = [time for batch in times for time in batch]
    assert left == sorted(left)
    assert len(left) == counted(best(source.frames(streaming=False), how="full")).total()
