"""Snapshots: a small manifest, and blobs by name. A run keeps its name for life, so its blob is written once."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa

from streamjoin.state.repeats import lean, whole

FORMAT: Final = 8


class Blobs(Mapping[str, bytes]):
    """Blobs by name, each made only when it is asked for: whoever has a blob of that name already need not ask.

    >>> blobs = Blobs({"run/a": lambda: b"..."})
    >>> list(blobs), blobs["run/a"]
    (['run/a'], b'...')
    """

    def __init__(self, makers: Mapping[str, Callable[[], bytes]]) -> None:
        self.makers = dict(makers)

    def __getitem__(self, name: str) -> bytes:
        return self.makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)


@dataclass
class Snapshot:
    """What an operator needs to go on elsewhere. A blob never changes under its name: what changes gets another one.

    >>> Snapshot({"format": 1}, {"run/a": b"..."}).nbytes
    3
    """

    manifest: dict[str, Any]
    blobs: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes in all blobs."""
        return sum(len(blob) for blob in self.blobs.values())


class Part(Protocol):
    """A part of an operator's state that saves and restores itself."""

    def snapshot(self, name: str) -> Snapshot: ...

    def restore(self, snapshot: Snapshot) -> None: ...


def part_snapshots(parts: Mapping[str, Part]) -> Snapshot:
    """One snapshot of several parts, each under its name."""
    snapshots = [part.snapshot(name) for name, part in parts.items()]
    blobs: Any = ChainMap(*(snapshot.blobs for snapshot in snapshots))  # type: ignore[arg-type]
    return Snapshot({"parts": [snapshot.manifest for snapshot in snapshots]}, blobs)


def restore_parts(parts: Mapping[str, Part], snapshot: Snapshot) -> None:
    """The inverse of `part_snapshots`."""
    for part, manifest in zip(parts.values(), snapshot.manifest["parts"], strict=True):
        part.restore(Snapshot(manifest, snapshot.blobs))


def table_to_bytes(table: pa.Table, *, compressed: bool = False) -> bytes:
    """A table as an Arrow stream, without columns that repeat others (see `repeats`); `compressed` where much of it is
    alike.

    >>> table_from_bytes(table_to_bytes(pa.table({"a": [1, 2]}))).to_pydict()
    {'a': [1, 2]}
    """
    sink, table = pa.BufferOutputStream(), lean(table)
    # Threads would be new ones in every worker, for a few milliseconds of work.
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False) if compressed else None
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    blob: bytes = sink.getvalue().to_pybytes()
    return blob


def table_from_bytes(blob: bytes) -> pa.Table:
    """The table of an Arrow stream, without copying what is in it."""
    return whole(pa.ipc.open_stream(pa.py_buffer(blob)).read_all())
