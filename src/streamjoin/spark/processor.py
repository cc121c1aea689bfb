"""What crosses into Spark's state: one operator per bucket, in `transformWithStateInPandas`.

    blobs      MapState, name -> blob. A blob never changes under its name, so only new names are written
    manifest   ValueState: the operator's manifest, the names of its blobs, and a token that is new with every commit

A worker keeps the operators that it has run. When the manifest's token is the one that it left behind, the operator
goes on without reading anything; otherwise it is restored, from blobs that this host has seen or from the store. A task
that fails leaves behind an operator whose token was never committed, and nobody ever asks for it.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streamjoin.algebra import Grace
from streamjoin.errors import SnapshotError
from streamjoin.operators import Operator, Results, Rows
from streamjoin.plan.planner import JoinPlan
from streamjoin.runtime import run_micro_batch
from streamjoin.spark.blob_cache import BlobCache, clean_up
from streamjoin.spark.packing import progress_of
from streamjoin.state import Batch, Snapshot, table_from_bytes, table_to_bytes

OUTPUT_SCHEMA: Final = "blob binary"
OPERATORS_KEPT: Final = 16


@dataclass
class Remembered:
    """An operator as it was after a commit, and the names of the blobs that the store has of it."""

    operator: Operator
    stored: set[str]


_remembered: OrderedDict[str, Remembered] = OrderedDict()


class JoinProcessor(StatefulProcessor):
    """The stateful part of a streaming join."""

    def __init__(self, plan: JoinPlan, lateness: tuple[Grace, Grace]) -> None:
        self.plan = plan
        self.lateness = lateness

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the two state variables."""
        self.blobs = handle.getMapState("blobs", "name string", "blob binary")
        self.manifest = handle.getValueState("manifest", "json string")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N803
        """One micro-batch of one bucket."""
        arrived: dict[int, list[Batch]] = defaultdict(list)
        progress: dict[int, int] = {}
        bucket = 0
        for frame in rows:
            for bucket, number, kind, blob in zip(  # noqa: B007
                frame["bucket"], frame["input"], frame["kind"], frame["blob"], strict=True
            ):
                if kind == "rows":
                    arrived[number].append(Batch.from_table(table_from_bytes(blob)))
                elif kind == "progress":
                    time = self.lateness[number].progress(progress_of(blob))
                    progress[number] = max(time, progress.get(number, time))
                else:
                    yield packed(self.plan.naming.assemble_marked("_invalid", number, table_from_bytes(blob)))
        state, known = self._load(int(bucket))
        batches = {number: Batch.concat(parts) for number, parts in arrived.items()}
        for output in run_micro_batch(known.operator, batches, progress):
            if isinstance(output, Results):
                yield packed(self.plan.naming.assemble(output.payload, output.ts, output.te))
            elif isinstance(output, Rows) and output.name == "late":
                yield packed(self.plan.naming.assemble_marked("_late", output.input, output.batch.payload))
        self._save(state, known)

    def _load(self, bucket: int) -> tuple[str, Remembered]:
        """The name of this bucket's state, and its operator."""
        stored = self.manifest.get()
        if stored is None:
            clean_up()  # a new state is a good moment to look for those of queries that are gone
            return uuid.uuid4().hex, Remembered(self.plan.join_in(bucket).build(), set())
        manifest = json.loads(stored[0])
        check_identity(manifest["identity"], self.plan.identity)
        known = _remembered.pop(manifest["token"], None)
        if known is None:
            operator = self.plan.join_in(bucket).build()
            blobs = StoredBlobs(manifest["blobs"], self.blobs, BlobCache(manifest["state"]))
            operator.restore(Snapshot(manifest["operator"], blobs))
            known = Remembered(operator, set(manifest["blobs"]))
        return manifest["state"], known

    def _save(self, state: str, known: Remembered) -> None:
        snapshot = known.operator.snapshot()
        names, cache = set(snapshot.blobs), BlobCache(state)
        for name in names - known.stored:
            blob = snapshot.blobs[name]
            self.blobs.updateValue((name,), (blob,))
            cache.put(name, blob)
        for name in known.stored - names:
            self.blobs.removeKey((name,))
            cache.drop(name)
        token = uuid.uuid4().hex
        manifest = {"token": token, "state": state, "blobs": sorted(names), "operator": snapshot.manifest}
        manifest["identity"] = self.plan.identity
        self.manifest.update((json.dumps(manifest),))
        known.stored = names
        _remembered[token] = known
        while len(_remembered) > OPERATORS_KEPT:
            _remembered.popitem(last=False)

    def close(self) -> None:
        """Nothing to close: what is remembered is meant to outlive the task."""


@dataclass
class StoredBlobs(Mapping[str, bytes]):
    """The blobs of a stored operator: from this host's files, or else from the store."""

    names: list[str]
    store: Any
    cache: BlobCache

    def __getitem__(self, name: str) -> bytes:
        seen = self.cache.get(name)
        if seen is not None:
            return seen  # type: ignore[no-any-return]
        blob: bytes = bytes(self.store.getValue((name,))[0])
        self.cache.put(name, blob)
        return blob

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def check_identity(stored: dict[str, str], current: dict[str, str]) -> None:
    """Refuse to go on with the state of another join, and say in what it differs."""
    for name, value in current.items():
        if stored.get(name) != value:
            raise SnapshotError(
                f"this state was made by another join: {name} was {stored.get(name)}, and is {value}",
                hint="start with a new checkpoint, or restore the old call",
            )


def packed(table: pa.Table) -> pd.DataFrame:
    """Finished rows on their way out, still packed."""
    return pd.DataFrame({"blob": [table_to_bytes(table)]})
