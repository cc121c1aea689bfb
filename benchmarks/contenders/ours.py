"""streamjoin's kernels on one thread: from unsorted arrays, so sorting is part of the work, as in every peer.

What is timed is what an operator does for a batch: sort both sides, find index pairs chunk by chunk, and gather a
payload column of each side. A best match is the operator itself: it is more than one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.contenders.best_match_operator import best_match
from benchmarks.worker import Loaded, serve
from benchmarks.workloads import Columns, Workload
from streamjoin.kernels import band_pairs, before, cells_of, overlap_pairs, sort_order, within_pairs
from streamjoin.state.matching import GRID_MARGIN

Chunks = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


def _gathered(pairs: Iterable[tuple[Any, Any]], left: Columns, right: Columns) -> Chunks:
    return [(left["id"].take(i), right["id"].take(j)) for i, j in pairs]


def _sorted(side: Columns, *by: str) -> Columns:
    order = sort_order([side[name] for name in by])
    return {name: column[order] for name, column in side.items()}


def _one_group(side: Columns) -> npt.NDArray[np.int64]:
    return np.zeros(len(side["id"]), np.int64)


def overlap(workload: Workload) -> Chunks:
    left, right = _sorted(workload.left, "lo"), _sorted(workload.right, "lo")
    # `timed=False`: the validity columns are not looked at, so any array will do for them.
    sides = [(group := _one_group(side), side["lo"], side["hi"], group, group) for side in (left, right)]
    return _gathered(overlap_pairs(sides[0], sides[1], timed=False), left, right)


def band(workload: Workload) -> Chunks:
    left, right = _sorted(workload.left, "x"), _sorted(workload.right, "x")
    sides = [(group := _one_group(side), side["x"], group, group) for side in (left, right)]
    reach = workload.bounds["reach"]
    return _gathered(band_pairs(sides[0], sides[1], low=-reach, high=reach, timed=False), left, right)


def within(workload: Workload) -> Chunks:
    radius = float(workload.bounds["radius"])

    def in_rows(side: Columns) -> Columns:
        return _sorted({**side, "cell": cells_of(side["y"], radius * GRID_MARGIN)}, "cell", "x")

    left, right = in_rows(workload.left), in_rows(workload.right)
    sides = [
        (group := _one_group(side), side["cell"], np.column_stack([side["x"], side["y"]]), group, group)
        for side in (left, right)
    ]
    return _gathered(within_pairs(sides[0], sides[1], radius=radius, metric="euclidean", timed=False), left, right)


def validity(workload: Workload) -> Chunks:
    """The equality join over validity: groups are the keys, and the intervals are the rows' own validities."""
    left, right = _sorted(workload.left, "key", "ts"), _sorted(workload.right, "key", "ts")
    sides = [(side["key"], side["ts"], side["te"], side["ts"], side["te"]) for side in (left, right)]
    return _gathered(overlap_pairs(sides[0], sides[1], timed=False), left, right)


def asof(workload: Workload) -> Chunks:
    left, right = _sorted(workload.left, "key", "ts"), _sorted(workload.right, "key", "ts")
    found = before((left["key"], left["ts"]), (right["key"], right["ts"]), strict=False)
    there = np.flatnonzero(found >= 0)
    return _gathered([(there, found[there])], left, right)


_QUESTIONS = {
    "overlap": overlap,
    "band": band,
    "within": within,
    "validity": validity,
    "asof": asof,
    "best": best_match,
}


def load(folder: Path) -> Loaded:
    workload = Workload.read(folder)
    return Loaded({"pairs": lambda: _QUESTIONS[workload.name](workload)})


if __name__ == "__main__":
    serve(load)
