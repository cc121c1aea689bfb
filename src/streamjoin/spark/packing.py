"""The packed row: what crosses Spark's exchange. A blob, and which bucket it is for.

    label    what Spark's partitioner hashes
    bucket   the bucket's number
    input    the number of the input
    kind     what the blob holds
    blob     an Arrow stream, or a report

Rows are packed *before* the exchange, so that Spark shuffles a handful of blobs instead of a million rows. Inside a
task the same thing is a `Packet`: not serialised, so that what stays in a task costs nothing.

| kind               | from               | to          | holds                                                    |
|--------------------|--------------------|-------------|----------------------------------------------------------|
| rows               | a task of an input | a bucket    | rows of an input, bound                                  |
| invalid            | a task of an input | a bucket    | rows of an input that cannot be joined                   |
| progress           | a task of an input | every bucket| how far the task has come                                |
| ends               | a task of an input | every bucket| ends of elements that have become known                  |
| results            | a bucket           | the court   | pairs of rows                                            |
| candidate, witness | a bucket           | the court   | what it knows about rows that other buckets know too     |
| joined             | a bucket           | every court | how far the bucket has come                              |
| final              | the last stage     | the user    | rows as the user sees them                               |
| figures            | every stage        | the user    | what happened in this micro-batch                        |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

from streamjoin.state import table_from_bytes, table_to_bytes

PACKED_SCHEMA: Final = "label int, bucket int, input int, kind string, blob binary"
COLUMNS: Final = ("label", "bucket", "input", "kind", "blob")
_ARROW_SCHEMA: Final = pa.schema([
    ("label", pa.int32()), ("bucket", pa.int32()), ("input", pa.int32()), ("kind", pa.string()), ("blob", pa.binary()),
])  # fmt: skip

Kind = Literal[
    "rows", "invalid", "progress", "ends", "results", "candidate", "witness", "joined", "final", "figures"
]  # fmt: skip
REPORTS: Final = ("progress", "joined", "figures")

# Large enough that a blob's header vanishes, small enough that a task can hold several.
BLOB_BYTES: Final = 8 << 20

Report = dict[str, Any]


@dataclass(frozen=True)
class Packet:
    """Something on its way to a bucket: a table, or a report."""

    bucket: int
    number: int
    kind: Kind
    content: Any

    @property
    def table(self) -> pa.Table:
        """The rows."""
        assert self.kind not in REPORTS
        return self.content

    @property
    def report(self) -> Report:
        """The report."""
        assert self.kind in REPORTS
        return self.content  # type: ignore[no-any-return]

    def blobs(self) -> Iterator[bytes]:
        """The content as bytes, a table in pieces of about `BLOB_BYTES`."""
        if self.kind in REPORTS:
            yield json.dumps(self.content).encode()
            return
        pieces = max(1, -(-int(self.content.nbytes) // BLOB_BYTES))
        rows = max(1, -(-self.content.num_rows // pieces))
        for start in range(0, self.content.num_rows, rows):
            yield table_to_bytes(self.content.slice(start, rows))

    @staticmethod
    def of(bucket: int, number: int, kind: Kind, blob: bytes) -> Packet:
        """The packet of a blob."""
        return Packet(bucket, number, kind, json.loads(bytes(blob)) if kind in REPORTS else table_from_bytes(blob))


def pack(packet: Packet, labels: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """A packet as packed rows."""
    for blob in packet.blobs():
        row = [[labels[packet.bucket]], [packet.bucket], [packet.number], [packet.kind], [blob]]
        yield pa.record_batch(row, schema=_ARROW_SCHEMA)


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
    """The packets of packed rows."""
    for batch in batches:
        for bucket, number, kind, blob in zip(*(batch.column(i) for i in range(1, 5)), strict=True):
            content = blob.as_py() if kind.as_py() in REPORTS else blob.as_buffer()
            yield Packet.of(bucket.as_py(), number.as_py(), kind.as_py(), content)
