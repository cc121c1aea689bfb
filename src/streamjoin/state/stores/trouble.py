"""What is said when files of runs are not what was written, or cannot be."""

from __future__ import annotations

from pathlib import Path

from streamjoin.errors import SpillError


def lost(path: str, why: str) -> SpillError:
    """What a file is not any more."""
    return SpillError(
        f"the file {path}, to which state was written that does not fit into memory, {why}",
        hint="start the query again: it is made anew from Spark's state. See whether something cleans the local "
        "directories of Spark while the query runs, and whether the disk is sound",
    )


def full(error: OSError, folder: Path) -> SpillError:
    """Why it cannot be written."""
    return SpillError(
        f"state that does not fit into memory= could not be written to {folder}: {error.strerror}",
        hint="make room there, name other folders in spark.local.dir, or give the join more memory=; then start the "
        "query again: nothing is lost",
    )


def damaged(path: str, page: int) -> SpillError:
    """Of a page that has been changed. Without its index nobody finds the run again: it will be made anew."""
    Path(path).with_suffix(".index").unlink(missing_ok=True)
    return lost(path, f"is damaged in page {page}")
