"""A cascade of streamjoin's own overlap kernel: two inputs, then their result with the next, on one thread."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.nway_data import SHIFT, read
from benchmarks.worker import Delivered, Loaded, serve
from benchmarks.workloads import Columns
from streamjoin.kernels import overlap_pairs, sort_order


def _sorted(columns: Columns, question: str) -> tuple[tuple, Columns]:
    keys = [columns["lo"]] if question == "overlap" else [columns["key"], columns["lo"]]
    order = sort_order(keys)
    mine = {name: column[order] for name, column in columns.items()}
    group = np.zeros(len(order), np.int64) if question == "overlap" else mine["key"]
    return (group, mine["lo"], mine["hi"], mine["lo"], mine["hi"]), mine


def load(folder: Path) -> Loaded:
    question, inputs = read(folder)

    def pairs() -> Delivered:
        left = {**inputs[0], "id0": inputs[0]["id"]}
        for number, columns in enumerate(inputs[1:], 1):
            (one, mine), (two, theirs) = _sorted(left, question), _sorted(columns, question)
            members = [f"id{each}" for each in range(number)]
            parts = []
            for i, j in overlap_pairs(one, two, timed=False):
                found = {name: mine[name].take(i) for name in (*members, "key")}
                found["lo"] = np.maximum(mine["lo"].take(i), theirs["lo"].take(j))
                found["hi"] = np.minimum(mine["hi"].take(i), theirs["hi"].take(j))
                parts.append({**found, f"id{number}": theirs["id"].take(j)})
            left = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return [((left["id0"] << SHIFT) + left["id1"], (left["id2"] << SHIFT) + left["id3"])]

    return Loaded({"pairs": pairs})


if __name__ == "__main__":
    serve(load)
