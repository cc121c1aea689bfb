"""Bundles: what a commit writes of small blobs lies in the store as one value.

Every call of Spark's state crosses a socket, so many small blobs cost more than a large one. A bundle says itself what
is in it. Blobs in it go one by one; when less than half of it is needed, what is left moves into the next bundle: a
blob is written a few times at most, and the store holds no more than twice what is needed.

    store   bundle/7f: [ a | b | c ]     area0/run/3c: a large blob, alone under its own name
    gone    a and b  ->  c goes into the next bundle, and bundle/7f is removed
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streamjoin.spark.stored.pages import Stored, first_of, page_count, pages_of

PREFIX: Final = "bundle/"
SMALL: Final = 1 << 16  # bytes of a blob that is worth no value of its own
_HEAD: Final = 8  # bytes that say how long the list of what is in a bundle is


def bundled(blobs: Mapping[str, bytes]) -> bytes:
    """Several blobs in one.

    >>> dict(unbundled("bundle/1", bundled({"a": b"xy", "b": b""})))
    {'a': b'xy', 'b': b''}
    """
    head = json.dumps([[name, len(blob)] for name, blob in blobs.items()]).encode()
    return b"".join((len(head).to_bytes(_HEAD, "little"), head, *blobs.values()))


def unbundled(name: str, content: Any) -> Iterator[tuple[str, Any]]:
    """The blobs of a stored value, which is bytes or a buffer, by their names."""
    if not name.startswith(PREFIX):
        yield name, content
        return
    start = _HEAD + int.from_bytes(bytes(content[:_HEAD]), "little")
    for blob, size in json.loads(bytes(content[_HEAD:start])):
        yield blob, content[start : start + size]
        start += size


@dataclass
class Shelf:
    """What the store has of one state: of each value its pages, of each blob in which value it is, and how large; and
    how many pages were written since they have places.
    """

    values: dict[str, Stored] = field(default_factory=dict)
    blobs: dict[str, tuple[str, int]] = field(default_factory=dict)
    written: int = 0

    @staticmethod
    def of(manifest: Mapping[str, Any]) -> Shelf:
        """What a manifest says of it."""
        return Shelf(
            {name: Stored(*told) for name, told in manifest["values"].items()},
            {name: (value, size) for name, (value, size) in manifest["blobs"].items()},
            manifest.get("written", 0),
        )

    def to_json(self) -> dict[str, Any]:
        """The same, for a manifest."""
        values = {name: value.to_json() for name, value in self.values.items()}
        return {"values": values, "blobs": self.blobs, "written": self.written}

    def put(self, name: str, value: bytes) -> Iterator[tuple[int, tuple[int, bytes]]]:
        """A new value: where each of its pages goes, how many there are, and the page.

        >>> [place for place, _ in Shelf(written=255).put("area0/run/3f", bytes(1 << 19))]
        [-16777216, 65536]
        """
        count = page_count(value)
        self.written = first_of(self.written, count)
        stored = self.values[name] = Stored(count, len(value), self.written)
        self.written += count
        return zip(stored.places, ((count, page) for page in pages_of(value)), strict=True)

    def new_values(self, blobs: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
        """These blobs are all that is needed now: the values that have to be written for that.

        >>> shelf = Shelf()
        >>> [value.partition("/")[0] for value, _ in shelf.new_values({"a": b"aaa", "b": b"b", "c": bytes(SMALL)})]
        ['c', 'bundle']
        """
        for name in self.blobs.keys() - blobs.keys():
            del self.blobs[name]
        thin = self._thin()
        small: dict[str, bytes] = {}
        for name in blobs:
            if name in self.blobs and self.blobs[name][0] not in thin:
                continue
            blob = blobs[name]
            if len(blob) < SMALL:
                small[name] = blob
            else:
                self.blobs[name] = name, len(blob)
                yield name, blob
                del blob  # before the next one is made
        if small:
            value = PREFIX + uuid.uuid4().hex if len(small) > 1 else next(iter(small))
            self.blobs |= {name: (value, len(blob)) for name, blob in small.items()}
            yield value, bundled(small) if len(small) > 1 else small[value]

    def _thin(self) -> set[str]:
        """Bundles of which less than half is needed."""
        needed = dict.fromkeys(self.values, 0)
        for value, size in self.blobs.values():
            needed[value] += size
        return {name for name, size in needed.items() if name.startswith(PREFIX) and 2 * size < self.values[name].size}

    def unneeded(self) -> list[str]:
        """Values in which nothing is needed any more."""
        return list(self.values.keys() - {value for value, _ in self.blobs.values()})
