"""How long does it take to restore a gigabyte of state that came in a thousand micro-batches?

    reading                its bytes, and nothing else
    in memory, as before   parts are merged head by head, which takes as long as there are parts
    in memory              many parts are sorted anew
    64 MB                  with a budget: parts are sorted some at a time into files, and these are merged

Each in a process of its own, all from the same files; what is restored is the same, row by row, or there is no verdict.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from benchmarks.environments import ROOT
from benchmarks.errors import ContenderError
from benchmarks.race import Verdict
from benchmarks.worker import ONE_THREAD

QUESTIONS: Final = ("restore",)
ROWS, BATCHES, MEMORY = 7_000, 1_000, 64 << 20
QUICK: Final = (400, 40, 2 << 20)
MOST_SECONDS: Final = 15.0  # beyond reading the bytes
WAYS: Final = {"merged": "in memory, as before", "sorted": "in memory", "files": "with a budget"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class RestoreOutcome:
    """What was stored, and each way to have it back."""

    made: dict[str, int]
    reading: float
    ways: dict[str, dict[str, Any]]
    batches: int

    @property
    def verdicts(self) -> list[Verdict]:
        if len({each["digest"] for each in self.ways.values()}) > 1:
            raise ContenderError(
                f"what was restored differs: { {way: each['digest'] for way, each in self.ways.items()} }"
            )
        return [
            Verdict(
                f"restore, {WAYS[way]}", seconds := self.ways[way]["seconds"] - self.reading, MOST_SECONDS,
                f"{seconds:.1f} s beyond reading {self.made['bytes'] / 1e9:.2f} GB of {self.batches:,} micro-batches, "
                f"as before {self.ways['merged']['seconds'] - self.reading:.1f} s",
                at_most=True,
            )
            for way in ("sorted", "files")
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        told = {"made": self.made, "reading": self.reading, "ways": self.ways}
        return {**told, "verdicts": [each.to_json() for each in self.verdicts]}


def outcomes(quick: bool, folder: Path, say: Say) -> Iterator[tuple[str, list[Verdict], Any, Table]]:
    """The one question."""
    rows, batches, memory = QUICK if quick else (ROWS, BATCHES, MEMORY)
    place = folder / "restore"
    place.mkdir()
    say(f"restore: {batches:,} micro-batches of 2 x {rows:,} rows are stored ...")
    made = _run("make", place, rows, batches, memory)
    _run("read", place)  # the first one may find them on disk only
    reading = _run("read", place)["seconds"]
    ways = {}
    for way in WAYS:
        say(f"restore: {WAYS[way]} ...")
        ways[way] = _run(way, place, *([memory] if way == "files" else []))
    found = RestoreOutcome(made, reading, ways, batches)
    yield "restore", found.verdicts, found, table(found)


def table(found: RestoreOutcome) -> Table:
    """All ways side by side."""
    made = found.made
    stored = f"{made['bytes'] / 1e6:,.0f} MB in {made['parts']:,} parts"
    title = f"{made['kept']:,} rows of {found.batches:,} micro-batches, {stored}"
    shown = Table("", "seconds", "beyond reading", "memory above start", title=title)
    shown.add_row("reading its bytes", f"{found.reading:.2f}", "", "")
    for way, each in found.ways.items():
        beyond, memory = each["seconds"] - found.reading, each["anonymous"] / 1e6
        shown.add_row(WAYS[way], f"{each['seconds']:.2f}", f"{beyond:.2f}", f"{memory:,.0f} MB")
    return shown


def _run(what: str, place: Path, *numbers: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.contenders.restored_join", what, str(place), *map(str, numbers)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **ONE_THREAD}
    )
    if done.returncode:
        raise ContenderError(f"{what} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
