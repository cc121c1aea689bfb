"""What a figure was measured of: git's names for the folders whose files decide it.

An answer that took an hour stands as long as these folders are the same, whatever else is committed beside them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.checkouts import git

FOLDERS: Final = ("src", "benchmarks")
DIRTY: Final = "-dirty"  # of a commit with changes that are in none

Code = dict[str, str]  # the name that git has for each folder's content


def code_now(root: Path) -> Code | None:
    """The folders as they lie there; None where they have no name: changed since the last commit, or no git."""
    changed = git("status", "--porcelain", "--", *FOLDERS, at=root)
    return None if changed is None or changed else code_of("HEAD", root)


def code_of(commit: str, root: Path) -> Code | None:
    """The folders of a commit; None if nobody knows it, or if there were changes that are in none."""
    if commit.endswith(DIRTY):
        return None
    names = {folder: git("rev-parse", "--verify", "--quiet", f"{commit}:{folder}", at=root) for folder in FOLDERS}
    known = {folder: name for folder, name in names.items() if name is not None}
    return known if len(known) == len(FOLDERS) else None


def measured_of(found: dict[str, Any], root: Path) -> Code | None:
    """What a stored answer was measured of. Older ones have only a commit."""
    if "code" in found:
        code: Code | None = found["code"]
        return code
    return code_of(found["commit"], root)
