"""The packed row: what crosses Spark's exchange. A blob, and which bucket it is for.

    label    what Spark's partitioner hashes
    bucket   the bucket's number
    channel  where it comes from
    kind     what the blob holds (see `runtime.packets`)
    blob     an Arrow stream, or a report

Rows are packed *before* the exchange, so that Spark shuffles a handful of blobs instead of a million rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from streamjoin.runtime.packets import REPORTS, Packet

PACKED_SCHEMA: Final = StructType([
    StructField("label", IntegerType()), StructField("bucket", IntegerType()), StructField("channel", IntegerType()),
    StructField("kind", StringType()), StructField("blob", BinaryType()),
])  # fmt: skip
COLUMNS: Final = ("label", "bucket", "channel", "kind", "blob")
_ARROW_SCHEMA: Final = pa.schema([
    ("label", pa.int32()), ("bucket", pa.int32()), ("channel", pa.int32()), ("kind", pa.string()),
    ("blob", pa.binary()),
])  # fmt: skip


def pack(packet: Packet, labels: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """A packet as packed rows."""
    for blob in packet.blobs():
        row = [[labels[packet.bucket]], [packet.bucket], [packet.channel], [packet.kind], [blob]]
        yield pa.record_batch(row, schema=_ARROW_SCHEMA)


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
    """The packets of packed rows."""
    for batch in batches:
        for bucket, channel, kind, blob in zip(*(batch.column(i) for i in range(1, 5)), strict=True):
            content = blob.as_py() if kind.as_py() in REPORTS else blob.as_buffer()
            yield Packet.of(bucket.as_py(), channel.as_py(), kind.as_py(), content)


def by_bucket(packed: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[Packet]]]:
    """The packets of each bucket that has come here."""
    arrived: dict[int, list[Packet]] = defaultdict(list)
    for packet in unpack(packed):
        arrived[packet.bucket].append(packet)
    for bucket in sorted(arrived):
        yield bucket, arrived.pop(bucket)
