"""A state of many parts, restored: by a sweep area, and by the kernel that merges their orders."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import streamjoin
from benchmarks.worker import Delivered, Loaded, serve
from streamjoin.kernels import merge_order
from streamjoin.state import Batch, Matching, Snapshot, SweepArea

# Smaller parts are stored together. So rows are as wide as makes a part too large for that.
PART_BYTES: Final = 600_000
FAR: Final = 1 << 60  # when rows end: nobody leaves


def stored(group: Any, ts: Any, offsets: Any) -> Snapshot:
    """What an area has stored that took the parts one by one."""
    area = SweepArea(Matching())
    for start, end in itertools.pairwise(offsets):
        rows, width = end - start, PART_BYTES // (end - start)
        wide = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(width), rows, [None, pa.py_buffer(np.zeros(rows * width, np.uint8))]
        )
        payload = pa.table({"id": np.arange(start, end), "wide": wide})
        batch = Batch(payload, ts[start:end], np.full(rows, FAR), group[start:end])
        area.insert(area.matching.sorted_run(batch))
    list(area.purge(0))
    snapshot = area.snapshot("area")
    return Snapshot(snapshot.manifest, dict(snapshot.blobs))


def load(folder: Path) -> Loaded:
    group, ts, offsets = (np.load(folder / f"{name}.npy") for name in ("group", "ts", "offsets"))
    snapshot, cell = stored(group, ts, offsets), np.zeros(len(group), np.int64)

    def area() -> Delivered:
        restored = SweepArea(Matching())
        restored.restore(snapshot)
        return [(kept.run.rows.payload["id"].to_numpy(), kept.run.rows.ts) for kept in restored.kept]

    def merge() -> Delivered:
        order = merge_order(group, cell, ts, offsets)
        return [(np.arange(len(order)), order)]

    notes = {"code": str(streamjoin.__file__), "stored": f"{len(snapshot.blobs):,} parts stored"}
    return Loaded({"area": area, "merge": merge}, notes)


if __name__ == "__main__":
    serve(load)
