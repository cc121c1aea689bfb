"""A store as streams have one: a blob is written once under its name, and forgotten when no snapshot names it.

So what is read again is what was written *first* under a name, however much has happened since.
"""

from __future__ import annotations

import json
from typing import Any

from streamjoin.state import Snapshot


class Store:
    """The blobs and the manifest of one thing that is saved again and again."""

    def __init__(self) -> None:
        self.manifest = "{}"
        self.blobs: dict[str, bytes] = {}
        self.written = 0  # blobs, so far

    def save(self, snapshot: Snapshot) -> None:
        """Write what is new, forget what is not named any more."""
        names = set(snapshot.blobs)  # to look for one among the blobs would make it
        new = [name for name in names if name not in self.blobs]
        kept = {name: blob for name, blob in self.blobs.items() if name in names}
        self.blobs = kept | {name: bytes(snapshot.blobs[name]) for name in new}
        self.manifest = json.dumps(snapshot.manifest)
        self.written += len(new)

    def load(self) -> Snapshot:
        """What was saved last."""
        return Snapshot(json.loads(self.manifest), dict(self.blobs))


def moved(thing: Any, fresh: Any, store: Store | None = None, name: str | None = "thing") -> Any:
    """The same thing elsewhere: saved, and restored into a fresh one. Operators have no name."""
    store = store or Store()
    store.save(thing.snapshot(name) if name else thing.snapshot())
    fresh.restore(store.load())
    return fresh
