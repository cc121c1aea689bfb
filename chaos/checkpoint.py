"""How far a query is, and what a kill left half done: read from the files that Spark writes for itself.

A micro-batch goes through these steps; after a kill the next driver does again what was begun and not committed:

    checkpoint/offsets/N             the batch has begun: its input is fixed
    checkpoint/state/*/*/N+1.*       a bucket's state after the batch, one file per partition
    out/_spark_metadata/N            the sink's files of the batch count as output
    checkpoint/commits/N             the batch is over

All of them are renamed into place, so a name that is there is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Where = Literal["between", "inside", "state", "sink"]

_NUMBERED: Final = re.compile(r"(\d+)(\.compact)?")
_STATE_FILE: Final = re.compile(r"(\d+)[._].*(changelog|zip)")


@dataclass(frozen=True)
class Checkpoint:
    """The progress of one query. `folder` holds its checkpoint and its output."""

    folder: Path

    @property
    def path(self) -> Path:
        """Where Spark keeps the query's progress."""
        return self.folder / "checkpoint"

    @property
    def output(self) -> Path:
        """Where the query's results are."""
        return self.folder / "out"

    def begun(self) -> int:
        """How many batches have begun."""
        return _count(self.path / "offsets")

    def committed(self) -> int:
        """How many batches are over."""
        return _count(self.path / "commits")

    def delivered(self) -> int:
        """How many batches' results are in the output."""
        return _count(self.output / "_spark_metadata")

    def state_files(self, batch: int) -> Iterator[Path]:
        """The files of state that this batch has left so far."""
        for file in (self.path / "state").glob("[0-9]*/[0-9]*/*"):
            name = _STATE_FILE.fullmatch(file.name)
            if name is not None and int(name[1]) == batch + 1:
                yield file

    def where(self) -> Where:
        """Where the query stands, which after a kill is what the next driver finds.

        between    every batch that has begun is over
        inside     a batch has begun and left nothing yet
        state      buckets have written their state of a batch whose results are not in the output
        sink       a batch's results are in the output, and it is not over
        """
        batch = self.begun() - 1
        if batch < self.committed():
            return "between"
        if batch < self.delivered():
            return "sink"
        return "state" if any(self.state_files(batch)) else "inside"


def _count(folder: Path) -> int:
    """One more than the largest number that a file of the folder has for a name."""
    try:
        names = [_NUMBERED.fullmatch(file.name) for file in folder.iterdir()]
    except FileNotFoundError:
        return 0
    return 1 + max((int(name[1]) for name in names if name is not None), default=-1)
