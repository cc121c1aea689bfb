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

    def renumbered(kept: Any) -> Any:
        if isinstance(kept, list):
            return [renumbered(each) for each in kept]
        if not isinstance(kept, dict):
            return kept
        inner = {name: renumbered(each) for name, each in kept.items()}
        return inner | ({"format": 7} if "fingerprint" in kept else {})  # an operator's own

    return Snapshot({**renumbered(stored.manifest), "format": 7}, stored.blobs)


# From an older format to its reader, which gives the same state in the format after it.
READERS: Final[dict[int, Reader]] = {6: _of_whole_columns}


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
