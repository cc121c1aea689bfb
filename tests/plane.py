"""The streaming data plane without a JVM: the tasks, the exchange and the state store of Spark, played by dictionaries.

What runs is the real code: packing tasks, stateful processors with their manifests and blobs, unpacking, of any
physical plan. Only what Spark itself computes is computed here as plans in this process do. Every object goes through
pickle as it would on its way to a worker. Between micro-batches a worker may be replaced (nothing is remembered), a
host may lose its files, and a task may fail after it has written and be run again.
"""

from __future__ import annotations

import json
import pickle
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow as pa
import pytest

from streamjoin.plan.identity import identity_of
from streamjoin.plan.physical import Edge, PhysicalPlan, Source
from streamjoin.plan.types import names_of
from streamjoin.runtime.elements import HIDDEN_SCHEMA
from streamjoin.runtime.outlet import ToCourt, ToStage
from streamjoin.runtime.stage import Stage
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.running import tasks
from streamjoin.spark.running.packed import pack
from streamjoin.spark.running.stream import idle_timer, work_timer
from streamjoin.spark.running.tasks import OperateAtOnce, PackEdge, PackSource, ReadElements, numbered, unpack_rows
from streamjoin.spark.running.urgent import Handler
from streamjoin.spark.stored import blob_cache, bucket, local_runs
from streamjoin.spark.stored.bundles import unbundled
from streamjoin.spark.stored.pages import Stored, bound
from streamjoin.spark.stored.processor import StageProcessor
from streamjoin.state import Snapshot
from tests.interpreter import leaving, prepared, stepped


class Value:
    """A ValueState."""

    def __init__(self, cells: dict[str, Any], name: str) -> None:
        self.cells, self.name = cells, name

    def get(self) -> Any:
        return self.cells.get(self.name)

    def update(self, value: tuple) -> None:
        self.cells[self.name] = value


class Map:
    """A MapState."""

    read = 0  # how many values all of them have been asked for

    def __init__(self, cells: dict[str, Any], name: str) -> None:
        self.cells = cells.setdefault(name, {})

    def getValue(self, key: tuple) -> Any:  # noqa: N802
        Map.read += 1
        return self.cells.get(key)

    def updateValue(self, key: tuple, value: tuple) -> None:  # noqa: N802
        assert isinstance(value[1], bytes), "what Spark takes as binary"
        assert key not in self.cells, "a blob never changes under its name"
        self.cells[key] = value

    def removeKey(self, key: tuple) -> None:  # noqa: N802
        del self.cells[key]


class Store:
    """The state of one bucket of one stage."""

    def __init__(self) -> None:
        self.cells: dict[str, Any] = {}
        self.timers: list[int] = []

    def getMapState(self, name: str, *_: Any) -> Map:  # noqa: N802
        return Map(self.cells, name)

    def getValueState(self, name: str, *_: Any) -> Value:  # noqa: N802
        return Value(self.cells, name)

    def registerTimer(self, milliseconds: int) -> None:  # noqa: N802
        """Whoever plays the clock fires it."""
        self.timers.append(milliseconds)

    def copy(self) -> Store:
        store = Store()
        store.cells = {name: dict(cell) if isinstance(cell, dict) else cell for name, cell in self.cells.items()}
        return store


Packed = list[pa.RecordBatch]
Stores = dict[int, dict[int, Store]]  # by stage and label


class Plane:
    """A plan at work on streams. Frames that are static are `put` before the first micro-batch."""

    def __init__(
        self, plan: PhysicalPlan, rng: random.Random, *, trouble: float = 0.0, urgent: Handler | None = None
    ) -> None:
        self.plan, self.rng, self.trouble, self.urgent = plan, rng, trouble, urgent
        self.stores: Stores = {stage.number: defaultdict(Store) for stage in plan.stages}
        self.processors: dict[int, StageProcessor] = {}
        self.figures: list[dict[str, int]] = []
        self.call: dict[str, Any] = {}
        self.packed: dict[int, Packed] = {}  # of this micro-batch, by channel

    def micro_batch(self, tables: Mapping[str, pa.Table], *, clock: int | None = None) -> Iterator[pa.Table]:
        """Rows of some frames arrive; final rows leave, one table per bucket."""
        self.figures, self.packed = [], {}
        for source in self.plan.sources:
            if source.name in tables and not source.complete:
                yield from self._read(source, tables[source.name], clock, told=True)
        for stage in self._stages():
            yield from self._sent(stage, self._tasks(stage))

    def put(self, tables: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
        """Static frames: stages that read nothing else run at once, for others they are initial state, in pieces as
        Spark may hand it over. Final rows leave where no stream is waited for.
        """
        self.figures, self.packed = [], {}
        for source in self.plan.sources:
            if source.complete:
                yield from self._read(source, tables[source.name], None, told=False)
        for stage in self.plan.stages:
            if stage.complete:
                task = _travelled(OperateAtOnce(stage, labels_after(stage), self.urgent))
                arrived = self._arrived(stage)
                if isinstance(stage.outlet.way, ToStage | ToCourt):
                    yield from self._sent(stage, list(task(arrived)))
                else:
                    yield from self._rows(stage, [pa.Table.from_batches([rows]) for rows in task(arrived)])
                continue
            for label, frame in _grouped(self._arrived(stage)):
                for piece in range(len(frame)):
                    running = self._processor(stage, label, self.stores[stage.number])
                    running.handleInitialState((label,), frame.iloc[[piece]].copy(), None)

    def tick(self, milliseconds: int) -> Iterator[pa.Table]:
        """Timers fire in every bucket that reads a source."""
        self.figures, self.packed = [], {}
        for stage in self._stages():
            packed = self._tasks(stage)
            reads_source = any(channel.from_source for each in stage.inputs for channel in each.channels)
            for label in list(self.stores[stage.number]) if reads_source else []:
                running = self._processor(stage, label, self.stores[stage.number])
                packed += _batches(list(running.handleExpiredTimer((label,), Clock(milliseconds), None)))
            yield from self._sent(stage, packed)

    def end(self) -> Iterator[pa.Table]:
        """Nothing comes any more: every stage is restored from its state, and ended."""
        self.figures, self.packed = [], {}
        for stage in self._stages():
            labels, stores = bucket_labels(stage.buckets), self.stores[stage.number]
            arrived, packed = dict(_grouped(self._arrived(stage))), []
            for label in sorted({*stores, *arrived}):
                running = stage.build(labels.index(label))
                if "manifest" in stores[label].cells:
                    running.restore(_stored(stores[label].cells))
                frames = [arrived[label]] if label in arrived else []
                for packet in [*running.take(bucket.packets_of(frames)), *running.end()]:
                    packed += pack(packet, labels_after(stage))
                assert running.figures()["state_rows"] == 0, "state is left after the end"
            yield from self._sent(stage, packed)

    # -- sources -------------------------------------------------------------------------------------------------------

    def _read(self, source: Source, table: pa.Table, clock: int | None, *, told: bool) -> Iterator[pa.Table]:
        for number, part in enumerate(self._partitions(table)):
            rows = prepared(source, part)
            if clock is not None:
                rows = rows.append_column("clock", pa.array([clock] * rows.num_rows, pa.int64()))
            with patch.object(tasks, "first_arrival", partial(int, number << 40)):
                if source.target is None:
                    elements = list(_travelled(ReadElements(source))(rows.to_batches(max_chunksize=7)))
                    edge = self.plan.edge_of(source.channel)
                    assert edge is not None
                    yield from self._stepped(edge, [pa.Table.from_batches([each]) for each in elements])
                    continue
                task = PackSource(source, bucket_labels(source.target.buckets), told, clock is not None)
                packed = self._observed(list(_travelled(task)(rows.to_batches(max_chunksize=7))))
                self.packed.setdefault(source.channel, []).extend(packed)

    def _partitions(self, table: pa.Table) -> list[pa.Table]:
        at = sorted(self.rng.randint(0, table.num_rows) for _ in range(self.rng.randint(0, 2)))
        return [table.slice(start, stop - start) for start, stop in zip([0, *at], [*at, table.num_rows], strict=True)]

    # -- stages --------------------------------------------------------------------------------------------------------

    def _stages(self) -> list[Stage]:
        """Those that have state."""
        return [stage for stage in self.plan.stages if not stage.complete]

    def _arrived(self, stage: Stage) -> Packed:
        """What has come for a stage: some of its channels come by one frame."""
        frames = {id(self.packed[channel]): self.packed[channel] for channel in self._channels(stage)}
        return [batch for frame in frames.values() for batch in frame]

    def _channels(self, stage: Stage) -> list[int]:
        return [channel for channel in self.plan.feeders(stage) if channel in self.packed]

    def _tasks(self, stage: Stage) -> Packed:
        """All buckets of a stage that something has come for; what leaves them."""
        frames = []
        for label, frame in _grouped(self._arrived(stage)):
            frames += self._task(stage, label, frame)
        return _batches(frames)

    def _task(self, stage: Stage, label: int, frame: pd.DataFrame) -> list[pd.DataFrame]:
        """One bucket of one micro-batch; sometimes the first attempt is lost."""
        stores = self.stores[stage.number]
        if self.rng.random() < self.trouble:
            lost = {label: stores[label].copy()}
            attempt = self._processor(stage, label, lost)
            outputs = attempt.handleInputRows((label,), iter([frame]), Clock(-1))
            for _ in outputs if self.rng.random() < 0.5 else [next(outputs, None)]:
                pass
        running = self._processor(stage, label, stores)
        pieces = [frame.iloc[:1], frame.iloc[1:]] if len(frame) > 1 else [frame]
        return list(running.handleInputRows((label,), iter(pieces), Clock(-1)))

    def _processor(self, stage: Stage, label: int, stores: dict[int, Store]) -> StageProcessor:
        if self.rng.random() < self.trouble:
            bucket.forget_all()
        if self.rng.random() < self.trouble:
            beside_runs = local_runs.scratch().folder.glob(f"*/{blob_cache.BESIDE_RUNS}/*")
            for file in (*blob_cache.cache_root().rglob("*"), *beside_runs):
                if file.is_file() and self.rng.random() < 0.5:
                    file.unlink()
        if stage.number not in self.processors:
            idle, work = (timer(stage, timers=self.plan.timers) for timer in (idle_timer, work_timer))
            self.processors[stage.number] = StageProcessor(
                stage, labels_after(stage), self.call, identity_of(self.plan, stage), idle, self.urgent, work
            )
        running = _travelled(self.processors[stage.number])
        running.init(stores[label])
        return running

    # -- what leaves ---------------------------------------------------------------------------------------------------

    def _observed(self, packed: Packed) -> Packed:
        """Without the figures, which are noted: each packed row is a batch of its own."""
        noted = [batch for batch in packed if batch.column(3)[0].as_py() == "figures"]
        self.figures += [json.loads(batch.column(4)[0].as_py()) for batch in noted]
        return [batch for batch in packed if batch.column(3)[0].as_py() != "figures"]

    def _sent(self, stage: Stage, packed: Packed) -> Iterator[pa.Table]:
        """What has left a stage goes where its outlet says."""
        packed, way = self._observed(packed), stage.outlet.way
        if isinstance(way, ToStage | ToCourt):
            self.packed |= dict.fromkeys((way.channel, *(each.channel for each in stage.outlet.testimony)), packed)
            return
        by_bucket: dict[int, Packed] = defaultdict(list)
        for batch in packed:
            by_bucket[batch.column(1)[0].as_py()].append(batch)
        for number in sorted(by_bucket):
            yield from self._rows(stage, [pa.Table.from_batches([rows]) for rows in unpack_rows(by_bucket[number])])

    def _rows(self, stage: Stage, tables: list[pa.Table]) -> Iterator[pa.Table]:
        """Rows with numbers for names leave a stage, all of them alike."""
        edge = self.plan.edge_of(stage.outlet.way.channel)
        if edge is not None:
            yield from self._stepped(edge, tables)
        elif tables:
            yield pa.concat_tables(tables).rename_columns(list(names_of(self.plan.sink.fields)))

    def _stepped(self, edge: Edge, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Rows of elements, with what Spark computes of them, leave or are packed for the next stage."""
        for table in tables:
            named = table.rename_columns([*names_of(edge.fields), *HIDDEN_SCHEMA.names])
            if edge.target is None:
                yield from leaving(self.plan.sink, edge, named)
                continue
            rows = stepped(edge, named).select([*names_of(edge.result), *HIDDEN_SCHEMA.names])
            task = _travelled(PackEdge(edge, bucket_labels(edge.target.buckets)))
            self.packed.setdefault(edge.channel, []).extend(task(numbered(rows).to_batches()))


def labels_after(stage: Stage) -> tuple[int, ...]:
    """The labels of the buckets that a stage's packets are for."""
    way = stage.outlet.way
    return bucket_labels(way.target.buckets if isinstance(way, ToStage) else stage.buckets)


def _stored(cells: dict[str, Any]) -> Snapshot:
    manifest = json.loads(cells["manifest"][0])
    values = {name: Stored(*told).places for name, told in manifest["values"].items()}
    every = {(name, place) for name, places in values.items() for place in places}
    assert set(cells.get("blobs", ())) == every, "pages are left of blobs that nobody knows"
    read = {name: bound(cells["blobs"][name, place][1] for place in places) for name, places in values.items()}
    every_blob = {blob: content for name, value in read.items() for blob, content in unbundled(name, value)}
    return Snapshot(manifest, {blob: every_blob[blob] for blob in manifest["blobs"]})


class Clock:
    """The timer values that Spark hands over."""

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def getCurrentProcessingTimeInMs(self) -> int:  # noqa: N802
        return self.milliseconds


def batch_result(plan: PhysicalPlan, tables: Mapping[str, pa.Table]) -> list[pa.Table]:
    """What a plan gives whose frames are all static, by the tasks of batches."""
    assert not plan.streaming
    return list(Plane(plan, random.Random(0)).put(tables))


def _travelled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def _batches(frames: list[pd.DataFrame]) -> list[pa.RecordBatch]:
    """Each packed row as a batch of its own."""
    batches = [pa.RecordBatch.from_pandas(frame, preserve_index=False) for frame in frames]
    return [batch.slice(number, 1) for batch in batches for number in range(batch.num_rows)]


def _grouped(packed: list[pa.RecordBatch]) -> Iterator[tuple[int, pd.DataFrame]]:
    if packed:
        rows = pd.concat([batch.to_pandas() for batch in packed], ignore_index=True)
        yield from ((int(label), group) for label, group in rows.groupby("label"))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path
