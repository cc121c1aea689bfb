"""The format of stored state, and how the formats before it are read.

The number (`state.snapshot.FORMAT`) changes with whatever would make a state that lies in somebody's checkpoint
unreadable or misread: the manifest, blobs and their names, the words of an identity, the classes of a stored plan.

Law: who changes the number adds a reader of the format before it, here, and a checkpoint of the new one beside those in
`tests/data/checkpoints`, with which the tests go on. A query that goes on writes the manifest anew with its next
micro-batch, in the format of this version; blobs stay as long as their names do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamjoin.errors import SnapshotError
from streamjoin.state import Snapshot
from streamjoin.state.snapshot import FORMAT

Reader = Callable[[Snapshot], Snapshot]


def _of_whole_columns(stored: Snapshot) -> Snapshot:
    """6: all columns of all tables are written, also those that repeat others. Blobs say themselves which are not."""
    return _renumbered(stored, 7)


def _of_pages_without_places(stored: Snapshot) -> Snapshot:
    """7: pages are numbered in each value. What a manifest says of a value tells which it is (`pages.Stored`)."""
    return _renumbered(stored, 8)


def _renumbered(stored: Snapshot, number: int) -> Snapshot:
    def with_number(kept: Any) -> Any:
        if isinstance(kept, list):
            return [with_number(each) for each in kept]
        if not isinstance(kept, dict):
            return kept
        inner = {name: with_number(each) for name, each in kept.items()}
        return inner | ({"format": number} if "fingerprint" in kept else {})  # an operator's own

    return Snapshot({**with_number(stored.manifest), "format": number}, stored.blobs)


# From an older format to its reader, which gives the same state in the format after it.
READERS: Final[dict[int, Reader]] = {6: _of_whole_columns, 7: _of_pages_without_places}


def check_format(number: Any) -> None:
    """Refuse a format that this version does not read."""
    known = {*READERS, FORMAT}
    if number not in known:
        raise SnapshotError(
            f"the state in this checkpoint has format {number}, and this version of streamjoin reads "
            + ", ".join(str(each) for each in sorted(known)),
            hint="go on with the version that made it; or end the query with that version, sj.finish(checkpoint), "
            "and start this one with a new checkpoint",
        )


def readable(stored: Snapshot) -> Snapshot:
    """A stage's stored state in the format of this version."""
    while stored.manifest.get("format") != FORMAT:
        check_format(stored.manifest.get("format"))
        stored = READERS[stored.manifest["format"]](stored)
    return stored
