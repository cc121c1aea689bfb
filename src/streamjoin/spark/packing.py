"""The packed row: what crosses Spark's exchange. A blob of Arrow rows, and which bucket it is for.

    label    what Spark's partitioner hashes
    bucket   the bucket's number
    input    the number of the input, or of the verdict's input
    kind     what the blob holds
    blob     an Arrow stream

Rows are packed *before* the exchange, so that Spark shuffles a handful of blobs instead of a million rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import pyarrow as pa

from streamjoin.state import table_from_bytes, table_to_bytes

PACKED_SCHEMA: Final = "label int, bucket int, input int, kind string, blob binary"
_ARROW_SCHEMA: Final = pa.schema([
    ("label", pa.int32()), ("bucket", pa.int32()), ("input", pa.int32()), ("kind", pa.string()), ("blob", pa.binary()),
])  # fmt: skip

Kind = Literal["rows", "invalid", "progress", "results", "candidate", "witness"]

# Large enough that a blob's header vanishes, small enough that a task can hold several.
BLOB_BYTES: Final = 8 << 20


def pack(label: int, bucket: int, number: int, kind: Kind, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as packed rows, cut into blobs of about `BLOB_BYTES`."""
    blobs = max(1, -(-int(table.nbytes) // BLOB_BYTES))
    rows = max(1, -(-table.num_rows // blobs))
    for start in range(0, table.num_rows, rows):
        blob = table_to_bytes(table.slice(start, rows))
        yield pa.record_batch([[label], [bucket], [number], [kind], [blob]], schema=_ARROW_SCHEMA)


def pack_progress(label: int, bucket: int, number: int, time: int) -> pa.RecordBatch:
    """The largest time stamp that a task has seen on an input, for one bucket."""
    return pa.record_batch([[label], [bucket], [number], ["progress"], [struct.pack("<q", time)]], schema=_ARROW_SCHEMA)


def progress_of(blob: bytes) -> int:
    """The time stamp of a packed progress."""
    return int(struct.unpack("<q", blob)[0])


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, Kind, pa.Table]]:
    """Bucket, input, kind and table of every packed row."""
    for batch in batches:
        for bucket, number, kind, blob in zip(*(batch.column(i) for i in range(1, 5)), strict=True):
            yield bucket.as_py(), number.as_py(), kind.as_py(), table_from_bytes(blob.as_buffer())
