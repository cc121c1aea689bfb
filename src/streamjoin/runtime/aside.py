"""Rows of inputs that are there before a stream begins: they wait, stored, for the first micro-batch of their bucket.

Law: with a budget none of them waits in memory. What has been stored is read from there, packet by packet, when its
turn has come; without one all of them stay as they came.

    put   packets --> state                       nothing can leave a stage yet, so nobody joins them
    take  state --> [packet] --> sweep areas      piece by piece, before rows of the stream look for them
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from streamjoin.runtime.packets import Kind, Packet
from streamjoin.state import Blobs, Snapshot, table_to_bytes

PREFIX = "aside/"


@dataclass
class Aside:
    """What waits in one bucket, in the order in which it came. `lazy`: what is stored is not kept in memory."""

    bucket: int
    lazy: bool
    packets: dict[str, Packet | None] = field(default_factory=dict)  # None: only stored
    kinds: dict[str, tuple[int, Kind]] = field(default_factory=dict)  # the channel and kind of each
    blobs: Mapping[str, bytes] = field(default_factory=dict)  # where stored ones are read

    def __len__(self) -> int:
        return len(self.packets)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(packet.table.nbytes for packet in self.packets.values() if packet is not None)

    def add(self, packet: Packet) -> None:
        """One more."""
        name = uuid.uuid4().hex
        self.packets[name], self.kinds[name] = packet, (packet.channel, packet.kind)

    def take(self) -> Iterator[Packet]:
        """All of them, each of which is gone when the next one is asked for."""
        packets, self.packets = self.packets, {}
        while packets:
            name = next(iter(packets))
            yield packets.pop(name) or self._read(name)
            del self.kinds[name]

    def _read(self, name: str) -> Packet:
        return Packet.of(self.bucket, *self.kinds[name], self.blobs[PREFIX + name])

    def stored_in(self, blobs: Mapping[str, bytes]) -> None:
        """All that waits is stored there now, or still is."""
        if self.lazy:
            self.packets, self.blobs = dict.fromkeys(self.packets), blobs

    def snapshot(self) -> Snapshot:
        """To be stored: whoever has stored a packet need not ask for it again."""
        makers = {PREFIX + name: partial(self._bytes, name) for name in self.packets}
        return Snapshot({"aside": [[name, *self.kinds[name]] for name in self.packets]}, Blobs(makers))

    def _bytes(self, name: str) -> bytes:
        return table_to_bytes((self.packets[name] or self._read(name)).table)

    def restore(self, manifest: Mapping[str, Any], blobs: Mapping[str, bytes]) -> None:
        """The inverse of `snapshot`."""
        self.kinds = {name: (channel, kind) for name, channel, kind in manifest["aside"]}
        self.blobs = blobs
        self.packets = {name: None if self.lazy else self._read(name) for name in self.kinds}
