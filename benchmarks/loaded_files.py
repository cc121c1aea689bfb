"""Which of the project's own files the processes of a question load: noted by each of them, and stored in few lines."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Final

# They are noted by the `sitecustomize` that lies there: what it is told, it is told in variables, which are inherited.
WATCHED: Final = Path(__file__).parent / "watched"
_NOTES: Final = "STREAMJOIN_BENCH_NOTES"
_ROOT: Final = "STREAMJOIN_BENCH_ROOT"
# Whoever asked a question has loaded this. Where it was not noted nothing was, so nobody knows what was loaded.
_ALWAYS_LOADED: Final = "benchmarks/commands.py"

Table = dict[str, dict[str, str]]  # lists of files by their names; of each folder the files in it


def noting(notes: Path, root: Path, environment: dict[str, str]) -> dict[str, str]:
    """The environment of a process that notes what it loads of `root`, and so do all that it starts."""
    paths = [str(WATCHED), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths), _NOTES: str(notes), _ROOT: str(root)}


def noted(notes: Path) -> list[str]:
    """The files that were noted; none where not even the first was, which somebody must have loaded."""
    files = set(notes.read_text().splitlines()) if notes.is_file() else set()
    # Under build/ are the peers' environments: packages, whose versions requirements name.
    own = sorted(file for file in files if not file.startswith(("build/", ".")))
    return own if _ALWAYS_LOADED in files else []


def fold(stored: dict[str, dict[str, Any]]) -> tuple[dict[str, dict[str, Any]], Table]:
    """Answers with the names of their lists, and the lists: most answers share theirs with others, and all are long.

    >>> fold({"a": {"files": ["src/one.py", "src/two.py"]}, "b": {"files": []}, "c": {"minutes": 1.0}})
    ({'a': {'files': '3af5865a7d08'}, 'b': {}, 'c': {'minutes': 1.0}}, {'3af5865a7d08': {'src': 'one.py two.py'}})
    """
    folded, table = dict[str, dict[str, Any]](), Table()
    for key, found in stored.items():
        folded[key] = {name: value for name, value in found.items() if name != "files"}
        if found.get("files"):
            name = hashlib.sha256("\n".join(found["files"]).encode()).hexdigest()[:12]
            folded[key]["files"] = name
            table[name] = _by_folder(found["files"])
    return folded, dict(sorted(table.items()))


def _by_folder(files: Iterable[str]) -> dict[str, str]:
    folders = defaultdict[str, list[str]](list)
    for file in map(PurePosixPath, files):
        folders[str(file.parent)].append(file.name)
    return {folder: " ".join(names) for folder, names in folders.items()}


def unfold(folded: dict[str, dict[str, Any]], table: Table) -> dict[str, dict[str, Any]]:
    """What `fold` was given."""
    lists = {
        name: sorted(str(PurePosixPath(folder, file)) for folder, files in by.items() for file in files.split())
        for name, by in table.items()
    }
    return {
        key: {**found, "files": lists[found["files"]]} if "files" in found else found for key, found in folded.items()
    }
