"""States of the code that are compared: this checkout, and an earlier one beside it.

Contenders are those of this checkout and use public functions; which streamjoin they import is set by PYTHONPATH. An
earlier state has a cache of its own for compiled kernels, so that it never runs code that another state has left there.
Both run on the packages that are installed for this one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.environments import ROOT
from benchmarks.errors import BenchmarkError, ContenderError

THIS: Final = "this state"
_PACKAGE: Final = Path("src", "streamjoin", "__init__.py")


@dataclass(frozen=True)
class Checkout:
    """A folder with a state of the code."""

    label: str
    folder: Path
    kernels: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What makes a contender, and Spark's workers for it, import streamjoin from here."""
        paths = [str(self.folder / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        cache = {} if self.kernels is None else {"NUMBA_CACHE_DIR": str(self.kernels)}
        return {"PYTHONPATH": os.pathsep.join(paths), **cache}

    def check(self, files: list[str]) -> None:
        """Refuse what was measured of other code than this."""
        if files != [str(self.folder / _PACKAGE)]:
            raise ContenderError(f"{self.label} was to run the code in {self.folder}, but ran {', '.join(files)}")


@dataclass(frozen=True)
class Earlier:
    """What `--against` names: a commit of this repository, or a folder with a checkout."""

    name: str
    folder: Path | None = None


def named(against: str) -> Earlier | None:
    """The earlier state that is asked for; None where there is none."""
    if not against:
        return None
    folder = Path(against)
    if (folder / _PACKAGE).is_file():
        return Earlier(git("describe", "--always", "--dirty", at=folder) or against, folder.resolve())
    commit = git("rev-parse", "--verify", "--quiet", "--short", f"{against}^{{commit}}")
    if commit is None:
        raise BenchmarkError(
            f"{against!r} is neither a commit of this repository nor a folder with a checkout",
            hint="--against 1a2b3c4, --against main, or --against ../other-checkout",
        )
    return Earlier(commit)


@contextmanager
def checkouts(earlier: Earlier | None, folder: Path) -> Iterator[list[Checkout]]:
    """This checkout and, where asked for, the earlier one; what is made for it in `folder` is removed afterwards."""
    this = Checkout(THIS, ROOT)
    if earlier is None:
        yield [this]
        return
    label, kernels = f"before ({earlier.name})", folder / "kernels"
    if earlier.folder is not None:
        yield [this, Checkout(label, earlier.folder, kernels)]
        return
    there = folder / "before"
    if git("worktree", "add", "--detach", str(there), earlier.name) is None:
        raise BenchmarkError(f"commit {earlier.name} could not be checked out in {folder}")
    try:
        yield [this, Checkout(label, there, kernels)]
    finally:
        git("worktree", "remove", "--force", str(there))


def git(*arguments: str, at: Path | None = None) -> str | None:
    """What git says in a folder, by default in this checkout; None where it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=at or ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
