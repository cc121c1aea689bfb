"""A large state that came in many small micro-batches: made, read, and restored. Each in a process of its own.

    python -m benchmarks.contenders.restored_join make FOLDER ROWS BATCHES MEMORY     micro-batches through the operator
    python -m benchmarks.contenders.restored_join read FOLDER                         its bytes, and nothing else
    python -m benchmarks.contenders.restored_join merged|sorted FOLDER                in memory; `merged`: parts as they
                                                                                      were merged before, head by head
    python -m benchmarks.contenders.restored_join files FOLDER MEMORY                 with a budget

Prints one JSON object. What has been restored is compared by a digest of its rows.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.contenders.spilled_join import SECOND, Watch
from benchmarks.digest import digest_of
from benchmarks.worker_memory import anonymous
from streamjoin.kernels import sorting
from streamjoin.kernels.warm import load_kernels
from streamjoin.operators.contract import Context
from streamjoin.operators.temporal_join import TemporalJoin
from streamjoin.state import Batch, Matching, Snapshot

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("note", pa.string())])
CONFIG = TemporalJoin(Matching(), (SCHEMA, SCHEMA))


class StoredFiles(Mapping[str, bytes]):
    """Blobs, each in a file of its own that is read when it is asked for."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        self.folder, self.number = folder, {name: number for number, name in enumerate(names)}

    def __getitem__(self, name: str) -> bytes:
        return (self.folder / str(self.number[name])).read_bytes()

    def __iter__(self) -> Iterator[str]:
        return iter(self.number)

    def __len__(self) -> int:
        return len(self.number)


def make(folder: Path, rows: int, batches: int, memory: int) -> dict[str, Any]:
    """So many micro-batches of both inputs; everything is kept, and has been stored as it came."""
    rng = np.random.default_rng(11)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        join = CONFIG.build(Context(memory=memory, scratch=scratch))
        stored: set[str] = set()
        for number in range(batches):
            ts = number * SECOND + np.sort(rng.integers(0, SECOND, rows))
            for side in (0, 1):
                ids = np.arange(rows) + (2 * number + side) * rows
                note = pa.array(np.char.add("note-of-this-row-", rng.integers(10**9, 10**10, rows).astype("U10")))
                payload = pa.table({"id": ids, "price": rng.random(rows), "note": note}, schema=SCHEMA)
                keys = rng.integers(0, rows * batches, rows)
                list(join.on_batch(side, Batch(payload, ts, ts + 10 * batches * SECOND, keys)))
            for side in (0, 1):
                list(join.on_progress(side, (number + 1) * SECOND))
            snapshot = join.snapshot()
            # As Spark's state does: what is there under its name is not written again.
            for name in set(snapshot.blobs) - stored:
                (folder / name.replace("/", "~")).write_bytes(snapshot.blobs[name])
            for name in stored - set(snapshot.blobs):
                (folder / name.replace("/", "~")).unlink()
            stored = set(snapshot.blobs)
        names = list(stored)
        for number, name in enumerate(names):
            (folder / name.replace("/", "~")).rename(folder / str(number))
        (folder / "manifest.json").write_text(json.dumps({"names": names, "manifest": snapshot.manifest}))
    nbytes = sum((folder / str(number)).stat().st_size for number in range(len(names)))
    return {"bytes": nbytes, "parts": len(names), "kept": join.footprint.rows}


def loaded(folder: Path) -> Snapshot:
    told = json.loads((folder / "manifest.json").read_text())
    return Snapshot(told["manifest"], StoredFiles(folder, told["names"]))


def read(folder: Path) -> dict[str, Any]:
    """Its bytes, one blob after the other."""
    snapshot = loaded(folder)
    began = time.perf_counter()
    nbytes = sum(len(snapshot.blobs[name]) for name in snapshot.blobs)
    return {"seconds": time.perf_counter() - began, "bytes": nbytes}


def restored(folder: Path, memory: int) -> dict[str, Any]:
    """The operator as it was."""
    load_kernels()
    snapshot = loaded(folder)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        context = Context(memory=memory or None, scratch=scratch if memory else None)
        before, watch = anonymous(), Watch()
        began = time.perf_counter()
        join = CONFIG.build(context)
        join.restore(snapshot)
        seconds = time.perf_counter() - began
        peak = watch.end() - before
        found = []
        for area in join.areas:
            for kept in area.kept:
                ids = kept.run.rows.payload["id"].to_numpy()
                found.append((np.arange(len(ids)), ids))  # in their order, too
        digest = str(digest_of(found))
    return {"seconds": seconds, "anonymous": peak, "digest": digest}


if __name__ == "__main__":
    what, place, *numbers = sys.argv[1:]
    if what == "make":
        answer = make(Path(place), *map(int, numbers))
    elif what == "read":
        answer = read(Path(place))
    else:
        if what == "merged":
            sorting._MOST_RUNS = 1 << 30  # type: ignore[misc] # as it was
        answer = restored(Path(place), *map(int, numbers or ["0"]))
    print(json.dumps(answer))
