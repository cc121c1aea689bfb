"""What a figure was measured of: the files that decide it, and a name for what is in them.

An answer that took an hour stands as long as these files are the same, whatever else is committed. They are those that
the processes of its question loaded (`benchmarks.loaded_files`), what is not Python beside them, and the versions of
all packages. No other file has to be watched: it can only be loaded when one that was loaded has changed.

Of an answer without such a list nobody knows what it loaded: it stands as long as all files of all places are the same.
What only asks for figures, stores them or shows them decides none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    "benchmarks/asking/registry.py",  # `all_questions` alone needs all commands
    "benchmarks/bench_table.py",
    "benchmarks/loaded_files.py",
    "benchmarks/measured_code.py",
    "benchmarks/plots.py",
    "benchmarks/side_by_side.py",
    "benchmarks/watched",
)
DIRTY: Final = "-dirty"  # of a commit with changes that are in none

Code = dict[str, str]  # a name for what each place has


@dataclass(frozen=True)
class Tree:
    """Git's names for all files of a commit, and those that lie in the folder with something else in them."""

    blobs: Mapping[str, str]
    changed: frozenset[str]

    def deciding(self, loaded: Iterable[str]) -> list[str]:
        """The files that decide the answer to a question whose processes loaded these."""
        of_no_python = {path for path in self.blobs if _in_places(path) and not path.endswith(".py")}
        return sorted(path for path in {*loaded, *of_no_python} if not _decides_nothing(path))

    def content(self, files: Iterable[str]) -> str | None:
        """A name for what is in the files; None where one has no name: it is in no commit, or changed since."""
        named = [(path, self.blobs.get(path)) for path in sorted(files)]
        if any(blob is None or path in self.changed for path, blob in named):
            return None
        return hashlib.sha256("\n".join(f"{blob} {path}" for path, blob in named).encode()).hexdigest()


def tree_now(root: Path) -> Tree | None:
    """The last commit and the folder as it lies there; None without git."""
    listed = git("ls-tree", "-r", "-z", "--full-tree", "HEAD", at=root)
    changed = git("diff", "--name-only", "--no-renames", "-z", "HEAD", at=root)
    if listed is None or changed is None:
        return None
    lines = [line.partition("\t") for line in listed.split("\0") if line]
    return Tree({path: told for told, _, path in lines}, frozenset(changed.split("\0")))


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


def _in_places(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in PLACES)


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
