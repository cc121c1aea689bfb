"""How operators are saved: by progress, figures, and named parts that save themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from streamjoin.algebra import Progress
from streamjoin.errors import SnapshotError
from streamjoin.operators.contract import Operator
from streamjoin.state import Snapshot
from streamjoin.state.snapshot import FORMAT, Part, part_snapshots, restore_parts


class Fingerprinted(Protocol):
    """What is asked of a configuration here."""

    @property
    def fingerprint(self) -> str: ...


class OperatorOfParts(Operator):
    """An operator whose state is its progress and named parts."""

    config: Fingerprinted
    times: Progress

    @abstractmethod
    def _parts(self) -> Mapping[str, Part]:
        """All that is kept, by name, always in the same order."""

    def snapshot(self) -> Snapshot:
        return whole_snapshot(self.config.fingerprint, self.times, self.figures, self._parts())

    def restore(self, snapshot: Snapshot) -> None:
        check_snapshot(snapshot, self.config.fingerprint)
        self.times = Progress(self.inputs, list(snapshot.manifest["progress"]))
        self.figures = restored_figures(self.figures, snapshot)
        restore_parts(self._parts(), snapshot)


def whole_snapshot(fingerprint: str, times: Progress, figures: dict[str, int], parts: Mapping[str, Part]) -> Snapshot:
    """The snapshot of an operator, made of those of its parts."""
    kept = part_snapshots(parts)
    manifest = {
        "format": FORMAT, "fingerprint": fingerprint, "progress": list(times.times), "figures": dict(figures),
        **kept.manifest,
    }  # fmt: skip
    return Snapshot(manifest, kept.blobs)


def restored_figures(figures: Mapping[str, int], snapshot: Snapshot) -> dict[str, int]:
    """What an operator with these figures had counted; 0 of what the version that stored it did not count."""
    return {**dict.fromkeys(figures, 0), **snapshot.manifest["figures"]}


def check_snapshot(snapshot: Snapshot, fingerprint: str) -> None:
    """Refuse a snapshot of another format or another configuration."""
    if snapshot.manifest.get("format") != FORMAT:
        raise SnapshotError(f"this snapshot has format {snapshot.manifest.get('format')}, this version reads {FORMAT}")
    if snapshot.manifest["fingerprint"] != fingerprint:
        raise SnapshotError(
            f"this state was made by another join: {snapshot.manifest['fingerprint']}, not {fingerprint}",
            hint="start with an empty state, or restore the old configuration",
        )
