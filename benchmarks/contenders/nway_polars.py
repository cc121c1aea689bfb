"""Polars on one thread: a cascade of `join_where`, or of hash joins and filters where there are keys."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from benchmarks.nway_data import SHIFT, read
from benchmarks.worker import Delivered, Loaded, serve


def load(folder: Path) -> Loaded:
    question, inputs = read(folder)
    frames = [pl.DataFrame(columns).rename({"id": f"id{n}"}) for n, columns in enumerate(inputs)]
    overlap = [pl.col("lo") < pl.col("lo_hi"), pl.col("lo_lo") < pl.col("hi")]
    joined = frames[0].lazy()
    for frame in frames[1:]:
        right = frame.lazy().rename({"lo": "lo_lo", "hi": "lo_hi"})
        if question == "equality":
            joined = joined.join(right, on="key").filter(*overlap)
        else:
            joined = joined.join_where(right.drop("key"), *overlap)
        meets = {"lo": pl.max_horizontal("lo", "lo_lo"), "hi": pl.min_horizontal("hi", "lo_hi")}
        joined = joined.with_columns(**meets).drop("lo_lo", "lo_hi")
    two = 2**SHIFT
    wanted = joined.select(v=pl.col("id0") * two + pl.col("id1"), w=pl.col("id2") * two + pl.col("id3"))

    def pairs() -> Delivered:
        table = wanted.collect().to_arrow()
        return [(batch["v"].to_numpy(), batch["w"].to_numpy()) for batch in table.to_batches()]

    return Loaded({"pairs": pairs})


if __name__ == "__main__":
    assert pl.thread_pool_size() == 1
    serve(load)
