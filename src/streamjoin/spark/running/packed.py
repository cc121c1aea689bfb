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
from pyspark.sql.pandas.types import from_arrow_schema

from streamjoin.runtime.packets import Packet

_ARROW_SCHEMA: Final = pa.schema([
    ("label", pa.int32()), ("bucket", pa.int32()), ("channel", pa.int32()), ("kind", pa.string()),
    ("blob", pa.binary()),
])  # fmt: skip
PACKED_SCHEMA: Final = from_arrow_schema(_ARROW_SCHEMA)
COLUMNS: Final = tuple(_ARROW_SCHEMA.names)


def pack(packet: Packet, labels: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """A packet as packed rows."""
    for blob in packet.blobs():
        row = [[labels[packet.bucket]], [packet.bucket], [packet.channel], [packet.kind], [blob]]
        yield pa.record_batch(row, schema=_ARROW_SCHEMA)


def packets_of(packed: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
    """The packets of packed rows, one after the other."""
    for batch in packed:
        *small, blobs = batch.columns[1:]
        for bucket, channel, kind, blob in zip(*(column.to_pylist() for column in small), blobs, strict=True):
            yield Packet.of(bucket, channel, kind, blob.as_buffer())


def by_bucket(packed: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[Packet]]]:
    """The packets of each bucket that has come here."""
    arrived: dict[int, list[Packet]] = defaultdict(list)
    for packet in packets_of(packed):
        arrived[packet.bucket].append(packet)
    for bucket in sorted(arrived):
        yield bucket, arrived.pop(bucket)


def bucket_by_bucket(packed: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterable[Packet]]]:
    """The same where labels have brought each bucket to a partition of its own, one after the other as they come: they
    are never all in memory.
    """
    packets = packets_of(packed)
    first = next(packets, None)
    if first is None:
        return

    def mine() -> Iterator[Packet]:
        yield first
        for packet in packets:
            assert packet.bucket == first.bucket, "rows of a second bucket would have to wait in memory"
            yield packet

    yield first.bucket, mine()
