"""What `streamjoin bench` runs: one function per command."""

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

from benchmarks import growth, kernels, spark_nested_loop, tables
from benchmarks.environments import ROOT, peers_python, requirements_of
from benchmarks.errors import BenchmarkError
from benchmarks.race import Verdict

PEERS_FILE: Final = Path(__file__).parent / "peers.txt"
KERNEL_QUESTIONS: Final = (*kernels.PEERS, "spark", "growth")
FEWEST_REPETITIONS: Final = 5
BUSY: Final = 0.5  # of a core, by others, when a measurement begins


def run_kernels(
    console: Console, *, quick: bool, repetitions: int, only: Sequence[str], json_path: Path | None
) -> list[Verdict]:
    """`streamjoin bench kernels`: measure, print a table as soon as it is there, and all verdicts at the end."""
    unknown = sorted(set(only) - set(KERNEL_QUESTIONS))
    if unknown:
        raise BenchmarkError(f"there is no question {unknown[0]!r}", hint="choose from " + ", ".join(KERNEL_QUESTIONS))
    if repetitions < FEWEST_REPETITIONS and not quick:
        raise BenchmarkError(
            f"a measurement needs at least {FEWEST_REPETITIONS} repetitions, got {repetitions}",
            hint="--quick allows fewer, and is not a measurement",
        )
    asked = [question for question in KERNEL_QUESTIONS if not only or question in only]
    report: dict[str, Any] = {"command": "kernels", "quick": quick, "repetitions": repetitions, **_circumstances()}
    report["questions"] = {}
    verdicts: list[Verdict] = []
    _introduce(console, report)
    # Whoever is asked to end, ends its contenders too, and removes its files: as for ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="streamjoin-bench-") as folder:
        for name, outcome, table in _kernel_outcomes(console, asked, quick, repetitions, Path(folder)):
            console.print(table)
            verdicts.append(outcome.verdict)
            report["questions"][name] = outcome.to_json()
            if json_path is not None:  # every time: an hour's work is not lost with its last minute
                json_path.write_text(json.dumps(report, indent=2) + "\n")
    tables.print_verdicts(console, verdicts, quick)
    return verdicts


def _kernel_outcomes(
    console: Console, asked: Sequence[str], quick: bool, repetitions: int, folder: Path
) -> Iterator[tuple[str, Any, Any]]:
    for question in kernels.PEERS:
        if question in asked:
            python = peers_python(PEERS_FILE, console.print)
            rows = kernels.QUICK_ROWS if quick else kernels.ROWS
            with _progress(console) as say:
                say(f"{question}: ours and its peers in turn ...")
                raced = kernels.measure(question, rows, repetitions, folder / question, python)
            yield question, raced, tables.kernel_table(raced)
    if "spark" in asked:
        for question in spark_nested_loop.QUESTIONS:
            rows = spark_nested_loop.QUICK_ROWS if quick else spark_nested_loop.ROWS
            with _progress(console) as say:
                joined = spark_nested_loop.measure(question, rows, repetitions, folder / "spark" / question, say)
            yield f"spark {question}", joined, tables.spark_table(joined)
    if "growth" in asked:
        for question in growth.QUESTIONS:
            smallest = growth.QUICK_SMALLEST if quick else growth.SMALLEST
            with _progress(console) as say:
                say(f"growth of {question} ...")
                grown = growth.measure(question, smallest, repetitions, folder / "growth" / question)
            yield f"growth {question}", grown, tables.growth_table(grown)


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], None]]:
    """A line that says what is going on: it changes on a terminal, and is a new one in a log."""
    with console.status("") as status:
        yield status.update if console.is_terminal else partial(console.print, style="dim", highlight=False)


def _circumstances() -> dict[str, Any]:
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
        "peers": requirements_of(PEERS_FILE.read_text()),
    }


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _introduce(console: Console, report: dict[str, Any]) -> None:
    if report["quick"]:
        console.print("[yellow]Quick run: small sizes, to see that everything works. Not a measurement.[/]")
    console.print(
        f"streamjoin at {report['commit']}; {report['machine']}; Python {report['python']}; "
        f"{', '.join(report['peers'])}; "
        f"{report['repetitions']} repetitions in turn, medians; started {report['started']}",
        highlight=False,
        soft_wrap=True,
    )
    if report["load"] > BUSY:
        console.print(f"[yellow]This machine is busy (load {report['load']:.1f}): expect noise.[/]", highlight=False)
