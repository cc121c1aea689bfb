"""The streaming data plane without a JVM: the tasks, the exchange and the state store of Spark, played by dictionaries.

What runs is the real code: packing tasks, stateful processors with their manifests and blobs, unpacking. Every object
goes through pickle as it would on its way to a worker. Between micro-batches a worker may be replaced (nothing is
remembered), a host may lose its files, and a task may fail after it has written and be run again.
"""

from __future__ import annotations

import json
import pickle
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from streamjoin.plan.planner import JoinPlan
from streamjoin.spark import blob_cache, bucket
from streamjoin.spark.batch import Judge, Operate, Pack
from streamjoin.spark.labels import bucket_labels
from streamjoin.spark.packing import pack
from streamjoin.spark.pages import bound
from streamjoin.spark.processor import StageProcessor
from streamjoin.spark.stages import JoinStage, Stage, VerdictStage
from streamjoin.spark.stream import PackWithProgress, unpack_rows
from streamjoin.state import Snapshot


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

    def getMapState(self, name: str, *_: Any) -> Map:  # noqa: N802
        return Map(self.cells, name)

    def getValueState(self, name: str, *_: Any) -> Value:  # noqa: N802
        return Value(self.cells, name)

    def copy(self) -> Store:
        store = Store()
        store.cells = {name: dict(cell) if isinstance(cell, dict) else cell for name, cell in self.cells.items()}
        return store


class Plane:
    """A streaming join at work."""

    def __init__(self, plan: JoinPlan, rng: random.Random, *, trouble: float = 0.0) -> None:
        self.plan, self.rng, self.trouble = plan, rng, trouble
        self.labels = bucket_labels(plan.partitioning.buckets)
        self.stages: list[Stage] = [JoinStage(plan)]
        if any(plan.followed):
            self.stages.append(VerdictStage(plan))
        self.stores: list[dict[int, Store]] = [defaultdict(Store) for _ in self.stages]
        self.processors: dict[int, StageProcessor] = {}
        self.figures: list[dict[str, int]] = []
        self.call: dict[str, Any] = {}

    def micro_batch(self, sides: dict[int, pa.Table], *, clock: int | None = None) -> Iterator[pa.Table]:
        """Rows arrive on some inputs; final rows leave, one table per bucket."""
        packed: list[pa.RecordBatch] = []
        for number, table in sides.items():
            if clock is not None:
                table = table.append_column("clock", pa.array([clock] * table.num_rows, pa.int64()))
            for part in self._partitions(table):
                task = _travelled(PackWithProgress(Pack(self.plan, number, self.labels), clock is not None))
                packed += task(part.to_batches(max_chunksize=7))
        self.figures = []
        yield from self._run(self._observed(packed), 0)

    def put(self, number: int, table: pa.Table) -> None:
        """A static input: initial state, in pieces as Spark may hand it over."""
        packed: list[pa.RecordBatch] = []
        for part in self._partitions(table):
            packed += _travelled(Pack(self.plan, number, self.labels))(part.to_batches())
        for label, frame in _grouped(packed):
            for piece in range(len(frame)):
                self._processor(0, label, self.stores[0]).handleInitialState((label,), frame.iloc[[piece]], None)

    def tick(self, milliseconds: int) -> Iterator[pa.Table]:
        """Timers fire in every bucket."""
        packed: list[pa.RecordBatch] = []
        for label in list(self.stores[0]):
            running = self._processor(0, label, self.stores[0])
            packed += _batches(list(running.handleExpiredTimer((label,), Clock(milliseconds), None)))
        self.figures = []
        yield from self._run(self._observed(packed), 1)

    def end(self) -> Iterator[pa.Table]:
        """Nothing comes any more: every stage is restored from its state, and ended."""
        packed: list[pa.RecordBatch] = []
        for stage, stores in zip(self.stages, self.stores, strict=True):
            arrived = dict(_grouped(packed))
            packed = []
            for label in sorted({*stores, *arrived}):
                running = stage.build(self.labels.index(label))
                cells = stores[label].cells
                if "manifest" in cells:
                    manifest = json.loads(cells["manifest"][0])
                    assert set(cells["blobs"]) == {
                        (name, page) for name, pages in manifest["blobs"].items() for page in range(pages)
                    }, "pages are left of blobs that nobody knows"
                    blobs = {
                        name: bound(cells["blobs"][name, page][1] for page in range(pages))
                        for name, pages in manifest["blobs"].items()
                    }
                    running.restore(Snapshot(manifest, blobs))
                frames = [arrived[label]] if label in arrived else []
                for packet in [*running.take(bucket.packets_of(frames)), *running.end()]:
                    packed += pack(packet, self.labels)
                assert running.figures()["state_rows"] == 0, "state is left after the end"
        yield from self._final(packed)

    def _run(self, packed: list[pa.RecordBatch], first: int) -> Iterator[pa.Table]:
        for number in range(first, len(self.stages)):
            frames = []
            for label, frame in _grouped(packed):
                frames += self._task(number, label, frame)
            packed = self._observed(_batches(frames))
        yield from self._final(packed)

    def _observed(self, packed: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Without the figures, which are noted: each packed row is a batch of its own."""
        noted = [batch for batch in packed if batch.column(3)[0].as_py() == "figures"]
        self.figures += [json.loads(batch.column(4)[0].as_py()) for batch in noted]
        return [batch for batch in packed if batch.column(3)[0].as_py() != "figures"]

    def _task(self, number: int, label: int, frame: pd.DataFrame) -> list[pd.DataFrame]:
        """One bucket of one micro-batch; sometimes the first attempt is lost."""
        if self.rng.random() < self.trouble:
            lost = {label: self.stores[number][label].copy()}
            attempt = self._processor(number, label, lost)
            outputs = attempt.handleInputRows((label,), iter([frame]), Clock(-1))
            for _ in outputs if self.rng.random() < 0.5 else [next(outputs, None)]:
                pass
        running = self._processor(number, label, self.stores[number])
        pieces = [frame.iloc[:1], frame.iloc[1:]] if len(frame) > 1 else [frame]
        return list(running.handleInputRows((label,), iter(pieces), Clock(-1)))

    def _processor(self, number: int, label: int, stores: dict[int, Store]) -> StageProcessor:
        if self.rng.random() < self.trouble:
            bucket._remembered.clear()
        if self.rng.random() < self.trouble:
            for file in blob_cache.cache_root().rglob("*"):
                if file.is_file() and self.rng.random() < 0.5:
                    file.unlink()
        if number not in self.processors:
            self.processors[number] = StageProcessor(self.stages[number], self.labels, self.call, None)
        running = _travelled(self.processors[number])
        running.init(stores[label])
        return running

    def _partitions(self, table: pa.Table) -> list[pa.Table]:
        at = sorted(self.rng.randint(0, table.num_rows) for _ in range(self.rng.randint(0, 2)))
        return [table.slice(start, stop - start) for start, stop in zip([0, *at], [*at, table.num_rows], strict=True)]

    def _final(self, packed: list[pa.RecordBatch]) -> Iterator[pa.Table]:
        by_bucket: dict[int, list[pa.RecordBatch]] = defaultdict(list)
        for batch in packed:
            by_bucket[batch.column(1)[0].as_py()].append(batch)
        for number in sorted(by_bucket):
            rows = list(unpack_rows(by_bucket[number]))
            if rows:
                yield pa.Table.from_batches(rows)


class Clock:
    """The timer values that Spark hands over."""

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def getCurrentProcessingTimeInMs(self) -> int:  # noqa: N802
        return self.milliseconds


def batch_result(plan: JoinPlan, sides: tuple[pa.Table, pa.Table]) -> list[pa.RecordBatch]:
    """The same join of the same rows as a batch, by the tasks of the batch plane."""
    labels = bucket_labels(plan.partitioning.buckets)
    packed = [row for number, table in enumerate(sides) for row in Pack(plan, number, labels)(table.to_batches())]
    operated = list(Operate(JoinStage(plan), labels)(packed))
    return list(Judge(VerdictStage(plan))(operated)) if any(plan.followed) else operated


def _travelled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def _batches(frames: list[pd.DataFrame]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pandas(frame, preserve_index=False) for frame in frames]


def _grouped(packed: list[pa.RecordBatch]) -> Iterator[tuple[int, pd.DataFrame]]:
    if packed:
        rows = pd.concat([batch.to_pandas() for batch in packed], ignore_index=True)
        yield from ((int(label), group) for label, group in rows.groupby("label"))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path
