"""What a figure was measured of: a name for the files that decide it, in each of the places where they are.

An answer that took an hour stands as long as these files are the same, whatever else is committed beside them: what
only asks for figures, stores them or shows them does not decide them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from benchmarks.checkouts import git

PLACES: Final = ("src", "benchmarks", "requirements.lock")
DECIDE_NOTHING: Final = (
    "src/streamjoin/cli",
    "src/streamjoin/reporting",
    "src/streamjoin/api/reporting.py",
    "src/streamjoin/spark/listening.py",  # for reports alone
    "benchmarks/reproduce",  # measures by itself, and stores nothing
    "benchmarks/all_questions.py",
    "benchmarks/bench_table.py",
    "benchmarks/measured_code.py",
)
DIRTY: Final = "-dirty"  # of a commit with changes that are in none

Code = dict[str, str]  # a name for what each place has


def code_now(root: Path) -> Code | None:
    """The files as they lie there; None where they have no name: changed since the last commit, or no git."""
    beside = [f":(exclude){path}" for path in DECIDE_NOTHING]
    changed = git("status", "--porcelain", "--", *PLACES, *beside, at=root)
    return None if changed is None or changed else code_of("HEAD", root)


def code_of(commit: str, root: Path) -> Code | None:
    """The files of a commit; None if nobody knows it, or if there were changes that are in none."""
    if commit.endswith(DIRTY):
        return None
    names = {place: _name_of(place, commit, root) for place in PLACES}
    known = {place: name for place, name in names.items() if name is not None}
    return known if len(known) == len(PLACES) else None


def _name_of(place: str, commit: str, root: Path) -> str | None:
    """By the names that git has for its files. Where there are no such files there is no name."""
    listed = git("ls-tree", "-r", "--full-tree", commit, "--", place, at=root)
    deciding = [line for line in (listed or "").splitlines() if not _decides_nothing(line.partition("\t")[2])]
    return hashlib.sha256("\n".join(deciding).encode()).hexdigest() if deciding else None


def _decides_nothing(path: str) -> bool:
    return any(path == beside or path.startswith(f"{beside}/") for beside in DECIDE_NOTHING)


def measured_of(found: dict[str, Any], root: Path) -> Code | None:
    """What a stored answer was measured of. By its commit where that is known: what decides a figure has been told in
    other ways, and its stored name may be one of those.
    """
    if "code" in found and found["code"] is None:
        return None
    stored: Code | None = found.get("code")
    return code_of(found["commit"], root) or stored
