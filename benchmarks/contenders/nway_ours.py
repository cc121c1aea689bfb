"""streamjoin's join of four inputs at once, on one thread: sort all four, one sweep, and gather a column of each.

Where there are keys, only rows of those keys that all four have, as its operator does with whole inputs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.nway_data import SHIFT, read
from benchmarks.worker import Delivered, Loaded, serve
from streamjoin.kernels import rows_of_common_groups, sort_order, sweep_products
from streamjoin.kernels.pairs import Indices


def load(folder: Path) -> Loaded:
    question, inputs = read(folder)

    def orders() -> list[Indices]:
        if question == "overlap":
            return [sort_order([columns["lo"]]) for columns in inputs]
        common = rows_of_common_groups([columns["key"] for columns in inputs])
        return [
            rows[sort_order([columns["key"][rows], columns["lo"][rows]])]
            for columns, rows in zip(inputs, common, strict=True)
        ]

    def pairs() -> Delivered:
        sides, ids = [], []
        for columns, order in zip(inputs, orders(), strict=True):
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
