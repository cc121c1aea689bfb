"""Packets: what is on its way to a bucket. A table, or a report.

| kind     | from                        | holds                                                                      |
|----------|-----------------------------|----------------------------------------------------------------------------|
| rows     | a source, a stage           | rows, bound for the operator that reads them                               |
| ends     | a stage                     | ends of rows sent before, which have become known                          |
| progress | a task of a source, a stage | how far it has come                                                        |
| late     | a source, a stage           | rows that came behind the progress of their source, to be shown            |
| invalid  | a source, a stage           | rows without a time, to be shown                                           |
| final    | the last stage              | rows as the user sees them, or as Spark's expressions read them            |
| figures  | every task                  | what happened in this micro-batch                                          |

`channel` says where it comes from: a source, or an outlet of a stage. Inside a task a packet is not serialised, so that
what stays in a task costs nothing; between tasks it is bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

from streamjoin.state import table_from_bytes, table_to_bytes

Kind = Literal["rows", "ends", "progress", "late", "invalid", "final", "figures"]
Report = dict[str, Any]
REPORTS: Final = ("progress", "figures")
# Large enough that a blob's header vanishes, small enough that a task can hold several.
BLOB_BYTES: Final = 8 << 20


@dataclass(frozen=True)
class Packet:
    """Something on its way to a bucket."""

    bucket: int
    channel: int
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
    def of(bucket: int, channel: int, kind: Kind, blob: bytes) -> Packet:
        """The packet of a blob."""
        return Packet(bucket, channel, kind, json.loads(bytes(blob)) if kind in REPORTS else table_from_bytes(blob))
