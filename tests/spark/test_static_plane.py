"""A table beside a stream, under budgets so small that every page is in files, through the processors that ship: what
leaves is what a batch gives, wherever buckets move and whatever becomes of files.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from streamjoin.algebra import Aggregate, Equals, Greedy, Range, Unbounded
from streamjoin.plan.lowering import Leaving
from streamjoin.plan.physical import PhysicalPlan
from streamjoin.plan.relation import Aggregation, Join, Relation, Selection, Stream, Union
from streamjoin.runtime.packets import Packet
from streamjoin.spark.stored import bucket, local_runs
from tests import function_trees as functions
from tests.in_process import plan_of
from tests.plane import Plane, batch_result, own_cache
from tests.spark.test_streaming_plane import (
    SCHEMA,
    SHAPES_IN_TURN,
    SLACK,
    batch_of,
    counted,
    hows,
    planned,
    rows,
    table,
)

__all__ = ["own_cache"]
pytestmark = pytest.mark.usefixtures("own_cache")
BUDGETS = (1, 4_000)


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    monkeypatch.setattr("streamjoin.runtime.packets.BLOB_BYTES", 500)  # many packets of few rows
    local_runs.scratch.cache_clear()
    yield tmp_path
    local_runs.scratch.cache_clear()


def budgeted(plan: PhysicalPlan, memory: int) -> PhysicalPlan:
    return replace(plan, stages=tuple(replace(stage, memory=memory) for stage in plan.stages))


@pytest.mark.parametrize(("shape", "emit"), SHAPES_IN_TURN)
def test_differential_a_table_beside_a_stream_gives_what_the_batch_gives(local: Path, shape: str, emit: str) -> None:
    rng, spilled = random.Random(f"static {shape} {emit}"), 0
    turns = itertools.cycle(itertools.product((0, 1), (1, 3), BUDGETS))
    for options, (static, buckets, memory) in zip(hows(shape), turns, strict=False):
        ended = (static == 0, static == 1)
        call = planned(shape, ended=ended, emit=emit, buckets=buckets, **options)
        sides = [rows(rng, 25), rows(rng, 25)]
        expected = batch_of(call, [table(side) for side in sides])
        plane = Plane(budgeted(call.plan(), memory), rng, trouble=0.2)
        assert not list(plane.put({str(static): table(sides[static])}))
        left = []
        for at in range(0, 25, 5):
            left += plane.micro_batch({str(1 - static): table(sides[1 - static][at : at + 5])})
            spilled += sum(figures.get("spilled_bytes", 0) for figures in plane.figures)
        case = f"{shape} {emit} {options}, input {static} static, {buckets} buckets, {memory} bytes"
        assert counted([*left, *plane.end()]) == expected, case
    assert spilled, "nothing was in files"


def shown(tables: Iterable[pa.Table]) -> list[str]:
    return sorted(str(sorted(row.items())) for part in tables for row in part.to_pylist())


def streams(*names: str) -> list[Stream]:
    return [
        Stream(name, tuple((f"{name}.{column}", column) for column in SCHEMA.names), "ts", Range(9)) for name in names
    ]


def of_many() -> Relation:
    one, two, three = streams("R", "S", "T")
    return Join(Join(one, two, (Equals("R.k", "S.k"),)), three, (Equals("R.k", "T.k"),))


def grouped() -> Relation:
    """Two tables meet each other before the stream begins, and what they become is counted."""
    return Aggregation(of_many(), ("R.k",), (Aggregate("count", None, "n"),))


def united() -> Relation:
    """Rows of a table and of a stream, which only pass."""
    one, two = (replace(each, reads=((f"{each.source}.k", "k"),)) for each in streams("R", "S"))
    return Union((Selection(one, "`R.k` >= 0"), two))


@pytest.mark.parametrize("static", ["R", "T", "RS", "ST"])
@pytest.mark.parametrize("relation", [of_many, grouped])
def test_differential_tables_in_queries(local: Path, relation: Any, static: str) -> None:
    for buckets, memory in itertools.product((1, 2), BUDGETS):
        rng = random.Random(f"{relation.__name__} {static} {buckets} {memory}")
        schemas, leaving = dict.fromkeys("RST", SCHEMA), Leaving(buckets=buckets)
        whole = {name: table(rows(rng, 12)) for name in "RST"}
        expected = shown(batch_result(plan_of(relation(), schemas, None, leaving), whole))
        going_on = {name: SLACK for name in "RST" if name not in static}
        plan = budgeted(plan_of(relation(), schemas, going_on, leaving), memory)
        plane = Plane(plan, rng, trouble=0.2)
        left = list(plane.put({name: whole[name] for name in static}))
        for at in range(0, 12, 4):
            left += plane.micro_batch({name: whole[name].slice(at, 4) for name in going_on})
        assert shown([*left, *plane.end()]) == expected
        assert expected


def test_a_table_beside_a_join_in_sorted_runs(local: Path) -> None:
    rng = random.Random(0)
    relation = replace(functions.tree("keys", windows=(Range(5), Unbounded())), merge=Greedy(3))
    sides = [functions.table(functions.rows(rng, 300)) for _ in (0, 1)]
    whole = Plane(functions.plan_of(relation, {"0": 50}, buckets=1, emit="ordered"), rng)
    small = Plane(budgeted(functions.plan_of(relation, {"0": 50}, buckets=1, emit="ordered"), 16_000), rng, trouble=0.2)
    found = []
    for plane in (whole, small):
        assert not list(plane.put({"1": sides[1]}))
        left = [part for at in range(0, 300, 60) for part in plane.micro_batch({"0": sides[0].slice(at, 60)})]
        spilled = sum(figures.get("spilled_bytes", 0) for figures in plane.figures)
        assert bool(spilled) == (plane is small)
        found.append(counted([*left, *plane.end()]))
    assert found[0] == found[1]
    assert found[0]


def test_what_was_handed_over_is_in_the_state_and_nowhere_else(local: Path) -> None:
    """Neither here, nor in the frames that PySpark keeps until the stream begins; in a later task, it is read there."""
    call = planned("keys", ended=(False, True))
    plan = budgeted(call.plan(), 4_000)
    plane, sides = Plane(plan, random.Random(0)), [table(rows(random.Random(side), 200)) for side in (0, 1)]
    handed: list[pd.DataFrame] = []
    hand_over = bucket.Bucket.put

    def noted(self: bucket.Bucket, frame: pd.DataFrame) -> None:
        handed.append(frame)
        hand_over(self, frame)
        known = next(reversed(bucket._remembered.values()))
        assert len(known.stage.aside) == len(handed)
        assert not known.stage.aside.nbytes

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bucket.Bucket, "put", noted)
        assert not list(plane.put({"1": sides[1]}))
    assert len(handed) > 10
    assert all(frame.empty for frame in handed)
    read: list[int] = []
    packet_of = Packet.of

    def counting(number: int, channel: int, kind: Any, blob: bytes) -> Packet:
        read.extend([1] if channel == 1 and kind == "rows" else [])
        return packet_of(number, channel, kind, blob)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Packet, "of", staticmethod(counting))
        left = list(plane.micro_batch({"0": sides[0]}))
    assert len(read) == len(handed)
    assert counted([*left, *plane.end()]) == batch_of(call, sides)
    values = next(iter(plane.stores[0].values())).cells["blobs"]
    assert not any(name.startswith("aside/") for name, _ in values), "they are in the areas now"


def test_without_a_budget_frames_stay_as_they_were_handed_over(local: Path) -> None:
    plane = Plane(planned("keys", ended=(False, True)).plan(), random.Random(0))
    assert not list(plane.put({"1": table(rows(random.Random(1), 50))}))
    known = next(reversed(bucket._remembered.values()))
    assert known.stage.aside.nbytes


def test_a_union_of_a_table_and_a_stream(local: Path) -> None:
    schemas = dict.fromkeys("RS", SCHEMA)
    whole = {name: table(rows(random.Random(name), 30)) for name in "RS"}
    plan = budgeted(plan_of(united(), schemas, {"S": SLACK}), 1)
    assert any(stage.ahead for stage in plan.stages), "it leaves piece by piece"
    plane = Plane(plan, random.Random(0), trouble=0.2)
    left = [*plane.put({"R": whole["R"]}), *plane.micro_batch({"S": whole["S"]}), *plane.end()]
    expected = batch_result(plan_of(united(), schemas), whole)
    assert shown(left) == shown(expected)
    assert sum(part.num_rows for part in left) == 60
