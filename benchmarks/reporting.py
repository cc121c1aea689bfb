"""How a benchmark reports: the circumstances in which it ran, a table per question, verdicts, and all of it as JSON."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks import tables
from benchmarks.environments import ROOT
from benchmarks.errors import BenchmarkError
from benchmarks.race import Verdict

FEWEST_REPETITIONS: Final = 5
BUSY: Final = 0.5  # of a core, by others, when a measurement begins

# The question's name, its verdicts, all that was found out, and a table of it.
Outcomes = Iterator[tuple[str, list[Verdict], Any, Table]]


def check_repetitions(repetitions: int, quick: bool) -> None:
    """Refuse what would be called a measurement and is none."""
    if repetitions < FEWEST_REPETITIONS and not quick:
        raise BenchmarkError(
            f"a measurement needs at least {FEWEST_REPETITIONS} repetitions, got {repetitions}",
            hint="--quick allows fewer, and is not a measurement",
        )


def questions_of(only: Sequence[str], questions: Sequence[str]) -> list[str]:
    """Those that were asked for, all of them unless told; unknown ones are refused."""
    unknown = sorted(set(only) - set(questions))
    if unknown:
        raise BenchmarkError(f"there is no question {unknown[0]!r}", hint="choose from " + ", ".join(questions))
    return [question for question in questions if not only or question in only]


def reported(
    console: Console, report: dict[str, Any], outcomes: Callable[[Path], Outcomes], json_path: Path | None
) -> list[Verdict]:
    """Print and store outcomes as they come, then the verdicts."""
    report["questions"] = {}
    verdicts: list[Verdict] = []
    start = time.monotonic()
    # Whoever is asked to end, ends its contenders too, and removes its files: as for ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="streamjoin-bench-") as folder:
        for name, found, outcome, table in outcomes(Path(folder)):
            console.print(table)
            verdicts.extend(found)
            report["questions"][name] = outcome.to_json()
            report["verdicts"] = [verdict.to_json() for verdict in verdicts]
            report["minutes"] = (time.monotonic() - start) / 60
            if json_path is not None:  # every time: an hour's work is not lost with its last minute
                json_path.write_text(json.dumps(report, indent=2) + "\n")
    tables.print_verdicts(console, verdicts, report["quick"])
    console.print(f"{(time.monotonic() - start) / 60:.1f} minutes in all", highlight=False)
    return verdicts


@contextmanager
def progress(console: Console) -> Iterator[Callable[[str], None]]:
    """A line that says what is going on: it changes on a terminal, and is a new one in a log."""
    with console.status("") as status:
        yield status.update if console.is_terminal else partial(console.print, style="dim", highlight=False)


def circumstances(peers: Sequence[str]) -> dict[str, Any]:
    """What a figure depends on beside the code."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [line.split(":")[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
        model = names[0].strip() if names else model
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "machine": f"{model}, {os.cpu_count()} cores, {platform.system()}",
        "python": platform.python_version(),
        "commit": _commit(),
        "load": os.getloadavg()[0],
        "peers": list(peers),
    }


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def introduce(console: Console, report: dict[str, Any], how: str) -> None:
    """Say what runs, and whether it can be a measurement."""
    if report["quick"]:
        console.print("[yellow]Quick run: small sizes, to see that everything works. Not a measurement.[/]")
    console.print(
        f"streamjoin at {report['commit']}; {report['machine']}; Python {report['python']}; "
        f"{'; '.join(filter(None, [', '.join(report['peers']), how]))}; started {report['started']}",
        highlight=False,
        soft_wrap=True,
    )
    if report["load"] > BUSY:
        console.print(f"[yellow]This machine is busy (load {report['load']:.1f}): expect noise.[/]", highlight=False)
