"""The floor under a streaming join in Python: everything that crosses into Spark and back, and no join.

    read, pack, exchange, an operator with state that keeps nothing and hands rows back, unpack

Rows are packed into Arrow blobs before the exchange, one for each bucket, as streamjoin does. The operator hands back
the left rows beside as many right ones: about as many rows, and as wide, as the join finds. What a join takes beyond
this is its own doing: sorting, matching, keeping state.

The pieces are written anew here, so that the floor does not sink with what stands on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.contenders import stream_ours
from benchmarks.contenders.spark_query import CORES, read, run, serve
from benchmarks.one_shot import Answer

PACKED = "label int, side int, blob binary"
RESULT = "ts timestamp, k bigint, v double, p bigint, ts_right timestamp, v_right double, p_right bigint"


def labels(spark: SparkSession) -> list[int]:
    """One int for each partition that Spark's hash sends exactly there: plain 0 and 1 share a partition."""
    placed = spark.range(100).selectExpr("cast(id AS int) label", f"pmod(hash(cast(id AS int)), {CORES}) place")
    return [row.label for row in placed.groupBy("place").agg(F.min("label").alias("label")).orderBy("place").collect()]


def to_blob(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_blob(blob: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()


def packer(
    side: int, label: list[int], key: str = "k"
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows to blobs, a task's rows in one piece for each bucket."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = list(batches)
        if not arrived:
            return
        rows = pa.Table.from_batches(arrived).combine_chunks()
        bucket = rows[key].to_numpy() % len(label)
        for number, name in enumerate(label):
            blob = to_blob(rows.take(pa.array(np.flatnonzero(bucket == number))))
            yield pa.record_batch(
                [pa.array([name], pa.int32()), pa.array([side], pa.int32()), pa.array([blob], pa.binary())],
                names=["label", "side", "blob"],
            )

    return pack


def sides_of(rows: Iterable[pd.DataFrame]) -> tuple[pa.Table, pa.Table]:
    """The left and the right rows of a bucket, from the blobs that Spark hands over."""
    sides: tuple[list[pa.Table], list[pa.Table]] = ([], [])
    for frame in rows:
        for side, blob in zip(frame["side"], frame["blob"], strict=True):
            sides[side].append(from_blob(blob))
    left, right = (pa.concat_tables(tables).combine_chunks() for tables in sides)
    return left, right


class HandBack(StatefulProcessor):
    """Keeps nothing; hands back the left rows of a bucket beside right ones."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.nothing = handle.getValueState("nothing", "n long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N803
        left, right = sides_of(rows)
        count = min(len(left), len(right))
        columns = [*left.slice(0, count).columns, *right.drop_columns(["k"]).slice(0, count).columns]
        names = [*left.column_names, *(f"{name}_right" for name in right.column_names if name != "k")]
        yield pd.DataFrame({"blob": [to_blob(pa.table(columns, names=names))]})

    def close(self) -> None:
        pass


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column(0):
            yield from from_blob(blob.as_buffer()).to_batches(max_chunksize=1 << 16)


def do(request: dict[str, Any]) -> Answer:
    spark = stream_ours.session(request)
    label = labels(spark)
    left, right = (frame.mapInArrow(packer(side, label), PACKED) for side, frame in enumerate(read(spark, request)))
    handed = (
        left.unionAll(right).groupBy("label").transformWithStateInPandas(HandBack(), "blob binary", "append", "none")
    )
    return run(handed.mapInArrow(unpack, RESULT), request)


if __name__ == "__main__":
    serve(do)
