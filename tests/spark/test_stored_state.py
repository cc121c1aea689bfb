"""What a query keeps: blobs measured and put together, and the same from a real checkpoint."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin.algebra import FOREVER, TimeAxis
from streamjoin.operators import Verdict
from streamjoin.operators.judging import Judging
from streamjoin.runtime.fragment import Entry, Node
from streamjoin.runtime.intake import Channel, StageInput
from streamjoin.runtime.lateness import Slack
from streamjoin.runtime.naming import Shape
from streamjoin.runtime.outlet import Outlet, ToUser
from streamjoin.runtime.packets import Packet
from streamjoin.runtime.placing import Partitioning
from streamjoin.runtime.recall import ToRecall
from streamjoin.runtime.stage import RunningStage, Stage
from streamjoin.spark.stored.bundles import bundled
from streamjoin.spark.stored.kept import MeasuredBlob, StoredInput, inputs_of, measure, stored_state
from streamjoin.spark.stored.pages import Stored, bound
from streamjoin.state import Snapshot
from tests.function_trees import plan_of, table, tree
from tests.operators.driving import SCHEMAS, end, progress, put, rows, temporal
from tests.plane import Plane, own_cache

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["own_cache"]
PAGES = pa.schema([
    ("owner", pa.string()), ("name", pa.string()), ("page", pa.int32()), ("pages", pa.int32()), ("blob", pa.binary()),
])  # fmt: skip
START = 1_704_103_200  # 2024-01-01 10:00:00 UTC, in seconds


def measured(snapshot: Snapshot, owner: str = "bucket") -> list[MeasuredBlob]:
    """All blobs of a snapshot, in two pages each, the second first, in record batches of three."""
    pages = [
        (owner, name, number, 2, blob[: len(blob) // 2] if number == 0 else blob[len(blob) // 2 :])
        for number in (1, 0)
        for name, blob in snapshot.blobs.items()
    ]
    table = pa.Table.from_pylist([dict(zip(PAGES.names, page, strict=True)) for page in pages], schema=PAGES)
    rows = pa.Table.from_batches(measure(table.to_batches(max_chunksize=3))).to_pylist() if pages else []
    return [MeasuredBlob(**row) for row in rows]


def staged(operator: Any) -> RunningStage:
    """A running operator as the only one of a stage."""
    inputs = tuple(
        StageInput((Channel(number, Slack(0)),), Partitioning(1)) for number in range(operator.inputs)
    )  # fmt: skip
    entries = tuple(Entry(number) for number in range(operator.inputs))
    running = Stage(0, 1, inputs, (Node(operator.config, entries, ()),), Outlet(ToUser(9, Shape(())))).build(3)
    running.fragment.operators[0] = operator
    for number, time in enumerate(operator.times.times):
        running.intake.channels[number].told = time
    return running


def stored(operator: Any) -> list[StoredInput]:
    running = staged(operator)
    snapshot = running.snapshot()
    manifest = {"bucket": 3, "blobs": dict.fromkeys(snapshot.blobs), **snapshot.manifest}
    return list(inputs_of(0, running.config, TimeAxis.INTEGER, {"bucket": manifest}, measured(snapshot)))


def test_oracle_rows_runs_and_times_of_both_inputs() -> None:
    join = temporal()
    put(join, 0, (1, 5, 9), (2, 3, 20))
    put(join, 0, (3, 7, FOREVER))
    put(join, 1, (4, 100, 101))
    progress(join, 5, 4)
    one, two = stored(join)
    assert (one.rows, one.first, one.last, one.progress) == (3, 3, FOREVER, 5)
    assert (two.rows, two.runs, two.first, two.last, two.progress) == (1, 1, 100, 101, 4)
    assert one.runs >= 1
    assert one.bytes + two.bytes == join.snapshot().nbytes
    assert (one.input, two.input, one.bucket, one.stage) == (0, 1, 3, "join")


def test_what_is_gone_from_a_bundle_is_not_counted() -> None:
    join = temporal()
    put(join, 0, (1, 5, 9), (2, 3, 20))
    running = staged(join)
    snapshot = running.snapshot()
    manifest = {"bucket": 3, "blobs": dict.fromkeys(snapshot.blobs), **snapshot.manifest}
    gone = {f"{name}-gone": blob for name, blob in snapshot.blobs.items()}
    bundle = Snapshot({}, {"bundle/1": bundled({**snapshot.blobs, **gone})})
    found = list(inputs_of(0, running.config, TimeAxis.INTEGER, {"bucket": manifest}, measured(bundle)))
    assert found == stored(join)
    assert found[0].rows == 2


@pytest.mark.usefixtures("own_cache")
def test_what_a_recall_target_has_counted_is_no_rows() -> None:
    aim = ToRecall(0.9, 1000, 50)
    plan = plan_of(tree("keys"), {"0": aim, "1": aim}, buckets=1, late=("join", "join"))
    plane, row = Plane(plan, random.Random(0)), {"id": 1, "ts": 10, "k": 0, "v": 0, "lo": 0, "hi": 1}
    for ts in (10, 11):
        list(plane.micro_batch({"0": table([row | {"ts": ts}]), "1": table([row | {"ts": ts}])}))
    (store,) = plane.stores[0].values()
    manifest = json.loads(store.cells["manifest"][0])
    assert any(name.startswith("in:") for name in manifest["blobs"])
    pages = store.cells["blobs"]
    values = {
        name: bound(pages[name, place][1] for place in Stored(*told).places)
        for name, told in manifest["values"].items()
    }
    found = list(inputs_of(0, plan.stages[0], TimeAxis.INTEGER, {"bucket": manifest}, measured(Snapshot({}, values))))
    assert [part.rows for part in found if part.input is not None] == [2, 2]
    assert [part.rows for part in found if part.input is None] == [0]


def test_an_empty_operator_has_two_empty_inputs() -> None:
    for part in stored(temporal()):
        assert (part.rows, part.bytes, part.runs) == (0, 0, 0)
        assert (part.first, part.last, part.progress) == (None, None, None)


def test_marks_beside_the_rows_count_as_bytes_only() -> None:
    join = temporal(how="full", outer="snapshot")
    put(join, 0, (1, 0, 10))
    put(join, 1, (2, 5, 15))
    parts = stored(join)
    assert [(part.rows, part.runs) for part in parts] == [(1, 1), (1, 1)]
    assert sum(part.bytes for part in parts) == join.snapshot().nbytes


def test_results_that_wait_are_shown_apart() -> None:
    join = temporal(emit="ordered", hold="outputs")
    assert put(join, 0, (1, 0, 10)) == put(join, 1, (2, 5, 15)) == []
    one, two, results = stored(join)
    assert (one.rows, two.rows) == (1, 1)
    assert (results.input, results.rows, results.first, results.last, results.progress) == (None, 1, 5, 10, None)


def test_rows_that_wait_belong_to_their_input() -> None:
    join = temporal(emit="ordered", hold="inputs")
    put(join, 1, (1, 4, 10), (2, 2, 3))
    one, two = stored(join)
    assert (one.rows, two.rows, two.runs, two.first, two.last) == (0, 2, 1, 2, 10)


def test_nothing_is_left_when_all_has_ended() -> None:
    join = temporal()
    put(join, 0, (1, 5, 9))
    end(join)
    assert [part.rows for part in stored(join)] == [0, 0]


def test_the_second_stage_has_the_inputs_that_it_decides_about() -> None:
    judging = Judging((Verdict(1, SCHEMAS, "right"),), ordered=True).build()
    claimants = rows((1, 5, 9), (2, 3, 20), origin=[1, 2], home=[True, True])
    assert list(judging.on_batch(1, claimants)) == []
    assert list(judging.on_batch(2, rows((2, 3, 20), origin=[2], home=[False]))) == []
    (part,) = stored(judging)
    assert (part.stage, part.input, part.rows, part.runs, part.first, part.last) == ("verdict", 1, 3, 2, 3, 20)
    assert part.progress is None, "nothing has been said yet"
    for number in range(3):
        list(judging.on_progress(number, 2))
    assert [part.progress for part in stored(judging)] == [2]


def test_packets_that_wait_for_the_first_micro_batch_belong_to_their_input() -> None:
    running = staged(temporal())
    running.put([Packet(3, 1, "rows", rows((1, 5, 9)).to_table())])
    snapshot = running.snapshot()
    manifest = {"bucket": 3, "blobs": dict.fromkeys(snapshot.blobs), **snapshot.manifest}
    one, two = inputs_of(0, running.config, TimeAxis.DATE, {"bucket": manifest}, measured(snapshot))
    assert (one.rows, two.rows, two.first, two.last) == (0, 1, 5, 9)


# -- real checkpoints --------------------------------------------------------------------------------------------------


def write(spark: SparkSession, folder: Path, seconds: list[int]) -> DataFrame:
    """A stream of these times, in one file."""
    frame = spark.createDataFrame([(START + second,) for second in seconds], "s long")
    frame.selectExpr("1 k", "timestamp_seconds(s) ts").coalesce(1).write.parquet(str(folder))
    return spark.readStream.schema("k int, ts timestamp").parquet(str(folder))


def run(frame: DataFrame, checkpoint: Path) -> None:
    options: dict[str, Any] = {"queryName": f"q{abs(hash(checkpoint))}", "checkpointLocation": str(checkpoint)}
    frame.writeStream.format("noop").options(**options).trigger(availableNow=True).start().awaitTermination()


def test_oracle_a_stopped_query_shows_what_it_keeps(spark: SparkSession, tmp_path: Path) -> None:
    frames = [write(spark, tmp_path / "0", [0, 50, 55]), write(spark, tmp_path / "1", [51])]
    options: dict[str, Any] = {"time": "ts", "window": sj.Range("10 seconds"), "lateness": sj.Grace("5 seconds")}
    run(sj.join(frames, by="k", buckets=2, **options), tmp_path / "checkpoint")
    parts = stored_state(spark, str(tmp_path / "checkpoint"))
    assert [(part.operator, part.stage) for part in parts] == [(0, "join")] * 4
    assert [(part.bucket, part.input) for part in parts] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert {part.axis for part in parts} == {TimeAxis.TIMESTAMP}
    # Input 1 is at 46, so the row of second 0 can meet nobody any more; but it still lies in its run.
    in_one_bucket = {part.input: part for part in parts if part.rows}
    times = {number: (part.rows, part.first, part.last) for number, part in in_one_bucket.items()}
    assert times == {
        0: (3, START * 10**6, (START + 65) * 10**6),
        1: (1, (START + 51) * 10**6, (START + 61) * 10**6),
    }
    assert all(part.bytes > 0 for part in in_one_bucket.values())
    reached = {(part.input, part.progress) for part in parts}
    assert reached == {(0, (START + 50) * 10**6), (1, (START + 46) * 10**6)}


def test_a_second_stage_is_an_operator_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    frames = [write(spark, tmp_path / "0", [0, 50]), write(spark, tmp_path / "1", [51])]
    options: dict[str, Any] = {"time": "ts", "window": sj.Range("10 seconds"), "lateness": sj.Grace("5 seconds")}
    run(sj.join(frames, where=sj.theta("l.k < r.k"), how="left", buckets=2, **options), tmp_path / "checkpoint")
    parts = stored_state(spark, str(tmp_path / "checkpoint"))
    assert {part.stage for part in parts} == {"join", "verdict"}
    assert len({part.operator for part in parts}) == 2
    verdicts = [part for part in parts if part.stage == "verdict"]
    assert {(part.bucket, part.input) for part in verdicts} == {(0, 0), (1, 0)}
    assert {part.axis for part in parts} == {TimeAxis.TIMESTAMP}


def test_the_checkpoint_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = write(spark, tmp_path / "in", [1])
    run(stream.dropDuplicates(["k"]), tmp_path / "other")
    with pytest.raises(sj.CallError, match="other keeps no state of a streamjoin call"):
        stored_state(spark, str(tmp_path / "other"))


def test_a_folder_that_is_no_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(sj.CallError, match="keeps no state of a streamjoin call"):
        stored_state(spark, str(tmp_path))
