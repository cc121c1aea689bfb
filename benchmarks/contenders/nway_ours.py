"""streamjoin's join of four inputs at once, on one thread: sort all four, one sweep, and gather a column of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.nway_data import SHIFT, read
from benchmarks.worker import Delivered, Loaded, serve
from streamjoin.kernels import sort_order, sweep_products


def load(folder: Path) -> Loaded:
    question, inputs = read(folder)

    def pairs() -> Delivered:
        sides, ids = [], []
        for columns in inputs:
            keys = [columns["lo"]] if question == "overlap" else [columns["key"], columns["lo"]]
            order = sort_order(keys)
            lo, hi = columns["lo"][order], columns["hi"][order]
            group = np.zeros(len(lo), np.int64) if question == "overlap" else columns["key"][order]
            sides.append((group, lo, hi, lo, hi))
            ids.append(columns["id"][order])
        found = []
        for members in sweep_products(sides, timed=False):
            a, b, c, d = (each.take(at) for each, at in zip(ids, members, strict=True))
            found.append(((a << SHIFT) + b, (c << SHIFT) + d))
        return found

    return Loaded({"pairs": pairs})


if __name__ == "__main__":
    serve(load)
