"""Lists: rows of each input that have not been written yet, in parts as they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.operators.tpmj.groups import Parts, labelled, new_name
from streamjoin.operators.tpmj.order import ValueOrder
from streamjoin.state import Batch, Blobs, Snapshot, table_from_bytes, table_to_bytes

# What a letter and a token need where contents are compared: a letter is there as text, as a code point (4 bytes) and
# in a gram (8), a token beside itself as a hash, and each has its place in a list. An index of them, made for one input
# at a time, is part of the work.
TEXT_BYTES: Final = 16
TOKEN_BYTES: Final = 16


def width_of(number: int, batch: Batch, declared: Sequence[int] | None) -> float:
    """Bytes of a row of an input: as declared for it, or as they are on average."""
    return bytes_of(batch) / len(batch) if declared is None else float(declared[number])


def in_room(batch: Batch, width: float, room: Callable[[], float]) -> Iterator[Batch]:
    """The rows, as many at a time as there is room for just then; at least one."""
    at = 0
    while at < len(batch):
        end = min(len(batch), at + max(1, int(room() // width)))
        yield batch if end - at == len(batch) else batch.part(at, end).owned()
        at = end


def bytes_of(batch: Batch) -> int:
    """Bytes of rows, which depend on nothing but their content: not on how they came, or in which order."""
    fixed = 8 * (3 + len(batch.values))
    total = 0
    for column in (*batch.payload.columns, *(batch.proof.columns if batch.proof is not None else ())):
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
            total += int(pc.sum(pc.binary_length(column)).as_py() or 0)
            fixed += 4
        else:
            try:
                fixed += max(1, kind.bit_width // 8)
            except ValueError:  # lists and the like: about
                total += int(column.nbytes)
    total += sum(map(_compared, batch.contents.columns if batch.contents is not None else ()))
    return fixed * len(batch) + total


def _compared(column: pa.ChunkedArray) -> int:
    """Bytes of a text or a set, and of the tokens by which kernels compare it."""
    if not pa.types.is_list(column.type):
        return TEXT_BYTES * int(pc.sum(pc.binary_length(column)).as_py() or 0)
    values = pc.list_flatten(column)
    whole = 8 * len(values) if pa.types.is_integer(values.type) else int(pc.sum(pc.binary_length(values)).as_py() or 0)
    return whole + TOKEN_BYTES * len(values)


@dataclass
class Waiting:
    """A part that waits in memory, and its bytes."""

    name: str
    rows: Batch
    nbytes: float

    @property
    def entry(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {"name": self.name, "rows": len(self.rows), "bytes": self.nbytes}


class Lists:
    """The lists of all inputs."""

    def __init__(self, order: ValueOrder, inputs: int) -> None:
        self.order = order
        self.waiting: list[list[Waiting]] = [[] for _ in range(inputs)]
        self.count = 0
        self.nbytes = 0.0  # of all rows

    def __len__(self) -> int:
        return self.count

    def add(self, number: int, rows: Batch, width: float) -> None:
        """More rows of an input."""
        self._add(number, Waiting(new_name(), rows, len(rows) * width))

    def _add(self, number: int, part: Waiting) -> None:
        self.waiting[number].append(part)
        self.count += len(part.rows)
        self.nbytes += part.nbytes

    def rows(self, number: int) -> int:
        """How many rows of an input wait."""
        return sum(len(part.rows) for part in self.waiting[number])

    def sorted(self, number: int) -> tuple[Batch | None, Parts, float]:
        """The rows of an input in order, labelled; their parts; and bytes of a row."""
        mine = self.waiting[number]
        parts = Parts.plain([part.name for part in mine], [len(part.rows) for part in mine])
        if not mine:
            return None, parts, 1.0
        rows = Batch.concat([labelled(part.rows, label) for label, part in enumerate(mine)])
        return self.order.sorted(number, rows), parts, sum(part.nbytes for part in mine) / len(rows)

    def clear(self) -> None:
        """All rows have been written."""
        self.waiting, self.count, self.nbytes = [[] for _ in self.waiting], 0, 0.0

    def snapshot(self) -> Snapshot:
        """What waits, to be stored: under the names that it keeps when it is written as a group."""
        makers = {
            blob_name(number, part.name): partial(rows_to_bytes, part.rows)
            for number, mine in enumerate(self.waiting)
            for part in mine
        }
        manifest = [[part.entry for part in mine] for mine in self.waiting]
        return Snapshot({"waiting": manifest}, Blobs(makers))

    def restore(self, snapshot: Snapshot) -> None:
        """The inverse of `snapshot`."""
        self.clear()
        for number, mine in enumerate(snapshot.manifest["waiting"]):
            for each in mine:
                rows = rows_from_bytes(snapshot.blobs[blob_name(number, each["name"])])
                self._add(number, Waiting(each["name"], rows, each["bytes"]))


def blob_name(number: int, part: str) -> str:
    """Under which name a part of an input is stored."""
    return f"rows{number}/{part}"


def rows_to_bytes(rows: Batch) -> bytes:
    """Rows, to be stored."""
    return table_to_bytes(rows.to_table())


def rows_from_bytes(blob: bytes) -> Batch:
    """The inverse of `rows_to_bytes`."""
    return Batch.from_table(table_from_bytes(blob))


def thinned(rows: Batch | None, cut: int) -> tuple[Batch | None, dict[int, int]]:
    """Labelled rows without those that end at the cut or earlier; and how many are left of each label."""
    if rows is None:
        return None, {}
    keep = rows.te > cut
    kept = rows if keep.all() else rows.take(keep)
    return kept, counted(kept)


def counted(rows: Batch) -> dict[int, int]:
    """How many rows there are of each label."""
    labels, counts = np.unique(rows.values[-1], return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))
